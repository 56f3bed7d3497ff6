# SPDX-License-Identifier: Apache-2.0
"""Records named signals cycle by cycle, for timing diagrams."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import cocotb
from cocotb.triggers import FallingEdge

from openkpu_tb.handle import Handle

Read = Callable[[], str]


class Recorder:
    """Samples signals in the middle of every cycle, where they have settled.

    ``signals``: name -> handle of a signal, or a function that gives the text of the cycle.
    """

    def __init__(self, clock: Handle, signals: Mapping[str, Handle | Read]) -> None:
        self.clock = clock
        self.signals = dict(signals)
        self.rows: dict[str, list[str]] = {name: [] for name in signals}
        self.task = cocotb.start_soon(self._run())

    async def _run(self) -> None:
        while True:
            await FallingEdge(self.clock)
            for name, signal in self.signals.items():
                self.rows[name].append(str(signal() if callable(signal) else signal.value))

    def first(self, name: str, value: str = "1", start: int = 0) -> int:
        """First cycle from ``start`` on in which a signal has a value."""
        return self.rows[name].index(value, start)

    def save(self, first: int = 0, last: int | None = None) -> None:
        """Cycles ``first`` .. ``last`` into the file that OKPU_RECORD names."""
        self.task.kill()
        stop = None if last is None else last + 1
        kept = {name: row[first:stop] for name, row in self.rows.items()}
        Path(os.environ["OKPU_RECORD"]).write_text(json.dumps(kept))


def number_text(handle: Handle, when: Callable[[], bool], text: str = "{:#x}") -> Read:
    """Text of a number in the cycles in which it counts, else nothing."""

    def read() -> str:
        return text.format(int(handle.value)) if when() else ""

    return read


def high(handle: Handle) -> bool:
    """A known 1."""
    return str(handle.value) == "1"
