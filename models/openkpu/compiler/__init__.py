# SPDX-License-Identifier: Apache-2.0
"""The compiler of quantised networks: TFLite and ONNX models into layers (docs/compiler.md)."""
