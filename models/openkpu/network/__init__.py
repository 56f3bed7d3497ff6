# SPDX-License-Identifier: Apache-2.0
"""Networks as task lists: layers with their tables, places, images (docs/networks.md)."""
