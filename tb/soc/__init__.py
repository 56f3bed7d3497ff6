# SPDX-License-Identifier: Apache-2.0
"""The driver (sw/) and the computer around the device (soc/), on the RTL."""
