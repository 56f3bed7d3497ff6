# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: which bench judges which module, and mutants that are equivalent."""
