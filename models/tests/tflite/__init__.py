# SPDX-License-Identifier: Apache-2.0
"""Tests: the reader of TFLite."""
