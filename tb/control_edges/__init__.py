# SPDX-License-Identifier: Apache-2.0
"""Bench: single cycles and single bits of control that random layers rarely meet."""
