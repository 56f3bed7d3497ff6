# SPDX-License-Identifier: Apache-2.0
"""Hosts that act in the unlucky cycle, errors of the bus, windows, the watchdog."""
