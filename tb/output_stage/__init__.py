# SPDX-License-Identifier: Apache-2.0
"""Benches of the pooling unit and of the write-back to the AI RAM."""
