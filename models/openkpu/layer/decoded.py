# SPDX-License-Identifier: Apache-2.0
"""How a layer is laid out on the array: what layer_decode derives from its argument and the sizes
of a device (docs/architecture.md 8).  The prediction of cycles and the benches' descriptor use it.
"""

from __future__ import annotations

from dataclasses import dataclass

from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.pooling import PICKS, POOL_STRIDE
from openkpu.layer.argument import LayerArg

TAPS, CHAN, DWROW, FC = range(4)  # MODE_*
STRIPE = 64  # pixels of a stripe
STRIDE_1 = (8, 9)  # pools of 2x2 whose windows overlap
FLAT_WIDTH = 16  # a flat layer's lines are narrower
FLAT_AGAIN = 9  # ... and this wide where the input is read for each group
FLAT_PARTS = 5  # of lines that do not begin or end with their stripe or a slot of it
FLAT_PIXELS = 1024  # of a flat layer's map at most


MOST_GROUPS = 8  # that share a reading of the input
BAND_LINES = (1, 2, 4, 8)  # of a map that comes while its layer computes
BAND_BYTES = 64  # of a channel in a band


@dataclass(frozen=True)
class Sizes:
    """Of the device: array, tile entries, rows of weight buffer and AI RAM, bits of a weight, bytes
    of a tile word."""

    n_y: int = 2
    n_z: int = 2
    tile_rows: int = 32
    wbuf_rows: int = 1024
    ram_rows: int = 32768
    weight_bits: int = 16
    tile_word: int = 64
    flat: bool = False  # maps of 1x1 layers may be taken as one line


@dataclass(frozen=True)
class Decoded:
    """A layer on the array."""

    mode: int
    kw: int  # width of the grid that is computed; of a flat map all pixels
    kh: int
    swl: int  # log2 of the width of a stripe's lines
    steps: int  # reduction steps of a group
    groups: int  # of n_z output channels; neurons of a fully connected layer
    block: int  # groups that share a reading of the input
    held: bool  # a stripe's input stays in the tile buffer for a block
    flat: bool  # the map is computed as one line


def pitch_code(width: int) -> int:
    """0, 1, 2: a line has 16, 32 or whole rows of 64 bytes."""
    return 0 if width <= 16 else 1 if width <= 32 else 2


def lines_of_band(width: int) -> int:
    """Lines of a band of a map of this width."""
    return next((n for n in BAND_LINES if n * width >= BAND_BYTES), BAND_LINES[-1])


def band_lines(arg: LayerArg) -> int:
    """Lines of a band of a map that comes from storage: as few as have 64 bytes of a channel, or
    eight (docs/architecture.md 3). 0: the map comes whole, because it has no more lines, or its
    layer is no convolution."""
    if arg.fc or arg.depthwise or arg.pool_task or arg.fp16:
        return 0
    lines = lines_of_band(arg.i_row_wid)
    return lines if arg.i_col_high > lines else 0


def mode_of(arg: LayerArg) -> int:
    """MODE_* of a layer that the array computes."""
    if arg.fc:
        return FC
    if arg.depthwise and not arg.pool_type and arg.dilation == 1:
        return DWROW
    return TAPS if arg.depthwise or arg.kernel == 3 else CHAN


def stripe_log2(arg: LayerArg, kw: int) -> int:
    """log2 of the width of a stripe's lines."""
    stride = 1 if arg.pool_type in PICKS else POOL_STRIDE[arg.pool_type]
    pools = arg.pool_type != 0 and arg.pool_type not in PICKS
    if arg.fc or kw <= 16 or (pools and stride != 2):
        return 4
    return 5 if pools or kw <= 32 else 6


