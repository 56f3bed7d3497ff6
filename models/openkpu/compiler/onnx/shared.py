# SPDX-License-Identifier: Apache-2.0
"""What both forms of ONNX's convolutions, products and pools have in common."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div
from openkpu.compiler.form.graph import OF_WEIGHTS, Conv, Dense, Move, Pool, Tensor, window_size
from openkpu.compiler.onnx.file import RawNode
from openkpu.compiler.onnx.reader import NEAR, OnnxReader
from openkpu.compiler.onnx.values import Clamp, Floats, Pending, Weights

Pads = tuple[int, int, int, int]
WINDOW = {"auto_pad": "NOTSET", "pads": None, "strides": None, "kernel_shape": None}


def as_map(r: OnnxReader, x: Tensor) -> Tensor:
    """A signal (1, C, L) as a map of one line (1, C, 1, L); maps as they are."""
    if x.shape[0] != 1:
        raise r.refuse(f"a batch of {x.shape[0]}, expected 1")
    if len(x.shape) != 3:
        return x
    y = r.between(x, lined(x.shape), x.name)
    r.emit(Move, [x], y, how="reshape")
    return y


def lined(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a signal as that of a map."""
    return (*shape[:2], 1, *shape[2:]) if len(shape) == 3 else shape


def onnx_written(r: OnnxReader, y: Tensor, emit: Callable[[Tensor], None]) -> None:
    """``emit`` writes a map; a signal is made of it."""
    if len(y.shape) != 3:
        emit(y)
        return
    middle = r.between(y, lined(y.shape), y.name)
    emit(middle)
    r.emit(Move, [middle], y, how="reshape")


def two(r: OnnxReader, values: Sequence[int] | None, what: str) -> tuple[int, int]:
    """An attribute of two numbers, or of one of a signal; 1 where it is left out."""
    values = [1, 1] if values is None else list(values)
    values = [1, *values] if len(values) == 1 else values
    if len(values) != 2 or min(values) < 1:
        raise r.refuse(f"{what} {values}, expected two numbers of 1 or more")
    return int(values[0]), int(values[1])


