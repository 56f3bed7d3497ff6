# SPDX-License-Identifier: Apache-2.0
"""What a layer asks of the machine: the descriptor that layer_decode makes, as far as cycles go.

Pure arithmetic on a layer argument and a configuration (docs/architecture.md 15): mode, stripes,
reduction steps, groups, blocks, words that the fill reads and words that leave.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.pooling import POOL_STRIDE
from openkpu.configs import Config
from openkpu.layer.argument import LayerArg

DWROW, TAPS, CHAN, FC, POOL = "depthwise rows", "taps", "channels", "fully connected", "pool"
STRIPE = 64  # pixels of a stripe
ENTRY = 64  # bytes of a bank of a tile entry, and of a row of the AI RAM
PICKS = (5, 6, 7)  # pools that keep a pixel of a window
LATE_PICK = 6  # picks the second pixel of a line
STRIDE_1 = (8, 9)  # pools of 2x2 whose windows overlap
TILE_LEAST = 8  # bytes of a tile word at least
LEAST_PITCH = 16  # bytes of a line in the AI RAM at least, and of a slot of a stripe
FLAT_WIDTH = 16  # a flat layer's lines are narrower
FLAT_AGAIN = 9  # ... and this wide where the input is read for each group
FLAT_PARTS = 5  # of lines that do not begin or end with their stripe or a slot of it
FLAT_PIXELS = 1024  # of a flat layer's map at most
SHARES = (1, 2, 4, 8)  # groups that may share a reading of the input


def pitch_code(width: int) -> int:
    """0, 1, 2: a line takes 16, 32 or whole rows of 64 bytes."""
    return 0 if width <= 16 else 1 if width <= 32 else 2


@dataclasses.dataclass(frozen=True)
class Stripe:
    """64 pixels of the computed grid, and what the fill reads for a channel of them."""

    width: int  # pixels of a line
    lines: int
    left: int  # first column of the grid
    right: bool  # ends at the right, at the bottom edge of the grid
    bottom: bool
    in_lines: int  # lines of the map that are read
    in_words: int  # tile words of each
    top: bool  # begins with line 0 of the map: known a cycle sooner
    last_y: int  # last line of the map that is read
    pieces: int = 0  # flat: parts of lines that leave for a channel


@dataclasses.dataclass(frozen=True)
class Shape:
    """A layer on a configuration."""

    config: Config
    arg: LayerArg
    eight_bit: bool = True

    @cached_property
    def lanes(self) -> int:
        return self.config.n_y * self.config.n_z

    @cached_property
    def tile_word(self) -> int:
        """Bytes of a word of the tile buffer: as many as lanes, PATH and 64 at most."""
        return min(max(self.lanes, TILE_LEAST), self.config.path_bytes, ENTRY)

    @cached_property
    def pair(self) -> bool:
        """Two depthwise rows an issue: PATH and lanes are two rows."""
        return self.config.path_bytes > ENTRY and self.lanes > ENTRY

    @cached_property
    def out_word(self) -> int:
        """Bytes that the collector gives at a time."""
        return min(self.config.path_bytes, ENTRY)

    @cached_property
    def mode(self) -> str:
        arg = self.arg
        if arg.pool_task:
            return POOL
        if arg.fc:
            return FC
        if arg.depthwise and arg.pool_type == 0:
            return DWROW
        return TAPS if arg.depthwise or arg.kernel == 3 else CHAN

    @cached_property
    def bare(self) -> bool:
        """There are no tables: a pooling task, or a product of float16."""
        return bool(self.arg.pool_task or self.arg.fp16)

    @cached_property
    def kernel_3(self) -> bool:
        """Windows of 3x3 are read (element-wise layers have the kernel and no window)."""
        return self.arg.kernel == 3 and not self.arg.elementwise

    @cached_property
    def by_lines(self) -> bool:
        """A map from storage comes line by line, and the layer begins with the first one."""
        arg = self.arg
        taps = not (arg.fc or arg.depthwise) and arg.kernel == 3
        return taps and arg.i_row_wid >= ENTRY

    @cached_property
    def in_pitch(self) -> int:
        return pitch_code(self.arg.i_row_wid)

    @cached_property
    def flat(self) -> bool:
        """The map is computed as one line, line after line without a gap (layer_sizes)."""
        arg = self.arg
        plain = self.mode == CHAN and arg.pool_type == 0 and not (arg.out32 or arg.fp16)
        narrow = arg.i_row_wid < FLAT_WIDTH and arg.i_row_wid % self.config.n_y != 0
        few = arg.i_row_wid * arg.i_col_high <= FLAT_PIXELS
        ahead = arg.i_ch_num <= self.config.tile_rows // 2 * 9
        again = self.tile_word == ENTRY and self.config.n_y <= 4 and arg.i_row_wid >= FLAT_AGAIN
        parts = STRIPE // arg.i_row_wid + FLAT_PARTS  # that leave for a channel of a stripe
        many = arg.i_ch_num >= 9 * parts * self.lanes // STRIPE
        return (
            bool(self.config.flat_maps) and plain and narrow and few and many and (ahead or again)
        )

    @cached_property
    def packed(self) -> int:
        """Channels of a 1x1 layer that come with a tile word."""
        return max(1, self.tile_word // (16 << self.in_pitch))

    @cached_property
    def row_channels(self) -> int:
        """Channels of the input map in a row of the AI RAM."""
        return 4 >> self.in_pitch

    @cached_property
    def line_rows(self) -> int:
        """Rows of the AI RAM of an input line."""
        return ceil_div(self.arg.i_row_wid, ENTRY)

    @cached_property
    def stride_log2(self) -> int:
        """Of a pool that picks: the pixels between are not computed."""
        return {5: 1, 6: 1, 7: 2}.get(self.arg.pool_type, 0)

    @cached_property
    def grid(self) -> tuple[int, int]:
        """(width, height) of the pixels that are computed."""
        arg, pool = self.arg, self.arg.pool_type
        if arg.fc:
            return 1, 1
        if pool in STRIDE_1 or (pool not in PICKS and POOL_STRIDE[pool] == 1):
            return arg.i_row_wid, arg.i_col_high
        stride = 1 if pool in PICKS else POOL_STRIDE[pool]
        return arg.o_row_wid * stride, arg.o_col_high * stride

    @cached_property
    def pooled(self) -> bool:
        """The output stage pools."""
        return self.arg.pool_type != 0 and self.arg.pool_type not in PICKS

    @cached_property
    def stripe_log2(self) -> int:
        """log2 of a stripe's line."""
        pool, code = self.arg.pool_type, pitch_code(self.grid[0])
        if self.arg.fc or (self.pooled and pool not in (1, 2)) or code == 0:
            return 4
        return 5 if self.pooled or code == 1 else 6

    @cached_property
    def two_lines(self) -> bool:
        """A depthwise issue may take two lines: one channel a row, one row a line."""
        whole = self.in_pitch == 2 and self.line_rows == 1
        return self.pair and whole and not self.arg.elementwise

    @cached_property
    def steps(self) -> int:
        """Reduction steps of a group; of a depthwise layer with a pool its channels."""
        if self.mode == DWROW:
            return 1
        if self.mode == TAPS:
            return self.arg.i_ch_num
        return ceil_div(self.arg.taps if self.arg.fc else self.arg.i_ch_num, 9)

    @cached_property
    def channel_words(self) -> int:
        """Words of nine weights of an output channel."""
        return 1 if self.arg.depthwise else self.steps

    @cached_property
    def groups(self) -> int:
        """Groups of n_z output channels; neurons of a fully connected layer."""
        if self.arg.fc:
            return self.arg.o_ch_num
        return 1 if self.arg.depthwise else ceil_div(self.arg.o_ch_num, self.config.n_z)

    @cached_property
    def param_rows(self) -> int:
        """Rows of the parameter buffer: one for n_z channels."""
        return 0 if self.bare else ceil_div(self.arg.o_ch_num, self.config.n_z)

    @cached_property
    def weight_rows(self) -> int:
        """Rows of the weight buffer that the layer takes in all."""
        if self.arg.depthwise:
            return ceil_div(self.arg.o_ch_num, self.config.n_z)
        words = self.groups * self.steps
        return ceil_div(words, self.config.n_z) if self.arg.fc else words

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes of the weights in storage."""
        one = 1 if self.eight_bit and not self.arg.fp16 else 2
        return 0 if self.arg.pool_task else one * self.arg.weight_count

    @cached_property
    def share(self) -> int:
        """Groups of a 1x1 layer that share a reading of its input (layer_share)."""
        if self.mode != CHAN:
            return 1
        if self.flat:
            lines, width, words = STRIPE // self.arg.i_row_wid + 2, STRIPE, 1
            array = STRIPE // self.config.n_y
        else:
            line = 1 << self.stripe_log2
            lines, width = STRIPE // line, (self.grid[0] - 1) % line + 1
            array = ceil_div(width, self.config.n_y) * lines
            words = ceil_div(width << self.stride_log2, self.tile_word)
        fill = {4: 3, 2: 5}.get(self.packed, 9 * words) * lines
        return next((n for n in SHARES[:3] if n * array >= fill), SHARES[3])

    @cached_property
    def block(self) -> int:
        """Groups of a block: as many as share a reading and fit half of the weight buffer."""
        if self.arg.fc:
            return self.groups
        if self.arg.depthwise:
            return 1
        half = self.config.wbuf_rows // 2 // self.steps
        return max(1, min(self.groups, self.share, half))

    @cached_property
    def held(self) -> bool:
        """A stripe's input fits the tile buffer: it is read once for a block."""
        entries = ceil_div(self.steps, ENTRY) if self.arg.fc else self.steps
        return not self.arg.depthwise and entries < self.config.tile_rows

    @cached_property
    def stripes(self) -> list[Stripe]:
        """Left to right, top to bottom; 64 pixels each of a flat layer's one line."""
        width, height = self.grid
        if self.flat:
            pixels = _cuts(width * height, STRIPE)
            return [self._flat_stripe(first, count, last) for first, count, last in pixels]
        line = 1 << self.stripe_log2
        over = int(self.arg.pool_type in STRIDE_1)
        return [
            self._stripe(x, y, wide, lines, right, bottom)
            for y, lines, bottom in _cuts(height, STRIPE // line, over)
            for x, wide, right in _cuts(width, line, over)
        ]

    def _flat_stripe(self, first: int, count: int, last: bool) -> Stripe:
        """A part of each line for itself; known to be there with the line of the next stripe."""
        width = self.arg.i_row_wid
        reads = (first + count - 1) // width - first // width + 1
        tail = min((first + count - 1) % width + 1, count)  # pixels of the last line
        crosses = (count - tail) // self.tile_word != (count - 1) // self.tile_word
        line = (first + count) // width - int(last)
        leaves = reads + (count - 1) // LEAST_PITCH
        return Stripe(count, 1, 0, last, last, reads + crosses, 1, first < width, line, leaves)

    def _stripe(self, x: int, y: int, wide: int, lines: int, right: bool, bottom: bool) -> Stripe:
        """What fill_stripe and fill_seq make of a stripe."""
        log2, arg, around = self.stride_log2, self.arg, int(self.kernel_3)
        first = max(0, (y << log2) - around)
        last = (y + lines - 1) << log2
        in_lines = lines
        if around:
            last = min(arg.i_col_high - 1, last + 1)
            # one of four lines is not read where every fourth is computed
            in_lines = sum(log2 < 2 or n % 4 != 2 for n in range(first, last + 1))
        low = (x << log2) + int(arg.pool_type == LATE_PICK)
        begin = max(0, low - around)
        stop = min(arg.i_row_wid - 1, low + ((wide - 1) << log2) + around)
        words = stop // self.tile_word - begin // self.tile_word + 1
        return Stripe(wide, lines, x, right, bottom, in_lines, words, first == 0, last)

    def sweep(self, stripe: Stripe) -> int:
        """Issues over the pixels of a stripe."""
        if not self.arg.depthwise:
            return stripe.lines * ceil_div(stripe.width, self.config.n_y)
        return self._lane_chunks(stripe.lines, stripe.width, 1 << self.stripe_log2)

    def row_sweep(self, slots: int, width: int) -> int:
        """Issues of a row of a depthwise layer without a pool: channels in it, pixels of each."""
        return self._lane_chunks(slots, width, 16 << self.in_pitch)

    def _lane_chunks(self, slots: int, width: int, slot: int) -> int:
        """Chunks of a depthwise sweep: whole slots, or parts of one."""
        chunk = min(self.lanes, self.tile_word)
        return ceil_div(slots * slot, chunk) if chunk >= slot else slots * ceil_div(width, chunk)

    def row_words(self, width: int, slots: int) -> int:
        """Words of a depthwise row that leave: ``slots`` channels, ``width`` pixels of each."""
        per_word = max(1, self.out_word // (16 << self.in_pitch))
        return ceil_div(slots, per_word) * max(1, ceil_div(width, self.out_word))

    def out_words(self, stripe: Stripe) -> int:
        """Words that leave for each channel of a stripe; a line that crosses a word counts twice.

        A word holds several lines, or windows take several of them (out_walk).
        """
        word, pool = self.out_word, self.arg.pool_type
        if self.flat:
            return stripe.pieces
        if not self.pooled:
            return stripe.lines * ceil_div(stripe.width, word)
        piece = 8 if word == 16 else 16
        if pool in STRIDE_1:
            lines = stripe.lines - int(not stripe.bottom)
            width = stripe.width - int(not stripe.right)
            parts = [(n, min(piece, width - n)) for n in range(0, width, piece)]
            crossing = sum((stripe.left + n) % word + count > word for n, count in parts)
            # with a narrow path both lines of a window are read
            return lines * (ceil_div(width, piece) * (1 if word == 64 else 2) + crossing)
        both = word == 64 or (word == 32 and self.stripe_log2 == 4)
        together = word // 16 if POOL_STRIDE[pool] != 2 else 2 if both else 1
        lines = ceil_div(stripe.lines, together)
        return lines * max(1, ceil_div(stripe.width // POOL_STRIDE[pool], piece))

    @cached_property
    def all_out_words(self) -> int:
        """... of the layer."""
        return sum(map(self.out_words, self.stripes)) * self.arg.o_ch_num


def _cuts(size: int, most: int, over: int = 0) -> list[tuple[int, int, bool]]:
    """(first, count, it is the last) of parts of a length, each ``over`` into the one before."""
    starts = range(0, max(1, size - over), most - over)
    return [(at, min(most, size - at), at + most >= size) for at in starts]
