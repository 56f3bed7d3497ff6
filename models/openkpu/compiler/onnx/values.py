# SPDX-License-Identifier: Apache-2.0
"""What a name of an ONNX graph stands for while its reader walks the nodes.

| value | is |
|---|---|
| Const | an array that is known |
| Weights | a constant of bytes behind DequantizeLinear: integers, scales, zero points |
| Bytes | a tensor of the graph as it is: integers, or an input of floats |
| Curve | real numbers, each a function of one byte of a tensor; plain: the byte's own number |
| Pending | real numbers of an operator that waits for the QuantizeLinear behind it |

So ``DequantizeLinear, Conv, Relu, QuantizeLinear`` becomes one node with one rounding, and any
chain of functions of one number becomes one table.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from openkpu.compiler.form.functions import Number
from openkpu.compiler.form.graph import Tensor

Clamp = tuple[int, int]
Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Const:
    """A known array."""

    data: npt.NDArray


@dataclasses.dataclass(frozen=True)
class Weights:
    """Constant integers with one scale, or one for each index of ``axis``."""

    data: npt.NDArray[np.int64]
    dtype: str
    scale: npt.NDArray[np.float64]  # (n,)
    zero: npt.NDArray[np.int64]  # (n,)
    axis: int

    def real(self) -> npt.NDArray[np.float64]:
        """The numbers that they stand for."""
        shape = [1] * self.data.ndim
        if self.scale.size > 1:
            shape[self.axis] = self.scale.size
        return (self.data - self.zero.reshape(shape)) * self.scale.reshape(shape)


@dataclasses.dataclass(frozen=True)
class Bytes:
    """A tensor of the graph."""

    tensor: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape


@dataclasses.dataclass(frozen=True)
class Curve:
    """Real numbers, one for each of the 256 bytes of ``source``; None: the byte's own number."""

    source: Tensor
    values: tuple[Number, ...] | None = None
    words: str = ""
    floats: tuple[Number, ...] | None = None  # the same with float32 at every step

    @property
    def shape(self) -> tuple[int, ...]:
        return self.source.shape

    def singles(self) -> tuple[Number, ...]:
        """The 256 numbers as ONNX Runtime computes them, in float32: where a function jumps, the
        last bit of its argument decides."""
        return self.floats or tuple(_single(v) for v in self.reals())

    def reals(self) -> tuple[Number, ...]:
        """The 256 numbers, of the lowest byte first; a NaN where there is none."""
        if self.values is not None:
            return self.values
        low, high = self.source.limits
        return tuple((q - self.source.zero) * self.source.exact for q in range(low, high + 1))

    def steps(self) -> list[int] | None:
        """The 256 numbers as bytes of the source's scale; None where one of them is no such."""
        x, found = self.source, []
        for value in self.reals():
            step = Fraction(value) / x.exact + x.zero if math.isfinite(value) else Fraction(1, 2)
            if step.denominator != 1 or not x.limits[0] <= step <= x.limits[1]:
                return None
            found.append(int(step))
        return found

    def then(self, function: Callable[[Number], Number], words: str, jumps: bool = False) -> Curve:
        """The function of these numbers; one that ``jumps`` is of those in float32."""
        floats = tuple(_single(_value(function, v)) for v in self.singles())
        found = floats if jumps else tuple(_value(function, v) for v in self.reals())
        return Curve(self.source, found, ", ".join(filter(None, (self.words, words))), floats)

    def beside(
        self, other: Curve, function: Callable[[Number, Number], Number], words: str
    ) -> Curve:
        """The function of these numbers and those of another curve of the same bytes."""
        both = [(self.reals(), other.reals()), (self.singles(), other.singles())]
        found, floats = (
            tuple(_pair(function, v, w) for v, w in zip(*each, strict=True)) for each in both
        )
        return Curve(self.source, found, words, tuple(map(_single, floats)))


def _pair(function: Callable[[Number, Number], Number], a: Number, b: Number) -> Number:
    if isinstance(b, float) and math.isnan(b):
        return b
    return _value(lambda v: function(v, b), a)


def _single(x: Number) -> Number:
    """The nearest number of float32."""
    with np.errstate(over="ignore"):
        near = float(np.float32(x))
    return Fraction(near) if math.isfinite(near) else near


def _value(function: Callable[[Number], Number], x: Number) -> Number:
    """NaN where the function has no value."""
    if isinstance(x, float) and math.isnan(x):
        return x
    try:
        return function(x)
    except (ValueError, ZeroDivisionError):
        return math.nan
    except OverflowError:
        return math.inf


@dataclasses.dataclass(frozen=True)
class Pending:
    """Real numbers of an operator; ``make`` puts its node in, with that output and clamp."""

    shape: tuple[int, ...]
    make: Callable[[Tensor, Clamp], None]
    low: float = -math.inf  # an activation behind it limits the numbers to low..high
    high: float = math.inf
    biased: Callable[[npt.NDArray[np.float64]], Pending] | None = None  # a bias may still come
    channels: int = 1  # the axis of that bias
    # numbers for each channel may still come, y -> y * factor + shift
    scaled: Callable[[Floats, Floats], Pending] | None = None
    floats: Callable[[Tensor], None] | None = None  # the node with an output of float32

    def limited(self, low: float, high: float) -> Pending:
        """With a further activation low..high behind it."""
        ends = (min(max(end, low), high) for end in (self.low, self.high))
        low, high = ends
        more = {"biased": None, "scaled": None, "floats": None}
        return dataclasses.replace(self, low=low, high=high, **more)

    def clamp(self, y: Tensor) -> Clamp:
        """low..high in integers of the output: rounding keeps an order, so it may come first."""
        ends = []
        for end in (self.low, self.high):
            if math.isinf(end):
                ends.append(y.limits[0] if end < 0 else y.limits[1])
                continue
            ends.append(min(max(round(Fraction(end) / y.exact) + y.zero, y.limits[0]), y.limits[1]))
        return ends[0], ends[1]


Value = Const | Weights | Bytes | Curve | Pending
