# SPDX-License-Identifier: Apache-2.0
"""A layer on the array: issues, and what they wait for; collector and write-back.

The recurrences are those of loop_nest with issue_credits, a sweep over the pixels of a stripe at a
time, and of collector with out_walk, a group at a time (docs/architecture.md 15.1, 15.2, 15.4).
Cycles are absolute; a layer starts in the cycle of run_start.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable

from openkpu.arithmetic.integers import ceil_div
from openkpu.prediction.cycles_fill import Fill, Rows, Stripes, Vector
from openkpu.prediction.cycles_front import Front
from openkpu.prediction.cycles_shape import DWROW, ENTRY, FC, TAPS, Shape

ROW_SEEN = 2  # from the last word of a row of weights to the issue that uses it
ROW_SEEN_DW = 3  # ... of a depthwise layer
PARAM_SEEN = 2  # ... of a row of parameters
ROW_FREED = 11  # from the last use of a row of weights to the word that may take its place
TABLE_SEEN = 2  # from the last word of a table to the first of its copy
TABLE_READY = 9  # from the first word of the copy to the issues whose sums need it
TABLE_FREED = 18  # ... to the end of the copy
OUTPUT = 28  # from an issue to its job: registers 2, array 12, accumulator 1, lanes 12, queue 1
DRAIN = 3  # from the last word out of the collector to the end of the write
POOL_DRAIN = 4  # registers of a pool more
PLACES = 16  # stripes that a channel's part of the collector has for depthwise rows
PLACES_FEW = 8  # ... of fewer than 16 lanes
PLACES_PAIR = 64  # ... where two rows go at once
GROUPS = 4  # groups that it has room for at least, where they do not need more than these places


@dataclasses.dataclass
class Waits:
    """Cycles in which the array had no issue, by what it waited for first."""

    input: int = 0
    weights: int = 0
    output: int = 0


class Output:
    """Collector and write-back: groups wait for their turn, a word leaves a cycle."""

    def __init__(self, shape: Shape, start: int) -> None:
        n_z = shape.config.n_z
        places = PLACES_PAIR if shape.pair else PLACES_FEW if shape.lanes < PLACES else PLACES
        depth = GROUPS if n_z >= places // GROUPS else places // n_z
        self.limit = (n_z * depth) >> int(shape.pair) if shape.depthwise else depth
        self.late = OUTPUT + shape.config.post_share - 1
        self.released: list[int] = []  # the last word of each job is read
        self.last = start
        self.writes: deque[tuple[int, int]] | None = None  # of words, for who writes as well
        # who takes channels that are complete: cycle of their last write, how many
        self.whole: Callable[[int, int], None] = lambda at, channels: None
        self.drain = DRAIN + (POOL_DRAIN if shape.pooled else 0)

    def room(self) -> int:
        """Cycle from which on one more job may be begun."""
        over = len(self.released) - self.limit
        return self.released[over] + 1 if over >= 0 else 0

    def job(self, end: int, words: int, channels: int = 0) -> None:
        """A job whose last issue was made in cycle ``end``; so many words of it leave, and complete
        so many channels of the map."""
        self.last = max(end + self.late, self.last) + words
        self.released.append(self.last)
        if self.writes is not None:
            end = self.last + self.drain - 1
            self.writes.append((end - words + 1, end))
        if channels:
            self.whole(self.last + self.drain - 1, channels)

    @property
    def end(self) -> int:
        """Cycle in which all is written."""
        return self.last + self.drain


class Engine:
    """One layer; ``run`` gives the cycle in which everything is written."""

    def __init__(self, shape: Shape, front: Front, start: int) -> None:
        """``start``: cycle of run_start."""
        self.shape, self.front, self.start = shape, front, start
        walks = {DWROW: Rows, FC: Vector}
        self.tile: Fill = walks.get(shape.mode, Stripes)(shape, start)
        self.out = Output(shape, start)
        self.waits = Waits()
        self.issues = 0
        self.now = start + 1  # next issue
        self.post = 0  # the post lanes take sums again
        self.table: int | None = None  # sums may use the table from then on
        self.advance: Callable[[int], None] | None = None  # who reads the AI RAM goes on to a cycle

    def run(self) -> int:
        """All issues, then the end of the write-back."""
        shape = self.shape
        if shape.mode == DWROW:
            self._depthwise_rows()
        elif shape.mode == FC:
            self._fully_connected()
        elif shape.mode == TAPS and shape.depthwise:
            self._depthwise_stripes()
        else:
            self._convolution()
        return self.out.end

    # -------------------------------------------------------------- resources
    def _weights(self, row: int) -> int:
        """An issue may use row ``row`` of the layer."""
        late = ROW_SEEN_DW if self.shape.depthwise else ROW_SEEN
        return self.front.row(row) + late

    def _leaves(self, prow: int) -> int:
        """Sums may leave: row ``prow`` of the parameters and the table are there."""
        if self.advance is not None:  # at the end of a group, as far as the fill is known
            self.advance(min(self.now, self.tile.next))
        if self.table is None:
            copy = max(self.start + 1, self.front.table() + TABLE_SEEN)
            self.table = copy + TABLE_READY
            self.front.free_table(copy + TABLE_FREED)
        return max(self.table, self.front.param_row(prow) + PARAM_SEEN)

    def _sweep(self, entry: int, count: int, weights: int, leaves: int | None) -> int:
        """``count`` issues of one entry: the cycle of the last one.

        ``entry``, ``weights``: from when on they are there; ``leaves``: from when on sums may
        leave, None when they stay in the accumulators.
        """
        now = self.now
        tile = max(now, entry)
        go = ready = max(tile, weights, leaves or 0)
        last = ready + count - 1
        if leaves is not None:
            share = self.shape.config.post_share
            go = max(ready, self.out.room(), self.post)
            last = go + (count - 1) * share
            self.post = last + share
            self.waits.output += go - ready + (count - 1) * (share - 1)
        late = min(self.tile.late, tile - now)  # lines of the map that had not come
        self.tile.late -= late
        self.waits.input += tile - now - late
        self.waits.weights += ready - tile + late
        self.issues += count
        self.now = last + 1
        return last

    def _plane(self, last: int, count: int) -> int:
        """A further byte of sums, sent beside the array after the byte before, whose last issue was
        in cycle ``last``: the cycle of its own last issue."""
        share = self.shape.config.post_share
        last = max(last + 1, self.out.room(), self.post) + (count - 1) * share
        self.post = last + share
        return last

    def _free_rows(self, last: int, count: int) -> None:
        """Rows of weights are free after their last use in cycle ``last``."""
        self.front.free_rows(last + ROW_FREED, count)

    # ------------------------------------------------------------------ modes
    def _convolution(self) -> None:
        """Block > stripe > group > step; with out32 the last step four times, or bytes 1 to 3 of
        its sums beside the array."""
        shape, tile = self.shape, self.tile
        assert isinstance(tile, Stripes)
        steps, held, n_z = shape.steps, shape.held, shape.config.n_z
        planes = 4 if shape.arg.out32 else 1
        last = 0
        for first in range(0, shape.groups, shape.block):
            groups = range(first, min(first + shape.block, shape.groups))
            for stripe in shape.stripes:
                tile.stripe(stripe)
                ends_block = stripe is shape.stripes[-1]
                count, words = shape.sweep(stripe), shape.out_words(stripe)
                for group in groups:
                    if not held and group != first:
                        tile.again()
                    size = words * min(n_z, shape.arg.o_ch_num - group * n_z)
                    frees = not held or group == groups[-1]
                    for step in range(steps):
                        entry = tile.entry(tile.base + step)
                        weights = self._weights(group * steps + step)
                        if step < steps - 1:
                            last = self._sweep(entry, count, weights, None)
                        else:
                            end = 0
                            for plane in range(planes):
                                if plane and shape.config.sum_planes:
                                    end = self._plane(end, count)
                                else:
                                    last = self._sweep(entry, count, weights, self._leaves(group))
                                    end = last
                                whole = ends_block and plane == planes - 1
                                self.out.job(end, size, n_z if whole else 0)
                        if frees:
                            tile.free(last)
                        if ends_block:
                            self._free_rows(last, 1)

    def _depthwise_stripes(self) -> None:
        """Stripe > channel; every issue gives sums."""
        shape, tile = self.shape, self.tile
        assert isinstance(tile, Stripes)
        n_z, channels = shape.config.n_z, shape.arg.o_ch_num
        for stripe in shape.stripes:
            tile.stripe(stripe)
            ends_layer = stripe is shape.stripes[-1]
            count, words = shape.sweep(stripe), shape.out_words(stripe)
            for channel in range(channels):
                row = channel // n_z
                entry = tile.entry(tile.base + channel)
                last = self._sweep(entry, count, self._weights(row), self._leaves(row))
                self.out.job(last, words, int(ends_layer))
                tile.free(last)
                if ends_layer and (channel % n_z == n_z - 1 or channel == channels - 1):
                    self._free_rows(last, 1)

    def _depthwise_rows(self) -> None:
        """Channels of a row > line > row; a row is an entry, and two of them an issue with PAIR."""
        shape, arg, tile = self.shape, self.shape.arg, self.tile
        n_z, channels, height = shape.config.n_z, arg.o_ch_num, arg.i_col_high
        group, rows = shape.row_channels, shape.line_rows
        freed_rows = entry = last = 0
        odd = arg.image_dst_addr % 2
        widths = [min(ENTRY, arg.i_row_wid - seg * ENTRY) for seg in range(rows)]
        for first in range(0, channels, group):
            slots = min(group, channels - first)
            row = (first + slots - 1) // n_z
            weights, leaves = self._weights(row), self._leaves(row)
            words = [shape.row_words(width, slots) for width in widths]
            counts = [shape.row_sweep(slots, width) for width in widths]
            line = 0
            while line < height:
                lines = 1 + int(shape.two_lines and odd == line % 2 and line != height - 1)
                for seg, (count, size) in enumerate(zip(counts, words, strict=True)):
                    there = tile.entry(entry + lines - 1)
                    last = self._sweep(there, count, weights, leaves)
                    whole = line + lines == height and seg == rows - 1
                    self.out.job(last, size, group if whole else 0)
                    tile.free(last, lines)
                    entry += lines
                line += lines
            upto = ceil_div(channels, n_z) if first + group >= channels else (first + group) // n_z
            self._free_rows(last, upto - freed_rows)
            freed_rows = upto
            odd ^= rows * height % 2

    def _fully_connected(self) -> None:
        """Neuron > step; words of weights are dealt over the banks, 64 steps an entry."""
        shape, tile = self.shape, self.tile
        n_z, steps, neurons = shape.config.n_z, shape.steps, shape.groups
        word = base = last = 0  # word of the layer, first entry of the reading
        for neuron in range(neurons):
            step, entry = 0, base
            while step < steps:
                stop = min(steps, (step // ENTRY + 1) * ENTRY)
                there = tile.entry(entry)
                while step < stop:
                    row = word // n_z
                    count = min(stop - step, (row + 1) * n_z - word)
                    weights = self._weights(row)
                    ends = step + count == steps
                    if count > int(ends):
                        last = self._sweep(there, count - int(ends), weights, None)
                    if ends:
                        last = self._sweep(there, 1, weights, self._leaves(neuron // n_z))
                        self.out.job(last, 1, 1)
                    step, word = step + count, word + count
                    if word % n_z == 0 or word == neurons * steps:
                        self._free_rows(last, 1)
                if not shape.held or neuron == neurons - 1:
                    tile.free(last)
                entry += 1
            if not shape.held:
                base = entry
