# SPDX-License-Identifier: Apache-2.0
"""Tests: readers of TFLite and ONNX."""
