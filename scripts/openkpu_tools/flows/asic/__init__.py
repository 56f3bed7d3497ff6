# SPDX-License-Identifier: Apache-2.0
"""The device in standard cells."""
