# SPDX-License-Identifier: Apache-2.0
"""The whole device: Verilog bench, pyuvm environment, tests."""
