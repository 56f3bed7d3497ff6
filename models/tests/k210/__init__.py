# SPDX-License-Identifier: Apache-2.0
"""Tests: K210 models as a whole: task lists, pictures, detectors."""
