# SPDX-License-Identifier: Apache-2.0
"""The rarer ONNX operators: PRelu by channel, ConvTranspose, Resize, DepthToSpace,
SpaceToDepth, products of two computed tensors."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.form.graph import Host, Tensor
from openkpu.compiler.form.rarer import Deconv, Prelu, Product
from openkpu.compiler.onnx.file import RawNode
from openkpu.compiler.onnx.moves import moved_value
from openkpu.compiler.onnx.reader import Handler, OnnxReader
from openkpu.compiler.onnx.shared import (
    as_map,
    bias_steps,
    lined,
    onnx_written,
    scaled_value,
    two,
    weights_of,
)
from openkpu.compiler.onnx.values import Clamp, Const, Pending, Value, Weights

WINDOW = {"auto_pad": "NOTSET", "pads": None, "strides": None, "kernel_shape": None}
CONSTANT_FIRST = "a constant in front of a computed matrix, expected it behind: w x as (x' w')'"


def later(r: OnnxReader, node: RawNode, make: Callable[[Tensor, Clamp], None]) -> Callable:
    """``make`` under the name of its own node."""

    def named(y: Tensor, clamp: Clamp) -> None:
        at, r.at = r.at, node
        make(y, clamp)
        r.at = at

    return named


def whole(r: OnnxReader, y: Tensor, clamp: Clamp) -> None:
    """Refuse an activation behind a node that has no clamp."""
    if clamp != y.limits:
        raise r.refuse("an activation behind it, expected QuantizeLinear")


# ------------------------------------------------------------------------------ leaky ReLUs
def slopes_of(r: OnnxReader, node: RawNode, x: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """The slopes (C,) of axis 1."""
    value, count = r.value(node, 1), x[1] if len(x) > 1 else 1
    if isinstance(value, Const):
        data = np.asarray(value.data, np.float64)
    elif isinstance(value, Weights):
        data = value.real()
    else:
        raise r.refuse("slopes that are computed, expected constants")
    full = (1,) * (len(x) - data.ndim) + data.shape
    if len(full) != len(x) or any(n not in (1, count if i == 1 else 1) for i, n in enumerate(full)):
        wanted = (
            f"expected one, or one for each of {count} channels, {(count, *(1,) * (len(x) - 2))}"
        )
        raise r.refuse(f"slopes of shape {data.shape}, {wanted}")
    return np.broadcast_to(data.reshape(-1), count).copy()


def onnx_prelu(r: OnnxReader, node: RawNode) -> None:
    """PRelu with a slope for each channel."""
    r.attributes(node)
    x = r.operand(node, 0)
    slopes = slopes_of(r, node, x.shape)

    def make(y: Tensor, clamp: Clamp) -> None:
        whole(r, y, clamp)
        r.emit(Prelu, [x], y, slopes=slopes, axis=1)

    r.put(node, Pending(x.shape, later(r, node, make)))


# ------------------------------------------------------------------ transposed convolutions
class Transposed:
    """A transposed convolution whose output is still to come."""

    def __init__(self, r: OnnxReader, node: RawNode, x: Tensor, weights: Weights) -> None:
        fields = r.attributes(
            node,
            **WINDOW,  # pyright: ignore
            dilations=None,
            group=1,
            output_padding=None,
            output_shape=None,
        )
        shape = weights.data.shape
        if len(x.shape) not in (3, 4) or len(shape) != len(x.shape):
            raise r.refuse(f"input {x.shape}, weights {shape}: expected lines and columns, or one")
        if fields["kernel_shape"] is not None and tuple(fields["kernel_shape"]) != shape[2:]:
            raise r.refuse(f"kernel_shape {fields['kernel_shape']}, the weights are {shape}")
        signal, shape = len(shape) == 3, lined(shape)
        self.r, self.x, self.groups = r, as_map(r, x), int(fields["group"])
        c, each = shape[:2]
        if self.groups < 1 or c != self.x.shape[1] or c % self.groups:
            raise r.refuse(f"weights {shape} in {self.groups} groups do not fit input {x.shape}")
        self.strides = two(r, fields["strides"], "strides")
        self.dilation = two(r, fields["dilations"], "dilations")
        data = weights.data.reshape(self.groups, c // self.groups, *shape[1:])
        self.data = data.transpose(0, 2, 1, 3, 4).reshape(-1, c // self.groups, *shape[2:])
        outputs = each * self.groups
        one = weights_of(r, weights, 1, each)
        self.numbers = {k: np.tile(v, self.groups) for k, v in one.items()}
        self.pads, size = self._sizes(fields, (shape[2], shape[3]), signal)
        if min(size) < 1:
            raise r.refuse(f"an output of {size}, expected 1 or more")
        self.shape = (1, outputs, *(size[1:] if signal else size))

    def _sizes(
        self, fields: dict[str, Any], kernel: tuple[int, int], signal: bool
    ) -> tuple[tuple[int, int], tuple[int, int]]:
        """What is left out in front, and lines and columns of the output."""
        r, how = self.r, fields["auto_pad"]
        rest = self._pair(fields["output_padding"] or [0, 0], 0)
        asked = list(fields["output_shape"] or [])[-1 if signal else -2 :]
        outputs = self._pair(asked, 1) if asked else None
        pads = [0] * (2 if signal else 4) if fields["pads"] is None else list(fields["pads"])
        pads = [0, pads[0], 0, pads[1]] if signal and len(pads) == 2 else pads
        if len(pads) != 4 or min(pads) < 0:
            raise r.refuse(f"pads {pads}, expected four numbers of 0 or more")
        if how not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
            raise r.refuse(f"auto_pad {how}, expected NOTSET, VALID, SAME_UPPER or SAME_LOWER")
        tops, sizes = [], []
        for i, (n, s, k, d) in enumerate(
            zip(self.x.size, self.strides, kernel, self.dilation, strict=True)
        ):
            full = (n - 1) * s + (k - 1) * d + 1 + rest[i]
            top, bottom = (pads[i], pads[i + 2]) if how == "NOTSET" else (0, 0)
            if outputs or how.startswith("SAME"):
                total = max(full - (outputs[i] if outputs else n * s), 0)
                less = total // 2
                top = less if how == "SAME_UPPER" else total - less
                bottom = full - top - (outputs[i] if outputs else n * s)
            tops.append(top)
            sizes.append(full - top - bottom)
        return (tops[0], tops[1]), (sizes[0], sizes[1])

    def _pair(self, values: Sequence[int], front: int) -> tuple[int, int]:
        """Two numbers of an attribute; of a signal its one, behind ``front``."""
        found = [front, *values] if len(values) == 1 else list(values)
        if len(found) != 2 or min(found) < 0:
            raise self.r.refuse(f"sizes {found}, expected two numbers of 0 or more")
        return int(found[0]), int(found[1])

    @property
    def steps(self) -> npt.NDArray[np.float64]:
        """Input scale times weights' scales (O,)."""
        return self.numbers["w_scale"] * (self.x.scale or 0)

    def scaled(self, factor: npt.NDArray[np.float64]) -> Transposed:
        """The same with each channel times ``factor`` (O,)."""
        made = copy.copy(self)
        made.data, made.numbers = scaled_value(self.data, self.numbers, factor)
        return made

    def emit(self, bias: Weights | npt.NDArray | None, y: Tensor, clamp: Clamp) -> None:
        """Its node."""
        onnx_written(self.r, y, lambda into: self._emit(bias, into, clamp))

    def _emit(self, bias: Weights | npt.NDArray | None, y: Tensor, clamp: Clamp) -> None:
        self.r.emit(
            Deconv,
            *([self.x], y),
            weights=np.ascontiguousarray(self.data),
            **self.numbers,
            bias=bias_steps(self.r, bias, self.steps),
            clamp=clamp,
            strides=self.strides,
            pads=self.pads,
            dilation=self.dilation,
            groups=self.groups,
        )


