# SPDX-License-Identifier: Apache-2.0
"""Tests: commands for users."""
