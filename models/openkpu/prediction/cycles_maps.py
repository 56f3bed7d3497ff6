# SPDX-License-Identifier: Apache-2.0
"""Maps on their way: from and to storage, and by the host (docs/architecture.md 15.10)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import Config
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import Layout, map_bytes
from openkpu.prediction.cycles_bus import Store
from openkpu.prediction.cycles_front import Front
from openkpu.prediction.cycles_load import PATIENCE, pieces
from openkpu.prediction.cycles_shape import ENTRY

# from a map's last piece, or that of its first line, to the layer's being able to begin: word,
# write, state
LOADED = 3
UNLOAD = 2  # from the start of an unload to the cycle before its first read
SEEN = 3  # from the write that completes a channel to its first read
WHOLE = 3  # ... from the end of the layer's work
CUT = 2  # from a read to the word at work
RESULT_FIFO = 16  # words that the result FIFO holds
HOST_WORD = 8  # bytes of one
HOST_SEES = 1  # a first word shows in AI_STATUS a cycle later
STORED = 1  # from the last beat's answer to the end of the layer


class Reader:
    """result_reader: the pieces of a map that leaves, as the gearbox gets them."""

    def __init__(self, config: Config, arg: LayerArg, start: int) -> None:
        """``start``: cycle before the first read."""
        places = 2 if min(config.path_bytes, ENTRY) == ENTRY else 3
        layout = arg.out_layout
        if arg.out32:
            word, bus = min(config.path_bytes, ENTRY), config.bus_bytes
            self.steps = []
            for at in range(0, layout.width * 4, word):
                size = min(word, layout.width * 4 - at)
                self.steps.append([min(bus, size - n) for n in range(0, size, bus)])
            self.reads, self.channels = 4, layout.channels // 4
        else:
            self.steps, self.reads = pieces(config, layout), 1
            self.channels = layout.channels
        self.height = layout.height
        self.share = 1 if arg.out32 else layout.groups  # channels in a row
        self.leaves: deque[int] = deque([start] * places, places)
        self.asked = self.at = start
        self.read = self.place = 0  # channels; steps of the present one
        self.fills: deque[tuple[int, int]] = deque()  # the fill has the AI RAM: from, to
        self.stolen: Callable[[], None] = lambda: None  # ... and did not get it in a cycle

    def step(self, there: int) -> list[tuple[int, int]]:
        """(cycle, bytes) of the pieces of the next read, or four; its channel is ``there`` from a
        cycle on."""
        found, leaves = [], self.leaves
        self.asked = self._granted(max(self.asked + 1, leaves[0] + 1, there))
        for _ in range(self.reads - 1):
            self.asked = self._granted(self.asked + 1)
        self.at = max(self.asked + CUT, leaves[-1] + 1)
        for size in self.steps[self.place % len(self.steps)]:
            found.append((self.at, size))
            self.at += 1
        leaves.append(self.at - 1)
        self.place += 1
        if self.place == len(self.steps) * self.height:
            self.read, self.place = self.read + 1, 0
        return found

    def _granted(self, at: int) -> int:
        """Cycle of a read that is asked for in cycle ``at``: the fill goes first, for a while."""
        fills, first = self.fills, at
        while fills and fills[0][1] < at:
            fills.popleft()
        for begin, end in fills:
            if begin > at:
                break
            at = max(at, end + 1)
        if at > first + PATIENCE:  # once it has waited so long the fill waits
            at = first + PATIENCE
            self.stolen()
        return at

    def rest(self) -> list[tuple[int, int]]:
        """The same of all that is left."""
        found = []
        while self.read < self.channels:
            found += self.step(0)
        return found


class Packer:
    """The gearbox behind it: pieces to words of so many bytes, the last one may be shorter."""

    def __init__(self, word: int) -> None:
        self.word, self.have = word, 0
        self.words: list[int] = []  # cycle in which each word is whole

    def add(self, parts: list[tuple[int, int]], last: bool) -> None:
        """More pieces; ``last``: nothing follows them."""
        for at, size in parts:
            self.have += size
            while self.have >= self.word:
                self.have -= self.word
                self.words.append(at + 1)
        if last and self.have:
            self.words.append(parts[-1][0] + 2)


class Leaving:
    """A map that goes to storage while its layer computes: channels leave when they are there."""

    def __init__(self, front: Front, arg: LayerArg, start: int, address: int) -> None:
        """``start``: cycle of run_start."""
        config, size = front.config, map_bytes(arg.out_shape)
        self.front = front
        self.reader = Reader(config, arg, start + UNLOAD)
        self.packer = Packer(config.bus_bytes)
        self.store = Store(config.bus_bytes, address, size, self.packer.words)
        self.there = 0  # channels
        self.ready: list[int] = []  # cycle from which on each may be read
        front.bus.store = self.store

    def written(self, at: int, channels: int) -> None:
        """So many channels more are complete with a write in cycle ``at``."""
        count, share = self.reader.channels, self.reader.share
        there = min(self.there + channels, count)
        # of those that share a row all; the pieces of the last one are followed by nothing
        whole = there - 1 if there == count else there // share * share
        self.ready += [at + SEEN] * (whole - len(self.ready))
        self.there = there

    def advance(self, now: int) -> None:
        """Read what can be read up to a cycle."""
        reader = self.reader
        while reader.read < len(self.ready):
            there = self.ready[reader.read]
            if max(there, reader.asked) >= now:
                return
            if not reader.place:
                self._wait(there)
            self.packer.add(reader.step(there), False)

    def _wait(self, there: int) -> None:
        """The next read is made in a cycle at the earliest."""
        if there > self.reader.asked + 1:
            self.store.begins.add(len(self.packer.words))

    def end(self, end: int) -> int:
        """Cycle in which the map is in storage; ``end``: the work of its layer is over."""
        reader = self.reader
        self.advance(end)
        self._wait(end + WHOLE)
        reader.asked = max(reader.asked, end + WHOLE - 1)
        self.packer.add(reader.rest(), True)
        return self.front.store(self.store)


def to_host(config: Config, arg: LayerArg, end: int, polls: int) -> tuple[int, int]:
    """(cycle in which the last word is in the result FIFO, ... the host has read it).

    The host looks at AI_STATUS every POLL cycles, from ``polls`` on, and takes what is there.
    """
    packer = Packer(HOST_WORD)
    packer.add(Reader(config, arg, end + UNLOAD + HOST_SEES).rest(), True)
    words = packer.words
    reads: list[int] = []  # cycle in which the host took each word
    pushed: list[int] = []
    look = polls

    def push_to(now: int) -> None:
        """Words that are in the FIFO by a cycle."""
        while len(pushed) < len(words):
            n = len(pushed)
            at = max(words[n], pushed[-1] + 1 if pushed else 0)
            if n >= RESULT_FIFO:
                if n - RESULT_FIFO >= len(reads):
                    return
                at = max(at, reads[n - RESULT_FIFO] + 1)
            if at >= now:
                return
            pushed.append(at)

    while len(reads) < len(words):
        push_to(look)
        held = len(pushed) - len(reads)
        if held <= 0:
            look += POLL + 1
            continue
        for n in range(held):
            reads.append(look + ACCESS + 2 * n + 1)
        look = reads[-1] + STATUS
    push_to(1 << 62)
    return pushed[-1], reads[-1]


POLL = 128  # cycles between two looks of the host at AI_STATUS when there was nothing
STATUS = 2  # cycles of a look
ACCESS = 2  # ... to the first read behind one


HOST_ACCESS = 2  # cycles of an access of the AI RAM's window: it has a wait state


def host_moves(layout: Layout) -> int:
    """Cycles in which the host writes or reads a map through the window of the AI RAM.

    A map whose lines fill their rows is one block of words; any other is moved line by line, each
    as words, a half-word and a byte.
    """
    if layout.width % ENTRY == 0:
        accesses = ceil_div(layout.channels * layout.height * layout.width, 4)
    else:
        rest = layout.width % 4
        line = layout.width // 4 + rest // 2 + rest % 2
        accesses = layout.channels * layout.height * line
    return HOST_ACCESS * accesses + 1
