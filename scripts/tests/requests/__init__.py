# SPDX-License-Identifier: Apache-2.0
"""Tests: what commands take and refuse."""
