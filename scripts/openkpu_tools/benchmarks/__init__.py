# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: performance of the device, and run time of the commands."""
