# SPDX-License-Identifier: Apache-2.0
"""pyuvm tests of the scoreboards: each plants a wrong byte, which the scoreboard must see."""

import numpy as np
import pyuvm
from pyuvm import uvm_factory

from openkpu_tb.uvm.agents import Memory
from openkpu_tb.uvm.base_test import DeviceTest
from openkpu_tb.uvm.scoreboard import Scoreboard, StrictScoreboard
from openkpu_tb.uvm.sequences.faults import SoftResetSequence
from openkpu_tb.uvm.sequences.job import LayerSequence


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
