# SPDX-License-Identifier: Apache-2.0
"""Every node of a graph computed exactly, from the definitions of docs/compiler.md alone.

Sums are integers, scales are exact fractions, and each node rounds once.  The module is independent
of the device: lowerings are compared with it.  ``TWO`` replaces the one rounding of convolutions,
fully connected nodes, sums and products by the two that TFLite's reference kernels make, and of
averages by its halves away from zero, so that differences to that runtime can be explained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import rarer_rules
from openkpu.compiler.form import rounding as two
from openkpu.compiler.form.exact import ROOM, half_up, nearest_even, scaled_once
from openkpu.compiler.form.graph import (
    OF_TWO,
    Conv,
    Dense,
    Elementwise,
    Graph,
    Host,
    Move,
    Node,
    Pool,
    Table,
    Tensor,
)

ONE, TWO = "one", "two"
Array = npt.NDArray


def evaluate(
    graph: Graph, inputs: Mapping[str, Array], rounding: str = ONE, until: str | None = None
) -> dict[str, Array]:
    """All tensors by name, int64 (floats: float32), in the order of axes of the graph.

    ``inputs``: integers, or floats of float inputs, by the name and in the shape of the graph's
    inputs.  ``until``: a tensor behind which nothing needs to be computed.  CompileError for inputs
    of another shape.
    """
    values: dict[str, Array] = {
        t.name: held(t.data, t) for t in graph.tensors.values() if t.data is not None
    }
    for name in graph.inputs:
        tensor = graph.tensors[name]
        found = np.asarray(inputs[name])
        if found.shape != tensor.shape:
            raise CompileError(f"input {name!r}: {found.shape}, expected {tensor.shape}")
        values[name] = held(found, tensor)
    for node in graph.nodes:
        x = [values[name] for name in node.inputs]
        values[node.outputs[0]] = compute(graph, node, x, rounding)
        if until in node.outputs:
            break
    return values


def compute(graph: Graph, node: Node, x: list[Array], rounding: str = ONE) -> Array:
    """The output of one node from its inputs' values."""
    inputs, (output,) = graph.of(node.inputs), graph.of(node.outputs)
    if type(node) in rarer_rules.RULES:
        return rarer_rules.RULES[type(node)](node, inputs, output, x, rounding == TWO)
    rule = RULES[type(node)]
    return rule(node, inputs, output, x, rounding)


def held(values: Array, tensor: Tensor) -> Array:
    """Values of a tensor as rules take them: int64, or float32."""
    return np.asarray(values, dtype=np.float32 if tensor.dtype == "float32" else np.int64)


def _limited(values: Array, output: Tensor, clamp: tuple[int, int]) -> Array:
    return np.clip(values + output.zero, *clamp)


# -------------------------------------------------------------------------- rules
def _conv_sums(node: Conv, x: Array, zero: int) -> Array:
    """(O, oh, ow) sums of products and biases, the products without their zero points."""
    (_, c, height, width), (o, inner, kh, kw) = x.shape, node.weights.shape
    top, left, bottom, right = node.pads
    oh, ow = node.out_size(height, width)
    padded = np.zeros((c, height + top + bottom, width + left + right), dtype=np.int64)
    padded[:, top : top + height, left : left + width] = x[0] - zero
    weights = node.weights - node.w_zero[:, None, None, None]
    sums = np.zeros((o, oh, ow), dtype=np.int64)
    (sy, sx), (dy, dx), each = node.strides, node.dilation, o // node.groups
    for ky in range(kh):
        for kx in range(kw):
            y0, x0 = ky * dy, kx * dx
            part = padded[:, y0 : y0 + (oh - 1) * sy + 1 : sy, x0 : x0 + (ow - 1) * sx + 1 : sx]
            taps = weights[:, :, ky, kx].reshape(node.groups, each, inner)
            groups = part.reshape(node.groups, inner, -1)
            # products are below 2^16, so float64 sums of up to 2^37 of them are exact
            products = np.matmul(taps.astype(np.float64), groups.astype(np.float64))
            sums += products.astype(np.int64).reshape(o, oh, ow)
    return sums + node.bias[:, None, None]


def _requantised(
    sums: Array, node: Conv | Dense, x: Tensor, y: Tensor, axis: int, rounding: str
) -> Array:
    """Sums with their channel at ``axis`` in the output's integers, the clamp still to come."""
    lines = np.moveaxis(sums, axis, 0)
    found = np.empty(lines.shape, dtype=np.int64)
    for o, line in enumerate(lines):
        factor = x.exact * Fraction(float(node.w_scale[o])) / y.exact
        if rounding == TWO:
            found[o] = two.multiply(line, two.double_of(x.step, node.w_scale[o], y.step))
        else:
            found[o] = scaled_once(line, factor)
    return np.moveaxis(found, 0, axis)


def _conv(node: Conv, inputs: list[Tensor], y: Tensor, x: list[Array], rounding: str) -> Array:
    sums = _conv_sums(node, x[0], inputs[0].zero)
    found = _requantised(sums, node, inputs[0], y, 0, rounding)
    return _limited(found[None], y, node.clamp)


def _dense(node: Dense, inputs: list[Tensor], y: Tensor, x: list[Array], rounding: str) -> Array:
    weights = node.weights - node.w_zero[:, None]
    sums = (x[0] - inputs[0].zero) @ weights.T + node.bias
    found = _requantised(sums, node, inputs[0], y, sums.ndim - 1, rounding)
    return _limited(found, y, node.clamp)


