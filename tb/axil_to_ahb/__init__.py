# SPDX-License-Identifier: Apache-2.0
"""Bench of axil_to_ahb."""
