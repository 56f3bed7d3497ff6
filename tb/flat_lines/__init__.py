# SPDX-License-Identifier: Apache-2.0
"""Bench of the table of lines in a stripe of a flat layer."""
