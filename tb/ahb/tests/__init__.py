# SPDX-License-Identifier: Apache-2.0
"""The kit on a slave that is not this device."""
