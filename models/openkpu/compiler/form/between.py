# SPDX-License-Identifier: Apache-2.0
"""Shares of the pixels that an output of a linear resizing lies between, of lines or of columns.

With i the output of n and m pixels, its place is i * m / n (asymmetric), (i + 1/2) * m / n - 1/2
(half_pixel) or i * (m - 1) / (n - 1) (align_corners), and the nearest pixel beyond the edges.
``shares`` computes in exact fractions; TFLite's kernels of bytes have places of 10 bits.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

COORDINATES = ("asymmetric", "half_pixel", "align_corners")
Shares = npt.NDArray[np.float64]  # (outputs, size), each row's sum is 1


def shares(size: int, outputs: int, coordinates: str) -> Shares:
    """The exact ones, rounded to float64."""
    step, found = Fraction(size, outputs), np.zeros((outputs, size))
    if coordinates == "align_corners" and outputs > 1:
        step = Fraction(size - 1, outputs - 1)
    for i in range(outputs):
        place = i * step
        if coordinates == "half_pixel":
            place += step / 2 - Fraction(1, 2)
        place = min(max(place, Fraction(0)), Fraction(size - 1))
        low = math.floor(place)
        found[i, low] += float(1 - (place - low))
        found[i, min(low + 1, size - 1)] += float(place - low)
    return found


def kernel_shares(size: int, outputs: int, coordinates: str) -> Shares:
    """Those of TFLite's kernels of bytes: a step of 10 bits, so places drift.

    Source: the published kernels of TensorFlow Lite, ResizeBilinearInteger.
    """
    one, found = 1 << 10, np.zeros((outputs, size))
    step = (one * size + outputs // 2) // outputs
    if coordinates == "align_corners" and outputs > 1:
        step = (one * (size - 1) + (outputs - 1) // 2) // (outputs - 1)
    for i in range(outputs):
        place = i * step + (step // 2 - one // 2 if coordinates == "half_pixel" else 0)
        low = max(int(place / one), 0)  # towards 0, as C divides
        high = min(int((place + one - 1) / one), size - 1)
        share = place - one * low
        found[i, min(low, size - 1)] += (one - share) / one
        found[i, high] += share / one
    return found
