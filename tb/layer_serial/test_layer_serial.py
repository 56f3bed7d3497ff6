# SPDX-License-Identifier: Apache-2.0
"""layer_serial: division by nine and a product modulo 2^36, and the cycles that they take."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge

from openkpu_tb.core.pipeline_bench import start_clock
from openkpu_tb.simrun import SIMS, run_bench

BITS = 22  # of the dividend
MOST = 1 << 21  # the dividend at most
TAKES = 21  # cycles with busy high
DIVIDENDS = (0, 1, 8, 9, 10, 17, 18, 80, 81, 9 * 0x1FFFF, MOST - 1, MOST)
TERMS = (0, 1, 0xFFFFFFFFF, 0x800000000, 0x7FFFFFFFF, 0x555555555)
TIMES = (1, 2, 3, 9, 512, 1023, 1024, 1025, 8191, 9216)


def noise(dut) -> None:
    """Operands that do not count."""
    dut.dividend.value = random.getrandbits(BITS)
    dut.times.value = random.getrandbits(14)


async def reset(dut) -> None:
    """After a reset it is not busy, whatever it was before."""
    dut.rst.value, dut.load.value = 1, 0
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    assert int(dut.busy.value) == 0


async def begin(dut) -> None:
    start_clock(dut)
    noise(dut)
    dut.term.value = 0
    await FallingEdge(dut.clk)
    await reset(dut)


async def load(dut, dividend: int, term: int, times: int) -> None:
    """The cycle of the load; operands but the term are noise behind it."""
    dut.load.value, dut.dividend.value, dut.term.value, dut.times.value = 1, dividend, term, times
    await FallingEdge(dut.clk)
    dut.load.value = 0
    noise(dut)


@cocotb.test()
async def results(dut) -> None:
    """Corners and random operands: each result at its time, and as long as nothing is loaded."""
    await begin(dut)
    jobs = [(d, random.choice(TERMS), random.choice(TIMES)) for d in DIVIDENDS]
    jobs += [(random.choice(DIVIDENDS), t, n) for t in TERMS for n in TIMES]
    for _ in range(300):
        dividend = random.randrange(1 << random.randint(1, 21))
        jobs.append((dividend, random.getrandbits(36), random.randint(1, 9216)))
    for dividend, term, times in jobs:
        what = f"{dividend} by 9, {term:#x} times {times}"
        await load(dut, dividend, term, times)
        for cycle in range(TAKES):
            assert int(dut.busy.value) == 1, f"{what}: cycle {cycle}"
            await FallingEdge(dut.clk)
        for _ in range(random.choice((1, 1, 2, 40))):
            assert int(dut.busy.value) == 0, what
            assert int(dut.quotient.value) == dividend // 9, what
            assert int(dut.rest.value) == dividend % 9, what
            assert int(dut.sum.value) == term * times % (1 << 36), what
            dut.term.value = random.getrandbits(36)
            await FallingEdge(dut.clk)


@cocotb.test()
async def resets(dut) -> None:
    """A reset in any cycle of the work ends it; what is loaded next is right."""
    await begin(dut)
    for cycle in range(TAKES + 2):
        await load(dut, random.randrange(MOST), random.getrandbits(36), 9077)
        await ClockCycles(dut.clk, cycle, FallingEdge)
        await reset(dut)
        for _ in range(random.randint(0, 30)):
            await FallingEdge(dut.clk)
            assert int(dut.busy.value) == 0
        dividend, term = random.randrange(MOST), random.getrandbits(36)
        await load(dut, dividend, term, 9000)
        await ClockCycles(dut.clk, TAKES, FallingEdge)
        assert int(dut.busy.value) == 0, f"reset in cycle {cycle}"
        assert int(dut.quotient.value) == dividend // 9
        assert int(dut.sum.value) == term * 9000 % (1 << 36)


@pytest.mark.tier(check=["verilator"])
@pytest.mark.parametrize("sim", SIMS)
def test_layer_serial(sim: str) -> None:
    source = "rtl/control/layer_serial.v"
    run_bench(sim, "layer_serial", [source], "tb.layer_serial.test_layer_serial")
