# SPDX-License-Identifier: Apache-2.0
"""Bench of the source of layer words."""
