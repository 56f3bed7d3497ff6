# SPDX-License-Identifier: Apache-2.0
"""Tests: benchmarks and vectors."""
