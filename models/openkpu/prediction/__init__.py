# SPDX-License-Identifier: Apache-2.0
"""Cycles without a simulator: roofline, bound, and the model of the device's cycles."""
