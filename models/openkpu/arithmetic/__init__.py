# SPDX-License-Identifier: Apache-2.0
"""Exact arithmetic of the device: activation, pools, float16, tables, words (docs/kpu.md 1)."""
