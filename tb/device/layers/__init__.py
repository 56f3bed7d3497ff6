# SPDX-License-Identifier: Apache-2.0
"""Layers on the whole device: random, by bin, by build."""
