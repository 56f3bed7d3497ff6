# SPDX-License-Identifier: Apache-2.0
"""act_table: tables in a ring, copied entry by entry, starts that never fall, in 20 cycles."""

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from openkpu.arithmetic.params import ActTable
from openkpu_tb.core.pipeline_bench import reset
from openkpu_tb.core.post_tables import entries, pack_entry
from openkpu_tb.simrun import SIMS, run_bench

COPY = 20  # cycles from a load to the last entry
EARLY = 12  # of them after ready
LOW, HIGH = -(1 << 35), (1 << 35) - 1
WORDS = 18


def make_table() -> ActTable:
    """Random, or with ends of the ranges; sorted, equal or in any order."""
    ends = random.random() < 0.3
    start = [random.choice((LOW, HIGH, 0, -1)) if ends else random.randint(LOW, HIGH)] * 16
    if random.random() < 0.8:
        scale = 1 << random.choice((2, 20, 35))
        start = [random.randrange(-scale, scale) for _ in range(16)]
        if random.random() < 0.5:
            start.sort()
    mul = [random.choice((0, 1, -1, -32768, 32767, random.randint(-32768, 32767))) for _ in start]
    shift = [random.choice((0, 53, 54, 55, 63, 64, 255, random.randrange(64))) for _ in start]
    return ActTable.make(start, mul, shift, [random.randrange(256) for _ in start])


async def begin(dut, *, again: bool) -> "Bench":
    """Reset; ``again``: the clock runs already."""
    await reset(dut, "load", "at_we", "tables_filled", "at_addr", "at_data", start_clock=not again)
    return Bench(dut)


class Bench:
    """The loader's side in one task, copies beside it."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.tables: list[ActTable] = []
        self.freed = 0

    async def fill(self, count: int, p_word: float, pause: int = 0) -> None:
        """Write ``count`` tables, each as soon as the ring has room, ``pause`` cycles between."""
        dut = self.dut
        for number in range(count):
            table = make_table()
            for _ in range(pause if number else 0):
                await RisingEdge(dut.clk)
            while number - self.freed >= 4:
                await RisingEdge(dut.clk)
            for i, word in enumerate(table.pack()):
                while random.random() >= p_word:
                    dut.at_we.value = 0
                    dut.at_data.value = random.getrandbits(64)
                    await RisingEdge(dut.clk)
                dut.at_we.value, dut.at_addr.value = 1, number % 4 * 32 + i
                # bits above an entry are not defined
                noise = random.getrandbits(4) << 60 if i < 16 else 0
                dut.at_data.value = int(word) | noise
                if i == WORDS - 1:
                    self.tables.append(table)
                await RisingEdge(dut.clk)
                if i == WORDS - 1:  # the count follows the last word
                    dut.tables_filled.value = (number + 1) % 16
            dut.at_we.value = 0

    async def copy(self) -> tuple[int, list[tuple[int, int]]]:
        """Load once: cycles until the end of the copy, entries that were written."""
        dut = self.dut
        dut.load.value = 1
        await RisingEdge(dut.clk)
        dut.load.value = 0
        written = []
        ready_at = 0
        for cycle in range(4000):
            await RisingEdge(dut.clk)
            if int(dut.table_we.value):
                written.append((int(dut.table_addr.value), int(dut.table_data.value)))
            if int(dut.ready.value) and not ready_at:
                ready_at = cycle
            if ready_at and cycle == ready_at + EARLY:
                return cycle, written
        raise AssertionError("never ready")


@cocotb.test()
async def copies(dut) -> None:
    """Tables that wait in the ring, and tables that come word by word while a copy waits."""
    for turn, (p_word, pause) in enumerate(((1.0, 40), (1.0, 0), (0.2, 0), (0.5, 30))):
        bench = await begin(dut, again=turn > 0)
        count = 40
        filler = cocotb.start_soon(bench.fill(count, p_word))
        for number in range(count):
            for _ in range(random.randint(0, pause)):
                await RisingEdge(dut.clk)
                assert not int(dut.table_we.value)
            # complete, and one cycle more for its first word to be read
            waiting = len(bench.tables) > number and int(dut.there.value)
            cycles, written = await bench.copy()
            assert not waiting or cycles == COPY, f"{cycles} cycles"
            want = [(i, pack_entry(e)) for i, e in enumerate(entries(bench.tables[number]))]
            assert written == want[::-1], f"table {number} of {p_word}"
            bench.freed = number + 1
            assert int(dut.tables_freed.value) == bench.freed % 16
        await filler
        assert len(bench.tables) == count


@cocotb.test()
async def arrives_at_the_end(dut) -> None:
    """The next table becomes complete in each of the cycles around the end of a copy."""
    for pause in range(45):
        bench = await begin(dut, again=pause > 0)
        filler = cocotb.start_soon(bench.fill(3, 1.0, pause))
        for number in range(3):
            _, written = await bench.copy()
            want = [(i, pack_entry(e)) for i, e in enumerate(entries(bench.tables[number]))]
            assert written == want[::-1], f"table {number} with a pause of {pause} cycles"
            bench.freed = number + 1
        await filler


@pytest.mark.tier(check=["verilator"])
@pytest.mark.parametrize("sim", SIMS)
def test_act_table(sim: str) -> None:
    sources = ["rtl/weight/act_table.v", "rtl/lib/ram_1r1w.v"]
    run_bench(sim, "act_table", sources, "tb.act_table.test_act_table")
