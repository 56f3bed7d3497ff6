# SPDX-License-Identifier: Apache-2.0
"""Tests: commands of verification, and rules for sources."""
