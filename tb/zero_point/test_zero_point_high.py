# SPDX-License-Identifier: Apache-2.0
"""zero_point_high: arg_x times the upper bits of a sum of pixels, modulo 2^39."""

import random

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from openkpu_tb.core.pipeline_bench import run_stages
from openkpu_tb.core.post_tables import scaled_to_15
from openkpu_tb.simrun import run_bench

ARG_X = (-(1 << 23), (1 << 23) - 1, -128, -1, 0, 1)


@cocotb.test()
async def product(dut) -> None:
    """Ends of the ranges and random numbers, every shift."""
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.valid.value = 0
    await RisingEdge(dut.clk)
    width = int(dut.HW.value)
    for shr in range(16):
        for arg in (*ARG_X, random.randrange(-(1 << 23), 1 << 23)):
            wide = scaled_to_15(arg, shr)
            dut.scaled.value = wide & ((1 << 39) - 1)
            values = [0, 1, 7, (1 << width) - 1, *(random.getrandbits(width) for _ in range(20))]
            got = await run_stages(dut, [[{"x": x}, {}] for x in values], "high", p_item=0.8)
            assert got == [wide * x & ((1 << 39) - 1) for x in values]


@pytest.mark.tier(check=["icarus-3", "verilator-17"])
@pytest.mark.parametrize(("sim", "width"), [("icarus", 17), ("icarus", 3), ("verilator", 17)])
def test_zero_point_high(sim: str, width: int) -> None:
    test = "tb.zero_point.test_zero_point_high"
    run_bench(sim, "zero_point_high", ["rtl/post/zero_point_high.v"], test, params={"HW": width})
