# SPDX-License-Identifier: Apache-2.0
"""Commands for networks of the compiler: compile, quantise, run, show, export."""
