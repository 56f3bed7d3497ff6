# SPDX-License-Identifier: Apache-2.0
"""Virtual sequences: jobs, bus and host together."""

import cocotb
import numpy as np
from cocotb.triggers import Timer

from openkpu_tb.uvm.sequences.bus import KINDS, disturbance
from openkpu_tb.uvm.sequences.faults import (
    HardResetSequence,
    SoftResetSequence,
    TransferErrorSequence,
)
from openkpu_tb.uvm.sequences.job import (
    BurstSequence,
    DeviceSequence,
    LayerSequence,
    NetworkSequence,
    ResultFifoSequence,
    StoppedStreamSequence,
    StreamSequence,
)
from openkpu_tb.uvm.sequences.special import MOVED

# sequence: weight of its draw
LIFE: dict[type[DeviceSequence], int] = {
    LayerSequence: 4,
    BurstSequence: 2,
    ResultFifoSequence: 2,
    NetworkSequence: 3,
    StreamSequence: 4,
    StoppedStreamSequence: 2,
    TransferErrorSequence: 3,
    SoftResetSequence: 3,
    HardResetSequence: 2,
    **dict.fromkeys(MOVED, 1),
}


class DisturbedSequence(DeviceSequence):
    """A job, while the bus changes its manners at random moments until it is over."""

    compares = False  # the job does

    def __init__(self, name: str = "disturbed", job: DeviceSequence | None = None) -> None:
        super().__init__(name)
        self.job = job

    async def body(self) -> None:
        self.job = self.job or StreamSequence()
        self.over = False
        # a generator of its own: both run at the same time
        restless = cocotb.start_soon(self.restless(self.rng.spawn(1)[0]))
        await self.run(self.job)
        self.over = True  # not cancelled: an item half way through would block its sequencer
        await restless
        await disturbance(self.rng, "quiet").start(self.sequencer.bus)

    async def restless(self, rng: np.random.Generator) -> None:
        """Another disturbance every so many cycles, until the job is over."""
        while not self.over:
            await disturbance(rng).start(self.sequencer.bus)
            await Timer(int(rng.integers(200, 8000)), "ns")


class ItemSequence(DeviceSequence):
    """One draw of everything: a sequence of LIFE on a bus of some kind; clean work afterwards."""

    compares = False

    async def body(self) -> None:
        kinds, weights = list(LIFE), list(LIFE.values())
        total = sum(weights)
        job = kinds[int(self.rng.choice(len(kinds), p=[w / total for w in weights]))]()
        bus = list(KINDS)[self.n(0, len(KINDS))]
        self.title = f"{type(job).__name__}, {bus}"
        await disturbance(self.rng, bus).start(self.sequencer.bus)
        await self.run(job)
        await disturbance(self.rng, "quiet").start(self.sequencer.bus)


class LifeSequence(DeviceSequence):
    """``count`` items, one after the other on the same device."""

    compares = False

    def __init__(self, name: str = "life", count: int = 10) -> None:
        super().__init__(name)
        self.count = count

    async def body(self) -> None:
        for _ in range(self.count):
            await self.run(ItemSequence())
