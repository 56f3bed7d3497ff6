# SPDX-License-Identifier: Apache-2.0
"""activation: segment, rounding, addend and clamp of one lane against docs/kpu.md 1.2 and 1.3."""

import itertools
import random

import cocotb
import numpy as np
import pytest
from cocotb.triggers import RisingEdge

from openkpu.arithmetic.activation import ROUNDINGS, Activation
from openkpu.arithmetic.params import ActTable
from openkpu_tb.core.pipeline_bench import run_stages, signed, start_clock
from openkpu_tb.core.post_tables import STARTS, entries, write_table
from openkpu_tb.simrun import run_bench

LOW, HIGH = -(1 << 35), (1 << 35) - 1
# docs/kpu.md 1.2 and 1.3: shift 2, values -8..8
WORKED = {
    "nncase": (-2, -2, -2, -3, -1, -1, -2, -2, 0, 0, 0, 1, 1, 1, 2, 2, 2),
    "v01": (-2, -2, -3, -3, -1, -1, -2, -2, 0, 0, 1, 1, 1, 1, 2, 2, 2),
    "trunc": (-2, -2, -2, -2, -1, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 2),
}


def carry_shift(value: int, shift: int, rounding: str) -> int:
    """docs/kpu.md 1.2 as it is written there, in integers of any size."""
    if shift == 0 or rounding == "trunc":
        return value >> shift
    whole, frac, half = value >> shift, value & ((1 << shift) - 1), 1 << (shift - 1)
    sign = -1 if value < 0 else 1
    if rounding == "v01":
        return whole + sign if frac >= half else whole
    if frac == half:
        return whole + sign if whole & 1 else whole
    return whole + sign if frac > half else whole


def expected(table: ActTable, v: int, sgn: bool, rounding: str) -> int:
    """The output byte by the book; entry 0 when no start is below v."""
    at = 0
    for i in reversed(range(16)):
        start = int(table.start[i])
        if v > start or (rounding == "v01" and v == start):
            at = i
            break
    shift = min(int(table.shift[at]), 54)
    z = carry_shift((v - int(table.start[at])) * int(table.mul[at]), shift, rounding)
    add = int(table.add[at])
    z += signed(add, 8) if sgn else add
    return max(-128, min(127, z)) & 0xFF if sgn else max(0, min(255, z))


def item(v: int) -> list[dict[str, int]]:
    return [{"v": v}, *({} for _ in range(7))]


async def results(dut, table: ActTable, values: list[int], p_item: float = 1.0) -> list[int]:
    """The bytes of ``values`` with ``table``, which is written first."""
    dut.valid.value = 0
    for i in STARTS:
        getattr(dut, f"start_{i}").value = entries(table)[i]["start"] & ((1 << 36) - 1)
    dut.less.value = -entries(table)[0]["mul"] & ((1 << 19) - 1)
    await write_table(dut, table)
    return await run_stages(dut, [item(v) for v in values], "y", p_item=p_item)


async def check(dut, cases: list[tuple[ActTable, int]], sgn: bool, p_item: float = 1.0) -> set[int]:
    """Every case gives the byte of the book and of the golden model. Returns the bytes seen."""
    rounding = ROUNDINGS[int(dut.ROUNDING.value)]
    dut.sgn.value = int(sgn)
    got: list[int] = []
    for _, group in itertools.groupby(cases, key=lambda case: id(case[0])):
        together = list(group)
        got += await results(dut, together[0][0], [v for _, v in together], p_item)
    for (table, v), y in zip(cases, got, strict=True):
        want = expected(table, v, sgn, rounding)
        model = int(Activation(table, rounding, sgn)(np.array([v]))[0]) & 0xFF
        assert want == model, f"openkpu.arithmetic.activation gives {model}, docs/kpu.md {want}"
        assert y == want, f"v {v} signed {sgn}: {y}, expected {want}, {table}"
    return set(got)


def flat(mul: int, shift: int, add: int, start: int = 0) -> ActTable:
    return ActTable.make(start, mul, shift, add)


async def begin(dut) -> None:
    start_clock(dut)
    dut.valid.value = 0
    dut.out32.value = dut.plane.value = 0
    dut.table_we.value = 0
    await RisingEdge(dut.clk)


@cocotb.test()
async def worked_values(dut) -> None:
    """The tables of docs/kpu.md 1.3, by positive and by negative slope."""
    await begin(dut)
    want = WORKED[ROUNDINGS[int(dut.ROUNDING.value)]]
    dut.sgn.value = 1
    got = await results(dut, flat(1, 2, 0), list(range(-8, 9)))
    assert tuple(signed(y, 8) for y in got) == want
    # v - start is positive, the slope negative: how compiled tables get there
    got = await results(dut, flat(-1, 2, 0, -20), [-v - 20 for v in range(-8, 1)])
    assert tuple(signed(y, 8) for y in got) == want[:9]


@cocotb.test()
async def planes_of_words(dut) -> None:
    """docs/kpu.md 1.10: with starts of 0 and multipliers of 8 each byte of the value leaves."""
    await begin(dut)
    dut.out32.value = 1
    await results(dut, flat(8, 3, 0), [0])  # a shift of three: post_lanes writes no more than this
    for sgn in (0, 1):
        dut.sgn.value = sgn
        ends = [LOW, HIGH, -1, 0, 1, 1 << 31, -(1 << 31), (1 << 32) - 1, 0x80808080]
        values = [*ends, *(random.randint(LOW, HIGH) >> random.randrange(36) for _ in range(400))]
        cases = [(v, plane) for v in values for plane in range(4)]
        random.shuffle(cases)
        items = [[{"v": v}, {}, {}, {"plane": plane}, {}, {}, {}, {}] for v, plane in cases]
        got = await run_stages(dut, items, "y")
        assert got == [v >> 8 * plane & 0xFF for v, plane in cases]


