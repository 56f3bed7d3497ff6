# SPDX-License-Identifier: Apache-2.0
"""Driving fixed pipelines whose stages have an enable each and take inputs at their stage."""

import random
from collections.abc import Iterable, Sequence

from cocotb.clock import Clock
from cocotb.task import Task
from cocotb.triggers import ClockCycles, RisingEdge

from openkpu_tb.handle import Handle

Stages = Sequence[dict[str, int]]  # inputs of each stage of an item
_clock: Task[None] | None = None  # of the test that runs


def join_words(values: Iterable[int], width: int) -> int:
    """Fields of ``width`` bits, the first lowest, in one number."""
    total = 0
    for i, value in enumerate(values):
        total |= (int(value) & ((1 << width) - 1)) << (i * width)
    return total


def split_words(value: int, width: int, count: int) -> list[int]:
    """The inverse of ``join_words``: unsigned fields."""
    mask = (1 << width) - 1
    return [value >> (i * width) & mask for i in range(count)]


def signed(value: int, width: int) -> int:
    """``value`` modulo 2^width as a signed number."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def start_clock(dut: Handle) -> None:
    """Start the clock, unless it runs since an earlier call in the same test."""
    global _clock
    if _clock is None or _clock.done():
        _clock = Clock(dut.clk, 10, "ns").start()


async def reset(dut: Handle, *inputs: str) -> None:
    """Start the clock, set ``inputs`` to 0 and reset for three cycles."""
    start_clock(dut)
    for name in inputs:
        getattr(dut, name).value = 0
    dut.rst.value = 1
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0
    await RisingEdge(dut.clk)


async def run_stages(
    dut: Handle,
    items: Sequence[Stages],
    output: str,
    *,
    p_item: float = 1.0,
    holds: bool = True,
) -> list[int]:
    """Send ``items`` through a pipeline; returns ``output`` for each.

    Port ``valid`` holds the enables of the stages. Inputs of a stage that has no item are noise.
    Between items the output must hold its value; not so where its register has no enable
    (``holds`` false).
    """
    depth = len(items[0])
    handles = [{name: getattr(dut, name) for name in stage} for stage in items[0]]
    out_port = getattr(dut, output)
    queue = list(items)
    history: list[Stages | None] = [None] * (depth + 1)
    results: list[int] = []
    for _ in range(20 * len(items) + 100):
        item = queue.pop(0) if queue and random.random() < p_item else None
        history = [item, *history[:-1]]
        dut.valid.value = sum(1 << i for i in range(depth) if history[i] is not None)
        for i in range(depth):
            at = history[i]
            for name, handle in handles[i].items():
                width = len(handle)
                value = random.getrandbits(width) if at is None else at[i][name]
                handle.value = value & ((1 << width) - 1)
        await RisingEdge(dut.clk)
        if history[depth] is not None:
            results.append(int(out_port.value))
        elif results and holds:
            assert int(out_port.value) == results[-1], f"{output} moved without an item"
        if len(results) == len(items):
            return results
    raise AssertionError("items got lost")
