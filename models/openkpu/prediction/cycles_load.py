# SPDX-License-Identifier: Apache-2.0
"""The loaders of weights and parameters: bytes of the bus into rows that the array may use.

weight_loader and param_loader take one layer after the other, words of nine weights and words of
eight bytes, one a cycle, and wait for rows that are still in use (docs/architecture.md 15.5).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from openkpu.arithmetic.params import ACT_WORDS, BN_BYTES
from openkpu.configs import Config
from openkpu.layer.layout import Layout
from openkpu.prediction.cycles_bus import Gear
from openkpu.prediction.cycles_shape import ENTRY, FC, Shape

PRIME = 2  # weight_loader: position and size of the first word
TABLES = 4  # activation tables that the ring holds
# weight_loader: from its last word to its being free; a serial multiplier makes parts of a constant
LOADED = 5
LOADED_SERIAL = 7
KEPT_PIECE = 16  # bytes of kept weights that come at a time
KEPT_ROOM = 18 + KEPT_PIECE  # that their gearbox holds and still takes a piece
KEPT_FIRST, KEPT_NEXT = 4, 5  # from a request to its first piece; from a load's last piece on
PATIENCE = 8  # cycles that a word for the AI RAM waits for the write-back at most
NEXT_LINE = 5  # pixel_lines: from the last piece of a channel's line to the next one's first word


def pieces(config: Config, layout: Layout) -> list[list[int]]:
    """Bytes of the bus words of each step of a line: a step lies in one word of the AI RAM."""
    word = min(config.path_bytes, ENTRY)
    bus = config.bus_bytes
    steps = []
    for at in range(0, layout.width, word):
        size = min(word, layout.width - at)
        steps.append([min(bus, size - n) for n in range(0, size, bus)])
    return steps


class PixelLoad:
    """A map on its way into the AI RAM."""

    def __init__(self, config: Config, layout: Layout, by_lines: bool) -> None:
        """``by_lines``: all channels of a line, then of the next one; otherwise one channel after
        the other."""
        self.line = [size for step in pieces(config, layout) for size in step]
        self.layout, self.by_lines = layout, by_lines
        self.lines: list[int] = []  # by_lines: cycle of the last piece of each line
        self.end: int | None = None  # ... of the map
        # from when on it may be written, when that is known
        self.opens: Callable[[], int | None] = lambda: None


class PixelWriter:
    """pixel_writer, with pixel_lines where a map comes line by line: one map after the other."""

    def __init__(self, gear: Gear) -> None:
        self.gear = gear
        gear.opened, gear.limit = None, 0
        self.loads: list[PixelLoad] = []
        self.at = self.load = self.line = self.piece = 0  # next piece: cycle, place
        self.writes: deque[tuple[int, int]] = deque()  # write-back has the AI RAM: from, to

    def _written(self, last: int) -> int:
        """``last``, the cycle of a last piece, or as much later as its word has to wait for the
        write-back, which goes first."""
        at = last + 1
        while self.writes and self.writes[0][1] < at:
            self.writes.popleft()
        for first, end in self.writes:
            if first > at:
                break
            at = max(at, end + 1)
        return min(at - 1, last + PATIENCE)

    def progress(self) -> bool:
        """As WeightLoader.progress."""
        moved, gear = False, self.gear
        while self.load < len(self.loads):
            load = self.loads[self.load]
            size, count = sum(load.line), load.layout.channels * load.layout.height
            if not self.line and not self.piece and gear.opened is None:
                gear.opened = load.opens()
                if gear.opened is None:
                    return moved
                gear.limit += size if load.by_lines else size * count
            while self.piece < len(load.line):
                got = gear.take(load.line[self.piece], self.at)
                if got is None:
                    return moved
                self.at, self.piece, moved = got + 1, self.piece + 1, True
            last = self._written(self.at - 1) if load.by_lines else self.at - 1
            self.line, self.piece = self.line + 1, 0
            if load.by_lines and self.line % load.layout.channels == 0:
                load.lines.append(last)
            if self.line == count:
                load.end = gear.shut = last
                gear.opened = None
                self.load, self.line = self.load + 1, 0
            elif load.by_lines:
                gear.shut, self.at = last, last + NEXT_LINE
                gear.opened = self.at
                gear.limit += size
        return moved


class WeightLoader:
    """Weights of one layer after the other into the rows of the weight buffer."""

    def __init__(self, config: Config, gear: Gear) -> None:
        self.config, self.gear = config, gear
        self.kept = Gear(KEPT_ROOM)
        self.rows: list[int] = []  # cycle in which a row's last word came, from the first row on
        self.freed: list[int] = []  # cycle from which on a row is free again
        self.params_freed: list[int] = []  # ... a row of parameters
        self.params = 0  # rows of parameters of the layers before
        self.shape: Shape | None = None
        self.free = self.held = 0  # the loader; rows that a stream had kept

    def start(self, at: int, shape: Shape) -> None:
        """A layer is given in cycle ``at``."""
        self.shape, self.at = shape, at + PRIME
        self.since = at + PRIME
        self.channel = self.word = 0
        self.first = len(self.rows)
        self.scaled = at + 1 + shape.arg.shr_w
        self.constant = 0  # the multiplier of the constants is free
        self.parts = self._parts(shape)
        self.done_words = 0

    def bring_kept(self, at: int, loads: list[tuple[int, int]]) -> None:
        """Loads of kept weights, asked for from a cycle on: pieces come as fast as they are taken,
        one a cycle (reads of maps, which go first, are left out)."""
        seen = at + KEPT_FIRST
        if self.kept.seen:
            seen = max(seen, self.kept.seen[-1] + KEPT_NEXT)
        for address, left in loads:
            while left:
                part = min(left, KEPT_PIECE - address % KEPT_PIECE)
                self.kept.push(seen, part)
                address, left, seen = address + part, left - part, seen + 1
            seen += KEPT_NEXT - 1

    def _parts(self, shape: Shape) -> int:
        """Cycles that a channel's constant takes."""
        if self.config.ahb_width > 32:
            return 1
        arg, wide = shape.arg, not shape.eight_bit
        top = shape.channel_words - 1
        above_17, above_34 = wide or top >= 1 << 5, wide and top >= 1 << 14
        # arg_w moved up to a shift of 15: a third digit where 34 bits do not hold it
        narrow = abs(arg.arg_w) << 15 >> arg.shr_w < 1 << 33
        parts = 5 if above_34 else 4 if above_17 else 2
        return parts if narrow else parts + 1

    def progress(self) -> bool:
        """Load as many words as are there and have room; something was loaded."""
        shape = self.shape
        if shape is None:
            return False
        config, rows, freed = self.config, self.rows, self.freed
        gear = self.kept if shape.arg.kept_weights else self.gear
        take, banks = gear.take, config.n_z
        words, last_channel = shape.channel_words, shape.arg.o_ch_num - 1
        full, tail = 9 * shape.bytes_a_weight, shape.last_word * shape.bytes_a_weight
        fc, dw, bare = shape.mode == FC, shape.depthwise, shape.bare
        ring, base = config.wbuf_rows, self.first
        params = config.param_chans // banks
        at, moved = self.at, False
        while True:
            channel, word = self.channel, self.word
            last = word == words - 1
            if fc:
                row = base + self.done_words // banks
            elif dw:
                row = base + channel // banks
            else:
                row = base + channel // banks * words + word
            start = at
            if row >= ring:
                if row - ring >= len(freed):
                    break
                start = max(start, freed[row - ring], self.held)
            prow = self.params + channel // banks
            if prow >= params and not bare:
                if prow - params >= len(self.params_freed):
                    break
                start = max(start, self.params_freed[prow - params])
            if last and not bare:
                start = max(start, self.scaled, self.constant)
            ends = last and channel == last_channel
            following = 0 if ends else tail if words == 1 or word == words - 2 else full
            got = take(tail if last else full, start, following, self.since)
            if got is None:
                break
            moved = True
            at = got + 1
            self.done_words += 1
            if fc:
                complete = self.done_words % banks == 0 or ends
            elif dw:
                complete = channel % banks == banks - 1 or ends
            else:
                complete = channel % banks == banks - 1 or channel == last_channel
            if complete:
                rows.append(got)
            if last:
                self.constant = got + self.parts
                self.word, self.channel = 0, channel + 1
            else:
                self.word = word + 1
            if ends:
                serial = config.ahb_width == 32
                self.free = got + (LOADED_SERIAL + self.parts if serial else LOADED)
                self.params += shape.param_rows
                self.shape = None
                break
        self.at = at
        return moved


