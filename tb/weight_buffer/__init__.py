# SPDX-License-Identifier: Apache-2.0
"""Bench of the weight buffer: both loaders, all memories and their readers together."""
