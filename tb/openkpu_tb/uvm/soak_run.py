# SPDX-License-Identifier: Apache-2.0
"""pyuvm test for `make soak`: random work on one device until the time is over.

An item begins with a hardware reset and random bytes in both memories, followed by random sequences
(virtual.py), each compared byte for byte. SEED and its number determine it completely.
Environment: SOAK_SECONDS, SOAK_ITEM (that item alone), SOAK_PLANT ("leak" or "byte": a fault).
Events: "item" with number, cycles, resident bytes, sequences; "failed" with number and text.
"""

import os
import resource
import time
from pathlib import Path

import cocotb
import numpy as np
import pyuvm
from pyuvm import uvm_factory

from openkpu_tb.core.backdoor import Backdoor
from openkpu_tb.device.events import Events
from openkpu_tb.uvm.base_test import DeviceTest
from openkpu_tb.uvm.items import GappedItem
from openkpu_tb.uvm.scoreboard import Scoreboard, StrictScoreboard
from openkpu_tb.uvm.virtual import LifeSequence

LEAST = 6  # items, however short the time is
PLANTED = 3  # first item with the fault
LEAK = 32 << 20  # bytes lost in every item from then on


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pyuvm.test()
class Soak(DeviceTest):
    """Items until the time is over."""

    def overrides(self) -> None:
        uvm_factory().set_type_override_by_type(Scoreboard, StrictScoreboard)

    async def scenario(self) -> None:
        self.say, self.kept = Events(), []
        end = time.monotonic() + float(os.environ["SOAK_SECONDS"])
        only = os.environ.get("SOAK_ITEM")
        number = int(only or 0)
        while True:
            try:
                await self.item(number)
            except Exception as error:
                self.say("failed", number=number, text=str(error) or type(error).__name__)
                raise
            used, self.env.virtual.used = self.env.virtual.used, {}
            cycles = int(self.tb.cycle.value)
            self.say("item", number=number, cycles=cycles, resident=resident(), used=used)
            if only is not None or (time.monotonic() >= end and number + 1 >= LEAST):
                break
            number += 1
        self.say("end")

    async def item(self, number: int) -> None:
        """All of an item, with its verdict."""
        rng = np.random.default_rng([cocotb.RANDOM_SEED, number])
        self.env.virtual.rng = rng
        self.device.rng = np.random.default_rng([cocotb.RANDOM_SEED, number, 1])
        GappedItem.seed()
        self.tb.cfg_seed.value = int(rng.integers(1, 1 << 32))
        await self.device.reset()
        await self.env.storage.fill(rng)
        await self.run(LifeSequence(count=int(rng.integers(3, 7))))
        if number >= PLANTED:
            await self.plant(os.environ.get("SOAK_PLANT", ""))
        self.env.scoreboard.verdict()
        self.device.check_rules()

    async def plant(self, fault: str) -> None:
        """A fault that the soak has to find."""
        if fault == "leak":
            self.kept.append(np.ones(LEAK, dtype=np.uint8))
        elif fault == "byte":
            word = self.env.predictor.storage[1024:1028] ^ np.array([0, 1, 0, 0], dtype=np.uint8)
            await Backdoor.load_storage(self.env.storage, 1024, word)  # without a report
            await self.env.storage.read_all()