def _share(arg: LayerArg, kw: int, swl: int, sizes: Sizes) -> int:
    """Groups that must share a reading of the input for the array to be the slower side; all that
    can where the map arrives meanwhile and none leaves."""
    mode, lines = mode_of(arg), STRIPE >> swl
    if arg.depthwise or mode not in (TAPS, CHAN):
        return 1
    if arg.load_map and not (arg.store_map or arg.fp16):
        return MOST_GROUPS
    stride = POOL_STRIDE[arg.pool_type] if arg.pool_type in PICKS else 1
    packed = {4: 3, 2: 5}.get(sizes.tile_word // (16 << pitch_code(arg.i_row_wid)))
    if mode == TAPS:  # windows of a line of 64 reach three lines, a word on either side
        beside = 2 if kw > STRIPE else 0
        array, words = STRIPE // sizes.n_y, 3 * (STRIPE * stride // sizes.tile_word + beside)
    elif is_flat(arg, sizes):  # a whole stripe, with parts of lines at both ends
        array, words = STRIPE // sizes.n_y, (packed or 9) * (STRIPE // arg.i_row_wid + 2)
    else:  # nine channels: several in a word, or several words a channel
        narrowest = kw % (1 << swl) or 1 << swl
        array = ceil_div(narrowest, sizes.n_y) * lines  # cycles of a step
        words = (packed or 9 * ceil_div(narrowest * stride, sizes.tile_word)) * lines
    return next((n for n in (1, 2, 4) if n * array >= words), MOST_GROUPS)


def is_flat(arg: LayerArg, sizes: Sizes) -> bool:
    """A 1x1 layer's map is one line: its lines do not fill the array, and reading them does not
    take longer than computing them."""
    width, plain = arg.i_row_wid, not arg.pool_task and mode_of(arg) == CHAN
    if not (sizes.flat and plain) or arg.pool_type or arg.out32 or arg.fp16:
        return False
    few = width * arg.i_col_high <= FLAT_PIXELS
    if width >= FLAT_WIDTH or width % sizes.n_y == 0 or not few:
        return False
    # the array needs more cycles than the output of the parts of lines
    if arg.i_ch_num < 9 * (STRIPE // width + FLAT_PARTS) * sizes.n_y * sizes.n_z // STRIPE:
        return False
    once = arg.i_ch_num <= 9 * (sizes.tile_rows // 2)  # read ahead while the stripe before is used
    return once or (width >= FLAT_AGAIN and sizes.tile_word == 64 and sizes.n_y <= 4)


def decode_layer(arg: LayerArg, sizes: Sizes) -> Decoded:
    """The sequencer's parameters of a legal layer."""
    c, h, w = arg.in_shape
    _, oh, ow = arg.out_shape
    stride = POOL_STRIDE[arg.pool_type]
    dw, fc, mode = arg.depthwise, bool(arg.fc), mode_of(arg)
    pick = arg.pool_type in PICKS
    kw, kh = (ow, oh) if pick else (w, h) if stride == 1 else (ow * stride, oh * stride)
    kw, kh = (1, 1) if fc else (kw, kh)
    swl, flat = stripe_log2(arg, kw), is_flat(arg, sizes)
    kw, kh, swl = (w * h, 1, 6) if flat else (kw, kh, swl)
    steps = {TAPS: c, DWROW: 1}.get(mode, ceil_div(c * h * w if fc else c, 9))
    entries = ceil_div(steps, 64) if fc else steps
    groups = arg.o_ch_num if fc else 1 if dw else ceil_div(arg.o_ch_num, sizes.n_z)
    # a block leaves room for the weights of a group of the next one
    block = min(groups, _share(arg, kw, swl, sizes), sizes.wbuf_rows // steps - 1)
    block = groups if fc else 1 if dw else max(1, block)
    held = not dw and entries < sizes.tile_rows
    return Decoded(mode, kw, kh, swl, steps, groups, block, held, flat)


def weight_rows(arg: LayerArg, steps: int, n_z: int) -> int:
    """Rows of the weight buffer that all weights of a layer take."""
    if arg.pool_task:
        return 0
    if arg.depthwise:
        return ceil_div(arg.o_ch_num, n_z)
    return ceil_div(steps * arg.o_ch_num, n_z) if arg.fc else steps * ceil_div(arg.o_ch_num, n_z)


def cut_stripes(kw: int, kh: int, swl: int, overlap: int) -> list[tuple[int, int, int, int]]:
    """(x, y, width, lines) of the stripes of a grid, in order; each ``overlap`` into the next."""
    wide, high = 1 << swl, STRIPE >> swl
    return [
        (x, y, min(wide, kw - x), min(high, kh - y))
        for y in range(0, max(1, kh - overlap), high - overlap)
        for x in range(0, max(1, kw - overlap), wide - overlap)
    ]
