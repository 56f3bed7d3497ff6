# SPDX-License-Identifier: Apache-2.0
"""Operations that compute on the CPU, common to all containers; moves.py has the ones that move."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from openkpu.kmodel.operations import kernels as k
from openkpu.kmodel.program import ELEMENTS_MAX, Memory, Operation, View

FULL = (-math.inf, math.inf)
WINDOW_MAX = 4096  # taps, stride, dilation, padding of a window along one axis
F32 = np.float32


def same_shapes(*views: View) -> str | None:
    """Complaint when shapes differ."""
    if len({v.shape for v in views}) > 1:
        return "shapes differ: " + ", ".join(map(str, views))
    return None


def shape_problem(view: View, want: tuple[int, ...]) -> str | None:
    if view.shape != tuple(want):
        return f"result {view}, expected shape {list(want)}"
    return None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Quantize(Operation):
    """u8 = round(x * scale + bias); ``half_even`` or half away from zero.

    ``inverse``: (x - bias) * (1 / scale), the way the v3 driver has it.
    """

    name: ClassVar[str] = "quantize"
    src: View
    dst: View
    scale: float
    bias: float
    half_even: bool = False
    inverse: bool = False

    def problem(self) -> str | None:
        return same_shapes(self.src, self.dst)

    def run(self, memory: Memory) -> None:
        x = self.src.of(memory).astype(F32)
        if self.inverse:
            x = (x - F32(self.bias)) * (F32(1) / F32(self.scale))
        else:
            x = x * F32(self.scale) + F32(self.bias)
        rounded = np.rint(x) if self.half_even else k.round_half_away(x)
        if self.dst.dtype == "i1":
            self.dst.of(memory)[...] = np.nan_to_num(np.clip(rounded, -128, 127)).astype(np.int8)
        else:
            self.dst.of(memory)[...] = k.to_u8(rounded)

    def describe(self) -> str:
        return f"{self.src} -> {self.dst}, scale {self.scale:g} bias {self.bias:g}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dequantize(Operation):
    """x = (u8 - zero) * scale + bias."""

    name: ClassVar[str] = "dequantize"
    src: View
    dst: View
    scale: float
    bias: float = 0.0
    zero: int = 0

    def problem(self) -> str | None:
        return same_shapes(self.src, self.dst)

    def run(self, memory: Memory) -> None:
        x = (self.src.of(memory).astype(np.int64) - self.zero).astype(F32)
        self.dst.of(memory)[...] = x * F32(self.scale) + F32(self.bias)

    def describe(self) -> str:
        return f"{self.src} -> {self.dst}, scale {self.scale:g} bias {self.bias:g} zero {self.zero}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChannelwiseDequantize(Operation):
    """Dequantisation with a scale and bias of each channel; (C, size)."""

    name: ClassVar[str] = "channelwise_dequantize"
    src: View
    dst: View
    scales: tuple[float, ...]
    biases: tuple[float, ...]

    def problem(self) -> str | None:
        return same_shapes(self.src, self.dst)

    def run(self, memory: Memory) -> None:
        scale, bias = (np.array(v, F32)[:, None] for v in (self.scales, self.biases))
        self.dst.of(memory)[...] = self.src.of(memory).astype(F32) * scale + bias


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableLookup(Operation):
    """dst = table[src], bytes; the table is a tensor or part of the file (requantize)."""

    name: ClassVar[str] = "table_lookup1d"
    src: View
    dst: View
    table: View | bytes

    def problem(self) -> str | None:
        length = self.table.size if isinstance(self.table, View) else len(self.table)
        return (
            f"table of {length} bytes, expected 256"
            if length < 256
            else same_shapes(self.src, self.dst)
        )

    def run(self, memory: Memory) -> None:
        if isinstance(self.table, View):
            table = self.table.of(memory).reshape(-1)
        else:
            table = np.frombuffer(self.table, np.uint8)
        self.dst.of(memory)[...] = table[self.src.of(memory)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Copy(Operation):
    """Elements of one tensor into another; converts the type when they differ."""

    name: ClassVar[str] = "copy"
    src: View
    dst: View

    def problem(self) -> str | None:
        return same_shapes(self.src, self.dst)

    def run(self, memory: Memory) -> None:
        with np.errstate(invalid="ignore"):
            self.dst.of(memory)[...] = self.src.of(memory).astype(self.dst.dtype)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Binary(Operation):
    """Element-wise with broadcasting, then clamped."""

    name: ClassVar[str] = "binary"
    op: str
    a: View
    b: View
    dst: View
    clamp: tuple[float, float] = FULL

    def problem(self) -> str | None:
        try:
            want = np.broadcast_shapes(self.a.shape, self.b.shape)
        except ValueError:
            return f"{self.a} and {self.b} do not broadcast"
        return shape_problem(self.dst, want)

    def run(self, memory: Memory) -> None:
        with np.errstate(all="ignore"):
            a, b = self.a.of(memory), self.b.of(memory)
            if self.op.startswith("bitwise") and a.dtype.kind == "f":
                a, b = a.astype(np.int64), b.astype(np.int64)
            out = k.BINARY[self.op](a, b)
            if self.clamp != FULL:
                out = np.clip(out, *self.clamp)
            self.dst.of(memory)[...] = out.astype(self.dst.dtype)

    def describe(self) -> str:
        return f"{self.op} {super().describe()}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuantAdd(Operation):
    """Quantised add of the v3 driver: both sides scaled, added, scaled again.

    ``a_param``, ``b_param``, ``out_param``: (offset, mul, shift).
    """

    name: ClassVar[str] = "quant_add"
    a: View
    b: View
    dst: View
    a_param: tuple[int, int, int]
    b_param: tuple[int, int, int]
    out_param: tuple[int, int, int]

    def problem(self) -> str | None:
        if not all(0 <= p[2] < 64 for p in (self.a_param, self.b_param, self.out_param)):
            return "a shift is not in 0..63"
        return same_shapes(self.a, self.b, self.dst)

    def run(self, memory: Memory) -> None:
        def side(view: View, param: tuple[int, int, int]) -> np.ndarray:
            return (view.of(memory).astype(np.int64) + param[0]) * param[1]

        a, b = side(self.a, self.a_param), side(self.b, self.b_param)
        if self.a_param[2] == self.b_param[2]:
            v = (a + b) >> self.a_param[2]
        else:
            v = (a >> self.a_param[2]) + (b >> self.b_param[2])
        offset, mul, shift = self.out_param
        v = k.carry_shift(v * np.int64(mul), shift) + offset
        self.dst.of(memory)[...] = np.clip(v, 0, 255).astype(np.uint8)


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuantBinary(Operation):
    """Quantised binary of v4: (x + offset) * mul >> shift on each side, op, and again."""

    name: ClassVar[str] = "quantized_binary"
    op: str
    a: View
    b: View
    dst: View
    a_param: tuple[int, int, int]
    b_param: tuple[int, int, int]
    out_param: tuple[int, int, int]

    problem = Binary.problem

    def run(self, memory: Memory) -> None:
        def side(view: View, param: tuple[int, int, int]) -> np.ndarray:
            return k.mul_shift(view.of(memory).astype(np.int64) + param[0], *param[1:])

        a, b = side(self.a, self.a_param), side(self.b, self.b_param)
        v = k.divide_rounded(a, b) if self.op == "div" else k.BINARY[self.op](a, b)
        offset, mul, shift = self.out_param
        v = k.mul_shift(k.wrap32(v), mul, shift) + offset
        self.dst.of(memory)[...] = np.clip(v, 0, 255).astype(np.uint8)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Unary(Operation):
    """Element-wise function."""

    name: ClassVar[str] = "unary"
    op: str
    src: View
    dst: View

    def problem(self) -> str | None:
        return same_shapes(self.src, self.dst)

    def run(self, memory: Memory) -> None:
        with np.errstate(all="ignore"):
            self.dst.of(memory)[...] = k.UNARY[self.op](self.src.of(memory)).astype(self.dst.dtype)

    def describe(self) -> str:
        return f"{self.op} {super().describe()}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reduce(Operation):
    """Reduction over axes."""

    name: ClassVar[str] = "reduce"
    op: str
    src: View
    dst: View
    axes: tuple[int, ...]
    keep: bool
    initial: float
    reciprocal: bool = False  # mean: multiply by 1 / count instead of dividing

    def problem(self) -> str | None:
        rank = len(self.src.shape)
        if len(set(self.axes)) != len(self.axes) or not all(0 <= a < rank for a in self.axes):
            return f"axes {list(self.axes)} of a tensor of rank {rank}"
        if any(n == 0 for n in self.src.shape):
            return "nothing to reduce"
        kept = [1 if i in self.axes else n for i, n in enumerate(self.src.shape)]
        if not self.keep:
            kept = [n for i, n in enumerate(self.src.shape) if i not in self.axes]
        return shape_problem(self.dst, tuple(kept))

    def run(self, memory: Memory) -> None:
        with np.errstate(all="ignore"):
            self.dst.of(memory)[...] = k.reduce(
                self.src.of(memory), self.op, self.axes, self.keep, self.initial, self.reciprocal
            )

    def describe(self) -> str:
        return f"{self.op} {super().describe()}, axes {list(self.axes)}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReduceWindow(Operation):
    """Pooling (mean, min, max, sum) of (N, C, H, W)."""

    name: ClassVar[str] = "reduce_window2d"
    op: str
    src: View
    dst: View
    window: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[k.Padding, k.Padding]
    initial: float
    clamp: tuple[float, float] = FULL

    @property
    def work(self) -> int:
        return (self.dst.count + self.src.count) * (math.prod(self.window) + 1)

    def problem(self) -> str | None:
        return window_problem(
            self.src,
            self.dst,
            self.src.shape[1:2],
            self.window,
            self.stride,
            self.dilation,
            self.pads,
        )

    def run(self, memory: Memory) -> None:
        with np.errstate(all="ignore"):
            self.dst.of(memory)[...] = k.reduce_window(
                self.src.of(memory),
                self.op,
                self.window,
                self.stride,
                self.dilation,
                self.pads,
                self.initial,
                self.clamp,
            )

    def describe(self) -> str:
        return f"{self.op} {super().describe()}, window {self.window} stride {self.stride}"


def window_problem(
    src: View,
    dst: View,
    channels: tuple[int, ...],
    window: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    pads: tuple[k.Padding, k.Padding],
) -> str | None:
    """Complaint about the window of a pooling or convolution."""
    if len(src.shape) != 4 or min(src.shape) < 1:
        return f"expected a map (N, C, H, W), found {src}"
    if min(*window, *stride, *dilation) < 1 or max(*window, *dilation) > WINDOW_MAX:
        return f"window {window}, stride {stride}, dilation {dilation}"
    if math.prod(window) > 1 << 16:
        return f"window {window} of more than 65536 pixels"
    if any(abs(n) > WINDOW_MAX for p in pads for n in p):
        return f"padding {pads}"
    sizes = [
        k.out_size(*args)
        for args in zip(src.shape[2:], window, stride, dilation, pads, strict=True)
    ]
    for n, (before, after) in zip(src.shape[2:], pads, strict=True):
        if max(0, -before) + max(0, -after) > n:
            return f"padding {pads} of {src}"
    if min(sizes) < 1:
        return f"window {window} does not fit {src}"
    grown = [n + max(0, b) + max(0, a) for n, (b, a) in zip(src.shape[2:], pads, strict=True)]
    if math.prod(src.shape[:2]) * math.prod(grown) > ELEMENTS_MAX:
        return f"padding {pads} makes {src} too large"
    return shape_problem(dst, (src.shape[0], *channels, *sizes))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resize(Operation):
    """Resized map, ``mode`` nearest or bilinear."""

    name: ClassVar[str] = "resize_image"
    src: View
    dst: View
    mode: str
    align: bool = False
    half: bool = False
    rounding: bool = False

    def problem(self) -> str | None:
        if len(self.src.shape) != 4 or min(self.src.shape) < 1 or min(self.dst.shape) < 1:
            return f"expected maps (N, C, H, W), found {self.src}, {self.dst}"
        return shape_problem(self.dst, (*self.src.shape[:2], *self.dst.shape[2:]))

    def run(self, memory: Memory) -> None:
        x, (oh, ow) = self.src.of(memory), self.dst.shape[2:]
        with np.errstate(all="ignore"):
            if self.mode == "nearest":
                out = k.resize_nearest(x, oh, ow, self.align, self.half)
            else:
                out = k.resize_bilinear(x, oh, ow, self.align, self.half, self.rounding)
        self.dst.of(memory)[...] = out

    def describe(self) -> str:
        return f"{self.mode} {super().describe()}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Softmax(Operation):
    """Softmax along one axis."""

    name: ClassVar[str] = "softmax"
    src: View
    dst: View
    axis: int
    beta: float = 1.0
    floor: float = -math.inf

    def problem(self) -> str | None:
        rank = len(self.src.shape)
        if not 0 <= self.axis < rank or self.src.count == 0:
            return f"axis {self.axis} of {self.src}"
        return same_shapes(self.src, self.dst)

    def run(self, memory: Memory) -> None:
        with np.errstate(all="ignore"):
            self.dst.of(memory)[...] = k.softmax_floats(
                self.src.of(memory), self.axis, self.beta, self.floor
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class L2Norm(Operation):
    """The whole vector divided by its length."""

    name: ClassVar[str] = "l2_normalization"
    src: View
    dst: View

    def problem(self) -> str | None:
        return same_shapes(self.src, self.dst)

    def run(self, memory: Memory) -> None:
        with np.errstate(all="ignore"):
            self.dst.of(memory)[...] = k.l2_normalise(self.src.of(memory))
