# SPDX-License-Identifier: Apache-2.0
"""Bench of the AI RAM with everything that reads and writes it."""
