# SPDX-License-Identifier: Apache-2.0
"""Bench of apb_to_ahb."""
