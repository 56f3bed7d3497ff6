# SPDX-License-Identifier: Apache-2.0
"""Tests: readers of ONNX, single operators in both formats."""
