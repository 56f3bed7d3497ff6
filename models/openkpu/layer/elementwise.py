# SPDX-License-Identifier: Apache-2.0
"""Element-wise layers: two maps, pixel by pixel (docs/kpu.md 1.9).

Such a layer is a depthwise one with nine weights a channel whose window is made of two pixels at
the same place: row 0 of the window is pad_value, row 1 the pixel a of the first map, row 2 the
pixel b of the second. Four of the nine positions take part:

    add        s = pad * w[1] + a * w[4] + b * w[8]
    multiply   s = pad * w[1] + a * w[4] + b * w[8] + a * b
    maximum    s = max(pad * w[1] + a * w[4], b * w[8])
    minimum    s = min(pad * w[1] + a * w[4], b * w[8])

sx = pad + a + b, in a multiplication pad + a + 2 * b, for b is there twice. Signed pixels are gated
as everywhere: what is negative counts as 0. Everything after s and sx is as in a convolution. The
largest s is 255 * (65535 * 3 + 255), below 2^26.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from openkpu.layer.argument import LayerArg
from openkpu.layer.pixels import Block, gate, kept_pixels

ADD, MULTIPLY, MAXIMUM, MINIMUM = range(4)
OPERATIONS = ("add", "multiply", "maximum", "minimum")  # by ew_op
WEIGHTS = 9  # a channel; those of PAD, A and B take part
PAD, A, B = 1, 4, 8
BLOCK = 1 << 16  # outputs that one pass of the post-processing handles


def _kept(arg: LayerArg, x: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The pixels that the pool uses, gated."""
    rows, columns, step, left = kept_pixels(arg)
    bottom, right = (rows - 1) * step + 1, left + (columns - 1) * step + 1
    return gate(x, bool(arg.signed_in))[:, :bottom:step, left:right:step]


def _operands(
    arg: LayerArg, x: npt.NDArray[np.uint8], x2: npt.NDArray[np.uint8] | None
) -> tuple[int, npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """(gated pad_value, a, b); ValueError when there is no second map, or one too many."""
    if (x2 is None) == arg.two_maps:
        raise ValueError(f"{arg.ew_one=}: the layer takes {1 + arg.two_maps} maps")
    pad = int(gate(np.array([arg.pad_value], dtype=np.uint8), bool(arg.signed_in))[0])
    a = _kept(arg, x)
    return pad, a, np.full_like(a, pad) if x2 is None else _kept(arg, x2)


def elementwise_blocks(
    arg: LayerArg,
    x: npt.NDArray[np.uint8],
    x2: npt.NDArray[np.uint8] | None,
    weights: npt.NDArray,
) -> Iterator[Block]:
    """Blocks of s and sx as ``conv.window_blocks`` gives them; maps (C, H, W) bytes."""
    pad, a, b = _operands(arg, x, x2)
    kernel = weights.reshape(-1, WEIGHTS).astype(np.int64)
    some = max(1, BLOCK // a[0].size)
    for first in range(0, arg.o_ch_num, some):
        part = slice(first, min(arg.o_ch_num, first + some))
        w = kernel[part, :, None, None]
        first_map, second_map = a[part].astype(np.int64), b[part].astype(np.int64)
        left = pad * w[:, PAD] + first_map * w[:, A]
        right = second_map * w[:, B]
        sx = pad + first_map + second_map
        if arg.ew_op == MAXIMUM:
            s = np.maximum(left, right)
        elif arg.ew_op == MINIMUM:
            s = np.minimum(left, right)
        else:
            s = left + right
        if arg.ew_op == MULTIPLY:
            s += first_map * second_map
            sx += second_map
        yield part, slice(0, a.shape[1]), s, sx


def needed_elementwise(arg: LayerArg) -> int:
    """Multiplications that the output needs: three a pixel, four in a multiplication."""
    rows, columns, *_ = kept_pixels(arg)
    return rows * columns * arg.o_ch_num * (4 if arg.ew_op == MULTIPLY else 3)


def count_elementwise(
    arg: LayerArg, x: npt.NDArray[np.uint8], x2: npt.NDArray[np.uint8] | None
) -> tuple[int, int]:
    """(multiplications needed, those of them whose pixel is <= 0 and that are gated)."""
    pad, a, b = _operands(arg, x, x2)
    twice = 2 if arg.ew_op == MULTIPLY else 1
    zeros = np.count_nonzero(a == 0) + twice * np.count_nonzero(b == 0)
    return needed_elementwise(arg), int(zeros) + (a.size if pad == 0 else 0)
