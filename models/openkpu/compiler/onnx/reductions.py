# SPDX-License-Identifier: Apache-2.0
"""ONNX reductions over any axes: ReduceMean, ReduceMax and ReduceSum (docs/compiler.md 2).

Lines and columns of a map are one window of it.  For other axes the elements are put in another
order: what is kept becomes channels, and what goes a map of each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from openkpu.arithmetic.integers import largest_divisor
from openkpu.compiler.form.graph import LONGEST, QUANTISED, Conv, Move, Pool, Tensor
from openkpu.compiler.onnx.file import RawNode
from openkpu.compiler.onnx.moves import apart
from openkpu.compiler.onnx.rarer import later
from openkpu.compiler.onnx.reader import Handler, OnnxReader
from openkpu.compiler.onnx.values import Bytes, Clamp, Curve, Pending

Shape = tuple[int, ...]


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
    "ReduceMax": reduction("max"),
    "ReduceMean": reduction("average"),
    "ReduceSum": reduction("sum"),
}
