# SPDX-License-Identifier: Apache-2.0
"""Bench of a channel's constant from the sum of its weights."""
