# SPDX-License-Identifier: Apache-2.0
"""Quantised networks written from numpy arrays, as TFLite and as ONNX files.

``TfliteModel`` and ``OnnxModel`` have the same methods: one for each operator, a value in and a
value out. Shapes and weights are in one order for both, (N, C, H, W) and (O, C / groups, KH, KW);
TFLite's own order is made at writing. A network is written once as a function of the writer. The
tests' networks (``openkpu_tools.foreign.train_networks``) and single operators are made with it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div

Pair = tuple[int, int]
Pads = str | tuple[int, int, int, int]  # "same", "valid", or top, left, bottom, right


@dataclasses.dataclass(frozen=True)
class Quant:
    """A tensor's parameters: real = scale * (q - zero_point)."""

    scale: float
    zero_point: int = 0


@dataclasses.dataclass(frozen=True)
class Value:
    """A tensor of the network: its name, shape (N, C, H, W) or (N, C), and parameters."""

    name: str
    shape: tuple[int, ...]
    quant: Quant


@dataclasses.dataclass(frozen=True)
class Weights:
    """Weights (O, C / groups, KH, KW) or (O, C), one scale or one for each output channel,
    and the bias (O,) int32 in steps of input scale * weight scale."""

    data: npt.NDArray[np.integer]
    scale: float | Sequence[float] | npt.NDArray[np.floating]
    bias: npt.NDArray[np.int32] | None = None
    zero_point: int = 0


def same_pads(size: int, kernel: int, stride: int, dilation: int = 1) -> Pair:
    """TensorFlow's SAME padding of one axis: (before, after)."""
    total = max((ceil_div(size, stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


def explicit_pads(
    size: Pair, kernel: Pair, stride: Pair, pads: Pads, dilation: Pair = (1, 1)
) -> tuple[int, int, int, int]:
    """Padding as top, left, bottom, right."""
    if pads == "valid":
        return 0, 0, 0, 0
    if pads == "same":
        (top, bottom), (left, right) = (
            same_pads(*axis) for axis in zip(size, kernel, stride, dilation, strict=True)
        )
        return top, left, bottom, right
    assert not isinstance(pads, str), pads
    return pads


def window_shape(
    size: Pair, kernel: Pair, stride: Pair, pads: Pads, dilation: Pair = (1, 1)
) -> Pair:
    """Lines and columns that a window's operator gives."""
    top, left, bottom, right = explicit_pads(size, kernel, stride, pads, dilation)
    whole = size[0] + top + bottom, size[1] + left + right
    high, wide = (
        (n - (k - 1) * d - 1) // s + 1
        for n, k, s, d in zip(whole, kernel, stride, dilation, strict=True)
    )
    return high, wide


class Writer(Protocol):
    """What both writers can do. ``out``: parameters of the result; ``act``: "relu" or "relu6",
    fused as the format does it. Axes count as in (N, C, H, W)."""

    def input(self, shape: Sequence[int], quant: Quant) -> Value: ...
    def conv(
        self,
        x: Value,
        weights: Weights,
        out: Quant,
        stride: Pair = (1, 1),
        pads: Pads = "same",
        dilation: Pair = (1, 1),
        groups: int = 1,
        act: str | None = None,
    ) -> Value: ...
    def fully(self, x: Value, weights: Weights, out: Quant, act: str | None = None) -> Value: ...
    def pool(
        self, kind: str, x: Value, kernel: Pair, stride: Pair, pads: Pads = "valid"
    ) -> Value: ...
    def binary(
        self, kind: str, a: Value, b: Value, out: Quant, act: str | None = None
    ) -> Value: ...
    def unary(self, kind: str, x: Value, out: Quant, alpha: float = 0.0) -> Value: ...
    def concat(self, values: Sequence[Value], out: Quant, axis: int = 1) -> Value: ...
    def split(self, x: Value, parts: int, axis: int = 1) -> list[Value]: ...
    def slice(self, x: Value, begin: Sequence[int], size: Sequence[int]) -> Value: ...
    def pad(self, x: Value, pads: tuple[int, int, int, int]) -> Value: ...
    def mean(self, x: Value, out: Quant, keep: bool = True) -> Value: ...
    def resize(self, x: Value, factor: int) -> Value: ...
    def reshape(self, x: Value, shape: Sequence[int]) -> Value: ...
    def softmax(self, x: Value) -> Value: ...
    def argmax(self, x: Value) -> Value: ...
    def finish(self, outputs: Sequence[Value]) -> bytes: ...
