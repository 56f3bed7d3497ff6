# SPDX-License-Identifier: Apache-2.0
"""Mutation of the RTL: places, mutants, judges."""
