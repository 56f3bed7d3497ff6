# SPDX-License-Identifier: Apache-2.0
"""Bytes into bytes by a line with rounding, as a layer of the KPU (docs/performance.md 8).

What a compiler has the CPU do to bring two maps to one scale, dequantize and quantize, is a table
of 256 bytes.  A depthwise 1x1 layer does the same where the table is a line that was rounded and
clamped: batch norm multiplies and adds, the activation shifts.  Every entry is checked.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.activation import Activation
from openkpu.arithmetic.params import ActTable, BatchNorm, weights_to_bytes
from openkpu.kmodel.program import KpuLayer
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import AI_RAM_ROWS, Layout

MOST = 255
SHIFT = 22  # bits of the fraction: MOST << SHIFT still fits the add of batch norm, signed 32
MUL_MAX = (1 << 23) - 1  # ... its factor, signed 24
NEAREST = ("nncase", "v01")  # roundings of the activation that add a half


@dataclasses.dataclass(frozen=True)
class Line:
    """byte = (x * mul + add) >> shift, clamped to 0..255; ``rounding`` of the activation."""

    mul: int
    add: int
    shift: int
    rounding: str

    def tables(self, channels: int) -> tuple[BatchNorm, ActTable]:
        """The two tables of a layer."""
        norm = BatchNorm.make(np.full(channels, self.mul), 0, self.add)
        return norm, ActTable.make(0, 1, self.shift, 0)

    def values(self, x: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """What the layer makes of the sums ``x``."""
        _, act = self.tables(1)
        v = x * self.mul + self.add
        return Activation(act, self.rounding)(v)


def find_line(
    table: npt.NDArray[np.uint8], rounding: str, places: npt.NDArray[np.int64] | None = None
) -> Line | None:
    """The line through the bytes of a table (n,), at the sums ``places`` (n,), by default 0, 1,
    2...; None when it is not one, or too steep."""
    y = np.asarray(table).astype(np.float64)
    at = np.arange(y.size) if places is None else np.asarray(places)
    at = at.astype(np.int64)
    x = at.astype(np.float64)
    least = np.where(y == 0, -np.inf, y)  # least <= slope * x + offset < most
    most = np.where(y == MOST, np.inf, y + 1)
    apart = x[None, :] - x[:, None]  # of the second byte from the first
    with np.errstate(invalid="ignore", divide="ignore"):
        above = np.where(apart > 0, (least[None, :] - most[:, None]) / apart, -np.inf).max()
        below = np.where(apart > 0, (most[None, :] - least[:, None]) / apart, np.inf).min()
    # any slope in between has an offset; bounds may be missing
    low = above if np.isfinite(above) else min(below, 1.0) - 1
    slope = (low + (below if np.isfinite(below) else low + 1)) / 2
    for shift in range(SHIFT, 0, -1):
        mul = round(slope * (1 << shift))
        if abs(mul) > MUL_MAX:
            continue
        line = _offset(np.asarray(table).astype(np.int64), at, mul, shift, rounding)
        if line is not None:
            return line
    return None


def _offset(
    table: npt.NDArray[np.int64], x: npt.NDArray[np.int64], mul: int, shift: int, rounding: str
) -> Line | None:
    """The line of that slope that gives exactly ``table`` at the sums ``x``."""
    least = ((table << shift) - x * mul)[table > 0]
    most = ((table + 1 << shift) - 1 - x * mul)[table < MOST]
    low = int(least.max()) if least.size else int(most.min()) - (1 << shift)
    high = int(most.min()) if most.size else low + (1 << shift)
    half = (1 << shift) >> 1 if rounding in NEAREST else 0
    middle = (low + high) // 2 - half
    for add in (middle, middle + 1):  # a tie goes to the even neighbour
        line = Line(mul, add, shift, rounding)
        if low <= high and -(1 << 31) <= add < 1 << 31 and (line.values(x) == table).all():
            return line
    return None


def requantize_layer(
    line: Line, source: Layout, dst: int, *, offset: int, eight_bit: bool, title: str
) -> KpuLayer:
    """The layer that maps ``source`` to a map of the same shape at row ``dst``; its tables have no
    place in storage yet."""
    c, h, w = source.channels, source.height, source.width
    arg = LayerArg.make(
        *(c, h, w),
        depthwise=True,
        eight_bit=eight_bit,
        src=source.base,
        dst=dst,
        ram_rows=AI_RAM_ROWS,
    )
    norm, act = line.tables(c)
    return KpuLayer(
        offset=offset,
        arg=arg,
        weights=weights_to_bytes(np.ones(c), eight_bit),
        bn=norm.pack(),
        act=act.pack(),
        eight_bit=eight_bit,
        title=title,
    )
