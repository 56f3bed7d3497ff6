# SPDX-License-Identifier: Apache-2.0
"""Bench of one sign-gated multiply-add unit."""
