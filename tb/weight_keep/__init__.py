# SPDX-License-Identifier: Apache-2.0
"""Bench of what decides whether weights stay in the buffer."""
