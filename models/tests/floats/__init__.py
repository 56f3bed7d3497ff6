# SPDX-License-Identifier: Apache-2.0
"""Float ONNX models: how their operators are spelled before they are quantised."""
