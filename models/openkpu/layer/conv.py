# SPDX-License-Identifier: Apache-2.0
"""Exact window sums of a layer, in blocks: s = sum p*q and sx = sum p (docs/kpu.md 1.2).

Sums of products run as float64 matrix products, which are exact while every partial sum is an
integer below 2^53, in whatever order BLAS adds: a pixel is at most 255, a weight at most 65535,
and a window has at most 1024*9 taps, so s < 2^38.  A fully connected vector is bounded by the
argument's fields at 2^29 pixels, and 2^29 * 255 * 65535 < 2^53 as well.  Depthwise sums stay
below 9 * 255 * 65535 < 2^31 and run in int32.

A signed input is gated before anything else (negative -> 0), so from here on pixels are 0..255
and a multiplication is gated exactly where the pixel is 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from openkpu.layer.argument import LayerArg
from openkpu.layer.elementwise import count_elementwise, elementwise_blocks, needed_elementwise
from openkpu.layer.pixels import Block, gate, kept_pixels

COLUMN_BYTES = 1 << 21  # size of the gathered windows of one matrix product
BLOCK = 1 << 14  # outputs that one pass of the post-processing handles: stays in the cache


def padded(arg: LayerArg, x: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Gated map with P pad pixels around."""
    x = gate(x, bool(arg.signed_in))
    edge = arg.edge
    if not edge:
        return x
    pad = int(gate(np.array([arg.pad_value], dtype=np.uint8), bool(arg.signed_in))[0])
    c, h, w = x.shape
    out = np.full((c, h + 2 * edge, w + 2 * edge), pad, dtype=np.uint8)
    out[:, edge:-edge, edge:-edge] = x
    return out


def _taps(arg: LayerArg, xp: npt.NDArray, first: int, last: int) -> Iterator[npt.NDArray]:
    """For every tap the pixels it meets at kept rows first..last-1: views (..., rows, columns)."""
    _, columns, step, offset = kept_pixels(arg)
    for ky in range(arg.kernel):
        for kx in range(arg.kernel):
            top, left = ky * arg.dilation, offset + kx * arg.dilation
            yield xp[
                ...,
                first * step + top : (last - 1) * step + top + 1 : step,
                left : left + (columns - 1) * step + 1 : step,
            ]


def window_blocks(
    arg: LayerArg,
    x: npt.NDArray[np.uint8],
    weights: npt.NDArray,
    x2: npt.NDArray[np.uint8] | None = None,
) -> Iterator[Block]:
    """Blocks (channels, rows, s, sx) that together cover the kept pixels.

    s is int64 (channels, rows, columns); sx the same or with one channel for all.
    x (C, H, W) bytes, weights in memory order, uint8 or uint16; x2 as x, the second map of an
    element-wise layer that has one.
    """
    if arg.elementwise:
        yield from elementwise_blocks(arg, x, x2, weights)
    elif arg.fc:
        yield _fully_connected(arg, x, weights)
    elif arg.depthwise:
        yield from _depthwise(arg, padded(arg, x), weights)
    else:
        yield from _full(arg, padded(arg, x), weights)


def _fully_connected(arg: LayerArg, x: npt.NDArray[np.uint8], weights: npt.NDArray) -> Block:
    vector = gate(x, bool(arg.signed_in)).reshape(-1).astype(np.float64)
    s = weights.reshape(arg.o_ch_num, -1).astype(np.float64) @ vector
    sx = np.array(vector.sum())
    shape = arg.o_ch_num, 1, 1
    return (
        slice(0, arg.o_ch_num),
        slice(0, 1),
        s.astype(np.int64).reshape(shape),
        sx.astype(np.int64).reshape(1, 1, 1),
    )


def _full(arg: LayerArg, xp: npt.NDArray[np.uint8], weights: npt.NDArray) -> Iterator[Block]:
    outputs, channels = arg.o_ch_num, arg.i_ch_num
    rows, columns, *_ = kept_pixels(arg)
    taps = arg.kernel**2
    # one more "output channel" of weights 1 gives sx; [o][tap][c], as the windows are gathered
    matrix = np.ones((outputs + 1, taps * channels))
    kernel = weights.reshape(outputs, channels, taps).transpose(0, 2, 1)
    matrix[:-1] = kernel.reshape(outputs, -1)
    chunk = max(1, COLUMN_BYTES // (8 * taps * channels * columns))
    for first in range(0, rows, chunk):
        last = min(rows, first + chunk)
        window = np.empty((taps, channels, last - first, columns))
        for tap, pixels in enumerate(_taps(arg, xp, first, last)):
            window[tap] = pixels
        sums = (matrix @ window.reshape(taps * channels, -1)).reshape(-1, last - first, columns)
        sx = sums[-1:].astype(np.int64)
        some = max(1, BLOCK // ((last - first) * columns))
        for o in range(0, outputs, some):
            part = slice(o, min(outputs, o + some))
            yield part, slice(first, last), sums[part].astype(np.int64), sx


def _depthwise(arg: LayerArg, xp: npt.NDArray[np.uint8], weights: npt.NDArray) -> Iterator[Block]:
    outputs = arg.o_ch_num
    rows, columns, *_ = kept_pixels(arg)
    kernel = weights.reshape(outputs, -1).astype(np.int32)
    chunk = min(rows, max(1, BLOCK // columns))
    some = max(1, BLOCK // (chunk * columns))
    for o in range(0, outputs, some):
        part = slice(o, min(outputs, o + some))
        for first in range(0, rows, chunk):
            last = min(rows, first + chunk)
            shape = part.stop - part.start, last - first, columns
            s, sx, product = (np.zeros(shape, dtype=np.int32) for _ in range(3))
            for tap, pixels in enumerate(_taps(arg, xp[part], first, last)):
                np.multiply(pixels, kernel[part, tap, None, None], out=product)
                s += product
                sx += pixels
            yield part, slice(first, last), s.astype(np.int64), sx.astype(np.int64)


def needed_macs(arg: LayerArg) -> int:
    """Multiplications that the output needs: those of ``kept_pixels``; a pooling task none."""
    if arg.pool_task:
        return 0
    if arg.elementwise:
        return needed_elementwise(arg)
    if arg.fp16:
        return arg.i_col_high * arg.i_row_wid // 2 * arg.weight_count
    rows, columns, *_ = kept_pixels(arg)
    return rows * columns * arg.weight_count


def count_macs(
    arg: LayerArg, x: npt.NDArray[np.uint8], x2: npt.NDArray[np.uint8] | None = None
) -> tuple[int, int]:
    """(multiplications needed, those of them whose pixel is <= 0 and that are gated)."""
    if arg.elementwise:
        return count_elementwise(arg, x, x2)
    if arg.fc:
        zeros = int(np.count_nonzero(gate(x, bool(arg.signed_in)) == 0))
        return needed_macs(arg), zeros * arg.o_ch_num
    # zeros over all channels at every place, then over every window
    zero = np.count_nonzero(padded(arg, x) == 0, axis=0)
    gated = sum(int(pixels.sum()) for pixels in _taps(arg, zero, 0, kept_pixels(arg)[0]))
    times = 1 if arg.depthwise else arg.o_ch_num
    return needed_macs(arg), gated * times
