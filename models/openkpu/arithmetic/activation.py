# SPDX-License-Identifier: Apache-2.0
"""The 16-segment activation with its rounding shift (docs/kpu.md 1.2 and 1.3), vectorised.

Ranges: v and start are signed 36, so v - start is signed 37, times a signed 16-bit mul at most
2^51 in magnitude: int64 holds everything.  A shift of 53 or more sees only the sign (fraction at
most 2^51 below half), so clamping shifts to 54 changes nothing and keeps the shifts legal for
int64.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.params import SEGMENTS, ActTable
from openkpu.words import ROUNDINGS

MAX_SHIFT = 54


def carry_shift(
    value: npt.NDArray[np.int64], shift: npt.NDArray[np.int64] | int, rounding: str = "nncase"
) -> npt.NDArray[np.int64]:
    """The rounding shift of docs/kpu.md 1.2 / 1.3, elementwise; |value| below 2^52, shift >= 0."""
    if rounding not in ROUNDINGS:
        raise ValueError(f"unknown rounding {rounding!r}, expected one of {', '.join(ROUNDINGS)}")
    shift = np.minimum(shift, MAX_SHIFT)
    whole = value >> shift
    if rounding == "trunc":
        return whole
    return _round(value, whole, _masks(shift), _halves(shift), rounding)


def _masks(shift: npt.NDArray[np.int64] | int) -> npt.NDArray[np.int64]:
    return (np.int64(1) << np.asarray(shift, dtype=np.int64)) - 1


def _halves(shift: npt.NDArray[np.int64] | int) -> npt.NDArray[np.int64]:
    """Half of the last place; 1 for shift 0, which no fraction (plus odd bit) ever exceeds."""
    return np.maximum((np.int64(1) << np.asarray(shift, dtype=np.int64)) >> 1, 1)


def _round(
    value: npt.NDArray[np.int64],
    whole: npt.NDArray[np.int64],
    mask: npt.NDArray[np.int64],
    half: npt.NDArray[np.int64],
    rounding: str,
) -> npt.NDArray[np.int64]:
    """Add the rounding step to ``whole``: one away in the direction of the value's sign."""
    fraction = value & mask
    if rounding == "nncase":
        fraction += whole & 1  # a tie goes to the even neighbour
        step = fraction > half
    else:
        step = fraction >= half
    # sign is -1 or +1: value >> 63 is -1 for negative values
    return whole + step * (1 + 2 * (value >> 63))


class Activation:
    """An activation table made ready for whole arrays.

    The segment of v is the largest i with v > start[i] (v01: v >= start[i]), whatever the order
    of the table.  Entry i can only win where start[i] is below every later start; these entries,
    in order of their starts, cut the line into intervals, so a count of passed starts selects the
    segment.
    """

    def __init__(self, table: ActTable, rounding: str = "nncase", signed: bool = False) -> None:
        if rounding not in ROUNDINGS:
            raise ValueError(
                f"unknown rounding {rounding!r}, expected one of {', '.join(ROUNDINGS)}"
            )
        self.rounding = rounding
        self.signed = signed
        starts = table.start - (1 if rounding == "v01" else 0)
        passed: list[tuple[int, int]] = []
        least = 1 << 62
        for i in reversed(range(SEGMENTS)):
            if starts[i] < least:
                least = int(starts[i])
                passed.append((least, i))
        passed.reverse()
        self.starts = [start for start, _ in passed]
        order = np.array([0] + [i for _, i in passed])  # below every start: entry 0
        shift = np.minimum(table.shift, MAX_SHIFT)
        add = table.add.astype(np.uint8)
        self._base = table.start[order]
        self._mul = table.mul[order]
        self._shift = shift[order]
        self._mask = _masks(shift)[order]
        self._half = _halves(shift)[order]
        self._add = (add.view(np.int8) if signed else add).astype(np.int64)[order]

    def segments(self, v: npt.NDArray[np.int64]) -> npt.NDArray[np.intp] | int:
        """Interval of each v, or one number when the whole block lies in a single one."""
        least, most = int(v.min()), int(v.max())
        first = sum(start < least for start in self.starts)
        last = sum(start < most for start in self.starts)
        if first == last:
            return first
        count = np.full(v.shape, first, dtype=np.uint8)
        for start in self.starts[first:last]:
            count += v > start
        return count.astype(np.intp)

    def __call__(self, v: npt.NDArray[np.int64]) -> npt.NDArray:
        """Activated bytes of ``v``: uint8, or int8 when signed; same shape."""
        at = self.segments(v)
        value = v - self._base[at]
        value *= self._mul[at]
        z = value >> self._shift[at]
        if self.rounding != "trunc":
            z = _round(value, z, self._mask[at], self._half[at], self.rounding)
        z += self._add[at]
        if self.signed:
            return np.clip(z, -128, 127, out=z).astype(np.int8)
        return np.clip(z, 0, 255, out=z).astype(np.uint8)
