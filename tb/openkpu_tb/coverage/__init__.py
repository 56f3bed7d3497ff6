# SPDX-License-Identifier: Apache-2.0
"""Functional and code coverage of the device."""
