# SPDX-License-Identifier: Apache-2.0
"""The claims of the patent: recorded runs that their tests look at, and mutations."""
