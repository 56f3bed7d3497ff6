# SPDX-License-Identifier: Apache-2.0
"""What a model's outputs mean: boxes of detectors, classes."""
