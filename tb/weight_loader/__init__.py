# SPDX-License-Identifier: Apache-2.0
"""Bench of the weight loader with the weight buffer."""
