# SPDX-License-Identifier: Apache-2.0
"""The test plan: what is verified, by what, and what became of it."""
