# SPDX-License-Identifier: Apache-2.0
"""Act in a given cycle: register accesses whose data phase falls where a test wants it.

A script is a table from cycles, counted from the script's origin, to accesses. A register access
takes one cycle, so accesses in neighbouring cycles are a pipelined burst. A write "in cycle t" has
its data phase in t: the register holds the value from t + 1 on, and a read in t + 1 sees it.

When something happens inside the device is found without looking inside: the same job is run
several times, undisturbed, with one register read in every cycle. A value that is new in the read
of cycle t + 1 was made in cycle t. Reading a register changes nothing, so all runs are the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from cocotb.triggers import FallingEdge, RisingEdge

from openkpu_tb.ahb.host_agent import Transfer
from openkpu_tb.device.device import Device

Script = dict[int, Transfer]
LEAD = 4  # cycles from now to the earliest origin
NEVER = (1 << 64) - 1


def write(addr: int, value: int) -> Transfer:
    return Transfer(addr, True, int(value) & 0xFFFFFFFF)


def read(addr: int) -> Transfer:
    return Transfer(addr, False)


def burst(at: int, transfers: Iterable[Transfer]) -> Script:
    """Accesses in successive cycles from ``at`` on."""
    return {at + i: transfer for i, transfer in enumerate(transfers)}


def watching(addr: int, first: int, last: int) -> Script:
    """A read of a register in every cycle from ``first`` to ``last``."""
    return {cycle: read(addr) for cycle in range(first, last + 1)}


def merged(*scripts: Mapping[int, Transfer]) -> Script:
    """One script of several; a later one's accesses move on to the next free cycle."""
    whole: Script = {}
    for script in scripts:
        for cycle, transfer in sorted(script.items()):
            while cycle in whole:
                cycle += 1
            whole[cycle] = transfer
    return whole


async def until(device: Device, cycle: int) -> None:
    """Sleep until the falling edge in ``cycle``; the caller is at an earlier falling edge."""
    tb = device.tb
    if int(tb.cycle.value) >= cycle:
        return
    tb.deadline.value = cycle
    await RisingEdge(tb.timeout)
    await FallingEdge(tb.clk)
    tb.deadline.value = NEVER


async def play(device: Device, script: Script) -> int:
    """Perform a script; the absolute cycle of its origin. An ERROR answer is a failure."""
    await FallingEdge(device.tb.clk)
    first = min(script, default=0)
    origin = int(device.tb.cycle.value) + LEAD - min(0, first)
    cycles = sorted(script)
    ends = [i for i, (a, b) in enumerate(pairwise(cycles), 1) if b != a + 1]
    for a, b in pairwise([0, *ends, len(cycles)]):
        part = cycles[a:b]
        if not part:
            continue
        at = origin + part[0]
        await until(device, at - 2)
        assert int(device.tb.cycle.value) == at - 2, "too late for an access"
        await device.transfer(*(script[cycle] for cycle in part))
        assert int(device.tb.cycle.value) == at + len(part) - 1, "an access had wait states"
    return origin


def values(script: Script, addr: int) -> list[tuple[int, int]]:
    """(cycle, value) of every read of a register in a script that was played."""
    return [(c, t.data) for c, t in sorted(script.items()) if t.addr == addr and not t.write]


def changes(seen: Sequence[tuple[int, int]], mask: int = NEVER) -> list[int]:
    """Cycles in which the value was made that the next read shows for the first time."""
    return [b - 1 for (_, was), (b, now) in pairwise(seen) if (was ^ now) & mask]


def rises(seen: Sequence[tuple[int, int]], bit: int) -> list[int]:
    """Cycles in which a bit became 1."""
    return [b - 1 for (_, was), (b, now) in pairwise(seen) if ~was & now & 1 << bit]


def falls(seen: Sequence[tuple[int, int]], bit: int) -> list[int]:
    """Cycles in which a bit became 0."""
    return [b - 1 for (_, was), (b, now) in pairwise(seen) if was & ~now & 1 << bit]


class Findings:
    """What went wrong in the trials of a test; ``verdict`` fails with all of it at once."""

    SHOWN = 12

    def __init__(self, what: str) -> None:
        self.what, self.trials = what, 0
        self.bad: list[str] = []

    def check(self, good: bool, text: str) -> bool:
        """Count a trial; keep the text when it is bad."""
        self.trials += 1
        if not good:
            self.bad.append(text)
        return good

    def verdict(self) -> None:
        """AssertionError with the first findings."""
        print(f"{self.what}: {len(self.bad)} of {self.trials} trials bad")
        if self.bad:
            shown = "\n  ".join(self.bad[: self.SHOWN])
            raise AssertionError(
                f"{self.what}: {len(self.bad)} of {self.trials} trials bad:\n  {shown}"
            )
