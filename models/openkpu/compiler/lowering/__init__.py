# SPDX-License-Identifier: Apache-2.0
"""Nodes of the intermediate form as layers of the device."""
