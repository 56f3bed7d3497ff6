# SPDX-License-Identifier: Apache-2.0
"""The two roundings of TFLite's reference kernels (gemmlowp's fixed point), in int64.

A factor is a 31-bit mantissa and an exponent.  A product is doubled, its high 32 bits are rounded
(halves away from zero), then they are shifted down and rounded again (halves away from zero).
Source: the published kernels of TensorFlow Lite, MultiplyByQuantizedMultiplier and its callers.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]
ADD_SHIFT = 20  # by which operands of an addition are moved up


def double_of(a: float, b: float, out: float) -> float:
    """a * b / out as the kernels compute it, in float64."""
    return float(a) * float(b) / float(out)


def mantissa(factor: float) -> tuple[int, int]:
    """(mantissa of 31 bits, exponent) of a factor above 0."""
    share, exponent = math.frexp(factor)
    whole = round(share * (1 << 31))
    if whole == 1 << 31:
        return 1 << 30, exponent + 1
    return (0, 0) if exponent < -31 else (whole, exponent)


def multiply(values: Array, factor: float) -> Array:
    """values * factor with both roundings."""
    return scaled_twice(values, *mantissa(factor))


def scaled_twice(values: Array, whole: int, exponent: int) -> Array:
    """values * whole / 2^31 * 2^exponent with both roundings."""
    left, right = max(exponent, 0), max(-exponent, 0)
    product = (np.asarray(values, dtype=np.int64) << left) * whole
    nudge = np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    high = product + nudge
    high = np.where(high >= 0, high >> 31, -((-high) >> 31))  # towards zero, as C divides
    return _shifted(high, right)


def _shifted(values: Array, right: int) -> Array:
    """values / 2^right, halves away from zero."""
    mask = (1 << right) - 1
    above = (values & mask) > (mask >> 1) + (values < 0)
    return (values >> right) + above


def add_scaled(a: Array, b: Array, scale_a: float, scale_b: float, scale: float) -> Array:
    """Operands without zero points, the sum without its own."""
    twice = 2 * max(float(scale_a), float(scale_b))
    parts = [multiply(v << ADD_SHIFT, float(s) / twice) for v, s in ((a, scale_a), (b, scale_b))]
    return multiply(parts[0] + parts[1], twice / ((1 << ADD_SHIFT) * float(scale)))


def average(sums: Array, count: int) -> Array:
    """sums / count, halves away from zero."""
    return np.where(sums > 0, (sums + count // 2) // count, -((count // 2 - sums) // count))
