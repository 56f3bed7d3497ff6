# SPDX-License-Identifier: Apache-2.0
"""Operations that multiply matrices on the CPU: convolution, matmul, fully connected."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from openkpu.kmodel.operations import kernels as k
from openkpu.kmodel.operations.operations import FULL, WINDOW_MAX, shape_problem, window_problem
from openkpu.kmodel.program import Memory, Operation, View

F32 = np.float32


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class MatMul(Operation):
    """clamp(a (M, K) @ b (K, N) + bias (N,)); ``transposed``: b is (N, K)."""

    name: ClassVar[str] = "matmul"
    a: View
    b: View | npt.NDArray[np.float32]
    bias: View | npt.NDArray[np.float32]
    dst: View
    transposed: bool = False
    clamp: tuple[float, float] = FULL

    @property
    def work(self) -> int:
        return self.dst.count * max(1, self.a.shape[-1])

    def problem(self) -> str | None:
        (rows, inner), (first, second) = self.a.shape, self.b.shape
        inside, columns = (second, first) if self.transposed else (first, second)
        if inner != inside or self.bias.shape != (columns,):
            return f"{self.a} by {self.b.shape} plus {self.bias.shape}"
        return shape_problem(self.dst, (rows, columns))

    def run(self, memory: Memory) -> None:
        def value(x: View | npt.NDArray) -> npt.NDArray:
            return (x.of(memory) if isinstance(x, View) else x).astype(np.float64)

        b = value(self.b)
        with np.errstate(all="ignore"):
            out = value(self.a) @ (b.T if self.transposed else b) + value(self.bias)
            self.dst.of(memory)[...] = np.clip(out, *self.clamp).astype(F32)


class FullyConnected(MatMul):
    """The same with weights out of the file."""

    name: ClassVar[str] = "fully_connected"


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class QuantMatMul(Operation):
    """Integer product with offsets, bias, and a fixed-point scale."""

    name: ClassVar[str] = "quantized_matmul"
    a: View
    b: View
    bias: npt.NDArray[np.int32]
    dst: View
    offsets: tuple[int, int]
    out_param: tuple[int, int, int]  # offset, mul, shift

    @property
    def work(self) -> int:
        return self.dst.count * max(1, self.a.shape[-1])

    def problem(self) -> str | None:
        (rows, inner), (inside, columns) = self.a.shape, self.b.shape
        if inner != inside or self.bias.shape != (columns,):
            return f"{self.a} by {self.b} plus {self.bias.shape}"
        return shape_problem(self.dst, (rows, columns))

    def run(self, memory: Memory) -> None:
        a = self.a.of(memory).astype(np.float64) + self.offsets[0]
        b = self.b.of(memory).astype(np.float64) + self.offsets[1]
        self.dst.of(memory)[...] = scaled(a @ b + self.bias, self.out_param)


def scaled(total: npt.NDArray[np.float64], param: tuple[int, int, int]) -> npt.NDArray[np.uint8]:
    """Integer sums (exact in float64) times a fixed-point factor plus offset, as bytes."""
    offset, mul, shift = param
    whole = np.clip(total, -(2.0**62), 2.0**62).astype(np.int64).astype(np.int32)
    v = k.mul_shift(whole.astype(np.int64), mul, shift) + offset
    return np.clip(v, 0, 255).astype(np.uint8)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Conv2d(Operation):
    """Convolution on the CPU: float, or bytes when ``out_param`` is given.

    weights (O, C/groups, kh, kw) and bias (O,) out of the file, or tensors.
    """

    name: ClassVar[str] = "conv2d"
    src: View
    dst: View
    weights: View | npt.NDArray
    bias: View | npt.NDArray
    groups: int
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[k.Padding, k.Padding]
    clamp: tuple[float, float] = FULL
    offsets: tuple[int, int] = (0, 0)  # input, filter
    out_param: tuple[int, int, int] | None = None  # offset, mul, shift

    @property
    def work(self) -> int:
        return (self.dst.count + self.src.count) * int(np.prod(self.weights.shape[1:]))

    def problem(self) -> str | None:
        if len(self.weights.shape) != 4 or len(self.src.shape) != 4:
            return f"weights {list(self.weights.shape)} for {self.src}"
        o, inner, kh, kw = self.weights.shape
        groups = self.groups
        if groups < 1 or o < 1 or o % groups or self.src.shape[1] != inner * groups:
            return f"weights {list(self.weights.shape)} in {groups} groups for {self.src}"
        if self.bias.shape != (o,):
            return f"{self.bias.shape} biases for {o} channels"
        return window_problem(
            self.src, self.dst, (o,), (kh, kw), self.stride, self.dilation, self.pads
        )

    def run(self, memory: Memory) -> None:
        weights, bias = (
            v.of(memory) if isinstance(v, View) else v for v in (self.weights, self.bias)
        )
        x = self.src.of(memory)
        if self.out_param is not None:
            x = x.astype(np.float64) + self.offsets[0]
            weights = weights.astype(np.float64) + self.offsets[1]
        with np.errstate(all="ignore"):
            out = k.conv2d_float64(
                x, weights, bias, self.groups, self.stride, self.dilation, self.pads
            )
            if self.out_param is None:
                self.dst.of(memory)[...] = np.clip(out, *self.clamp).astype(F32)
            else:
                self.dst.of(memory)[...] = scaled(out, self.out_param)

    def describe(self) -> str:
        return f"{super().describe()}, weights {list(self.weights.shape)} groups {self.groups}"


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Conv2dTranspose(Operation):
    """Transposed convolution; weights (groups, O/groups, C/groups, kh, kw) out of the file."""

    name: ClassVar[str] = "conv2d_transpose"
    src: View
    dst: View
    weights: npt.NDArray[np.float32]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[k.Padding, k.Padding]
    clamp: tuple[float, float] = FULL

    @property
    def work(self) -> int:
        _, outer, _, kh, kw = self.weights.shape
        return self.src.count * outer * kh * kw + self.dst.count + self.weights.size

    def problem(self) -> str | None:
        groups, outer, inner, kh, kw = self.weights.shape
        if len(self.src.shape) != 4 or len(self.dst.shape) != 4:
            return f"expected maps (N, C, H, W), found {self.src}, {self.dst}"
        want = self.src.shape[0], groups * outer
        if self.src.shape[1] != groups * inner or self.dst.shape[:2] != want:
            return f"weights {list(self.weights.shape)} for {self.src} to {self.dst}"
        if max(kh, kw, *self.stride, *self.dilation) > WINDOW_MAX or kh * kw > 1 << 16:
            return f"window ({kh}, {kw}), stride {self.stride}, dilation {self.dilation}"
        if any(abs(n) > WINDOW_MAX for p in self.pads for n in p):
            return f"padding {self.pads}"
        return None

    def run(self, memory: Memory) -> None:
        with np.errstate(all="ignore"):
            out = k.conv2d_transpose(
                self.src.of(memory),
                self.weights,
                self.dst.shape,
                self.stride,
                self.dilation,
                self.pads,
            )
            self.dst.of(memory)[...] = np.clip(out, *self.clamp).astype(F32)

    def describe(self) -> str:
        return f"{super().describe()}, weights {list(self.weights.shape)}"
