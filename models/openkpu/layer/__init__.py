# SPDX-License-Identifier: Apache-2.0
"""A layer: its argument and rules, its maps, and the golden model of it (docs/kpu.md 1 and 2)."""