# --------------------------------------------------------------------------------- resizing
def _places(size: int, outputs: int, scale: float, how: str) -> npt.NDArray[np.float32]:
    """Where each output lies between the pixels, in float32 as ONNX Runtime computes it."""
    at, half, s = np.arange(outputs, dtype=np.float32), np.float32(0.5), np.float32(scale)
    if how == "asymmetric":
        at = at / s
    elif how == "align_corners":
        at = at * np.float32(size - 1) / np.float32(max(outputs - 1, 1))
    elif how == "pytorch_half_pixel" and outputs == 1:
        at = at * 0
    elif how == "half_pixel_symmetric":
        share = np.float32(outputs) / (s * np.float32(size))
        middle = np.float32(size) / 2
        at = middle * (1 - share) + (at + half) / s - half
    else:
        at = (at + half) / s - half
    return at


def linear(size: int, outputs: int, scale: float, how: str) -> npt.NDArray[np.float64]:
    """(outputs, size): the shares of the two pixels that each output lies between."""
    at = np.clip(_places(size, outputs, scale, how).astype(np.float64), 0, size - 1)
    low, found = np.floor(at).astype(np.int64), np.zeros((outputs, size))
    every = np.arange(outputs)
    found[every, low] = 1 - (at - low)
    found[every, np.minimum(low + 1, size - 1)] += at - low
    return found


