# SPDX-License-Identifier: Apache-2.0
"""Numbers times a fraction, rounded once: of 64 bits where they fit, Python integers else."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

Array = npt.NDArray
ROOM = 1 << 62  # of numbers of 64 bits; what is beyond is beyond any clamp as well


def _whole(values: Array) -> npt.NDArray[np.int64]:
    """Python integers as int64."""
    return np.clip(values, -ROOM, ROOM).astype(np.int64)


def _product(values: Array, numerator: int, denominator: int) -> Array:
    """values * numerator, as numbers that hold twice of it and of the denominator."""
    whole = np.asarray(values)
    most = max((abs(int(n)) for n in (whole.min(initial=0), whole.max(initial=0))), default=0)
    fits = 2 * (most * abs(numerator) + denominator) < ROOM
    return whole.astype(np.int64 if fits else object) * numerator


def nearest_even(numerator: Array, denominator: int) -> npt.NDArray[np.int64]:
    """numerator / denominator to the nearest integer, a tie to even.

    ``numerator``: int64 where twice of it and of the denominator fit as well, else Python integers.
    """
    top = np.asarray(numerator)
    found = (2 * top + denominator) // (2 * denominator)
    tie = (2 * top + denominator) % (2 * denominator) == 0
    return _whole(found - (tie & (found % 2 == 1)))


def scaled_once(values: Array, factor: Fraction) -> npt.NDArray[np.int64]:
    """values * factor to the nearest integer, a tie to even."""
    top = _product(values, factor.numerator, factor.denominator)
    return nearest_even(top, factor.denominator)


def half_up(values: Array, factor: Fraction) -> npt.NDArray[np.int64]:
    """values * factor to the nearest integer, a tie up."""
    top = 2 * _product(values, factor.numerator, factor.denominator) + factor.denominator
    return _whole(top // (2 * factor.denominator))
