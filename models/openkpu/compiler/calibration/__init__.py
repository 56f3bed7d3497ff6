# SPDX-License-Identifier: Apache-2.0
"""Float models, quantised with ONNX Runtime's own tools on samples of their inputs."""
