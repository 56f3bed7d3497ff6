# SPDX-License-Identifier: Apache-2.0
"""The fill of the tile buffer: words of the AI RAM into entries, one a cycle at most.

fill_seq walks the map in the order in which the array needs it and waits for entries that are still
in use (docs/architecture.md 15.3). Entries are numbered from the start of the layer; ``filled`` has
the cycle from which on an issue may use one, ``freed`` that from which on it may be filled again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from openkpu.arithmetic.integers import ceil_div
from openkpu.prediction.cycles_shape import ENTRY, TAPS, Shape, Stripe

FIRST_WORD = 4  # from the start of a layer to the walk: the first stripe is worked out
STRIPE_SETUP = 4  # a stripe takes so long to work out; one from below line 0 a cycle more
READ = 1  # from the walk's step of a word to its read
FILLED = 6  # from the walk's step of a word to the issue that uses it
FREED = 10  # from the last use of an entry to the step that fills it again: nine columns behind
NINE = 9  # channels of an entry of a 1x1 layer, bytes that fc_flatten deals in a cycle
FC_WORK = 4  # fully connected: from the step of a word to its first nine bytes
FC_FILLED = 2  # ... from its last ones to the issue
FC_WORDS = 2  # words that fc_flatten has asked for and not done with
FC_SHORT = 16  # bytes of a word of which it takes a third


class Fill:
    """What all walks have in common; ``next`` is the cycle of the next step at the earliest."""

    def __init__(self, shape: Shape, start: int) -> None:
        self.shape = shape
        self.next = start + FIRST_WORD
        self.filled: list[int] = []
        self.freed: list[int] = []
        # a map that comes line by line: from when on a line is there; cycles lost to that so far
        self.line: Callable[[int], int] | None = None
        self.late = 0
        # reads of the AI RAM, for who reads as well: from, to
        self.reads: deque[tuple[int, int]] | None = None

    def asked(self, words: int) -> None:
        """So many words were asked for, the last one in the step before ``next``."""
        if self.reads is not None:
            self.reads.append((self.next - words + READ, self.next - 1 + READ))

    def wait(self) -> None:
        """A read had to wait for somebody else's."""
        self.next += 1

    def room(self, entry: int, at: int) -> int:
        """``at``, or when an entry may be written to."""
        over = entry - self.shape.config.tile_rows
        return max(at, self.freed[over]) if over >= 0 else at

    def free(self, last: int, count: int = 1) -> None:
        """Entries were used for the last time in cycle ``last``."""
        self.freed.extend([last + FREED] * count)

    def entry(self, number: int) -> int:
        """Cycle from which on an issue may use an entry; the walk goes on until it is there."""
        while len(self.filled) <= number:
            self.step()
        return self.filled[number]

    def step(self) -> None:
        """Read what comes next."""
        raise NotImplementedError