def pads_of(
    r: OnnxReader,
    fields: dict[str, Any],
    size: tuple[int, ...],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilation: tuple[int, int] = (1, 1),
) -> Pads:
    """Top, left, bottom, right of ``auto_pad`` or ``pads``."""
    how = fields["auto_pad"]
    if how == "NOTSET":
        pads = [0, 0, 0, 0] if fields["pads"] is None else [int(n) for n in fields["pads"]]
        pads = [0, pads[0], 0, pads[1]] if len(pads) == 2 else pads
        if len(pads) != 4 or min(pads) < 0:
            raise r.refuse(f"pads {pads}, expected four numbers of 0 or more")
        return pads[0], pads[1], pads[2], pads[3]
    if how == "VALID":
        return 0, 0, 0, 0
    if how not in ("SAME_UPPER", "SAME_LOWER"):
        raise r.refuse(f"auto_pad {how}, expected NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    ends = [padded_ends(*axis, how) for axis in zip(size, kernel, strides, dilation, strict=True)]
    return ends[0][0], ends[1][0], ends[0][1], ends[1][1]


def padded_ends(size: int, kernel: int, stride: int, dilation: int, how: str) -> tuple[int, int]:
    """Padding in front and behind along an axis: the larger half behind for SAME_UPPER."""
    total = max((ceil_div(size, stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    less = total // 2
    return (less, total - less) if how == "SAME_UPPER" else (total - less, less)


def weights_of(r: OnnxReader, weights: Weights, axis: int, count: int) -> dict[str, Any]:
    """``w_scale`` and ``w_zero`` (O,) of weights whose outputs are along ``axis``."""
    if weights.dtype not in OF_WEIGHTS:
        raise r.refuse(f"weights of {weights.dtype}, expected int8, uint8, int16 or uint16")
    if weights.scale.size > 1 and weights.axis % weights.data.ndim != axis:
        raise r.refuse(f"weights have their scales along axis {weights.axis}, expected {axis}")
    scale, zero = (np.broadcast_to(v, count).copy() for v in (weights.scale, weights.zero))
    return {"w_scale": scale, "w_zero": zero}


def bias_steps(
    r: OnnxReader, bias: Weights | npt.NDArray | None, steps: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Biases (O,) in ``steps`` of input scale times weights' scale.

    Integers of int32 in these steps stay; others, and floats, are rounded to them.
    """
    r.rest = None
    if bias is None:
        return np.zeros(steps.size, np.int64)
    shape = (bias.data if isinstance(bias, Weights) else np.asarray(bias)).shape
    if math.prod(shape) not in (1, steps.size) or math.prod(shape[:-1]) > 1:
        raise r.refuse(f"bias of shape {shape}, expected ({steps.size},), a number a channel")
    if isinstance(bias, Weights):
        scale = np.broadcast_to(bias.scale, bias.data.size)
        fits = bias.data.size == steps.size and not bias.zero.any()
        if fits and (np.abs(scale / steps - 1) < NEAR).all():
            return bias.data.reshape(-1)
        bias = bias.real()
    real = np.broadcast_to(np.asarray(bias, np.float64).reshape(-1), steps.size)
    found = np.rint(real / steps)
    if np.abs(found).max(initial=0) >= 1 << 31:
        raise r.refuse("a bias beyond 32 bits in steps of the input's scale times the weights'")
    r.rest = real / steps - found
    return found.astype(np.int64)


def scaled_value(
    data: npt.NDArray[np.int64], numbers: dict[str, Any], factor: Floats
) -> tuple[npt.NDArray[np.int64], dict[str, Any]]:
    """(weights (O, ...), ``w_scale`` and ``w_zero``) times a factor for each output channel.

    Its size goes into the scale; its sign turns the weights around their zero point, and with a
    factor of 0 each weight is the zero point.
    """
    zero = numbers["w_zero"].reshape(-1, *[1] * (data.ndim - 1))
    sign = np.sign(factor).astype(np.int64).reshape(zero.shape)
    size = np.where(factor == 0, 1.0, np.abs(factor))
    return zero + sign * (data - zero), {**numbers, "w_scale": numbers["w_scale"] * size}


class Made(Protocol):
    """A node whose output is still to come: weights, and a bias that may come."""

    shape: tuple[int, ...]

    def scaled(self, factor: Floats) -> Made: ...
    def emit(self, bias: Weights | npt.NDArray | None, y: Tensor, clamp: Clamp) -> None: ...


class Convolution:
    """A convolution whose output is still to come."""

    def __init__(self, r: OnnxReader, node: RawNode, x: Tensor, weights: Weights) -> None:
        fields = r.attributes(node, **WINDOW, dilations=None, group=1)  # pyright: ignore
        shape = weights.data.shape
        if len(x.shape) not in (3, 4) or len(shape) != len(x.shape):
            raise r.refuse(f"input {x.shape}, weights {shape}: expected lines and columns, or one")
        if fields["kernel_shape"] is not None and tuple(fields["kernel_shape"]) != shape[2:]:
            raise r.refuse(f"kernel_shape {fields['kernel_shape']}, the weights are {shape}")
        signal, shape = len(shape) == 3, lined(shape)
        weights = dataclasses.replace(weights, data=weights.data.reshape(shape))
        kernel, x = (shape[2], shape[3]), as_map(r, x)
        self.strides = two(r, fields["strides"], "strides")
        self.dilation = two(r, fields["dilations"], "dilations")
        self.pads = pads_of(r, fields, x.shape[2:], kernel, self.strides, self.dilation)
        self.groups = int(fields["group"])
        if self.groups < 1 or shape[1] * self.groups != x.shape[1] or shape[0] % self.groups:
            raise r.refuse(f"weights {shape} in {self.groups} groups do not fit input {x.shape}")
        self.r, self.x, self.weights = r, x, weights
        self.numbers = weights_of(r, weights, 0, shape[0])
        size = window_size(x.size, kernel, self.strides, self.pads, self.dilation)
        if min(size) < 1:
            raise r.refuse(f"weights {shape} are larger than the padded input {x.shape}")
        self.shape = (1, shape[0], *(size[1:] if signal else size))

    @property
    def steps(self) -> npt.NDArray[np.float64]:
        """Input scale times weights' scales (O,)."""
        return self.numbers["w_scale"] * (self.x.scale or 0)

    def scaled(self, factor: Floats) -> Convolution:
        """The same with each channel times ``factor`` (O,)."""
        made = copy.copy(self)
        data, made.numbers = scaled_value(self.weights.data, self.numbers, factor)
        made.weights = dataclasses.replace(self.weights, data=data)
        return made

    def emit(self, bias: Weights | npt.NDArray | None, y: Tensor, clamp: Clamp) -> None:
        """Its node."""
        onnx_written(self.r, y, lambda into: self._emit(bias, into, clamp))

    def _emit(self, bias: Weights | npt.NDArray | None, y: Tensor, clamp: Clamp) -> None:
        self.r.emit(
            Conv,
            *([self.x], y),
            weights=self.weights.data,
            **self.numbers,
            bias=bias_steps(self.r, bias, self.steps),
            clamp=clamp,
            strides=self.strides,
            pads=self.pads,
            dilation=self.dilation,
            groups=self.groups,
        )


class PendingProduct:
    """A fully connected node whose output is still to come: x (..., K), weights (K, O) or, turned,
    (O, K)."""

    def __init__(self, r: OnnxReader, x: Tensor, weights: Weights, turned: bool) -> None:
        shape = weights.data.shape
        if len(shape) != 2 or not x.shape:
            raise r.refuse(f"input {x.shape}, weights {shape}: expected weights of two axes")
        inner, outer = shape[::-1] if turned else shape
        if x.shape[-1] != inner:
            raise r.refuse(f"weights {shape} do not fit input {x.shape}")
        self.r, self.x = r, x
        self.numbers = weights_of(r, weights, 0 if turned else 1, outer)
        self.data = np.ascontiguousarray(weights.data if turned else weights.data.T)
        self.shape = (*x.shape[:-1], outer)

    @property
    def steps(self) -> npt.NDArray[np.float64]:
        """Input scale times weights' scales (O,)."""
        return self.numbers["w_scale"] * (self.x.scale or 0)

    def scaled(self, factor: Floats) -> PendingProduct:
        """The same with each channel times ``factor`` (O,)."""
        made = copy.copy(self)
        made.data, made.numbers = scaled_value(self.data, self.numbers, factor)
        return made

    def emit(self, bias: Weights | npt.NDArray | None, y: Tensor, clamp: Clamp) -> None:
        """Its node."""
        steps = bias_steps(self.r, bias, self.steps)
        self.r.emit(Dense, [self.x], y, weights=self.data, **self.numbers, bias=steps, clamp=clamp)


class PendingPool:
    """A pool whose output is still to come; ``whole``: over the whole map."""

    def __init__(self, r: OnnxReader, node: RawNode, x_shape: tuple[int, ...], how: str) -> None:
        if len(x_shape) not in (3, 4):
            raise r.refuse(f"input {x_shape}, expected lines and columns, or one of them")
        signal, x_shape = len(x_shape) == 3, lined(x_shape)
        self.r, self.how, self.count = r, how, False
        if node.operator.removeprefix("QLinear").startswith("Global"):
            fields = r.attributes(node, channels_last=0)
            self.kernel, self.strides = (x_shape[2], x_shape[3]), (1, 1)
            self.pads: Pads = (0, 0, 0, 0)
        else:
            fields = r.attributes(
                node,
                **WINDOW,  # pyright: ignore
                ceil_mode=0,
                count_include_pad=0,
                dilations=None,
                storage_order=0,
                channels_last=0,
            )
            self.kernel = two(r, fields["kernel_shape"], "kernel_shape")
            self.strides = two(r, fields["strides"], "strides")
            if two(r, fields["dilations"], "dilations") != (1, 1):
                raise r.refuse(f"dilations {fields['dilations']}, expected none in a pool")
            self.pads = pads_of(r, fields, x_shape[2:], self.kernel, self.strides)
            self.count = bool(fields["count_include_pad"]) and any(self.pads)
            if fields["ceil_mode"] and fields["auto_pad"] == "NOTSET":
                self._ceil(x_shape[2:])
        if fields["channels_last"]:
            raise r.refuse("channels_last, expected (N, C, H, W)")
        size = window_size((x_shape[2], x_shape[3]), self.kernel, self.strides, self.pads)
        if min(size) < 1:
            raise r.refuse(f"kernel_shape {self.kernel} is larger than the padded input {x_shape}")
        self.shape = (1, x_shape[1], *(size[1:] if signal else size))

    def _ceil(self, size: tuple[int, ...]) -> None:
        """ceil_mode: a last window that begins inside the map, or in the padding before it."""
        pads = list(self.pads)
        for i, (n, k, s) in enumerate(zip(size, self.kernel, self.strides, strict=True)):
            whole = n + pads[i] + pads[i + 2]
            over = -(whole - k) % s
            begins = whole - k + over  # of the last window, in the padded map
            if over and begins < n + pads[i]:
                if self.count:
                    raise self.r.refuse("ceil_mode with count_include_pad, expected one of them")
                pads[i + 2] += over
        self.pads = pads[0], pads[1], pads[2], pads[3]

    def emit(self, x: Tensor, y: Tensor, clamp: Clamp) -> None:
        """Its node."""
        x = as_map(self.r, x)
        onnx_written(self.r, y, lambda into: self._emit(x, into, clamp))

    def _emit(self, x: Tensor, y: Tensor, clamp: Clamp) -> None:
        self.r.emit(
            Pool,
            *([x], y),
            how=self.how,
            kernel=self.kernel,
            strides=self.strides,
            pads=self.pads,
            clamp=clamp,
            count_pads=self.count,
        )


def waiting(
    r: OnnxReader, made: Made, bias: Weights | npt.NDArray | None, channels: int
) -> Pending:
    """A convolution or product, and a bias that may come from an Add behind it."""
    node = r.at

    def make(y: Tensor, clamp: Clamp) -> None:
        at, r.at = r.at, node
        made.emit(bias, y, clamp)
        r.at = at

    def biased(values: npt.NDArray[np.float64]) -> Pending:
        return waiting(r, made, values, channels)

    def scaled(factor: Floats, shift: Floats) -> Pending:
        real = 0.0 if bias is None else bias.real() if isinstance(bias, Weights) else bias
        total = np.broadcast_to(np.reshape(real, -1) * factor + shift, factor.shape)
        return waiting(r, made.scaled(factor), total, channels)

    later = biased if bias is None else None
    return Pending(made.shape, make, biased=later, channels=channels, scaled=scaled)
