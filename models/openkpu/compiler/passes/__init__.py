# SPDX-License-Identifier: Apache-2.0
"""Passes that rewrite a graph before it is lowered."""
