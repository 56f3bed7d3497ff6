# SPDX-License-Identifier: Apache-2.0
"""pyuvm tests of factory overrides: another item, another driver, another scoreboard.

The last ones plant a fault, to show that the environment sees it.
"""

import numpy as np
import pyuvm
from pyuvm import uvm_factory

from openkpu_tb.core.registers import AI_RAM
from openkpu_tb.uvm.agents import HostDriver, IdleDriver, Memory
from openkpu_tb.uvm.base_test import DeviceTest
from openkpu_tb.uvm.create import create
from openkpu_tb.uvm.items import GappedItem, HostItem
from openkpu_tb.uvm.scoreboard import Scoreboard, StrictScoreboard
from openkpu_tb.uvm.sequences.faults import HardResetSequence, SoftResetSequence
from openkpu_tb.uvm.sequences.job import BurstSequence, LayerSequence, StreamSequence
from openkpu_tb.uvm.sequences.misbehaviour import MisbehaviourSequence


@pyuvm.test()
class AnotherItem(DeviceTest):
    """Gaps inside every item; the sequences are the same."""

    filled = True

    def overrides(self) -> None:
        uvm_factory().set_type_override_by_type(HostItem, GappedItem)

    async def scenario(self) -> None:
        item = create(HostItem, "made by the factory")
        assert type(item) is GappedItem and len({item.gap() for _ in range(100)}) > 3
        for sequence in (LayerSequence, BurstSequence, StreamSequence, MisbehaviourSequence):
            await self.run(sequence())


@pyuvm.test()
class AnotherDriver(DeviceTest):
    """A driver that is late, at one place of the tree alone."""

    filled = True

    def overrides(self) -> None:
        uvm_factory().set_inst_override_by_type(
            HostDriver, IdleDriver, "uvm_test_top.env.host.driver"
        )

    async def scenario(self) -> None:
        assert type(self.env.host.driver) is IdleDriver
        for sequence in (LayerSequence, StreamSequence):
            await self.run(sequence())
        assert self.env.host.driver.idled > 50


@pyuvm.test()
class AnotherScoreboard(DeviceTest):
    """Bytes that interrupted jobs leave are old ones or the job's, never anything else."""

    filled = True

    def overrides(self) -> None:
        uvm_factory().set_type_override_by_type(Scoreboard, StrictScoreboard)

    async def scenario(self) -> None:
        assert type(self.env.scoreboard) is StrictScoreboard
        for _ in range(4):
            await self.run(SoftResetSequence())
            await self.run(HardResetSequence())
        assert self.env.scoreboard.doubted, "no job was interrupted"


class Corrupted(DeviceTest):
    """Base: a byte is changed past the predictor, and the scoreboard must see it."""

    filled = True

    async def seen(self, memory: Memory) -> bool:
        """Has the scoreboard complained of what was found?"""
        board = self.env.scoreboard
        before = len(board.wrong)
        board.write(memory)
        found = len(board.wrong) > before
        del board.wrong[before:]
        return found


@pyuvm.test()
class WrongByte(Corrupted):
    """A single byte, in a map and far from everything, in both memories."""

    async def scenario(self) -> None:
        await self.run(LayerSequence())
        for where in ("ai_ram", "storage"):
            for _ in range(8):
                data = self.env.predictor.mirror(where).copy()
                clean = Memory(where, 0, data, np.zeros(data.size, np.bool_), written=False)
                assert not await self.seen(clean)
                data[int(self.env.virtual.rng.integers(0, data.size))] ^= 1
                assert await self.seen(clean), f"a wrong byte of {where} went unnoticed"


@pyuvm.test()
class WrongByteInDoubt(Corrupted):
    """A byte of an interrupted job: only the strict scoreboard sees it."""

    def overrides(self) -> None:
        uvm_factory().set_type_override_by_type(Scoreboard, StrictScoreboard)

    async def scenario(self) -> None:
        predictor, reset = self.env.predictor, SoftResetSequence()
        reset.compares, reset.latest = False, 2
        await self.run(reset)
        for where, doubt in predictor.doubt.items():
            if not doubt.any():
                continue
            at = int(np.flatnonzero(doubt)[0])
            good = {int(predictor.mirror(where)[at])}
            for write in predictor.doubtful:
                if write.where == where and write.span.start <= at < write.span.stop:
                    here = at - write.span.start
                    good |= {int(write.before[here]), int(write.after[here])}
            bad = next(value for value in range(256) if value not in good)
            found = np.array([bad], dtype=np.uint8)
            strict, plain = self.env.scoreboard, Scoreboard.impossible
            span = slice(at, at + 1)
            memory = Memory(where, at, found, np.zeros(1, np.bool_), written=False)
            assert strict.impossible(memory, span).all()
            assert not plain(strict, memory, span).any()
        assert any(doubt.any() for doubt in predictor.doubt.values()), "nothing was interrupted"
        await self.env.storage.read_all()


@pyuvm.test()
class WindowByte(Corrupted):
    """A write of the host into the AI RAM is the predictor's too; one that it missed is seen."""

    async def scenario(self) -> None:
        at = AI_RAM + 64 * 7
        await self.device.write(at, 0x12345678)
        await self.env.storage.read_ram(7, 1)
        assert not self.env.scoreboard.wrong
        missed = self.env.predictor.ram
        missed[64 * 7] ^= 0xFF
        row = missed[64 * 7 : 64 * 8].copy()
        row[0] ^= 0xFF
        assert await self.seen(Memory("ai_ram", 64 * 7, row, np.zeros(64, np.bool_), written=False))
        missed[64 * 7] ^= 0xFF
