# SPDX-License-Identifier: Apache-2.0
"""Maps on their way: from and to storage, and by the host (docs/architecture.md 15.10)."""

from __future__ import annotations

from collections import deque

from .configs import Config
from .cycles_bus import Store
from .cycles_front import Front
from .cycles_load import pieces
from .cycles_shape import ENTRY, up
from .layer import LayerArg
from .layout import Layout
from .roofline import map_bytes

# from a map's last piece, or that of its first line, to the layer's being able to begin: word,
# write, state
LOADED = 3
UNLOAD = 2  # from the end of the layer's work to the first read of its map
CUT = 2  # from a read to the word at work
RESULT_FIFO = 16  # words that the result FIFO holds
HOST_WORD = 8  # bytes of one
HOST_SEES = 1  # a first word shows in AI_STATUS a cycle later
STORED = 1  # from the last beat's answer to the end of the layer


def _reads(config: Config, arg: LayerArg, start: int) -> list[tuple[int, int]]:
    """(cycle, bytes) of the pieces of a map that leaves, as the gearbox gets them."""
    places = 2 if min(config.path_bytes, ENTRY) == ENTRY else 3
    layout = arg.out_layout
    if arg.out32:
        word, bus = min(config.path_bytes, ENTRY), config.bus_bytes
        steps = []
        for at in range(0, layout.width * 4, word):
            size = min(word, layout.width * 4 - at)
            steps.append([min(bus, size - n) for n in range(0, size, bus)])
        reads, lines = 4, layout.channels // 4 * layout.height
    else:
        steps, reads, lines = pieces(config, layout), 1, layout.channels * layout.height
    found: list[tuple[int, int]] = []
    leaves: deque[int] = deque([start] * places, places)
    asked, at = start, start
    for _ in range(lines):
        for step in steps:
            asked = max(asked + 1, leaves[0] + 1) + reads - 1
            at = max(asked + CUT, leaves[-1] + 1)
            for size in step:
                found.append((at, size))
                at += 1
            leaves.append(at - 1)
    return found


def _words(parts: list[tuple[int, int]], word: int) -> list[int]:
    """Cycle in which each word of so many bytes is whole; the last one may be shorter."""
    found, have = [], 0
    for at, size in parts:
        have += size
        while have >= word:
            have -= word
            found.append(at + 1)
    if have:
        found.append(parts[-1][0] + 2)
    return found


def store(front: Front, arg: LayerArg, end: int, address: int) -> int:
    """Cycle in which the map of a layer is in storage; ``end``: its work is over."""
    config, size = front.config, map_bytes(arg.out_shape)
    words = _words(_reads(config, arg, end + UNLOAD), config.bus_bytes)
    return front.store(Store(config.bus_bytes, address, size, words))


def to_host(config: Config, arg: LayerArg, end: int, polls: int) -> tuple[int, int]:
    """(cycle in which the last word is in the result FIFO, ... the host has read it).

    The host looks at AI_STATUS every POLL cycles, from ``polls`` on, and takes what is there.
    """
    words = _words(_reads(config, arg, end + UNLOAD + HOST_SEES), HOST_WORD)
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
        accesses = up(layout.channels * layout.height * layout.width, 4)
    else:
        rest = layout.width % 4
        line = layout.width // 4 + rest // 2 + rest % 2
        accesses = layout.channels * layout.height * line
    return HOST_ACCESS * accesses + 1
