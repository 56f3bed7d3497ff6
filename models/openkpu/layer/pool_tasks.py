# SPDX-License-Identifier: Apache-2.0
"""Pooling tasks: windows of any size over a map, without a convolution (docs/kpu.md 1.11).

A window is kh x kw pixels of the padded map, or the whole map (``pool_all``).  Maximum and minimum
look at pixels of the map alone.  An average is exact: the integer sum, divided once by the number
of pixels that count, halves rounded up.  With AVERAGE every place of the window counts, and those
outside the map are ``pad_value``; with AVERAGE_INSIDE those of the map count.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div
from openkpu.layer.fields import LayerFields

MAXIMUM, MINIMUM, AVERAGE, AVERAGE_INSIDE = 1, 2, 3, 4
KINDS = {1: "maximum", 2: "minimum", 3: "average", 4: "average inside"}  # by pool_task
MOST_KERNEL = MOST_STRIDE = 16
MOST_PAD = 7


@dataclasses.dataclass(frozen=True)
class PoolWindow:
    """Size, steps and padding of a task's windows, in lines and columns."""

    kh: int
    kw: int
    sy: int
    sx: int
    top: int
    left: int
    bottom: int
    right: int

    def out_size(self, height: int, width: int) -> tuple[int, int]:
        """(oh, ow): windows that fit the padded map; below 1 where none does."""
        return (
            (height + self.top + self.bottom - self.kh) // self.sy + 1,
            (width + self.left + self.right - self.kw) // self.sx + 1,
        )


def window_of(arg: LayerFields) -> PoolWindow:
    """The windows of a pooling task; with ``pool_all`` the one that is the whole map."""
    kernel = arg.in_shape[1:] if arg.pool_all else (arg.pool_kh, arg.pool_kw)
    pads = arg.pool_top, arg.pool_left, arg.pool_bottom, arg.pool_right
    return PoolWindow(*kernel, arg.pool_sy, arg.pool_sx, *pads)


def pool_fault(arg: LayerFields) -> tuple[str, str] | None:
    """(error code, what is wrong) with a task's flags, kinds, window and channels; None: nothing.

    What holds for every layer (lines that are too long, places of the maps) is not looked at.
    """
    if arg.depth_wise_layer or arg.fc or arg.elementwise:
        return "BAD_FLAGS", "a pooling task is neither depthwise nor fully connected"
    if arg.in_xor or arg.w_xor or arg.out32:
        return "BAD_FLAGS", "a pooling task has neither in_xor nor w_xor nor out32"
    if arg.kernel_type:
        return "BAD_KERNEL", "a pooling task has kernel_type 0"
    if arg.pool_type:
        return "BAD_POOL", "a pooling task has pool_type 0"
    if arg.pool_task not in KINDS:
        return "BAD_POOL", f"pool_task {arg.pool_task} is reserved"
    w = dataclasses.replace(window_of(arg), kh=arg.pool_kh, kw=arg.pool_kw)
    if arg.pool_all and dataclasses.astuple(w) != (1, 1, 1, 1, 0, 0, 0, 0):
        return "BAD_POOL", "a window of the whole map has kernel 1x1, stride 1 and no padding"
    if max(w.top, w.bottom) >= w.kh or max(w.left, w.right) >= w.kw:
        return "BAD_POOL", (
            f"padding {w.top}, {w.left}, {w.bottom}, {w.right} (top, left, bottom, right) "
            f"is not smaller than the {w.kh} x {w.kw} window"
        )
    c, h, width = arg.in_shape
    o, oh, ow = arg.out_shape
    if c != o:
        return "BAD_SIZE", f"a pooling task needs as many outputs as inputs: {c} -> {o}"
    if (oh, ow) != (want := window_of(arg).out_size(h, width)):
        return "BAD_SIZE", (
            f"output {oh} x {ow}, but the windows of {h} x {width} give {want[0]} x {want[1]}"
        )
    return None


def _reduce(a: npt.NDArray[np.int64], axis: int, size: int, step: int, count: int, op: np.ufunc):
    """``op`` over windows of ``size`` along an axis, ``count`` of them, ``step`` apart."""
    a = np.moveaxis(a, axis, -1)
    last = (count - 1) * step + 1
    best = a[..., :last:step].copy()
    for at in range(1, size):
        op(best, a[..., at : at + last : step], out=best)
    return np.moveaxis(best, -1, axis)


def pool_task(arg: LayerFields, x: npt.NDArray) -> npt.NDArray[np.uint8]:
    """Output bytes (C, oh, ow) of a legal task on the map ``x`` (C, H, W) of bytes."""
    w, (_, oh, ow) = window_of(arg), arg.out_shape
    signed = bool(arg.signed_in or arg.signed_out)
    x = np.ascontiguousarray(x).view(np.int8 if signed else np.uint8).astype(np.int64)
    pad = np.array(arg.pad_value, dtype=np.uint8).view(np.int8 if signed else np.uint8)
    pad = int(pad)
    if arg.signed_in:  # as everywhere: what is negative counts as 0
        x, pad = np.maximum(x, 0), max(pad, 0)
    extremum = {MAXIMUM: (np.maximum, -(1 << 15)), MINIMUM: (np.minimum, 1 << 15)}
    op, outside = extremum.get(arg.pool_task, (np.add, pad if arg.pool_task == AVERAGE else 0))
    around = (w.top, w.bottom), (w.left, w.right)
    padded = np.pad(x, ((0, 0), *around), constant_values=outside)
    y = _reduce(_reduce(padded, 1, w.kh, w.sy, oh, op), 2, w.kw, w.sx, ow, op)
    if arg.pool_task in (AVERAGE, AVERAGE_INSIDE):
        inside = np.pad(
            np.ones(x.shape[1:], dtype=np.int64),
            around,
            constant_values=int(arg.pool_task == AVERAGE),
        )
        n = _reduce(_reduce(inside, 0, w.kh, w.sy, oh, np.add), 1, w.kw, w.sx, ow, np.add)
        y = (2 * y + n) // (2 * n)
    return (y & 0xFF).astype(np.uint8)


def words_read(arg: LayerFields) -> int:
    """Pieces of 16 bytes of the map that the windows need, line by line: the device's yardstick."""
    w, (c, h, width), (_, oh, ow) = window_of(arg), arg.in_shape, arg.out_shape
    lines = [min(y * w.sy - w.top + w.kh, h) - max(y * w.sy - w.top, 0) for y in range(oh)]
    columns = min((ow - 1) * w.sx - w.left + w.kw, width)
    return c * sum(lines) * ceil_div(columns, 16)