def nearest(size: int, outputs: int, scale: float, how: str, rounding: str) -> tuple[int, ...]:
    """The pixel that each output takes."""
    at, half = _places(size, outputs, scale, how), np.float32(0.5)
    rules = {
        "floor": np.floor,
        "ceil": np.ceil,
        "round_prefer_floor": lambda v: np.ceil(v - half),
        "round_prefer_ceil": lambda v: np.floor(v + half),
    }
    return tuple(int(n) for n in np.clip(rules[rounding](at), 0, size - 1))


COORDINATES = (
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"),
    *("asymmetric", "align_corners"),
)
ROUNDINGS = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


def resize(r: OnnxReader, node: RawNode) -> None:
    """Resize of lines and columns, modes nearest and linear."""
    fields = r.attributes(
        node,
        mode="nearest",
        nearest_mode="round_prefer_floor",
        coordinate_transformation_mode="half_pixel",
        antialias=0,
        axes=None,
        cubic_coeff_a=-0.75,
        exclude_outside=0,
        extrapolation_value=0.0,
        keep_aspect_ratio_policy="stretch",
    )
    how, rounding = fields["coordinate_transformation_mode"], fields["nearest_mode"]
    if fields["mode"] not in ("nearest", "linear"):
        raise r.refuse(f"mode {fields['mode']}, expected nearest or linear")
    if how not in COORDINATES or rounding not in ROUNDINGS:
        raise r.refuse(
            f"{how}, {rounding}, expected {', '.join(COORDINATES)}; {', '.join(ROUNDINGS)}"
        )
    if fields["keep_aspect_ratio_policy"] != "stretch":
        policy = fields["keep_aspect_ratio_policy"]
        raise r.refuse(f"keep_aspect_ratio_policy {policy}, expected stretch")
    sizes = r.has(node, 3) and r.constant(node, 3, "sizes").size > 0
    given = r.constant(node, 3, "sizes") if sizes else r.constant(node, 2, "scales")
    if fields["mode"] == "linear":
        if fields["antialias"]:
            raise r.refuse("antialias 1, expected 0")
        rounding = "linear"
    _resized(r, node, given.reshape(-1), bool(sizes), fields["axes"], (how, rounding))


def _resized(
    r: OnnxReader,
    node: RawNode,
    given: npt.NDArray,
    sizes: bool,
    axes: list[int] | None,
    how: tuple[str, str],
) -> None:
    value = r.value(node, 0)
    old = r.shape_of(value)
    rank = len(old)
    used = list(range(rank)) if axes is None else [a % rank for a in axes]
    if len(given) != len(used) or not np.isfinite(given).all() or (given <= 0).any():
        raise r.refuse(f"{len(given)} sizes or scales, expected {len(used)} above 0")
    places = [tuple(range(n)) for n in old]
    shares = [np.eye(n) for n in old[2:]]
    for axis, number in zip(used, given, strict=True):
        n = old[axis]
        outputs = int(number) if sizes else int(np.floor(np.float32(n) * np.float32(number)))
        scale = outputs / n if sizes else float(number)
        if not 1 <= outputs <= 1 << 14:
            raise r.refuse(f"{outputs} elements of axis {axis}, expected 1 to {1 << 14}")
        if (outputs != n or scale != 1) and how[1] == "linear":
            if rank != 4 or axis < 2:
                raise r.refuse(f"linear along axis {axis} of {old}, expected lines or columns")
            shares[axis - 2] = linear(n, outputs, scale, how[0])
        elif outputs != n or scale != 1:
            places[axis] = nearest(n, outputs, scale, *how)
    if how[1] == "linear" and rank == 4:
        fields = {"how": "linear", "lines": shares[0], "columns": shares[1]}
        on_host(r, node, (*old[:2], len(shares[0]), len(shares[1])), **fields)
        return
    shape = [len(p) for p in places]
    found = moved_value(r, value, shape, node.outputs[0], how="take", places=tuple(places))
    r.put(node, found)


