# SPDX-License-Identifier: Apache-2.0
"""A layer as work for the machine: the fields of layer_decode's descriptor that matter for cycles.

Pure arithmetic on a layer argument and a configuration (docs/architecture.md 15): mode, stripes,
reduction steps, groups, blocks, words that the fill reads and words that leave.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.pooling import PICKS, POOL_STRIDE
from openkpu.configs import Config
from openkpu.layer.argument import LayerArg
from openkpu.layer.decoded import (
    STRIDE_1,
    Decoded,
    Sizes,
    band_lines,
    cut_stripes,
    decode_layer,
    pitch_code,
    weight_rows,
)

POOL = 4  # the mode of a pooling task, besides those of the array
ENTRY = 64  # bytes of a bank of a tile entry, and of a row of the AI RAM
LEAST_PITCH = 16  # bytes of a line in the AI RAM at least, and of a slot of a stripe
LATE_PICK = 6  # a pool that picks the second pixel of a line
FEW_LANES = 16  # fewer have the narrow circuits for maps
FEWEST_LANES = 8  # ... for results, too
NARROW_WORD = 4  # bytes that those move at a time
LATE_READ = 2  # cycles that the AI RAM of a device with them answers later


def late_reads(config: Config) -> int:
    """Cycles that an answer of the AI RAM comes later than in the cycle after the grant: 0 unless
    maps are moved in pieces of four bytes, with registers on both sides of the AI RAM."""
    few = config.lanes < FEW_LANES and config.path_bytes == LEAST_PITCH
    return LATE_READ if few and config.bus_bytes == NARROW_WORD else 0


@dataclasses.dataclass(frozen=True)
class Stripe:
    """64 pixels of the computed grid, and the reads of the fill for a channel of them."""

    width: int  # pixels of a line
    lines: int
    left: int  # first column of the grid
    right: bool  # ends at the right, at the bottom edge of the grid
    bottom: bool
    in_lines: int  # lines of the map that are read
    in_words: int  # tile words of each
    last_y: int  # last line of the map that is read
    pieces: int = 0  # flat: parts of lines that leave for a channel


@dataclasses.dataclass
class Shape:
    """A layer on a configuration."""

    config: Config
    arg: LayerArg
    eight_bit: bool = True

    def __post_init__(self) -> None:
        arg, lanes, path = self.arg, self.config.lanes, self.config.path_bytes
        self.tile_word = self.config.tile_word
        self.pair = path > ENTRY and lanes > ENTRY  # two depthwise rows an issue
        self.narrow = lanes < FEWEST_LANES and path == LEAST_PITCH  # four bytes leave at a time
        self.out_word = NARROW_WORD if self.narrow else min(path, ENTRY)  # ... or so many
        self.bare = bool(arg.pool_task or arg.fp16)  # no tables
        self.band = band_lines(arg)  # of a map from storage, begun with the first; 0: comes whole
        self.in_pitch = pitch_code(arg.i_row_wid)
        self.row_channels = 4 >> self.in_pitch  # of the input map in a row of the AI RAM
        self.line_rows = ceil_div(arg.i_row_wid, ENTRY)  # ... rows of a line
        alone = self.pair and self.in_pitch == 2 and self.line_rows == 1
        self.two_lines = alone and not arg.elementwise  # a depthwise issue may have two
        self.stride_log2 = {5: 1, 6: 1, 7: 2}.get(arg.pool_type, 0)  # pixels between: not computed
        self.pooled = arg.pool_type != 0 and arg.pool_type not in PICKS  # by the output stage
        self.param_rows = 0 if self.bare else ceil_div(arg.o_ch_num, self.config.n_z)
        one = 1 if self.eight_bit and not arg.fp16 else 2
        self.weight_bytes = 0 if arg.pool_task else one * arg.weight_count

    @cached_property
    def on(self) -> Decoded:
        """The layer as the sequencer sees it."""
        config, flat = self.config, bool(self.config.flat_maps)
        array = config.n_y, config.n_z, config.tile_rows, config.wbuf_rows
        return decode_layer(self.arg, Sizes(*array, tile_word=self.tile_word, flat=flat))

    @cached_property
    def mode(self) -> int:
        """Of the array, or POOL."""
        return POOL if self.arg.pool_task else self.on.mode

    @cached_property
    def weight_rows(self) -> int:
        """Rows of the weight buffer for the whole layer."""
        return weight_rows(self.arg, self.on.steps, self.config.n_z)

    @cached_property
    def stripes(self) -> list[Stripe]:
        """Left to right, top to bottom; 64 pixels each of a flat layer's one line."""
        on, over = self.on, int(self.arg.pool_type in STRIDE_1)
        make = self._flat_stripe if on.flat else self._stripe
        return [make(*cut) for cut in cut_stripes(on.kw, on.kh, on.swl, over)]

    def _flat_stripe(self, first: int, _y: int, count: int, _lines: int) -> Stripe:
        """A part of each line for itself; known to be there with the line of the next stripe."""
        width, last = self.arg.i_row_wid, first + count == self.on.kw
        reads = (first + count - 1) // width - first // width + 1
        tail = min((first + count - 1) % width + 1, count)  # pixels of the last line
        crosses = (count - tail) // self.tile_word != (count - 1) // self.tile_word
        line = (first + count) // width - int(last)
        leaves = reads + (count - 1) // LEAST_PITCH
        return Stripe(count, 1, 0, last, last, reads + crosses, 1, line, leaves)

    def _stripe(self, x: int, y: int, wide: int, lines: int) -> Stripe:
        """A stripe as fill_stripe and fill_seq compute it."""
        log2, arg = self.stride_log2, self.arg
        around = 0 if arg.elementwise else arg.edge  # windows of 3x3 are read
        first = max(0, (y << log2) - around)
        last = (y + lines - 1) << log2
        in_lines = lines
        if around > 1:  # each tap row reads its own lines
            upper = max(0, lines - max(0, around - y))
            lower = max(0, min(lines, arg.i_col_high - y - around))
            in_lines = upper + lines + lower
            last = y + around + lower - 1 if lower else last
        elif around:
            last = min(arg.i_col_high - 1, last + 1)
            # one of four lines is not read where every fourth is computed
            in_lines = sum(log2 < 2 or n % 4 != 2 for n in range(first, last + 1))
        low = (x << log2) + int(arg.pool_type == LATE_PICK)
        begin = max(0, low - around)
        stop = min(arg.i_row_wid - 1, low + ((wide - 1) << log2) + around)
        words = stop // self.tile_word - begin // self.tile_word + 1
        right, bottom = x + wide == self.on.kw, y + lines == self.on.kh
        return Stripe(wide, lines, x, right, bottom, in_lines, words, last)

    def sweep(self, stripe: Stripe) -> int:
        """Issues over the pixels of a stripe."""
        if not self.arg.depthwise:
            return stripe.lines * ceil_div(stripe.width, self.config.n_y)
        return self.lane_chunks(stripe.lines, stripe.width, 1 << self.on.swl)

    def lane_chunks(self, slots: int, width: int, slot: int) -> int:
        """Issues of a depthwise sweep: whole slots of so many bytes, or parts of one."""
        chunk = min(self.config.lanes, self.tile_word)
        return ceil_div(slots * slot, chunk) if chunk >= slot else slots * ceil_div(width, chunk)

    def row_words(self, width: int, slots: int) -> int:
        """Words of a depthwise row that leave: ``slots`` channels, ``width`` pixels of each."""
        per_word = max(1, self.out_word // (16 << self.in_pitch))
        return ceil_div(slots, per_word) * max(1, ceil_div(width, self.out_word))

    def out_lines(self, stripe: Stripe) -> int:
        """Output lines of a stripe."""
        if not self.pooled:
            return stripe.lines
        over = self.arg.pool_type in STRIDE_1 and not stripe.bottom
        return (stripe.lines - int(over)) // POOL_STRIDE[self.arg.pool_type]

    def out_words(self, stripe: Stripe) -> int:
        """Words that leave for each channel of a stripe; a line that crosses a word counts twice.

        A word holds several lines, or windows take several of them (out_walk). Narrow, a word is
        read for each line of a window, and has columns of two windows, or of one (piece_walk).
        """
        word, pool = self.out_word, self.arg.pool_type
        if self.narrow and self.pooled:
            width = stripe.width - int(pool in STRIDE_1 and not stripe.right)
            stride = POOL_STRIDE[pool]
            windows = 1 if stride == NARROW_WORD else 2
            high = max(2, stride)  # lines of a window
            return self.out_lines(stripe) * max(1, ceil_div(width // stride, windows)) * high
        if self.on.flat:
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
        both = word == 64 or (word == 32 and self.on.swl == 4)
        together = word // 16 if POOL_STRIDE[pool] != 2 else 2 if both else 1
        lines = ceil_div(stripe.lines, together)
        return lines * max(1, ceil_div(stripe.width // POOL_STRIDE[pool], piece))
