# SPDX-License-Identifier: Apache-2.0
"""Tests: set-up, package, checkouts."""
