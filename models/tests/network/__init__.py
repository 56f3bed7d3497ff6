# SPDX-License-Identifier: Apache-2.0
"""Tests: networks, products, their cycles."""
