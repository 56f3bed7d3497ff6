# SPDX-License-Identifier: Apache-2.0
"""ONNX operators along axes (docs/compiler.md 2): reductions over any of them, and what normalises,
computed on the processor.

Of a reduction, lines and columns of a map are one window of it. For other axes the elements are put
in another order: what is kept becomes channels, and what goes a map of each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import largest_divisor
from openkpu.compiler.form.graph import LONGEST, QUANTISED, Conv, Host, Move, Pool, Tensor
from openkpu.compiler.onnx.file import RawNode
from openkpu.compiler.onnx.moves import apart
from openkpu.compiler.onnx.rarer import later, on_host, whole
from openkpu.compiler.onnx.reader import Handler, OnnxReader
from openkpu.compiler.onnx.values import Bytes, Clamp, Curve, Pending, Weights

LEAST_LENGTH = 1e-6  # of a vector that is divided by it; ONNX does not say
Floats = npt.NDArray[np.float64]


def lp_normalization(r: OnnxReader, node: RawNode) -> None:
    """Vectors by their lengths."""
    fields = r.attributes(node, axis=-1, p=2)
    shape = r.operand(node, 0).shape
    if fields["p"] != 2 or not -len(shape) <= fields["axis"] < len(shape):
        raise r.refuse(f"p {fields['p']}, axis {fields['axis']} of {shape}, expected p 2, an axis")
    axis = fields["axis"] % len(shape)
    on_host(r, node, shape, how="l2norm", axis=axis, epsilon=LEAST_LENGTH)


def layer_normalization(r: OnnxReader, node: RawNode) -> None:
    """LayerNormalization of the last axes, on the host in float64."""
    if any(node.outputs[1:]):
        raise r.refuse("mean and deviation are outputs, expected the values only")
    fields = r.attributes(node, axis=-1, epsilon=1e-5, stash_type=1)
    shape = r.operand(node, 0).shape
    rank = len(shape)
    if not -rank <= fields["axis"] < rank:
        raise r.refuse(f"axis {fields['axis']}, expected one of {rank}")
    axis = fields["axis"] % rank
    gain, offset = (
        _real(r, node, at, what, shape[axis:]) if r.has(node, at) else None
        for at, what in ((1, "scale"), (2, "bias"))
    )
    _normalised(r, node, shape, axis=axis, epsilon=fields["epsilon"], gain=gain, offset=offset)


def instance_normalization(r: OnnxReader, node: RawNode) -> None:
    """InstanceNormalization: each map of a channel, on the host in float64."""
    fields = r.attributes(node, epsilon=1e-5)
    shape = _channels_first(r, node)
    _of_groups(r, node, shape, shape[1], float(fields["epsilon"]))


def group_normalization(r: OnnxReader, node: RawNode) -> None:
    """GroupNormalization: the maps of each group of channels, on the host in float64."""
    fields = r.attributes(node, epsilon=1e-5, num_groups=0, stash_type=1)
    shape = _channels_first(r, node)
    groups = int(fields["num_groups"])
    if groups < 1 or shape[1] % groups:
        raise r.refuse(f"num_groups {groups}, expected a divisor of {shape[1]} channels")
    _of_groups(r, node, shape, groups, float(fields["epsilon"]))


def _channels_first(r: OnnxReader, node: RawNode) -> tuple[int, ...]:
    shape = r.operand(node, 0).shape
    if len(shape) < 3:
        raise r.refuse(f"input of shape {shape}, expected batch, channels and pixels")
    return shape


def _of_groups(
    r: OnnxReader, node: RawNode, shape: tuple[int, ...], groups: int, epsilon: float
) -> None:
    """Channels in groups as an axis of their own, for that time only."""
    count, pixels = shape[1], shape[2:]
    apart = (shape[0], groups, *((count // groups,) if groups < count else ()), *pixels)

    each = (*apart[1 : len(apart) - len(pixels)], *[1] * len(pixels))
    gain, offset = (
        _real(r, node, at, what, (count,)).reshape(each) for at, what in ((1, "scale"), (2, "bias"))
    )
    _normalised(r, node, apart, axis=2, epsilon=epsilon, gain=gain, offset=offset)


def _normalised(r: OnnxReader, node: RawNode, seen: Sequence[int], **fields: Any) -> None:
    """A node of the host over axes of the input in shape ``seen``."""
    x, name = r.operand(node, 0), node.outputs[0]
    seen = tuple(seen)

    def make(y: Tensor, clamp: Clamp) -> None:
        whole(r, y, clamp)
        inner, outer = x, y
        if seen != x.shape:
            inner, outer = (r.between(t, seen, f"{name}/groups") for t in (x, y))
            r.emit(Move, [x], inner, how="reshape")
        r.emit(Host, [inner], outer, how="layernorm", **fields)
        if seen != x.shape:
            r.emit(Move, [outer], y, how="reshape")

    r.put(node, Pending(x.shape, later(r, node, make)))


def _real(r: OnnxReader, node: RawNode, at: int, what: str, shape: tuple[int, ...]) -> Floats:
    value = r.value(node, at)
    data = value.real() if isinstance(value, Weights) else r.constant(node, at, what)
    try:
        return np.broadcast_to(np.asarray(data, np.float64), shape).copy()
    except ValueError:
        raise r.refuse(f"{what} {data.shape}, expected {shape}") from None


def reduction(how: str) -> Handler:
    """``how``: average, max or sum."""

    def handler(r: OnnxReader, node: RawNode) -> None:
        fields = r.attributes(node, axes=None, keepdims=1, noop_with_empty_axes=0)
        value = r.value(node, 0)
        shape = r.shape_of(value)
        rank = len(shape)
        axes = r.integers(node, 1, "axes") if r.has(node, 1) else fields["axes"]
        if not axes and fields["noop_with_empty_axes"]:
            r.put(node, value)
            return
        if not all(-rank <= a < rank for a in axes or ()):
            raise r.refuse(f"over axes {list(axes)} of {shape}, expected some of {rank}")
        gone = {a % rank for a in axes or range(rank)}
        if 0 in gone and r.file.batch > 1:
            raise apart(r)
        out = [1 if i in gone else n for i, n in enumerate(shape)]
        if not fields["keepdims"]:
            out = [n for i, n in enumerate(out) if i not in gone]
        raw = isinstance(value, Bytes) and value.tensor.dtype in QUANTISED
        if raw and how != "max":
            raise r.refuse(f"its input {node.inputs[0]!r} is of bytes, expected float")
        x = value.tensor if isinstance(value, Bytes) and raw else r.operand(node, 0)
        if how == "max":  # bytes of the input
            y = r.between(x, out, node.outputs[0])
            _reduce(r, how, x, gone, y, y.limits)
            r.put(node, Bytes(y) if raw else Curve(y))
            return
        make = later(r, node, lambda y, clamp: _reduce(r, how, x, gone, y, clamp))
        r.put(node, Pending(tuple(out), make))

    return handler


def _reduce(r: OnnxReader, how: str, x: Tensor, gone: set[int], y: Tensor, clamp: Clamp) -> None:
    """The nodes that make ``y`` of ``x`` without the axes ``gone``."""
    label, rank = y.name, len(x.shape)
    if rank == 4 and {i for i in gone if x.shape[i] > 1} <= {2, 3}:
        kernel = tuple(x.shape[i] if i in gone else 1 for i in (2, 3))
    else:
        order = [*(i for i in range(rank) if i not in gone), *sorted(gone)]
        if order != list(range(rank)):
            turned = r.between(x, [x.shape[i] for i in order], label)
            r.emit(Move, [x], turned, how="transpose", axes=tuple(order))
            x = turned
        length = math.prod(x.shape[rank - len(gone) :])
        wide = largest_divisor(length, LONGEST)
        kernel = (length // wide, wide)
        lines = r.between(x, (1, math.prod(x.shape) // length, *kernel), label)
        r.emit(Move, [x], lines, how="reshape")
        x = lines
    _, c, h, w = x.shape
    found = (1, c, h // kernel[0], w // kernel[1])
    into = y if y.shape == found else r.between(y, found, label)
    fields: dict[str, Any] = {"kernel": kernel, "how": how}
    if how == "sum":
        none = np.zeros(c, np.int64)
        fields = {"weights": np.ones((c, 1, *kernel), np.int64), "w_scale": np.ones(c)}
        fields |= {"w_zero": none, "bias": none, "groups": c}
    r.emit(Conv if how == "sum" else Pool, [x], into, strides=kernel, clamp=clamp, **fields)
    if into is not y:
        r.emit(Move, [into], y, how="reshape")


HANDLERS: dict[str, Handler] = {
    "GroupNormalization": group_normalization,
    "InstanceNormalization": instance_normalization,
    "LayerNormalization": layer_normalization,
    "LpNormalization": lp_normalization,
    "ReduceMax": reduction("max"),
    "ReduceMean": reduction("average"),
    "ReduceSum": reduction("sum"),
}
