# SPDX-License-Identifier: Apache-2.0
"""Bench of the operands, the array and the accumulators together."""
