# SPDX-License-Identifier: Apache-2.0
"""Scoreboards: compare the storage agent's data with the predictor's mirror."""

import numpy as np
from pyuvm import uvm_subscriber

from openkpu_tb.uvm.agents import Bytes, Memory
from openkpu_tb.uvm.predictor import Mask, Predictor


class Scoreboard(uvm_subscriber):
    """Compares every byte whose value is certain; bytes in doubt are taken as they are."""

    def build_phase(self) -> None:
        self.checked = self.doubted = 0
        self.wrong: list[str] = []
        self.predictor: Predictor  # the environment sets it when it connects

    def write(self, tt: Memory) -> None:
        predictor = self.predictor
        predictor.memory(tt)
        if tt.written:
            return
        span = slice(tt.addr, tt.addr + tt.data.size)
        expected = predictor.mirror(tt.where)[span]
        valid, doubt = predictor.valid[tt.where][span], predictor.doubt[tt.where][span]
        if tt.where == "ai_ram":  # weights may have waited there
            sure = ~predictor.waiting[span]
            valid, doubt = valid & sure, doubt & sure
        assert tt.unknown is not None, "what was read says it"
        unknown = tt.unknown.astype(bool)
        bad = valid & ~doubt & ((tt.data != expected) | unknown)
        if doubt.any():
            bad |= doubt & (unknown | self.impossible(tt, span))
        self.checked += int((valid & ~doubt).sum())
        self.doubted += int(doubt.sum())
        if bad.any():
            at = int(np.argmax(bad))
            self.wrong.append(
                f"{int(bad.sum())} bytes of {tt.where} from {tt.addr + at:#x} on: "
                f"{tt.data[at]:#04x}, expected {expected[at]:#04x}"
                + (", or a value from before" if doubt[at] else "")
            )
        predictor.settle(tt.where, span, tt.data)

    def impossible(self, tt: Memory, span: slice) -> Mask:
        """Which bytes in doubt cannot be what was found."""
        return np.zeros(tt.data.size, dtype=bool)

    def check_phase(self) -> None:
        self.verdict()

    def verdict(self) -> None:
        """AssertionError when anything differed."""
        assert not self.wrong, f"differs from the golden model: {self.wrong}"


class StrictScoreboard(Scoreboard):
    """A byte that an interrupted job writes must be old, or one of the values that the job gives.

    To be put in place of Scoreboard by a factory override.
    """

    def impossible(self, tt: Memory, span: slice) -> Mask:
        possible = np.zeros(tt.data.size, dtype=bool)
        for write in self.predictor.doubtful:
            if write.where != tt.where:
                continue
            low, high = max(write.span.start, span.start), min(write.span.stop, span.stop)
            if low >= high:
                continue
            here = slice(low - span.start, high - span.start)
            there = slice(low - write.span.start, high - write.span.start)
            found: Bytes = tt.data[here]
            same = (found == write.before[there]) | (found == write.after[there])
            possible[here] |= write.mask[there] & same
        return ~possible
