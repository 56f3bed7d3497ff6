# SPDX-License-Identifier: Apache-2.0
"""Tests: lowerings of the compiler."""
