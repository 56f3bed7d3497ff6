# SPDX-License-Identifier: Apache-2.0
"""Sequences: of the host's transfers, of jobs, of the bus, of resets."""