class ParamLoader:
    """Tables and batch-norm words of one layer after the other."""

    def __init__(self, config: Config, gear: Gear) -> None:
        self.config, self.gear = config, gear
        self.rows: list[int] = []  # cycle of the last word of a row of parameters
        self.tables: list[int] = []  # ... of a table
        self.rows_freed: list[int] = []
        self.tables_freed: list[int] = []
        self.shape: Shape | None = None
        self.free = 0

    def start(self, at: int, shape: Shape, table_only: bool = False) -> None:
        """A layer is given in cycle ``at``; ``table_only``: its parameters are there."""
        self.shape, self.at, self.word = shape, at + 1, 0
        self.channels = 0 if table_only else shape.arg.o_ch_num

    def progress(self) -> bool:
        """As WeightLoader.progress."""
        shape = self.shape
        if shape is None:
            return False
        banks, channels = self.config.n_z, self.channels
        ring = self.config.param_chans // banks
        moved = False
        while True:
            start = self.at
            if self.word < ACT_WORDS:
                used = len(self.tables) - TABLES
                freed = self.tables_freed
            else:
                used, freed = len(self.rows) - ring, self.rows_freed
            if used >= 0:
                if used >= len(freed):
                    break
                start = max(start, freed[used])
            got = self.gear.take(BN_BYTES, start)
            if got is None:
                break
            moved = True
            self.at, self.word = got + 1, self.word + 1
            done = self.word - ACT_WORDS
            if done == 0:
                self.tables.append(got)
            elif done > 0 and (done % banks == 0 or done == channels):
                self.rows.append(got)
            if done == channels:
                self.free, self.shape = got + 1, None
                break
        return moved
