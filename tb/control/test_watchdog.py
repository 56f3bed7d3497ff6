# SPDX-License-Identifier: Apache-2.0
"""watchdog: when it ends a run, what it says is waited for, when it gives up the bus.

docs/programming.md section 10. A flush follows `stuck` at once, as the controller has it.
"""

import random

import pytest
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.core.descriptor import join_fields, layout
from openkpu_tb.simrun import SIMS, run_bench

LEAST, OFF = 256, 65536  # cycles: the shortest limit, that of a flush when the watchdog is off
LATE = 3  # cycles that it may take beyond the limit
WAITS = ("waits_pixels", "waits_array", "waits_output")
INPUTS = ("limit", "works", "progress", "flush", "waiting", *WAITS)
OWNER = layout("owner")
WAITING = layout("waiting", OWNER_BITS=sum(width for _, width in OWNER.values()))


class Bench(BlockBench):
    inputs = INPUTS

    async def until(self, name: str, most: int) -> int:
        """Cycles until an output is high; ``most`` + 1 when it is not within ``most``."""
        for cycle in range(most):
            await ReadOnly()
            high = int(getattr(self.dut, name).value)
            await RisingEdge(self.dut.clk)
            if high:
                return cycle
        return most + 1

    async def never(self, cycles: int) -> None:
        """Nothing is ended; in a long span every 1000 cycles it is seen that no bus is given up."""
        for _ in range(cycles // 1000):
            await ClockCycles(self.dut.clk, 1000)
            assert not int(self.dut.give_up.value)
        assert await self.until("stuck", cycles % 1000) > cycles % 1000

    async def work(self, limit: int) -> None:
        """Work begins; before it nothing was counted."""
        self.dut.works.value, self.dut.limit.value = 0, limit
        await ClockCycles(self.dut.clk, 2)
        self.dut.works.value = 1

    async def flushed(self, cycles: int) -> None:
        """A flush of so many cycles; no work is left behind it."""
        self.dut.flush.value = 1
        await ClockCycles(self.dut.clk, cycles)
        self.dut.flush.value = self.dut.works.value = 0
        await ClockCycles(self.dut.clk, 2)
        await ReadOnly()
        assert not int(self.dut.give_up.value) and not int(self.dut.stuck.value)
        await RisingEdge(self.dut.clk)


@block_test(Bench)
async def limits(bench: Bench, dut) -> None:
    """So many cycles without progress, 256 at least; each pulse of progress begins anew."""
    for limit in (1, 255, 256, 257, 300, 511, 512, 1025):
        most = max(limit, LEAST)
        await bench.work(limit)
        for _ in range(3):
            await bench.never(random.randint(most // 2, most - LATE))
            await bench.pulse(progress=1)
        took = await bench.until("stuck", most + 2 * LATE)
        assert most <= took + 1 <= most + LATE, f"after {took} cycles of {most}"
        await bench.flushed(random.randint(1, 9))


@block_test(Bench)
async def high_limits(bench: Bench) -> None:
    """All 32 bits of the limit count: whichever is set, it is a long time."""
    for bit in range(10, 32):
        for limit in (1 << bit, 1 << bit | 1, (1 << 32) - (1 << bit)):
            await bench.work(limit)
            await bench.never(2 * LEAST)
            await bench.flushed(1)


@block_test(Bench)
async def idle_is_no_wait(bench: Bench, dut) -> None:
    """What is not at work waits for the host: that does not count, neither then nor afterwards."""
    dut.limit.value = 300
    for _ in range(4):
        dut.works.value = 0
        await bench.never(random.randint(400, 900))
        dut.works.value = 1
        await bench.never(300 - LATE)
    await bench.until("stuck", 9)
    await bench.flushed(3)


@block_test(Bench)
async def turned_off(bench: Bench, dut) -> None:
    """With 0 nothing is ended, however long it stood still before the write."""
    await bench.work(0)
    await bench.never(OFF + 1000)
    await bench.flushed(1)
    await bench.work(OFF + 2000)
    await bench.never(OFF + 1000)
    dut.limit.value = 0
    await bench.never(20)
    await bench.flushed(1)


@block_test(Bench)
async def waited_for(bench: Bench, dut) -> None:
    """The bus first, then pixels, array, output; else the words of a list."""
    for turn in range(40):
        why = random.choice((0, 0, 1, 2, 3))
        flags = [turn >> i & 1 for i in range(3)]
        await bench.work(1)
        values = {"why": why, "addr": random.getrandbits(32), "chan": random.getrandbits(3)}
        dut.waiting.value = join_fields(WAITING, values)
        for name, value in zip(WAITS, flags, strict=True):
            getattr(dut, name).value = value
        assert await bench.until("stuck", LEAST + LATE) <= LEAST + LATE
        waits = why or next((4 + i for i, flag in enumerate(flags) if flag), 7)
        assert int(dut.waits.value) == waits, f"why {why}, {flags}"
        await bench.flushed(1)


@block_test(Bench)
async def bus_given_up(bench: Bench, dut) -> None:
    """From `stuck` to the end of the flush; in any other flush after the limit, 65536 for 0."""
    for length in (1, 2, 40, 400):
        await bench.work(1)
        assert await bench.until("give_up", LEAST + LATE) <= LEAST + LATE
        dut.flush.value = 1
        for cycle in range(length):
            await ReadOnly()
            assert int(dut.give_up.value), f"cycle {cycle} of the flush"
            assert not int(dut.stuck.value) or not cycle
            await RisingEdge(dut.clk)
        await bench.flushed(1)
    for limit, most, works in ((1, LEAST, 1), (700, 700, 0), (1, LEAST, 0), (0, OFF, 0)):
        before = random.randint(100, 200)  # cycles without progress before the flush do not count
        await bench.work(limit)
        await bench.never(before)
        dut.flush.value, dut.works.value = 1, works  # the work may end with the flush
        await ClockCycles(dut.clk, most - LATE)
        assert not int(dut.give_up.value), "too early"
        assert await bench.until("give_up", 3 * LATE) <= 2 * LATE
        await bench.flushed(30)
        dut.limit.value = 0


@pytest.mark.tier(check=["icarus"])
@pytest.mark.parametrize("sim", SIMS)
def test_watchdog(sim: str) -> None:
    run_bench(sim, "watchdog", ["rtl/control/watchdog.v"], "tb.control.test_watchdog")
