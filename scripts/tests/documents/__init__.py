# SPDX-License-Identifier: Apache-2.0
"""Tests: pages: links, tables, statements."""
