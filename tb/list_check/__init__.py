# SPDX-License-Identifier: Apache-2.0
"""Bench of list_check."""
