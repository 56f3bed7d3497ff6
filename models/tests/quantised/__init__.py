# SPDX-License-Identifier: Apache-2.0
"""Tests: quantisation, random graphs, other runtimes."""
