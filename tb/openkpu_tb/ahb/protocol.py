# SPDX-License-Identifier: Apache-2.0
"""Codes of AHB 2.0."""

IDLE, BUSY, NONSEQ, SEQ = range(4)  # HTRANS
OKAY, ERROR, RETRY, SPLIT = range(4)  # HRESP; AHB-Lite has the first two