@cocotb.test()
async def every_shift(dut) -> None:
    """Around the ties of each shift, and at the ends of the product, for either sign."""
    await begin(dut)
    for sgn in (False, True):
        cases = []
        for shift in [*range(64), 64, 100, 128, 255]:
            add = random.randrange(100, 156) - (128 if sgn else 0)
            for _ in range(4):  # product: k halves, one more or less
                unit = max(shift - 1, 0)
                mul_bits = min(14, max(0, unit - 20))
                product = (random.randint(-9, 9) << unit) + random.choice((-1, 0, 1)) * (
                    1 << mul_bits
                )
                v, mul = product >> mul_bits, 1 << mul_bits
                if not LOW <= v <= HIGH:
                    v = random.choice((LOW, HIGH))
                mul = random.choice((mul, -mul))
                cases.append((flat(mul, shift, add), v))
            for mul in (32767, -32768):
                cases.append((flat(mul, shift, add, LOW), HIGH))
                cases.append((flat(mul, shift, add, HIGH), LOW))
        random.shuffle(cases)
        seen = await check(dut, cases, sgn)
        assert len(seen) > 50


def random_table(v: list[int]) -> ActTable:
    """Starts in any order, some of them equal to values of ``v``."""
    start = [random.choice(v) + random.choice((-1, 0, 0, 1)) for _ in range(16)]
    start = [max(LOW, min(HIGH, s)) for s in start]
    if random.random() < 0.5:
        start.sort()
    if random.random() < 0.5:
        start[0] = LOW
    shift = [random.choice((0, 5, 20, 38, 39, 43)) for _ in range(16)]
    mul = [random.choice((-1, 1)) * random.randrange(1 << 15) for _ in range(16)]
    return ActTable.make(start, mul, shift, [random.randrange(256) for _ in range(16)])


@cocotb.test()
async def segments(dut) -> None:
    """The largest segment below v wins, in any order of the table; starts that are hit exactly."""
    await begin(dut)
    for sgn in (False, True):
        cases, hits, below = [], 0, 0
        for _ in range(60):
            scale = random.choice((6, 20, 34))
            v = [random.randrange(-(1 << scale), 1 << scale) for _ in range(12)]
            table = random_table(v)
            v += [LOW, HIGH, *(int(s) for s in table.start[:4])]
            cases += [(table, x) for x in v]
            hits += sum(x in table.start for x in v)
            below += sum(x <= min(table.start) for x in v)
        assert hits > 50 and below > 20
        seen = await check(dut, cases, sgn, p_item=random.choice((1.0, 0.5)))
        assert {0, 255} <= seen if not sgn else {128, 127} <= seen, "the clamp was not reached"


@cocotb.test()
async def clamp(dut) -> None:
    """Every value around both ends of the output range."""
    await begin(dut)
    for sgn in (False, True):
        for add in (0, 127, 128, 255):
            for mul in (1, -1):
                table = flat(mul, 0, add, -300 * mul)
                ends = [*range(-390, -100), *range(-10, 10), *range(100, 390)]
                await check(dut, [(table, mul * (v - 300)) for v in ends], sgn)


@cocotb.test()
async def each_segment(dut) -> None:
    """Sixteen segments that give sixteen different bytes."""
    await begin(dut)
    table = ActTable.make(np.arange(16) * 10 - 80, 0, 0, np.arange(16) * 3 + 1)
    seen = await check(dut, [(table, v) for v in range(-100, 100)], False)
    assert len(seen) == 16


@cocotb.test()
async def around_zero(dut) -> None:
    """Every remainder of short shifts, with either sign of distance and multiplier."""
    await begin(dut)
    for sgn in (False, True):
        for mul, shift in ((1, 1), (3, 2), (5, 3), (-1, 1), (-3, 2), (-5, 3), (-7, 9), (7, 10)):
            table = flat(mul, shift, 128 if not sgn else 0)
            await check(dut, [(table, v) for v in range(-200, 200)], sgn)


@cocotb.test()
async def window(dut) -> None:
    """Products around every power of two by every shift: what is cut off below and above."""
    await begin(dut)
    for shift in range(56):
        table = ActTable.make(
            [LOW, *[0] * 15], random.choice((1, 32767, -1, -32767, -32768)), shift, 128
        )
        cases = [1 << bit for bit in range(35)] + [(1 << bit) - 1 for bit in range(36)]
        cases += [(1 << shift) * k // 2 // abs(int(table.mul[0])) for k in range(-6, 7)]
        cases = [v for v in cases if LOW <= v <= HIGH] + [LOW, HIGH, LOW + 1, -1]
        await check(dut, [(table, v) for v in cases], bool(shift & 1))


@pytest.mark.tier(
    nightly=["icarus-1-18", "verilator-1-18", "icarus-0-18", "verilator-2-18", "icarus-2-18"],
    check=["verilator-0-17"],
)
@pytest.mark.parametrize(
    ("sim", "rounding", "piece"),
    [(sim, n, 18) for sim in ("icarus", "verilator") for n in (0, 1, 2)] + [("verilator", 0, 17)],
)
def test_activation(sim: str, rounding: int, piece: int) -> None:
    test = "tb.activation.test_activation"
    sources = [f"rtl/post/{name}.v" for name in ("activation", "segment_search", "above")]
    sources.append("rtl/lib/ram_1r1w_async.v")
    run_bench(sim, "activation", sources, test, params={"ROUNDING": rounding, "PIECE": piece})
