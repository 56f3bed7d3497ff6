# SPDX-License-Identifier: Apache-2.0
"""Tests: arithmetic and layers."""
