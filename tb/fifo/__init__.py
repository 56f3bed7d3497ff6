# SPDX-License-Identifier: Apache-2.0
"""Bench of the FIFOs of rtl/lib."""
