# SPDX-License-Identifier: Apache-2.0
"""pyuvm environment of the whole device, with its library of sequences; README.md explains it."""
