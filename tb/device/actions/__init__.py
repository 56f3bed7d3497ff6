# SPDX-License-Identifier: Apache-2.0
"""A host that does anything at any time."""
