# SPDX-License-Identifier: Apache-2.0
"""A layer on the array: the fill of the tile buffer, issues and what they wait for, the way out.

A sweep over the pixels of a stripe at a time; entries of the tile buffer, rows of weights and jobs
of the collector are the resources (docs/architecture.md 15.1 to 15.4). Cycles are absolute; a layer
starts in the cycle of run_start.
"""

from __future__ import annotations

from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import TILE_LEAST
from openkpu.layer.decoded import CHAN, DWROW, FC, TAPS
from openkpu.prediction.cycles_front import Front
from openkpu.prediction.cycles_maps import Coming
from openkpu.prediction.cycles_pool import Whole
from openkpu.prediction.cycles_shape import ENTRY, Shape, Stripe, late_reads

FIRST_WORD = 4  # from the start of a layer to the walk: the first stripe is worked out
FILLED = 6  # from the walk's step of a word to the issue that uses it
FREED = 10  # from the last use of an entry to the step that fills it again: nine columns behind
NINE = 9  # channels of an entry of a 1x1 layer, bytes that fc_flatten deals in a cycle
FC_WORK = 4  # fully connected: from the step of a word to its first nine bytes
FC_WORDS = 2  # words that fc_flatten has requested and not finished, a third if they are short
FC_SHORT = 16  # bytes of such a word
FC_LINES = 64  # lines over which the mean is formed
FC_COLUMNS = 3  # elements that fc_serial, which deals words of eight bytes, writes in a cycle
ROW_SEEN = 2  # from the last word of a row of weights to the issue that uses it
ROW_FREED = 12  # from the last use of a row of weights to the word that may take its place
TABLE_READY = 10  # from the last word of a table to the issues whose sums need it
OUTPUT = 32  # from an issue to its job: registers 2, array 12, accumulator 1, lanes 16, queue 1
DRAIN = 3  # from the last word out of the collector to the end of the write, without a pool
JOB_NARROW = 5  # there: cycles of a job at least, in which the next one's first row is formed
JOB_ROW = 4  # there: from the first bytes of a job to its first read, while others come
PLACES_NARROW = 3  # there: stripes that a channel's part of the collector has
GROUPS = 4  # groups that it has room for at least, where they do not need more than PLACES
PLACES = 16  # stripes that a channel's part of the collector has


