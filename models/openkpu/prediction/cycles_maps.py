# SPDX-License-Identifier: Apache-2.0
"""Maps on their way: from and to storage, and by the host (docs/architecture.md 15.10)."""

from __future__ import annotations

import math
from collections import deque

from openkpu.arithmetic.integers import ceil_div
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import Layout, map_bytes
from openkpu.prediction.cycles_front import ARRIVES, ISSUE, NONE, STORE_ISSUE, Front
from openkpu.prediction.cycles_shape import ENTRY, Shape, late_reads

LOADED = 3  # from the last piece of a map, or its first band, to the begin of the layer
PATIENCE = 8  # cycles that a read of a map that leaves waits for the fill at most
HELD = 0.25  # share of the writes of results that delay a map in bands
SEEN = 3  # from the write that completes a channel, or the end of the work, to its first read
BURST = 16  # words of a burst to storage, which begins when all of it is there
ANSWER = 8  # ... and from its last word to the end of the layer, with beats of single bytes
HOST_WORD = 8  # bytes of a word of the result FIFO
HOST_PACE = 2.25  # cycles in which the host reads one: it looks at AI_STATUS once for sixteen
HOST_ACCESS = 2  # cycles of an access of the AI RAM's window: it has a wait state
RESULT_SEEN = 8  # from the end of the work to the first of them
POLL = 129  # cycles between two looks of the host at AI_STATUS


def parts(front: Front, width: int, address: int = 0) -> list[float]:
    """Words of the bus for each part of a line that lies in a word of the AI RAM: it begins with
    one, or, narrow, where it lies in storage, in the mean of all lines of a map."""
    word, bus = min(front.config.path_bytes, ENTRY), front.config.bus_bytes
    begins = [address + n * width for n in range(bus)] if late_reads(front.config) else [0]
    sizes = [(at, min(word, width - at)) for at in range(0, width, word)]
    return [sum(ceil_div((b + at) % bus + n, bus) for b in begins) / len(begins) for at, n in sizes]


class Coming:
    """A map on its way into the AI RAM: whole, or in bands of lines."""

    def __init__(self, front: Front, shape: Shape, at: int, number: int) -> None:
        """``at``: cycle of the request; ``number`` of the layer in its run."""
        layout, words = shape.arg.in_layout, map_bytes(shape.arg.in_shape) / front.config.bus_bytes
        line = sum(parts(front, layout.width, shape.arg.map_load_addr))
        self.band, self.height = shape.band, layout.height
        at += ISSUE
        if self.band:
            # each channel's part of a band begins with a new word of the bus, within one or not
            bus, size = front.config.bus_bytes, layout.height * layout.width
            step = math.gcd(bus, self.band * layout.width, size, shape.arg.map_load_addr)
            bands = ceil_div(layout.height, self.band)
            words = layout.channels * (size + bands * (bus - step)) / bus
        cycles = max(line * layout.channels * layout.height, words)
        if front.tables:  # not before the first reads of a run
            front.advance(at)
        owner = number if self.band else NONE  # in bands: turns with the reads of its layer
        self.front, self.load = front, front.bus.ahead(at, cycles, words, layer=owner)
        self.first, self.cycles = self.end - cycles, cycles

    @property
    def end(self) -> int:
        """Cycle in which the last word was written, with the turns so far."""
        return int(self.load.end) + ARRIVES - 1

    def held(self, writes: int, at: int) -> None:
        """So many results have been written up to a cycle, before the map."""
        lost = HELD * writes if at < self.load.end else 0
        self.load.end, self.load.lost = self.load.end + lost, self.load.lost + lost

    def line(self, number: int) -> int:
        """Cycle in which the band with a line was written."""
        lines = min(self.height, (number // self.band + 1) * self.band)
        done = self.first + self.cycles * lines / self.height
        self.front.advance(done + self.load.lost)
        return int(done + self.load.lost)


class Leaving:
    """A map that goes to storage while its layer computes: channels leave when they are there."""

    def __init__(self, front: Front, arg: LayerArg) -> None:
        layout, word = arg.out_layout, min(front.config.path_bytes, ENTRY)
        planes = 4 if arg.out32 else 1
        self.bus, self.front = front.bus, front
        self.channels = layout.channels // planes
        self.words = map_bytes(arg.out_shape) / front.config.bus_bytes / self.channels
        line = parts(front, layout.width * planes)
        late = late_reads(front.config)
        if late:  # narrow: a read for each piece, or byte of a plane
            reads = layout.width * planes if planes > 1 else sum(line)
            self.reads = layout.height * reads  # ... of a channel, of the AI RAM
            self.cycles = max(self.reads, self.words)
        else:
            # some reads are on their way; a piece of a map of words needs a read of each plane
            least = max(planes, 1.5 if word == ENTRY else 1)
            self.cycles = max(layout.height * sum(max(part, least) for part in line), self.words)
            self.reads = layout.height * len(line)
        # from the write that completes a channel to its first word on the bus
        self.first = SEEN + STORE_ISSUE + late
        self.ready: deque[int] = deque()  # cycle from which on each channel may be read
        self.sent = 0

    def written(self, at: int, channels: int, used: float) -> None:
        """So many channels more are complete with a write in cycle ``at``; the layer has ``used``
        so much of the reads of the AI RAM."""
        pace = self.cycles / self.reads  # of a read; it comes into a gap of the fill, or waits
        cycles = self.reads * max(pace, 1 / (used / (PATIENCE + 1) + (1 - used) * 2 / (1 + pace)))
        while self.ready and max(self.bus.store_end, self.ready[0]) + cycles <= at:
            self._send(self.ready.popleft(), cycles)
        self.ready += [at + self.first] * channels

    def _send(self, at: int, cycles: float) -> None:
        self.front.advance(max(self.bus.store_end, at))
        self.bus.store(at, cycles, self.words)
        self.sent += 1
        while self.bus.now < self.bus.store_end and not next(self.front.feed):
            pass

    def end(self, end: int) -> int:
        """Cycle in which the map is in storage; ``end``: the work of its layer is over."""
        last = end + self.first  # of the last channel
        while self.sent < self.channels:
            waits = self.ready and self.sent < self.channels - 1
            self._send(self.ready.popleft() if waits else last, self.cycles)
        return int(self.bus.store_end) + ANSWER + min(int(self.words * self.channels), BURST)


def to_host(front: Front, arg: LayerArg, end: int) -> tuple[int, int]:
    """(cycle in which the last word is in the result FIFO, ... the host has read it, half a POLL
    behind in the mean)."""
    words, leaving = ceil_div(map_bytes(arg.out_shape), HOST_WORD), Leaving(front, arg)
    cycles = max(leaving.cycles * leaving.channels, HOST_PACE * words)
    last = int(end + RESULT_SEEN + leaving.first - SEEN - STORE_ISSUE + cycles)
    return last, last + POLL // 2


def host_moves(layout: Layout, late: int = 0) -> int:
    """Cycles in which the host writes or reads a map through the window of the AI RAM.

    Each line is moved as words, a half-word and a byte; ``late``: cycles of a read besides.
    """
    rest = layout.width % 4
    line = layout.width // 4 + rest // 2 + rest % 2
    return (HOST_ACCESS + late) * layout.channels * layout.height * line + 1
