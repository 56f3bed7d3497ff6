# SPDX-License-Identifier: Apache-2.0
"""Operators of a float ONNX model in the form in which the readers have them."""
