# SPDX-License-Identifier: Apache-2.0
"""Bench of the host's way to the device."""
