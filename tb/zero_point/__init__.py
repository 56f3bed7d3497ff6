# SPDX-License-Identifier: Apache-2.0
"""Bench of the zero-point terms of one lane."""
