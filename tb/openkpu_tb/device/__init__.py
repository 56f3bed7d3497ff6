# SPDX-License-Identifier: Apache-2.0
"""The device in a simulation: bench in Verilog, registers, back doors, driver."""
