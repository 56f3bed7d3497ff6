# SPDX-License-Identifier: Apache-2.0
"""fifo_sync, fifo_ram, fifo_regs: order, count, full and empty, flush, against a deque."""

import random
from collections import deque

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from openkpu_tb.core.pipeline_bench import reset
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

INPUTS = ("flush", "in_valid", "in_data", "out_ready")


def slowest_word(dut) -> int:
    """Cycles in which a word may be on its way while the FIFO shows none: fifo_ram reads its
    memory, in fifo_regs without a bypass it walks to the head."""
    if not hasattr(dut, "BYPASS"):
        return 2
    return 0 if int(dut.BYPASS.value) else int(dut.DEPTH.value)


async def traffic(dut, cycles: int, p_in: float, p_out: float, p_flush: float) -> tuple[int, int]:
    """Random traffic; checks every cycle. Returns (words through, most words held)."""
    depth, width = int(dut.DEPTH.value), len(dut.in_data)
    slowest = slowest_word(dut)
    model: deque[int] = deque()
    passed = most = age = 0
    dut.in_valid.value = dut.out_ready.value = 0
    dut.flush.value = 1
    await RisingEdge(dut.clk)
    dut.flush.value = 0
    coming: int | None = None  # the word that is at the head in this cycle
    for _ in range(cycles):
        await RisingEdge(dut.clk)
        if hasattr(dut, "next_data"):
            assert coming is None or int(dut.out_data.value) == coming, "next_data"
            coming = None if int(dut.flush.value) else int(dut.next_data.value)
        assert not hasattr(dut, "count") or int(dut.count.value) == len(model)
        assert not hasattr(dut, "empty") or int(dut.empty.value) == (not model)
        assert int(dut.in_ready.value) == (len(model) < depth), "in_ready must say: not full"
        valid = int(dut.out_valid.value)
        assert not valid or model, "a word out of an empty FIFO"
        age = age + 1 if model and not valid else 0
        assert age <= slowest, "a stored word does not appear"
        room = len(model) < depth
        if hasattr(dut, "BYPASS") and not valid:
            assert int(dut.out_data.value) == 0, "an empty FIFO shows a word"
        if valid:
            assert int(dut.out_data.value) == model[0]
            if int(dut.out_ready.value):
                model.popleft()
                passed += 1
        if int(dut.in_valid.value) and room:
            model.append(int(dut.in_data.value))
        if int(dut.flush.value):
            model.clear()
        most = max(most, len(model))
        dut.in_valid.value = int(random.random() < p_in)
        dut.in_data.value = random.getrandbits(width)
        dut.out_ready.value = int(random.random() < p_out)
        dut.flush.value = int(random.random() < p_flush)
    return passed, most


@cocotb.test()
async def random_traffic(dut) -> None:
    """All mixes of fast and slow ends, with flushes; the FIFO gets full and empty."""
    await reset(dut, *INPUTS)
    depth = int(dut.DEPTH.value)
    for p_in, p_out in ((0.9, 0.2), (0.2, 0.9), (0.6, 0.6), (1.0, 0.0)):
        passed, most = await traffic(dut, 12 * depth + 60, p_in, p_out, 0.0)
        assert most == depth or p_in < 0.9
        assert passed > 0 or p_out == 0, "nothing came out"
    await traffic(dut, 400, 0.7, 0.5, 0.08)


@cocotb.test()
async def one_word_per_cycle(dut) -> None:
    """With both ends always ready a FIFO of three or more words passes one word per cycle; one
    whose words walk pauses when it is full."""
    await reset(dut, *INPUTS)
    cycles = 200
    passed, _ = await traffic(dut, cycles, 1.0, 1.0, 0.0)
    depth = int(dut.DEPTH.value)
    if hasattr(dut, "BYPASS") and not int(dut.BYPASS.value):  # all places are filled on the way
        assert passed >= (cycles - 8) * depth // (depth + 1)
    elif depth >= 3:
        assert passed >= cycles - 4


@cocotb.test()
async def reset_empties(dut) -> None:
    await reset(dut, *INPUTS)
    dut.in_valid.value = 1
    await ClockCycles(dut.clk, 4)
    dut.in_valid.value = 0
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    dut.rst.value = 0
    for _ in range(4):
        await RisingEdge(dut.clk)
        assert not hasattr(dut, "count") or int(dut.count.value) == 0
        assert int(dut.out_valid.value) == 0


@sizes("sim depth", test="icarus-2", check="icarus-5 icarus-16 verilator-5")
def test_fifo_sync(sim: str, depth: int) -> None:
    sources = ["rtl/lib/fifo_sync.v", "rtl/lib/ram_1r1w_async.v"]
    params = {"DEPTH": depth, "WIDTH": 19}
    run_bench(sim, "fifo_sync", sources, "tb.fifo.test_fifo", params=params)


@sizes("sim depth", test="icarus-3", check="icarus-24 verilator-3")
def test_fifo_ram(sim: str, depth: int) -> None:
    sources = ["rtl/lib/fifo_ram.v", "rtl/lib/ram_1r1w.v"]
    params = {"DEPTH": depth, "WIDTH": 33}
    run_bench(sim, "fifo_ram", sources, "tb.fifo.test_fifo", params=params)


@sizes(
    "sim depth bypass",
    test="icarus-1-0",
    check="icarus-2-1 icarus-4-0 icarus-5-1 verilator-2-1 verilator-4-0",
)
def test_fifo_regs(sim: str, depth: int, bypass: int) -> None:
    params = {"DEPTH": depth, "WIDTH": 33, "BYPASS": bypass}
    run_bench(sim, "fifo_regs", ["rtl/lib/fifo_regs.v"], "tb.fifo.test_fifo", params=params)
