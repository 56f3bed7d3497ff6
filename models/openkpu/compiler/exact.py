# SPDX-License-Identifier: Apache-2.0
"""Numbers times a fraction, rounded once; Python integers inside, so nothing overflows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

Array = npt.NDArray
MOST = 1 << 62  # what is beyond is beyond any clamp as well


def _whole(values: Array) -> npt.NDArray[np.int64]:
    """Python integers as int64."""
    return np.clip(values, -MOST, MOST).astype(np.int64)


def nearest(numerator: Array, denominator: int) -> npt.NDArray[np.int64]:
    """numerator / denominator to the nearest integer, a tie to even."""
    top = np.asarray(numerator).astype(object)
    found = (2 * top + denominator) // (2 * denominator)
    tie = (2 * top + denominator) % (2 * denominator) == 0
    return _whole(found - (tie & (found % 2 == 1)))


def scaled(values: Array, factor: Fraction) -> npt.NDArray[np.int64]:
    """values * factor to the nearest integer, a tie to even."""
    return nearest(np.asarray(values).astype(object) * factor.numerator, factor.denominator)


def half_up(values: Array, factor: Fraction) -> npt.NDArray[np.int64]:
    """values * factor to the nearest integer, a tie up."""
    top = np.asarray(values).astype(object) * (2 * factor.numerator) + factor.denominator
    return _whole(top // (2 * factor.denominator))
