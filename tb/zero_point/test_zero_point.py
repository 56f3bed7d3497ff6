# SPDX-License-Identifier: Apache-2.0
"""alu = s + ((arg_x * sx) >> shr_x) + k modulo 2^36, with a floor shift: zero_point, of a lane, and
what it shares with others: zero_point_table, sixteen multiples of arg_x moved up by what its shift
lacks to 15, and zero_point_high, arg_x times the upper bits of a sum of pixels modulo 2^39."""

import random
from collections.abc import Iterator

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from openkpu_tb.core.pipeline_bench import run_stages, signed, start_clock
from openkpu_tb.core.post_tables import scaled_to_15
from openkpu_tb.simrun import SIMS, run_bench

ARG_X = (-(1 << 23), (1 << 23) - 1, -128, -1, 0, 1)
SOURCES = ["rtl/post/zero_point*.v", "rtl/lib/ram_1r1w_async.v"]
TEST = "tb.zero_point.test_zero_point"


def ends(bits: int) -> int:
    """Unsigned: 0, the largest value, or random."""
    return random.choice((0, (1 << bits) - 1, random.getrandbits(bits), random.getrandbits(bits)))


def arguments() -> Iterator[tuple[int, int, int]]:
    """(shr_x, arg_x, what a lane takes of both): every shift, ends of the range and any."""
    for shr in range(16):
        for arg in (*ARG_X, random.randrange(-(1 << 23), 1 << 23)):
            yield shr, arg, scaled_to_15(arg, shr)


async def set_argument(dut, wide: int, shr: int) -> None:
    """Give a layer's arg_x, moved up to a shift of 15, to multipliers and memories."""
    # for multipliers: 36 bits, the other factor moves up by three where they are too few
    dut.fine.value = int(shr < 3)
    dut.coarse.value = (wide >> 3 if shr < 3 else wide) & ((1 << 36) - 1)
    for i in range(16):
        dut.table_we.value, dut.table_addr.value = 1, i
        dut.table_data.value = wide * i & ((1 << 43) - 1)
        await RisingEdge(dut.clk)
    dut.table_we.value = 0


@cocotb.test()
async def exact(dut) -> None:
    """Layer arguments stay for a while; sums up to the worst case, constants of either sign."""
    start_clock(dut)
    dut.valid.value = 0
    await RisingEdge(dut.clk)
    width = 29
    for shr, arg, wide in arguments():
        await set_argument(dut, wide, shr)
        cases = [(ends(36), ends(width), ends(36)) for _ in range(20)] + [(0, 1, 0), (0, 3, 0)]
        cases += [(ends(36), ends(12), ends(36)) for _ in range(20)]
        items = [
            [
                {"sum": s, "xsum": x & 0xFFF},
                {},
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
async def of_the_lane(dut) -> None:
    """The lane's product: twelve bits of pixels, with multipliers as many as fit."""
    start_clock(dut)
    dut.valid.value = 0
    await RisingEdge(dut.clk)
    multiply = int(dut.MULTIPLY.value)
    for shr, _, wide in arguments():
        await set_argument(dut, wide, shr)
        bits = 12 if not multiply else 14 if shr < 3 else 17
        values = [0, 1, 4095, *(ends(bits) for _ in range(20))]
        got = await run_stages(
            dut, [[{"xsum": x}, {}] for x in values], "own", p_item=0.8, holds=False
        )
        cut = 0 if multiply else 12  # memories do not keep what the shift drops
        assert [own >> cut for own in got] == [(wide * x % (1 << 51)) >> cut for x in values]


@cocotb.test()
async def multiples(dut) -> None:
    """Each step writes the next multiple, whatever lies between load and steps."""
    start_clock(dut)
    dut.load.value, dut.step.value = 0, 0
    for shr, arg, wide in arguments():
        dut.arg_x.value, dut.shr_x.value = arg & 0xFFFFFF, shr
        dut.load.value = 1
        await RisingEdge(dut.clk)
        dut.load.value = 0
        await ClockCycles(dut.clk, 2)
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


@cocotb.test()
async def product(dut) -> None:
    """Ends of the ranges and random numbers, every shift."""
    start_clock(dut)
    dut.valid.value = 0
    await RisingEdge(dut.clk)
    width = int(dut.HW.value)
    for _, _, wide in arguments():
        dut.scaled.value = wide & ((1 << 39) - 1)
        values = [0, 1, 7, (1 << width) - 1, *(random.getrandbits(width) for _ in range(20))]
        got = await run_stages(dut, [[{"x": x}, {}, {}] for x in values], "high", p_item=0.8)
        assert got == [wide * x & ((1 << 39) - 1) for x in values]


@pytest.mark.tier(check=["0-verilator", "1-verilator"])
@pytest.mark.parametrize("sim", SIMS)
@pytest.mark.parametrize("multiply", [0, 1])
def test_zero_point(sim: str, multiply: int) -> None:
    for case in ("exact", "of_the_lane"):
        params = {"MULTIPLY": multiply}
        run_bench(sim, "zero_point", SOURCES, TEST, params=params, testcase=case)


@pytest.mark.tier(check=["verilator"])
@pytest.mark.parametrize("sim", SIMS)
def test_zero_point_table(sim: str) -> None:
    run_bench(sim, "zero_point_table", SOURCES, TEST, testcase="multiples")


@pytest.mark.tier(check=["icarus-3", "verilator-17"])
@pytest.mark.parametrize(("sim", "width"), [("icarus", 17), ("icarus", 3), ("verilator", 17)])
def test_zero_point_high(sim: str, width: int) -> None:
    run_bench(sim, "zero_point_high", SOURCES, TEST, params={"HW": width}, testcase="product")