class Stripes(Fill):
    """Convolutions and depthwise stripes: a stripe, channel by channel, again and again.

    3x3: a channel is an entry. 1x1: channels that share a word come together, nine an entry.
    """

    def __init__(self, shape: Shape, start: int) -> None:
        super().__init__(shape, start)
        pitch = 16 << shape.in_pitch
        self.packed = 1 if shape.mode == TAPS else max(1, shape.tile_word // pitch)
        self.maps = 2 if shape.arg.two_maps else 1
        self.begun: int | None = None  # the stripe at work was taken: the next one is worked out
        self.words = self.channel = self.base = 0

    def stripe(self, stripe: Stripe) -> None:
        """The walk comes to the next stripe."""
        if self.begun is not None:
            later = self.begun + STRIPE_SETUP + int(not stripe.top)
            self.next = max(self.next, later)
        if self.line is not None:
            there = self.line(stripe.last_y)
            self.late += max(0, there - self.next)
            self.next = max(self.next, there)
        self.begun = self.next - 1
        self.words = self.maps * stripe.in_lines * stripe.in_words
        self.again()

    def again(self) -> None:
        """The stripe is read from its first channel on; its first entry is ``base``."""
        self.channel, self.base = 0, len(self.filled)

    def step(self) -> None:
        """The next channel, or those that share words."""
        channels, at = self.shape.arg.i_ch_num, self.channel
        if self.shape.mode == TAPS:
            self.next = self.room(len(self.filled), self.next) + self.words
            self.asked(self.words)
            done = 1
        else:
            # channels of a word may go to the entry behind as well
            self.next = self.room(self.base + at // NINE + 1, self.next) + self.words
            self.asked(self.words)
            count = min(self.packed, channels - at)
            self.channel = at + count
            end = self.channel == channels and self.channel % NINE != 0
            done = self.channel // NINE - at // NINE + int(end)
        self.filled += [self.next - 1 + FILLED] * done


class Rows(Fill):
    """Depthwise rows: line by line of the channels that share a row; a row is an entry."""

    def __init__(self, shape: Shape, start: int) -> None:
        super().__init__(shape, start)
        self.channel = self.row = self.base = 0  # first channel, line, entry of the group
        self.parts = ENTRY // shape.tile_word  # words of a row
        self.maps = 2 if shape.arg.two_maps else 1
        self.odd = shape.arg.image_src_addr % 2  # the group begins in the upper half of a word

    def step(self) -> None:
        """The next line, of both maps, or two lines at once."""
        shape, arg = self.shape, self.shape.arg
        rows, height = shape.line_rows, arg.i_col_high
        slots = min(shape.row_channels, arg.i_ch_num - self.channel)
        words = ceil_div((slots - 1) * (16 << shape.in_pitch) + arg.i_row_wid, shape.tile_word)
        two = shape.two_lines and (self.odd + self.row) % 2 == 0 and self.row < height - 1
        last_line = self.row + 1 + int(two) >= height
        entry = self.base + self.row * rows
        go, done = self.next, []
        for number in range(self.maps):
            for n in range(words):
                go = self.room(entry + n // self.parts + rows + int(two), go)
                end = n == words - 1
                if end or n % self.parts == self.parts - 1:  # of a row
                    if arg.elementwise:
                        done += [go] if number == self.maps - 1 else []
                    else:  # the row above has all its lines now; a word waits for the next one
                        done += [go + int(not end)] if self.row else []
                        done += [go] if two else []
                go += 1
        if last_line and not arg.elementwise:
            done += [go - 1] * rows
        self.next = go
        self.asked(words * self.maps)
        self.filled += [at + FILLED for at in done]
        self.row += 1 + int(two)
        if last_line:
            self.base += height * rows
            self.channel, self.row = self.channel + shape.row_channels, 0
            self.odd ^= rows * height % 2


class Vector(Fill):
    """A fully connected layer: nine bytes a cycle out of words, 64 times nine an entry."""

    def __init__(self, shape: Shape, start: int) -> None:
        super().__init__(shape, start)
        width, word = shape.arg.i_row_wid, shape.tile_word
        self.sizes = [min(word, width - at) for at in range(0, width, word)]
        self.ahead = FC_WORDS + int(word <= FC_SHORT)
        self.ends: list[int] = []  # of the work on each word
        self.word = self.bytes = 0  # of the vector

    def step(self) -> None:
        """The next word of the vector."""
        ends, size = self.ends, self.sizes[self.word % len(self.sizes)]
        go = self.next
        if len(ends) >= self.ahead:
            go = max(go, ends[-self.ahead] + 1)
        self.next = go + 1
        begin = max(go + FC_WORK, ends[-1] + 1 if ends else 0)
        end = self.room(len(self.filled) + 1, begin) + ceil_div(size, NINE) - 1
        ends.append(end)
        before, self.bytes = self.bytes, self.bytes + size
        self.word += 1
        done = self.bytes // (NINE * ENTRY) - before // (NINE * ENTRY)
        if self.bytes == self.shape.arg.taps:
            done += int(self.bytes % (NINE * ENTRY) != 0)
            self.bytes = self.word = 0
        self.filled += [end + FC_FILLED] * done
