# SPDX-License-Identifier: Apache-2.0
"""Flows from the RTL to gates: synthesis, FPGA, standard cells, equivalence, proofs."""
