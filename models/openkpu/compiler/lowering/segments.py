# SPDX-License-Identifier: Apache-2.0
"""Tables of bytes as activations of 16 segments, exact or not at all (docs/kpu.md 1.2).

A table is split into runs of bytes, each on a line that rounds to its values.  The device's lines
begin where they are chosen: at most one byte in front of the run, at a whole number.  So for each
place at which a run may begin all lines are tried that cross a whole number in one of sixteen
places of the byte in front, and the fewest runs are found from the left to the right.

A slope that is a fraction of a power of two meets halves exactly, and then the device's rounding
counts: to even, as seen from the number at which its line begins.  So tables that lines near to
the values do not give are tried again with lines that touch halves, from even and odd numbers.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.activation import Activation
from openkpu.arithmetic.params import SEGMENTS, ActTable

STEP_BITS = 10  # bits of v below one byte
STEP = 1 << STEP_BITS
THETA = np.arange(1, 17) / 16  # of a byte that the line's whole number lies in front of the run
BELOW = (0, 1, 2, 4)  # the line's whole number lies below the run's first value
NEAR = 0.49  # a line stays so near to each value
TOLERANCE = 1e-9
SIMPLE = 8  # bits of the fraction of a slope that meets halves
MUL = (1 << 15) - 1
LOWEST, HIGHEST = -(1 << 35), (1 << 35) - 1
Run = tuple[int, int, float, int, float]  # first, behind the last, theta, add, slope


def fit(values: npt.NDArray[np.int64], first: int = 0) -> ActTable | None:
    """Segments that give ``values`` (n,), bytes, of v = STEP * (first + i); None when 16 are too
    few."""
    return _fit(np.asarray(values, np.int64).tobytes(), first)


@functools.lru_cache(maxsize=4096)  # of every table of a network: lists that are cut try them anew
def _fit(values: bytes, first: int) -> ActTable | None:
    wanted = np.frombuffer(values, np.int64)
    v = (first + np.arange(wanted.size, dtype=np.int64)) * STEP
    if _runs(wanted, 0.5, None) is None:  # no other way is freer
        return None
    for near, rest in ((NEAR, None), (0.5, 0), (0.5, 1)):
        runs = _runs(wanted, near, rest)
        if runs is None:
            continue
        table = _table(runs, first)
        if np.array_equal(Activation(table)(v), wanted):
            return table
    return None


def _runs(values: npt.NDArray[np.int64], near: float, rest: int | None) -> list[Run] | None:
    """The fewest runs, at most 16, whose lines stay ``near``; ``rest``: of their whole numbers,
    divided by 2."""
    n = len(values)
    ends, low, high = _longest(values, near, rest)
    best: list[tuple[int, int]] = [(0, 0), *((n + 1, 0) for _ in range(n))]  # runs, the last one
    for i in range(n):
        count = best[i][0] + 1
        if count > SEGMENTS:
            continue
        # shorter runs of the same beginning are as good
        for j in range(int(ends[i]), i, -1):
            if best[j][0] <= count:
                break
            best[j] = count, i
    if best[n][0] > SEGMENTS:
        return None
    runs, at = [], n
    while at:
        i = best[at][1]
        runs.append((i, at, *_line(int(values[i]), low[i], high[i], near)))
        at = i
    return runs[::-1]


def _longest(
    values: npt.NDArray[np.int64], near: float, rest: int | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray, npt.NDArray]:
    """For each place: what is behind the longest run that begins there, and its least and largest
    slope for each theta and whole number (n, 64)."""
    n = len(values)
    theta, below = (v.reshape(-1) for v in np.meshgrid(THETA, BELOW, indexing="ij"))
    add = values[:, None] - below
    low, high = np.zeros(add.shape), np.full(add.shape, 1e9)
    low[add < 0] = 1e9
    if rest is not None:
        low[add % 2 != rest] = 1e9
    ends, going = np.arange(n), np.arange(n)
    for step in range(n):
        going = going[going + step < n]
        wanted, x = values[going + step, None] - add[going], step + theta
        least = np.maximum(low[going], (wanted - near) / x)
        most = np.minimum(high[going], (wanted + near) / x)
        fits = (least <= most + (near > NEAR) * 1e-12).any(axis=1)
        going = going[fits]
        if not going.size:
            break
        low[going], high[going], ends[going] = least[fits], most[fits], going + step + 1
    return ends, low, high


def _line(value: int, low: npt.NDArray, high: npt.NDArray, near: float) -> tuple[float, int, float]:
    """(theta, whole number, slope) of a run that begins with ``value``, of those possible."""
    which = int(np.argmax(high - low))
    if near > NEAR:  # a simple slope before others
        for bits in range(SIMPLE + 1):
            found = np.rint((low + high) / 2 * (1 << bits)) / (1 << bits)
            fits = (found >= low - TOLERANCE) & (found <= high + TOLERANCE)
            if fits.any():
                which = int(np.argmax(fits))
                theta, below = divmod(which, len(BELOW))
                return float(THETA[theta]), value - BELOW[below], float(found[which])
    slope = (low[which] + min(high[which], low[which] + 1e6)) / 2
    if low[which] <= 0 <= high[which]:
        slope = 0.0
    theta, below = divmod(which, len(BELOW))
    return float(THETA[theta]), value - BELOW[below], float(slope)


def _table(runs: list[Run], first: int) -> ActTable:
    start, mul, shift, add = [], [], [], []
    for number, (i, _, theta, whole, slope) in enumerate(runs):
        factor, bits = 0, 0
        if slope:
            while bits < 40 and round(slope / STEP * (2 << bits)) <= MUL:
                bits += 1
            factor = round(slope / STEP * (1 << bits))
        begin = (first + i) * STEP - round(theta * STEP)
        # below the first run nothing is, but its start must stay: it is where its line begins
        start.append(begin if number or slope else LOWEST)
        mul.append(factor)
        shift.append(bits)
        add.append(whole)
    rest = SEGMENTS - len(runs)
    return ActTable.make(
        start + [HIGHEST] * rest, mul + [0] * rest, shift + [0] * rest, add + [0] * rest
    )
