# SPDX-License-Identifier: Apache-2.0
"""pyuvm tests of the library of sequences; test_uvm.py runs them on both simulators.

Random jobs on memories full of random bytes; after each one all of both memories is compared.
"""

import pyuvm
from pyuvm import uvm_factory

from openkpu.layer.argument import MOST_DILATION
from openkpu_tb.ahb.host_agent import Transfer
from openkpu_tb.core.registers import AI_RAM, Err
from openkpu_tb.coverage.model import TRAFFIC
from openkpu_tb.device.simulation import SLOW
from openkpu_tb.uvm.base_test import DeviceTest
from openkpu_tb.uvm.scoreboard import Scoreboard, StrictScoreboard
from openkpu_tb.uvm.sequences.bus import KINDS, disturbance
from openkpu_tb.uvm.sequences.faults import (
    STREAM,
    HardResetSequence,
    SoftResetSequence,
    TransferErrorSequence,
)
from openkpu_tb.uvm.sequences.job import (
    JOBS,
    DistantTapsSequence,
    LayerSequence,
    NetworkSequence,
    StreamSequence,
)
from openkpu_tb.uvm.sequences.special import MOVED
from openkpu_tb.uvm.virtual import DisturbedSequence, LifeSequence


def few(many: int, slow: int) -> int:
    """A count for this simulator."""
    return slow if SLOW else many


class SequenceTest(DeviceTest):
    """Base: memories full of random bytes."""

    filled = True


@pyuvm.test()
class JobSequences(SequenceTest):
    """Every kind of job on a quiet bus."""

    async def scenario(self) -> None:
        for _ in range(few(4, 1)):
            for job in JOBS:
                await self.run(job())


@pyuvm.test()
class DistantTaps(SequenceTest):
    """Every distance that the field can hold, on a device that has some of them: it runs these and
    refuses the others, and the predictor says the same of both memories."""

    async def scenario(self) -> None:
        most = int(self.tb.dilation.value)
        for far in range(2, MOST_DILATION + 1):
            await self.run(DistantTapsSequence(far=far))
        error = await self.device.error()
        assert error is None, error
        assert self.env.predictor.layers == most - 1


@pyuvm.test()
class BusSequences(SequenceTest):
    """Each kind of disturbance under a layer, a list and a stream."""

    async def scenario(self) -> None:
        jobs = (LayerSequence, NetworkSequence, StreamSequence)
        for number, kind in enumerate(KINDS):
            await disturbance(self.env.virtual.rng, kind).start(self.env.virtual.bus)
            for job in jobs[number % 3 : number % 3 + 1] if few(0, 1) else jobs:
                await self.run(job())
        assert int(self.tb.refusals.value) and int(self.tb.losses.value)


@pyuvm.test()
class ErrorSequences(SequenceTest):
    """ERROR on each kind of transfer, and on several at once; afterwards a stream is exact."""

    async def scenario(self) -> None:
        for kind in STREAM:
            for _ in range(few(5, 1)):
                await self.run(TransferErrorSequence(kind=kind))
            if few(1, 0):
                await self.run(StreamSequence())
        for _ in range(few(20, 1)):
            await self.run(TransferErrorSequence())
        await self.run(LayerSequence())
        assert self.env.coverage.hit("run") & {("stream", t, Err.BUS_ERROR.name) for t in TRAFFIC}


@pyuvm.test()
class ResetSequences(SequenceTest):
    """Both resets in random cycles of random jobs; afterwards jobs are exact.

    What an interrupted job leaves is an old byte or one of its own, says the strict scoreboard.
    """

    def overrides(self) -> None:
        uvm_factory().set_type_override_by_type(Scoreboard, StrictScoreboard)

    async def scenario(self) -> None:
        for _ in range(few(12, 2)):
            await self.run(SoftResetSequence())
            await self.run(NetworkSequence())
            await self.run(HardResetSequence())
            await self.run(LayerSequence())
        assert self.env.scoreboard.doubted, "no job was interrupted"


@pyuvm.test()
class WeightsThatWait(SequenceTest):
    """Jobs, errors and resets on a build whose weights wait in the AI RAM, until some did."""

    def overrides(self) -> None:
        uvm_factory().set_type_override_by_type(Scoreboard, StrictScoreboard)

    async def scenario(self) -> None:
        others = (TransferErrorSequence, SoftResetSequence, HardResetSequence)
        for number in range(20):
            if number >= few(12, 1) and self.env.predictor.waited:
                break
            for job in (*JOBS, *MOVED):
                await self.run(job())
            await self.run(others[number % 3]())
        assert self.env.predictor.waited, "no weights waited"


@pyuvm.test()
class WindowAccesses(SequenceTest):
    """Bytes, half-words and words of the AI RAM through the host's window, written and read."""

    async def scenario(self) -> None:
        rng, accesses = self.env.virtual.rng, []
        for number in range(300):
            size = int(rng.integers(0, 3))
            at = AI_RAM + 64 * 100 + (int(rng.integers(0, 512 >> size)) << size)
            data = int(rng.integers(0, 1 << (8 << size)))
            accesses.append(Transfer(at, number < 100, data, size))
        for read in (await self.device.transfer(*accesses))[100:]:
            held = self.env.predictor.ram[read.addr - AI_RAM :][: 1 << read.size]
            assert read.data == int.from_bytes(held.tobytes(), "little"), read
        await self.env.storage.read_all()


@pyuvm.test()
class VirtualSequences(SequenceTest):
    """Everything mixed, and jobs on a bus that changes while they run."""

    async def scenario(self) -> None:
        await self.run(LifeSequence(count=few(40, 4)))
        for job in (StreamSequence, NetworkSequence, LayerSequence):
            await self.run(DisturbedSequence(job=job()))
