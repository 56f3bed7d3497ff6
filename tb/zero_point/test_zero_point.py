# SPDX-License-Identifier: Apache-2.0
"""zero_point: alu = s + ((arg_x * sx) >> shr_x) + k modulo 2^36, floor shift, stages with gaps."""

import random

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from openkpu_tb.core.pipeline_bench import run_stages
from openkpu_tb.core.post_tables import scaled_to_15
from openkpu_tb.simrun import SIMS, run_bench

ARG_X = (-(1 << 23), (1 << 23) - 1, -128, -1, 0, 1)


def ends(bits: int) -> int:
    """Unsigned: 0, the largest value, or random."""
    return random.choice((0, (1 << bits) - 1, random.getrandbits(bits), random.getrandbits(bits)))


async def set_argument(dut, arg: int, shr: int) -> int:
    """Give a layer's arg_x to multipliers and memories; returns it moved up to a shift of 15."""
    wide = scaled_to_15(arg, shr)
    # for multipliers: 36 bits, the other factor moves up by three where they are too few
    dut.fine.value = int(shr < 3)
    dut.coarse.value = (wide >> 3 if shr < 3 else wide) & ((1 << 36) - 1)
    for i in range(16):
        dut.table_we.value, dut.table_addr.value = 1, i
        dut.table_data.value = wide * i & ((1 << 43) - 1)
        await RisingEdge(dut.clk)
    dut.table_we.value = 0
    return wide


@cocotb.test()
async def exact(dut) -> None:
    """Layer arguments stay for a while; sums up to the worst case, constants of either sign."""
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.valid.value = 0
    await RisingEdge(dut.clk)
    width = 29
    for shr in range(16):
        for arg in (*ARG_X, random.randrange(-(1 << 23), 1 << 23)):
            wide = await set_argument(dut, arg, shr)
            cases = [(ends(36), ends(width), ends(36)) for _ in range(20)] + [(0, 1, 0), (0, 3, 0)]
            cases += [(ends(36), ends(12), ends(36)) for _ in range(20)]
            items = [
                [
                    {"sum": s, "xsum": x & 0xFFF},
                    {"k": k, "low": wide * (x & 0xFFF) >> 12},
                    {"high": wide * (x >> 12)},
                ]
                for s, x, k in cases
            ]
            got = await run_stages(dut, items, "alu", p_item=random.choice((1.0, 0.7)))
            for (s, x, k), alu in zip(cases, got, strict=True):
                want = (s + ((arg * x) >> shr) + k) & ((1 << 36) - 1)
                assert alu == want, f"{s} + ({arg} * {x} >> {shr}) + {k}: {alu:#x}, not {want:#x}"


@cocotb.test()
async def product(dut) -> None:
    """The lane's product: twelve bits of pixels, with multipliers as many as fit."""
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.valid.value = 0
    await RisingEdge(dut.clk)
    multiply = int(dut.MULTIPLY.value)
    for shr in range(16):
        for arg in (*ARG_X, random.randrange(-(1 << 23), 1 << 23)):
            wide = await set_argument(dut, arg, shr)
            bits = 12 if not multiply else 14 if shr < 3 else 17
            values = [0, 1, 4095, *(ends(bits) for _ in range(20))]
            got = await run_stages(dut, [[{"xsum": x}] for x in values], "own", p_item=0.8)
            cut = 0 if multiply else 12  # memories do not keep what the shift drops
            assert [own >> cut for own in got] == [(wide * x % (1 << 51)) >> cut for x in values]


@pytest.mark.tier(check=["0-verilator", "1-verilator"])
@pytest.mark.parametrize("sim", SIMS)
@pytest.mark.parametrize("multiply", [0, 1])
def test_zero_point(sim: str, multiply: int) -> None:
    sources = ["rtl/post/zero_point.v", "rtl/lib/ram_1r1w_async.v"]
    test = "tb.zero_point.test_zero_point"
    run_bench(sim, "zero_point", sources, test, params={"MULTIPLY": multiply})
