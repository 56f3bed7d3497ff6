# SPDX-License-Identifier: Apache-2.0
"""Longest paths of a device that is placed and not routed, from the delays that nextpnr writes.

nextpnr names the paths of a routed device only. Before that it writes what it expects of each
wire, cell and register to an SDF file; the longest of them is the clock that it estimates.
"""

import graphlib
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

DELAY = r"\(-?\d+:-?\d+:(-?\d+)\)"  # least, typical, most; the last one counts
WIRE = re.compile(rf"\(INTERCONNECT (\S+) (\S+) {DELAY} {DELAY}\)")
CELL = re.compile(rf"\(IOPATH (\S+) (\S+) {DELAY} {DELAY}\)")
SETUP = re.compile(rf"\(SETUPHOLD \(\w+ (\S+)\) \(\w+ \S+\) {DELAY}")
INSTANCE = re.compile(r"\(INSTANCE (.*)\)")
ESCAPED = re.compile(r"\\(.)")
CLOCK = re.compile("CLK[AB0-3]?")


@dataclass
class Delays:
    """Delays in picoseconds between pins, each named ``cell/port``.

    ``into``: pin -> (pin before it, delay); ``launch``: output of a register -> delay from its
    clock; ``setup``: input of a register -> time that it needs before its clock.
    """

    into: dict[str, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    launch: dict[str, int] = field(default_factory=dict)
    setup: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TimingPath:
    """A path: picoseconds with the setup at its end, and its pins with the time at each."""

    ps: int
    pins: list[tuple[str, int]]


def plain(name: str) -> str:
    """A name of an SDF file without its escapes."""
    return ESCAPED.sub(r"\1", name.strip())


def read_sdf(file: Path) -> Delays:
    """The delays of an SDF file as nextpnr writes it: one to a line."""
    found, cell = Delays(), ""
    with open(file) as lines:
        for line in lines:
            if wire := WIRE.search(line):
                slow = max(int(wire[3]), int(wire[4]))
                found.into[plain(wire[2])].append((plain(wire[1]), slow))
            elif name := INSTANCE.search(line):
                cell = plain(name[1])
            elif way := CELL.search(line):
                source, sink = f"{cell}/{way[1]}", f"{cell}/{way[2]}"
                slow = max(int(way[3]), int(way[4]))
                if CLOCK.fullmatch(way[1]):
                    found.launch[sink] = max(slow, found.launch.get(sink, 0))
                else:
                    found.into[sink].append((source, slow))
            elif need := SETUP.search(line):
                sink = f"{cell}/{need[1]}"
                found.setup[sink] = max(int(need[2]), found.setup.get(sink, 0))
    return found


def longest(delays: Delays) -> Iterator[TimingPath]:
    """The longest path from a register to each register's input, the slowest first.

    Raises graphlib.CycleError for a loop without a register.
    """
    graph = {pin: [before for before, _ in ways] for pin, ways in delays.into.items()}
    at, before = dict(delays.launch), {}
    for pin in graphlib.TopologicalSorter(graph).static_order():
        for source, delay in delays.into.get(pin, ()):
            if source in at and at[source] + delay > at.get(pin, -1):
                at[pin], before[pin] = at[source] + delay, source
    ends = ((at[pin] + need, pin) for pin, need in delays.setup.items() if pin in at)
    for ps, pin in sorted(ends, reverse=True):
        pins = [pin]
        while pins[-1] in before:
            pins.append(before[pins[-1]])
        yield TimingPath(ps, [(name, at[name]) for name in reversed(pins)])