def tile(r: OnnxReader, node: RawNode) -> None:
    """Tile: all elements several times along an axis."""
    r.attributes(node)
    value, times = r.value(node, 0), r.integers(node, 1, "repeats")
    old = r.shape_of(value)
    if len(times) != len(old) or min(times, default=1) < 1 or math.prod(times) > 1 << 14:
        raise r.refuse(f"repeats {times}, expected {len(old)} of 1 or more")
    places = tuple(tuple(range(n)) * m for n, m in zip(old, times, strict=True))
    shape = [len(p) for p in places]
    r.put(node, moved_value(r, value, shape, node.outputs[0], how="take", places=places))


# --------------------------------------------------------------------------- blocks of pixels
def depth_to_space(r: OnnxReader, node: RawNode) -> None:
    """DepthToSpace, both orders of its channels."""
    fields = r.attributes(node, blocksize=0, mode="DCR")
    value, b = r.value(node, 0), int(fields["blocksize"])
    shape = r.shape_of(value)
    if len(shape) != 4 or b < 1 or shape[1] % (b * b):
        raise r.refuse(f"blocksize {b}, the input is {shape}")
    _, c, h, w = shape
    each = c // (b * b)
    if fields["mode"] == "DCR":
        first, axes = (b, b, each, h, w), (2, 3, 0, 4, 1)
    elif fields["mode"] == "CRD":
        first, axes = (each, b, b, h, w), (0, 3, 1, 4, 2)
    else:
        raise r.refuse(f"mode {fields['mode']}, expected DCR or CRD")
    _through(r, node, value, first, axes, (1, each, h * b, w * b))


def space_to_depth(r: OnnxReader, node: RawNode) -> None:
    """SpaceToDepth."""
    value, b = r.value(node, 0), int(r.attributes(node, blocksize=0)["blocksize"])
    shape = r.shape_of(value)
    if len(shape) != 4 or b < 1 or shape[2] % b or shape[3] % b:
        raise r.refuse(f"blocksize {b}, the input is {shape}")
    _, c, h, w = shape
    first = c, h // b, b, w // b, b
    _through(r, node, value, first, (2, 4, 0, 1, 3), (1, c * b * b, h // b, w // b))


def _through(
    r: OnnxReader,
    node: RawNode,
    value: Value,
    first: tuple[int, ...],
    axes: tuple[int, ...],
    last: tuple[int, ...],
) -> None:
    name = node.outputs[0]
    label = f"{name}/blocks"
    found = moved_value(r, value, first, label, how="reshape")
    found = moved_value(r, found, [first[a] for a in axes], label, how="transpose", axes=axes)
    r.put(node, moved_value(r, found, last, name, how="reshape"))


# --------------------------------------------------------------------------------- products
def product_shape(r: OnnxReader, a: Tensor, b: Tensor) -> tuple[int, ...]:
    """The shape of a matrix product."""
    x, y = a.shape, b.shape
    try:
        if len(x) < 2 or len(y) < 2 or x[-1] != y[-2]:
            raise ValueError
        return (*np.broadcast_shapes(x[:-2], y[:-2]), x[-2], y[-1])
    except ValueError:
        raise r.refuse(f"matrices {x} and {y} do not go together") from None


def emit_product(r: OnnxReader, a: Tensor, b: Tensor, y: Tensor, clamp: Clamp) -> None:
    """A node of two computed tensors."""
    r.emit(Product, [a, b], y, clamp=clamp)


def onnx_product(r: OnnxReader, node: RawNode) -> None:
    """MatMul of two computed tensors."""
    if isinstance(r.value(node, 0), (Const, Weights)):
        raise r.refuse(CONSTANT_FIRST)
    a, b = r.operand(node, 0), r.operand(node, 1)
    shape = product_shape(r, a, b)
    make = later(r, node, lambda y, clamp: emit_product(r, a, b, y, clamp))
    r.put(node, Pending(shape, make))


# ------------------------------------------------------------------------- on the processor
def on_host(r: OnnxReader, node: RawNode, shape: tuple[int, ...], **fields: Any) -> None:
    """A node of the processor; its result may be float."""
    emit = functools.partial(r.emit, Host, [r.operand(node, 0)], **fields)

    def make(y: Tensor, clamp: Clamp) -> None:
        whole(r, y, clamp)
        emit(y)

    r.put(node, Pending(shape, later(r, node, make), floats=emit))


HANDLERS: dict[str, Handler] = {
    "Resize": resize,
    "Tile": tile,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
}
