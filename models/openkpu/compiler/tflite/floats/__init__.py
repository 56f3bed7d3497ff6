# SPDX-License-Identifier: Apache-2.0
"""Float TFLite models as float ONNX models."""
