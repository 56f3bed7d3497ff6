# SPDX-License-Identifier: Apache-2.0
"""Products of matrices as layers and task lists (docs/kpu.md 1.10 and 1.12)."""
