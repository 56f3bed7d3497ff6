# SPDX-License-Identifier: Apache-2.0
"""zero_point_table: sixteen multiples of arg_x, moved up by what its shift lacks to 15."""

import random

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from openkpu_tb.core.pipeline_bench import signed
from openkpu_tb.core.post_tables import scaled_to_15
from openkpu_tb.simrun import SIMS, run_bench

ARG_X = (-(1 << 23), (1 << 23) - 1, -128, -1, 0, 1)


@cocotb.test()
async def multiples(dut) -> None:
    """Each step writes the next multiple, whatever lies between load and steps."""
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.load.value, dut.step.value = 0, 0
    for shr in range(16):
        for arg in (*ARG_X, random.randrange(-(1 << 23), 1 << 23)):
            wide = scaled_to_15(arg, shr)
            dut.arg_x.value, dut.shr_x.value = arg & 0xFFFFFF, shr
            dut.load.value = 1
            await RisingEdge(dut.clk)
            dut.load.value = 0
            await RisingEdge(dut.clk)
            written = []
            for _ in range(200):
                step = random.random() < 0.8
                dut.step.value = int(step)
                await RisingEdge(dut.clk)
                # sampled before this edge's change: what a lane's memory takes with the step
                if step:
                    written.append((int(dut.addr.value), int(dut.data.value)))
                if len(written) == 16:
                    break
            dut.step.value = 0
            assert written == [(i, wide * i & ((1 << 43) - 1)) for i in range(16)]
            assert int(dut.scaled.value) == wide & ((1 << 39) - 1)
            # for multipliers: 36 bits, the other factor moves up by three where they are too few
            coarse = signed(int(dut.coarse.value), 36)
            assert coarse << (3 if int(dut.fine.value) else 0) == wide


@pytest.mark.tier(check=["verilator"])
@pytest.mark.parametrize("sim", SIMS)
def test_zero_point_table(sim: str) -> None:
    test = "tb.zero_point.test_zero_point_table"
    run_bench(sim, "zero_point_table", ["rtl/post/zero_point_table.v"], test)