def _pool(node: Pool, inputs: list[Tensor], y: Tensor, x: list[Array], rounding: str) -> Array:
    (source,), values = inputs, x[0][0]
    (kh, kw), (sy, sx), (top, left, _, _) = node.kernel, node.strides, node.pads
    c, height, width = values.shape
    oh, ow = node.out_size(height, width)
    found = np.empty((1, c, oh, ow), dtype=np.int64)
    factor = source.exact / y.exact
    for i in range(oh):
        for j in range(ow):
            y0, x0 = i * sy - top, j * sx - left
            part = values[:, max(y0, 0) : y0 + kh, max(x0, 0) : x0 + kw].reshape(c, -1)
            if node.how == "max":
                found[0, :, i, j] = scaled_once(part.max(axis=1) - source.zero, factor)
                continue
            count = kh * kw if node.count_pads else part.shape[1]
            sums = (part - source.zero).sum(axis=1)
            if rounding == TWO and factor == 1 and not node.count_pads:
                whole = two.average(part.sum(axis=1), count)
                found[0, :, i, j] = whole - source.zero
            else:
                found[0, :, i, j] = half_up(sums, factor / count)
    return _limited(found, y, node.clamp)


def _elementwise(
    node: Elementwise, inputs: list[Tensor], y: Tensor, x: list[Array], rounding: str
) -> Array:
    a, b = (v - t.zero for v, t in zip(x, inputs, strict=True))
    a, b = np.broadcast_arrays(a, b)
    if node.how == "mul":
        factor = inputs[0].exact * inputs[1].exact / y.exact
        if rounding == TWO:
            whole = two.double_of(inputs[0].step, inputs[1].step, y.step)
            return _limited(two.multiply(a * b, whole), y, node.clamp)
        return _limited(scaled_once(a * b, factor), y, node.clamp)
    if node.how in ("add", "sub") and rounding == TWO:
        scales = inputs[0].step, inputs[1].step, y.step
        found = two.add_scaled(a, b if node.how == "add" else -b, *scales)
        return _limited(found, y, node.clamp)
    factors = [t.exact / y.exact for t in inputs]
    common = math.lcm(*(f.denominator for f in factors))
    most = sum(256 * int(f * common) for f in factors) + common
    kind = np.int64 if 2 * most < ROOM else object
    a, b = (v.astype(kind) * int(f * common) for v, f in zip((a, b), factors, strict=True))
    rule = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "max": lambda: np.maximum(a, b),
        "min": lambda: np.minimum(a, b),
    }
    return _limited(nearest_even(rule[node.how](), common), y, node.clamp)


def _table(node: Table, inputs: list[Tensor], y: Tensor, x: list[Array], rounding: str) -> Array:
    return np.asarray(node.table, dtype=np.int64)[x[0] - inputs[0].limits[0]]


def _move(node: Move, inputs: list[Tensor], y: Tensor, x: list[Array], rounding: str) -> Array:
    values = x[0]
    if node.how == "reshape":
        return values.reshape(y.shape)
    if node.how == "transpose":
        return np.array(values.transpose(node.axes), order="C")
    if node.how == "concat":
        return np.concatenate(x, axis=node.axis)
    if node.how == "slice":
        parts = zip(node.starts, node.steps, y.shape, strict=True)
        places = [start + step * np.arange(n) for start, step, n in parts]
        return values[np.ix_(*places)] if places else values
    if node.how == "take":
        return rarer_rules.take(node, values)
    pads = list(zip(node.before, node.after, strict=True))
    return np.pad(values, pads, constant_values=node.value)


def _host(node: Host, inputs: list[Tensor], y: Tensor, x: list[Array], rounding: str) -> Array:
    if node.how in OF_TWO:
        return quantised_values(rarer_rules.of_two(node, inputs, x), y)
    (source,), values = inputs, x[0]
    if node.how in ("argmax", "argmin"):
        values = values if node.how == "argmax" else -values
        found = values.argmax(axis=node.axis)
        if node.last:
            size = values.shape[node.axis]
            found = size - 1 - np.flip(values, node.axis).argmax(axis=node.axis)
        return np.expand_dims(found, node.axis) if node.keep else found
    if node.how == "table":
        kind = np.float32 if y.dtype == "float32" else np.int64
        return np.asarray(node.table, dtype=kind)[values - source.limits[0]]
    if node.how == "quantize":
        return quantised_values(values, y)
    if node.how == "cast":
        return held(values, y)
    if node.how == "linear" and y.quantised:
        return rarer_rules.linear_bytes(node, source, y, values, rounding == TWO)
    real = values if source.scale is None else (values - source.zero) * source.scale
    if node.how in rarer_rules.REALS:
        real = rarer_rules.REALS[node.how](node, np.asarray(real, dtype=np.float64))
    return quantised_values(real, y) if y.quantised else real.astype(np.float32)


def quantised_values(values: Array, tensor: Tensor) -> npt.NDArray[np.int64]:
    """Floats as integers of a tensor: float64, one rounding, a tie to even."""
    steps = np.rint(np.asarray(values, dtype=np.float64) / tensor.step)
    return np.clip(np.nan_to_num(steps) + tensor.zero, *tensor.limits).astype(np.int64)


RULES: dict[type[Node], Callable[..., Array]] = {
    Conv: _conv,
    Dense: _dense,
    Pool: _pool,
    Elementwise: _elementwise,
    Table: _table,
    Move: _move,
    Host: _host,
}
