# SPDX-License-Identifier: Apache-2.0
"""Random graphs of the intermediate form, for tests and campaigns."""
