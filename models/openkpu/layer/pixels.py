# SPDX-License-Identifier: Apache-2.0
"""What every kind of layer does with pixels: the sign gate, and which ones a pool keeps."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.pooling import PICKS, POOL_STRIDE
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import Layout

# channels, rows, sums of products, sums of pixels
Block = tuple[slice, slice, npt.NDArray[np.int64], npt.NDArray[np.int64]]


def gate(x: npt.NDArray, signed: bool) -> npt.NDArray[np.uint8]:
    """Pixels as the multiplier sees them: bytes, negative ones 0 when they are signed."""
    x = np.ascontiguousarray(x).view(np.uint8)
    return np.where(x < 128, x, np.uint8(0)) if signed else x


def kept_pixels(arg: LayerArg) -> tuple[int, int, int, int]:
    """(rows, columns, step, first column) of the convolution that the pool uses.

    Pools 5, 6 and 7 pick one pixel of each window: only these are needed.  Pools of stride 2 and 4
    drop the rows and columns that do not fill a window; all others need the whole H x W map.
    """
    _, height, width = arg.conv_shape
    if arg.pool_type in PICKS:
        _, oh, ow = arg.out_shape
        return oh, ow, POOL_STRIDE[arg.pool_type], PICKS[arg.pool_type]
    stride = POOL_STRIDE[arg.pool_type]
    return height - height % stride, width - width % stride, 1, 0


def used_layouts(arg: LayerArg) -> list[Layout]:
    """The lines and columns of each input map that the output depends on, as maps of their own.

    Lines below and columns to the right that no kept window reaches are left out: their bytes may
    be anything (docs/kpu.md 1.5).
    """
    whole = arg.in_layouts
    if arg.fc or arg.pool_task or arg.fp16:
        return whole
    rows, columns, step, left = kept_pixels(arg)
    reach = 1 + (0 if arg.elementwise else arg.edge)
    height = min(arg.i_col_high, (rows - 1) * step + reach)
    width = min(arg.i_row_wid, left + (columns - 1) * step + reach)
    return [_corner(layout, height, width) for layout in whole]


def _corner(layout: Layout, height: int, width: int) -> Layout:
    """The first lines and columns of a map, where they lie; all of a line in one row or several
    that the smaller width does not divide in another way."""
    part = dataclasses.replace(layout, height=height, width=width)
    if (part.groups, part.row_len) != (layout.groups, layout.row_len):
        part = dataclasses.replace(part, width=layout.width)
    apart = layout.channel_rows
    return dataclasses.replace(part, stride=0 if apart == part.own_rows else apart)
