# SPDX-License-Identifier: Apache-2.0
"""Bench of the record of failed channels."""
