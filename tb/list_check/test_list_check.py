# SPDX-License-Identifier: Apache-2.0
"""list_check: lists that are read again and again, unchanged, or with a change somewhere."""

import random

import pytest
from cocotb.triggers import RisingEdge

from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.simrun import SIMS, run_bench

WORDS = 12  # of a layer
INPUTS = ("start", "take", "word", "collected", "index", "last")
MASK = (1 << 32) - 1
Layer = list[int]


def turn(value: int, bits: int) -> int:
    """32 bits, rotated to the left."""
    return (value << bits | value >> (32 - bits)) & MASK


def signature(layer: Layer) -> int:
    """Of a layer's words: both halves of each are added, with a rotation before each addition."""
    total = 0
    for word in layer:
        total = (turn(total, 7) + word) & MASK
        total = (turn(total, 13) + (word >> 32)) & MASK
    return total


def drawn() -> Layer:
    return [random.getrandbits(64) for _ in range(WORDS)]


def changed_in(layer: Layer, least: int = 1) -> Layer:
    """The layer with another 32-bit word somewhere."""
    at, half = random.randrange(WORDS), 32 * random.getrandbits(1)
    other = layer.copy()
    other[at] ^= random.choice((least, 1 << 31, random.randint(1, MASK))) << half
    return other


def alike(layer: Layer) -> Layer:
    """Another layer of the same signature: what a change adds is taken away in the last half."""
    other = changed_in(layer)
    other[-1] &= MASK
    low = signature(other)
    other[-1] |= (signature(layer) - low & MASK) << 32
    assert signature(other) == signature(layer)
    return other


class Bench(BlockBench):
    """Feeds words; keeps what is expected of ``changed`` and looks at it in every cycle."""

    inputs = INPUTS

    def __init__(self, dut) -> None:
        super().__init__(dut)
        self.due: dict[int, int] = {}  # cycle -> index that must be told in it
        self.cycle = 0
        self.told = 0

    async def step(self, **inputs: int) -> None:
        """A cycle with these inputs, the others idle; what is not valid is noise."""
        dut = self.dut
        for name in INPUTS:
            idle = 0 if name in ("start", "take", "collected") else random.getrandbits(1)
            getattr(dut, name).value = inputs.get(name, idle)
        await RisingEdge(dut.clk)
        found = int(dut.changed.value)
        assert found == (self.cycle in self.due), f"cycle {self.cycle}: changed {found}"
        if found:
            assert int(dut.changed_index.value) == self.due[self.cycle]
            self.told += 1
        self.cycle += 1

    async def layer(self, words: Layer, index: int, last: bool, changed: bool, p: float) -> None:
        """Words of a layer with pauses; ``changed``: it must be told two cycles behind them."""
        for number, word in enumerate(words):
            while random.random() > p:
                await self.step(word=random.getrandbits(64))
            end = number == len(words) - 1
            if end and changed:
                self.due[self.cycle + 2] = index
            await self.step(
                take=1, word=word, collected=int(end), index=index, last=int(end and last)
            )

    async def read(self, layers: list[Layer], first: list[Layer], p: float) -> None:
        """A list; layers that differ from those of the first reading must be told."""
        for index, (layer, before) in enumerate(zip(layers, first, strict=True)):
            told = signature(layer) != signature(before)
            await self.layer(layer, index, index == len(layers) - 1, told, p)


@block_test(Bench)
async def lists(bench: Bench) -> None:
    """Each list some times: any word that is another one is told, each time, and no other layer."""
    for count in (1, 2, 5, 40):
        for p in (1.0, 0.6):
            first = [drawn() for _ in range(count)]
            await bench.step(start=1)
            await bench.read(first, first, p)
            for _ in range(4):
                change = (lambda w: w, changed_in, alike)
                now = [random.choice(change)(words) for words in first]
                await bench.read(now, first, p)
                # the first reading is what counts, not the last one
                await bench.read(now, first, p)
                await bench.read(first, first, p)
    await bench.steps(3)
    assert bench.told > 100


@block_test(Bench)
async def longest_list(bench: Bench) -> None:
    """1023 layers, the most of a list: none of the signatures lies on another one's place."""
    first = [drawn() for _ in range(1023)]
    await bench.step(start=1)
    await bench.read(first, first, 1.0)
    now = [changed_in(words) if random.random() < 0.1 else words for words in first]
    await bench.read(now, first, 1.0)
    await bench.steps(3)
    assert bench.told > 50


@block_test(Bench)
async def begun_anew(bench: Bench, dut) -> None:
    """A start, or a reset, in any cycle: half a layer is forgotten, the next list is the first."""
    for number in range(40):
        first = [drawn() for _ in range(3)]
        await bench.step(start=1)
        await bench.read(first, first, 1.0)
        now = [changed_in(first[0]), *first[1:]]
        await bench.read(now[:1], first[:1], 1.0)
        part = random.randint(0, 11)  # of the second layer, maybe right behind the first one
        for word in first[1][:part]:
            await bench.step(take=1, word=word)
        if number % 2:
            await bench.step(start=1)
        else:
            # what was just collected is not told any more
            bench.due = {at: index for at, index in bench.due.items() if at <= bench.cycle}
            dut.rst.value = 1
            await bench.step(word=random.getrandbits(64))
            dut.rst.value = 0
        other = [drawn() for _ in range(3)]
        await bench.read(other, other, 1.0)
        await bench.read(other, other, 1.0)
        await bench.read([other[0], changed_in(other[1]), other[2]], other, 1.0)
    await bench.steps(3)


@pytest.mark.tier(check=["verilator"])
@pytest.mark.parametrize("sim", SIMS)
def test_list_check(sim: str) -> None:
    sources = ["rtl/control/list_check.v", "rtl/lib/ram_1r1w.v"]
    run_bench(sim, "list_check", sources, "tb.list_check.test_list_check")
