# SPDX-License-Identifier: Apache-2.0
"""pyuvm tests of products of float16 (a build with lanes), and of layers that move their own maps.

test_uvm.py runs them. The short ones draw a few jobs; the others go on until the coverage collector
has seen every bin that they are for.
"""

import itertools

import pyuvm

from openkpu.generators.generate_lists import ALL_KINDS, KINDS
from openkpu_tb.coverage.float16 import NARROW, TARGETS, VALUES
from openkpu_tb.coverage.model import MODES, MOVES, Bin
from openkpu_tb.device.simulation import SLOW
from openkpu_tb.uvm.base_test import DeviceTest
from openkpu_tb.uvm.sequences.bus import disturbance
from openkpu_tb.uvm.sequences.special import FLOAT16, MOVED, Float16Sequence

WIDE = TARGETS[1]
IN_BANDS = MOVES[1]
MOST_AIMED = 60  # products until all values are hit
MOST_MOVED = 400  # jobs until all moves are hit


class SpecialTest(DeviceTest):
    """Base: memories full of random bytes."""

    filled = True

    def bins(self, cross: str) -> set[Bin]:
        """All bins of a cross that there can be."""
        return set(self.env.coverage.bins[cross])

    async def bus(self, kind: str) -> None:
        """What the bus is like from now on."""
        await disturbance(self.env.virtual.rng, kind).start(self.env.virtual.bus)


@pyuvm.test()
class Float16Values(SpecialTest):
    """An element of each value, inside and at both edges of C, for both targets."""

    async def scenario(self) -> None:
        coverage = self.env.coverage
        for target, value in itertools.product(TARGETS, VALUES):
            if SLOW and (target == WIDE or value not in NARROW):
                continue
            if (target, value, "inside") in self.bins("float16_values"):
                await self.run(Float16Sequence(value=value, wide=target == WIDE))
        wanted = self.bins("float16_values")
        for _ in range(0 if SLOW else MOST_AIMED):
            missing = sorted(coverage.missing("float16_values", wanted))
            if not missing:
                break
            target, value, _ = missing[0]
            await self.run(Float16Sequence(value=value, wide=target == WIDE))
        left = sorted(coverage.missing("float16_values", wanted))
        assert SLOW or not left, f"not hit: {left}"
        assert len(coverage.hit("float16_values")) >= len(NARROW)


@pyuvm.test()
class Float16Jobs(SpecialTest):
    """Products by the host, as lists and in streams, of any numbers; on a bus with waits too."""

    async def scenario(self) -> None:
        rng = self.env.virtual.rng
        for number in range(1 if SLOW else 4):
            await self.bus(("quiet", "waits", "quiet", "everything")[number])
            for job in FLOAT16:
                await self.run(job(wide=bool(rng.random() < 0.5)))
            await self.run(MOVED[number % len(MOVED)](kinds=ALL_KINDS))
        assert self.env.coverage.hit("float16")


@pyuvm.test()
class MovedMaps(SpecialTest):
    """Tasks that load and store their maps: by the host, as lists and in streams, and more of them
    until maps moved in each way."""

    jobs = (1, 4)  # of each way, on the slow simulator and on the other one
    kinds = KINDS

    async def scenario(self) -> None:
        found, jobs = set(), self.jobs[not SLOW]
        for number in range(20):
            if number >= jobs and {mode for _, _, mode, _ in found} == set(MODES):
                break
            await self.bus(("quiet", "waits", "everything")[number % 3])
            for job in MOVED:
                await self.run(job(kinds=self.kinds))
            found = self.env.coverage.hit("moves")
        assert {mode for _, _, mode, _ in found} == set(MODES)
        assert {move[:4] for _, move, _, _ in found} >= {"load", "stor"}


@pyuvm.test()
class EveryMove(SpecialTest):
    """Jobs until every kind of task has moved its maps in every way, from and to any address."""

    async def scenario(self) -> None:
        coverage, rng = self.env.coverage, self.env.virtual.rng
        wanted = self.bins("moves")
        for _ in range(MOST_MOVED):
            missing = sorted(coverage.missing("moves", wanted))
            if not missing:
                break
            task, move, mode, _ = missing[int(rng.integers(len(missing)))]
            # one product in five has windows of 3x3, so lists of them alone
            kinds = (task,) if move == IN_BANDS else (task, task, *ALL_KINDS)
            await self.run(MOVED[MODES.index(mode)](kinds=kinds))
        left = sorted(coverage.missing("moves", wanted))
        assert not left, f"not hit: {left}"
