# SPDX-License-Identifier: Apache-2.0
"""Bench of the loader of batch norm and activation tables."""
