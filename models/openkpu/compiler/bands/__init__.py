# SPDX-License-Identifier: Apache-2.0
"""Layers whose maps do not fit the AI RAM, computed in bands of lines (docs/compiler.md 6)."""
