# SPDX-License-Identifier: Apache-2.0
"""Verilog of the buses that the bridges translate to: AXI4, AXI4-Lite, APB."""
