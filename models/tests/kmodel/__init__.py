# SPDX-License-Identifier: Apache-2.0
"""Tests: files of K210 models and their operations."""
