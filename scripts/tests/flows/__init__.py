# SPDX-License-Identifier: Apache-2.0
"""Tests: flows of silicon and netlists."""
