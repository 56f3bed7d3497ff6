# SPDX-License-Identifier: Apache-2.0
"""Bench of ahb_to_axi."""
