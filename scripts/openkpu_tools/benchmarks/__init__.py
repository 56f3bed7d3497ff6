# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: what the device reaches, and what the commands cost."""
