# SPDX-License-Identifier: Apache-2.0
"""AHB 2.0 and AHB-Lite for cocotb: host, monitor, responder, rule checkers, fabric (README.md)."""
