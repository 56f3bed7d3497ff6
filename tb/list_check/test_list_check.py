# SPDX-License-Identifier: Apache-2.0
"""list_check: lists that are read repeatedly, unchanged or with a change at any place."""

import random

import pytest
from cocotb.triggers import RisingEdge

from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.simrun import SIMS, run_bench

WORDS = 12  # of a layer
INPUTS = ("start", "take", "word", "collected", "index", "last")
MASK = (1 << 32) - 1
Layer = list[int]


POLYNOMIAL = 1 << 32 | 1 << 7 | 1 << 6 | 1 << 2 | 1


def signature(layer: Layer) -> int:
    """Remainder of the division of the words, as one binary polynomial, lower halves first."""
    number = 0
    for word in layer:
        number = number << 64 | (word & MASK) << 32 | word >> 32
    for bit in range(64 * len(layer) - 1, 31, -1):
        if number >> bit & 1:
            number ^= POLYNOMIAL << (bit - 32)
    return number


def drawn() -> Layer:
    return [random.getrandbits(64) for _ in range(WORDS)]


def changed_in(layer: Layer, least: int = 1) -> Layer:
    """The layer with another 32-bit word somewhere."""
    at, half = random.randrange(WORDS), 32 * random.getrandbits(1)
    other = layer.copy()
    other[at] ^= random.choice((least, 1 << 31, random.randint(1, MASK))) << half
    return other


def exchanged(layer: Layer) -> Layer:
    """The layer with two different 32-bit words exchanged, as two buffers that take turns."""
    halves = [word >> shift & MASK for word in layer for shift in (0, 32)]
    one, two = random.sample(range(2 * WORDS), 2)
    halves[one], halves[two] = halves[two], halves[one]
    return [low | high << 32 for low, high in zip(halves[::2], halves[1::2], strict=True)]


def alike(layer: Layer) -> Layer:
    """Another layer with the same signature: the last half compensates for the change."""
    other = changed_in(layer)
    other[-1] ^= (signature(layer) ^ signature(other)) << 32
    assert signature(other) == signature(layer)
    return other


class Bench(BlockBench):
    """Drives words; checks ``changed`` against its expected value in every cycle."""

    inputs = INPUTS

    def __init__(self, dut) -> None:
        super().__init__(dut)
        self.due: dict[int, int] = {}  # cycle -> index that must be reported in it
        self.cycle = 0
        self.reported = 0

    async def step(self, **inputs: int) -> None:
        """A cycle with these inputs, the others idle; inputs that are not valid are random."""
        dut = self.dut
        for name in INPUTS:
            idle = 0 if name in ("start", "take", "collected") else random.getrandbits(1)
            getattr(dut, name).value = inputs.get(name, idle)
        await RisingEdge(dut.clk)
        found = int(dut.changed.value)
        assert found == (self.cycle in self.due), f"cycle {self.cycle}: changed {found}"
        if found:
            assert int(dut.changed_index.value) == self.due[self.cycle]
            self.reported += 1
        self.cycle += 1

    async def layer(self, words: Layer, index: int, last: bool, changed: bool, p: float) -> None:
        """Drive a layer's words with pauses; ``changed``: a report is due two cycles later."""
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
        """Drive a list; layers that differ from those of the first reading must be reported."""
        for index, (layer, before) in enumerate(zip(layers, first, strict=True)):
            changed = signature(layer) != signature(before)
            await self.layer(layer, index, index == len(layers) - 1, changed, p)


@block_test(Bench)
async def lists(bench: Bench) -> None:
    """Each list several times: each changed layer is reported every time, and no other layer."""
    for count in (1, 2, 5, 40):
        for p in (1.0, 0.6):
            first = [drawn() for _ in range(count)]
            await bench.step(start=1)
            await bench.read(first, first, p)
            for _ in range(4):
                change = (lambda w: w, changed_in, exchanged, alike)
                now = [random.choice(change)(words) for words in first]
                await bench.read(now, first, p)
                # the reference is the first reading, not the latest one
                await bench.read(now, first, p)
                await bench.read(first, first, p)
    await bench.steps(3)
    assert bench.reported > 100


@block_test(Bench)
async def equal_changes(bench: Bench) -> None:
    """The same bits changed in any two 32-bit words of a layer are always reported."""
    first = drawn()
    await bench.step(start=1)
    await bench.read([first], [first], 1.0)
    for one in range(2 * WORDS):
        for two in range(one):
            bits = random.choice((4, 1 << random.randrange(32), random.randint(1, MASK)))
            now = first.copy()
            for place in (one, two):
                now[place // 2] ^= bits << 32 * (place % 2)
            await bench.layer(now, 0, True, True, 1.0)
    await bench.steps(3)
    assert bench.reported == WORDS * (2 * WORDS - 1)


@block_test(Bench)
async def longest_list(bench: Bench) -> None:
    """1023 layers, the maximum of a list: no signature overwrites another one."""
    first = [drawn() for _ in range(1023)]
    await bench.step(start=1)
    await bench.read(first, first, 1.0)
    now = [changed_in(words) if random.random() < 0.1 else words for words in first]
    await bench.read(now, first, 1.0)
    await bench.steps(3)
    assert bench.reported > 50


@block_test(Bench)
async def begun_anew(bench: Bench, dut) -> None:
    """A start or a reset in any cycle drops a partial layer; the next list is the reference."""
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
            # a change that was just collected is not reported any more
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
