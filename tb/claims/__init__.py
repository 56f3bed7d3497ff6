# SPDX-License-Identifier: Apache-2.0
"""One test per claim of the patent, on signals and bus traffic of the whole device."""
