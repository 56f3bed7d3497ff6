# SPDX-License-Identifier: Apache-2.0
"""Base of the pyuvm tests: environment, reset, scenario, verdict."""

import cocotb
from cocotb.triggers import FallingEdge
from pyuvm import ConfigDB, uvm_test

from openkpu_tb.handle import Handle
from openkpu_tb.uvm.create import create
from openkpu_tb.uvm.env import DeviceEnv
from openkpu_tb.uvm.items import GappedItem
from openkpu_tb.uvm.sequences.job import DeviceSequence


class DeviceTest(uvm_test):
    """A test ends well when the scoreboard found no wrong byte and no bus rule was broken."""

    least_bytes = 1  # that the scoreboard must have compared
    broken: tuple[int, ...] = ()  # bus rules that the bench's own host breaks
    filled = False  # random bytes in both memories first, so that a stray write is seen

    def build_phase(self) -> None:
        self.tb: Handle = cocotb.top
        ConfigDB().set(None, "*", "TB", self.tb)
        GappedItem.seed()
        self.overrides()
        self.env = create(DeviceEnv, "env", self)

    def overrides(self) -> None:
        """Factory overrides of this test, before anything is built."""

    async def run_phase(self) -> None:
        self.raise_objection()
        self.logger.info(f"seed {cocotb.RANDOM_SEED}")
        self.device = self.env.virtual.device
        await self.device.reset()
        if self.filled:
            await self.env.storage.fill(self.env.virtual.rng)
        await self.scenario()
        await FallingEdge(self.tb.clk)
        self.device.check_rules(self.broken)
        self.env.scoreboard.verdict()
        assert self.env.scoreboard.checked >= self.least_bytes, "nothing was compared"
        self.drop_objection()

    async def scenario(self) -> None:
        """The body of the test."""
        raise NotImplementedError

    async def run(self, sequence: DeviceSequence) -> None:
        """A sequence on the virtual sequencer."""
        await sequence.start(self.env.virtual)
