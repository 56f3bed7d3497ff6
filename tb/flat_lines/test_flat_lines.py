# SPDX-License-Identifier: Apache-2.0
"""flat_lines: whole lines of 1 to 16 pixels in 64 pixels, and what is left, for every width."""

import cocotb
import pytest
from cocotb.triggers import Timer

from openkpu_tb.simrun import run_bench

STRIPE = 64  # pixels


@cocotb.test()
async def every_width(dut) -> None:
    """All 16 widths; the port has four bits, so that 16 arrives as 0."""
    for width in range(1, 17):
        dut.width.value = width & 15
        await Timer(1, "ns")
        got = int(dut.lines.value), int(dut.rest.value)
        assert got == divmod(STRIPE, width), f"width {width}: lines and rest {got}"


@pytest.mark.fixed  # every value there is
def test_flat_lines() -> None:
    run_bench("verilator", "flat_lines", ["rtl/lib/flat_lines.v"], "tb.flat_lines.test_flat_lines")
