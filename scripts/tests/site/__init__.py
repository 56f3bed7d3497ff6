# SPDX-License-Identifier: Apache-2.0
"""Tests: reports and the page in a browser."""
