# SPDX-License-Identifier: Apache-2.0
"""Bench of the sequencer: every issue of every kind of layer, in every cycle."""
