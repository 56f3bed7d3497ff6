# SPDX-License-Identifier: Apache-2.0
"""A counter with a bench that has a gap: what mutation finds, in seconds."""
