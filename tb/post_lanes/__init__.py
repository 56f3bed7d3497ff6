# SPDX-License-Identifier: Apache-2.0
"""Bench of the post lanes: from sums to bytes."""
