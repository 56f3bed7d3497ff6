# SPDX-License-Identifier: Apache-2.0
"""Bus agents shared by the benches."""
