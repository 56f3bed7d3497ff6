# SPDX-License-Identifier: Apache-2.0
"""Tables of 256 bytes for functions of one quantised number (docs/compiler.md).

Entry i belongs to the input integer ``lowest + i`` (-128 of int8, 0 of uint8).  What is rational
(requantisation, leaky ReLU, clamps) is computed in exact fractions, the rest in float64; one
rounding to nearest, a tie to even, then the zero point and the limits of the type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from openkpu.compiler.form.graph import Tensor

Number = Fraction | float
Real = Callable[[Number], Number]


def table_of(function: Real, x: Tensor, y: Tensor) -> npt.NDArray[np.int64]:
    """The table (256,) of ``function``, from numbers of ``x`` to numbers of ``y``.

    ``function`` gives a fraction or a float; an infinity of its own is the end of the range.
    """
    (least, _), (low, high) = x.limits, y.limits
    found = []
    for q in range(least, least + 256):
        value = function((q - x.zero) * x.exact)
        if isinstance(value, float):
            if math.isinf(value):
                found.append(high if value > 0 else low)
                continue
            value = Fraction(value)
        found.append(min(max(round(value / y.exact) + y.zero, low), high))
    return np.array(found, dtype=np.int64)


def requantise(x: Tensor, y: Tensor) -> npt.NDArray[np.int64]:
    """The same real number in another scale, zero point or type."""
    return table_of(lambda r: r, x, y)


def clamp_table(x: Tensor, y: Tensor, clamp: tuple[int, int]) -> npt.NDArray[np.int64]:
    """As ``requantise``, limited to ``clamp`` of the output's integers."""
    return np.clip(requantise(x, y), *clamp)


def leaky(alpha: float) -> Real:
    """x, below 0 alpha * x."""
    exact = Fraction(alpha)
    return lambda r: r if r >= 0 else exact * r


def between(low: float, high: float) -> Real:
    """x limited to low..high."""
    ends = [None if math.isinf(end) else Fraction(end) for end in (low, high)]

    def limited(r: Number) -> Number:
        r = r if ends[0] is None else max(r, ends[0])
        return r if ends[1] is None else min(r, ends[1])

    return limited


def hard_sigmoid(alpha: float, beta: float) -> Real:
    """alpha * x + beta limited to 0..1."""
    a, b = Fraction(alpha), Fraction(beta)
    return lambda r: min(max(a * r + b, Fraction(0)), Fraction(1))


def hard_swish(r: Number) -> Number:
    """x * (x + 3) / 6, the second factor limited to 0..6."""
    return r * min(max(r + 3, Fraction(0)), Fraction(6)) / 6


def sigmoid(r: Number) -> float:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + math.exp(-float(r))) if r > -700 else 0.0


def tanh(r: Number) -> float:
    """The hyperbolic tangent."""
    return math.tanh(float(r))


def elu(alpha: float = 1.0) -> Real:
    """x, below 0 alpha * (exp(x) - 1)."""
    return lambda r: r if r >= 0 else alpha * math.expm1(float(r))


def gelu(r: Number) -> float:
    """x times the normal distribution's share below x."""
    return float(r) * 0.5 * math.erfc(-float(r) / math.sqrt(2))


def gelu_tanh(r: Number) -> float:
    """GELU as it is approximated with a tanh."""
    v = float(r)
    return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))


def silu(r: Number) -> float:
    """x * sigmoid(x)."""
    return float(r) * sigmoid(r)


def softplus(r: Number) -> float:
    """log(1 + exp(x))."""
    return max(float(r), 0.0) + math.log1p(math.exp(-abs(float(r))))


def exp(r: Number) -> float:
    """e to the power of x; beyond float64 an infinity."""
    return math.exp(float(r)) if r < 700 else math.inf


def log(r: Number) -> float:
    """The natural logarithm; of 0 and below minus infinity, as the runtimes' tables have it."""
    return math.log(r) if r > 0 else -math.inf


def sqrt(r: Number) -> float:
    """The square root; below 0 that of 0."""
    return math.sqrt(r) if r > 0 else 0.0


def rsqrt(r: Number) -> float:
    """Its reciprocal; of 0 and below infinity."""
    return 1 / math.sqrt(r) if r > 0 else math.inf


def fused(x: Tensor, low: float, high: float) -> tuple[int, int]:
    """The clamp of an activation low..high in integers of ``x``: rounded, halves away from 0."""
    ends = []
    for end, limit in zip((low, high), x.limits, strict=True):
        if math.isinf(end):
            ends.append(limit)
            continue
        value = Fraction(end) / x.exact
        away = math.floor(abs(value) + Fraction(1, 2)) * (1 if value >= 0 else -1)
        ends.append(min(max(away + x.zero, x.limits[0]), x.limits[1]))
    return ends[0], ends[1]
