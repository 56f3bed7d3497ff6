# SPDX-License-Identifier: Apache-2.0
"""The driver (sw/), natively on the RTL."""
