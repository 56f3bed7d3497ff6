# SPDX-License-Identifier: Apache-2.0
"""One rule for each kind of node."""
