# SPDX-License-Identifier: Apache-2.0
"""Test benches: one folder per block, and the whole device."""