class Engine:
    """One layer; ``run`` gives the cycle in which everything is written."""

    def __init__(
        self, shape: Shape, front: Front, start: int, whole: Whole, load: Coming | None
    ) -> None:
        """``load``: a map that comes in bands."""
        self.shape, self.front, self.start = shape, front, start
        # cycles in which the array had no issue, by what it waited for first
        self.waits = {"input": 0, "bus": 0, "output": 0}
        self.issues = 0
        self.now = start + 1  # next issue
        table = front.until(front.tables, front.first_table)
        self.ready = max(start, table) + TABLE_READY  # sums may leave
        # the fill: cycle of its next step; of each entry: there, free again; of a reading the cost
        # of each entry, and the first one
        self.fill = start + FIRST_WORD
        self.way = FILLED + late_reads(shape.config)
        self.filled: list[int] = []
        self.freed: list[int] = []
        self.costs: list[int] = []
        self.base = self.reads = 0
        self.ahead = {CHAN: 1, DWROW: shape.line_rows}.get(shape.mode, 0)  # entries, free as well
        self.whole, self.load = whole, load
        self.late = 0  # cycles lost to lines that had not come
        # the way out: the collector has room for a few groups, or narrow for stripes of a channel;
        # the post lanes accept sums again
        n_z = shape.config.n_z
        each = shape.arg.depthwise or (shape.narrow and shape.mode == FC)  # places of one channel
        few = max(GROUPS, min(PLACES, shape.config.lanes) // n_z)
        groups = PLACES_NARROW if shape.narrow else few
        self.limit = groups * n_z >> int(shape.pair) if each else groups
        self.released: list[int] = []  # the last word of each job is read
        self.post, self.last = 0, start
        self.output = OUTPUT + shape.config.post_share - 1

    def run(self) -> int:
        """All issues, then the end of the write-back."""
        modes = {DWROW: self._depthwise_rows, FC: self._fully_connected}
        modes.get(self.shape.mode, self._stripes)()
        return self.last + DRAIN

    def _read(self, costs: list[int]) -> None:
        """The next reading: cycles of each of its entries."""
        self.costs, self.base = costs, len(self.filled)

    def _entry(self, number: int) -> int:
        """Cycle from which on an issue may use an entry."""
        filled, freed, costs = self.filled, self.freed, self.costs
        while len(filled) <= number:
            over = len(filled) + self.ahead - self.shape.config.tile_rows
            if over >= 0 and freed[over] > self.fill:
                self.fill = freed[over]
            self.fill += costs[len(filled) - self.base]
            self.reads += costs[len(filled) - self.base]
            filled.append(self.fill - 1 + self.way)
        return filled[number]

    def _stripe(self, stripe: Stripe) -> None:
        """The fill comes to the next stripe, whose lines may not have come."""
        there = max(self.fill, self.load.line(stripe.last_y) if self.load else 0)
        self.late, self.fill = self.late + there - self.fill, there

    def _sweep(self, entry: int, count: int, weights: int, prow: int | None, steps: int = 1) -> int:
        """``count`` issues of one entry, or of ``steps`` by turns: the cycle of the last one.

        ``entry``, ``weights``: from when on they are there; ``prow``: row of parameters of sums
        that leave, None when they stay in the accumulators.
        """
        now = self.now
        tile = max(now, entry)
        ready = max(tile, weights)
        issues = count * steps
        last = ready + issues - 1
        if prow is not None:
            params = self.front.until(self.front.params, self.front.first_param + prow)
            ready = max(ready, self.ready, params + ROW_SEEN)
            last = self._lanes(ready + steps - 1, count, steps)
            self.waits["output"] += last - ready - issues + 1
        late = min(self.late, tile - now)  # lines of the map that had not come
        self.late -= late
        self.waits["input"] += tile - now - late
        self.waits["bus"] += ready - tile + late
        self.issues += issues
        self.now = last + 1
        return last

    def _lanes(self, ready: int, count: int, steps: int = 1) -> int:
        """Sums of so many issues, each the last of ``steps``, leave from ``ready`` on: the cycle of
        the last issue."""
        share = self.shape.config.post_share
        room = self.released[-self.limit] + 1 if len(self.released) >= self.limit else 0
        last = max(ready, room, self.post) + (count - 1) * max(share, steps)
        self.post = last + share
        return last

    def _job(
        self, end: int, words: int, channels: int = 0, count: int = 1, behind: int = 1
    ) -> None:
        """A job whose last issue of ``count`` was made in cycle ``end``; so many words of it leave,
        and complete so many channels of the map. Narrow, they leave while others come, and some
        ``behind`` the last one."""
        there = end + self.output
        if self.shape.narrow:
            first = there - (count - 1) * self.shape.config.post_share + JOB_ROW
            self.last = max(there + behind, max(first, self.last) + max(words, JOB_NARROW))
        else:
            self.last = max(there, self.last) + words
        self.released.append(self.last)
        if self.load:
            self.load.held(words, self.now)
        if channels:
            used = min(1, self.reads / (self.now - self.start))
            self.whole(self.last + DRAIN - 1, channels, used)

    def _free_rows(self, count: int) -> None:
        """Rows of weights were used for the last time in the issue before."""
        self.front.rows_freed.extend([self.now - 1 + ROW_FREED] * count)

    def _free_entries(self, count: int = 1) -> None:
        self.freed.extend([self.now - 1 + FREED] * count)

    def _costs(self, stripe: Stripe) -> list[int]:
        """Cycles of the fill for each entry of a stripe: a channel, or nine of a 1x1 layer, where
        those of a word come together."""
        shape, maps = self.shape, 2 if self.shape.arg.two_maps else 1
        words, channels = maps * stripe.in_lines * stripe.in_words, shape.arg.i_ch_num
        if shape.mode == TAPS:
            return [words] * channels
        packed = max(1, shape.tile_word // (16 << shape.in_pitch))
        ends = [ceil_div(min(at + NINE, channels), packed) for at in range(0, channels, NINE)]
        return [(end - before) * words for end, before in zip(ends, [0, *ends], strict=False)]

    def _stripes(self) -> None:
        """Block > stripe > group > step; with out32 the last step four times, or bytes 1 to 3 of
        its sums beside the array.  Depthwise: stripe > channel, and every issue gives sums."""
        shape, n_z, deep = self.shape, self.shape.config.n_z, self.shape.arg.depthwise
        groups, block = (shape.arg.o_ch_num,) * 2 if deep else (shape.on.groups, shape.on.block)
        steps = 1 if deep else shape.on.steps
        for first in range(0, groups, block):
            for stripe in shape.stripes:
                self._stripe(stripe)
                self._read(costs := self._costs(stripe))
                ends = stripe is shape.stripes[-1]
                count, words = shape.sweep(stripe), shape.out_words(stripe)
                last_group = min(first + block, groups) - 1
                for group in range(first, last_group + 1):
                    if not deep and not shape.on.held and group != first:
                        self._read(costs)
                    frees = deep or not shape.on.held or group == last_group
                    if deep:
                        base, row, channels = self.base + group, group // n_z, 1
                        rows = int(group % n_z == n_z - 1 or group == last_group)
                    else:
                        base, row, rows = self.base, group * steps, 1
                        channels = min(n_z, shape.arg.o_ch_num - group * n_z)
                    out = words * channels, channels * ends, 1 if deep else words
                    self._group(base, row, steps, count, out, frees)
                    if ends and rows:
                        self._free_rows(steps)

    def _group(
        self, base: int, row: int, steps: int, count: int, out: tuple[int, int, int], frees: bool
    ) -> None:
        """A group of a stripe, then jobs of ``out``: words, whole channels, words behind the sums.

        Where sums share a lane as many of the last steps take turns.
        """
        shape, front = self.shape, self.front
        prow = row if shape.arg.depthwise else row // steps
        planes = 4 if shape.arg.out32 else 1
        by_turns = planes == 1 or shape.config.sum_planes
        turns = min(steps, shape.config.post_share) if by_turns else 1
        for step in range(steps - turns):
            self._sweep(self._entry(base + step), count, front.row(row + step) + ROW_SEEN, None)
            if frees:
                self._free_entries()
        there, weights = self._entry(base + steps - 1), front.row(row + steps - 1) + ROW_SEEN
        end = 0
        for plane in range(planes):
            if plane and shape.config.sum_planes:
                end = self._lanes(end + 1, count)
            else:
                end = self._sweep(there, count, weights, prow, turns)
            self._job(end, out[0], out[1] if plane == planes - 1 else 0, count, out[2])
        if frees:
            self._free_entries(turns)

    def _depthwise_rows(self) -> None:
        """Channels of a row > line > row; a row is an entry, and two of them an issue with PAIR."""
        shape, arg, front = self.shape, self.shape.arg, self.front
        n_z, channels, rows, freed = shape.config.n_z, arg.o_ch_num, shape.line_rows, 0
        widths = [min(ENTRY, arg.i_row_wid - seg * ENTRY) for seg in range(rows)]
        for first in range(0, channels, shape.row_channels):
            slots = min(shape.row_channels, channels - first)
            # the group begins in the upper half of a word
            odd = first // shape.row_channels * rows * arg.i_col_high
            self._read(self._line_costs(slots, arg.image_src_addr + odd))
            row, entry = (first + slots - 1) // n_z, self.base
            for lines in self._lines(arg.image_dst_addr + odd):
                for width in widths:
                    there, weights = self._entry(entry + lines - 1), front.row(row) + ROW_SEEN
                    count = shape.lane_chunks(slots, width, 16 << shape.in_pitch)
                    last = self._sweep(there, count, weights, row)
                    entry += lines
                    ends = entry == self.base + len(self.costs)
                    self._job(last, shape.row_words(width, slots), slots if ends else 0, count)
                    self._free_entries(lines)
            done = ceil_div(channels, n_z) if first + slots >= channels else (first + slots) // n_z
            self._free_rows(done - freed)
            freed = done

    def _lines(self, odd: int) -> list[int]:
        """Lines of one issue: two in one word of the AI RAM, where rows are paired."""
        height = self.shape.arg.i_col_high
        first = odd % 2 if self.shape.two_lines else height
        pairs, rest = divmod(height - first, 2)
        return [1] * first + [2] * pairs + [1] * rest

    def _line_costs(self, slots: int, odd: int) -> list[int]:
        """Cycles of the fill for each entry of a group of channels: a line is there when the one
        below is, the last two at once."""
        shape, arg, rows = self.shape, self.shape.arg, self.shape.line_rows
        wide = (slots - 1) * (16 << shape.in_pitch) + arg.i_row_wid
        cost = (2 if arg.two_maps else 1) * ceil_div(wide, shape.tile_word)
        each = [part for lines in self._lines(odd) for part in [cost, 0][:lines]]
        if not arg.elementwise and arg.i_col_high > 1:
            each = [each[0] + each[1], *each[2:], 0]
        return [(part + seg) // rows for part in each for seg in range(rows)]

    def _fully_connected(self) -> None:
        """Neuron > step; words of weights are dealt over the banks, 64 steps an entry."""
        shape, front, n_z = self.shape, self.front, self.shape.config.n_z
        width, word = shape.arg.i_row_wid, shape.tile_word
        parts = [min(word, width - at) for at in range(0, width, word)] * FC_LINES
        worked = serial(parts) if word == TILE_LEAST else flattened(parts, word)
        steps = shape.on.steps
        rate = worked / FC_LINES * shape.arg.taps / width / steps
        counts = [min(ENTRY, steps - at) for at in range(0, steps, ENTRY)]
        at = freed = 0  # words of the layer so far; rows of them that are free again
        for neuron in range(shape.on.groups):
            if not neuron or not shape.on.held:
                self._read([int(rate * count) for count in counts])
            for entry, count in enumerate(counts):
                ends, at = entry == len(counts) - 1, at + count
                # the last row comes when the others are used
                weights = front.row((at - 1) // n_z) + ROW_SEEN - max(0, count - 1 - (at - 1) % n_z)
                there = self._entry(self.base + entry)
                self._sweep(there, count - int(ends), weights, None)
                if ends:
                    self._job(self._sweep(there, 1, weights, neuron // n_z), 1, 1)
                if not shape.on.held or neuron == shape.on.groups - 1:
                    self._free_entries()
                done = at // n_z if at < shape.on.groups * steps else shape.weight_rows
                self._free_rows(done - freed)
                freed = done


def flattened(parts: list[int], word: int) -> int:
    """Cycles of fc_flatten: a word is requested when the last but one, or two, is done."""
    ends = [0] * (ahead := FC_WORDS + int(word <= FC_SHORT))
    for part in parts:
        ends.append(max(ends[-1], ends[-ahead] + FC_WORK) + ceil_div(part, NINE))
    return ends[-1]


def serial(parts: list[int]) -> int:
    """Cycles of fc_serial: one for each tap row that a word reaches."""
    cycles = column = 0
    for part in parts:
        cycles += ceil_div(column + part, FC_COLUMNS)
        column = (column + part) % FC_COLUMNS
    return cycles
