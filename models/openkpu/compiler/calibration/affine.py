# SPDX-License-Identifier: Apache-2.0
"""Factors and terms of a channel become part of a convolution or product.

BatchNormalization, and sums and products with constants of one number for each channel: y = x * a +
b. Behind a convolution or fully connected node they change its weights and bias; in front of a
fully connected one as well. Elsewhere they become a depthwise convolution 1x1, whose weights have a
scale for each channel, where a constant map of bytes would have one for all.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.calibration.net import Net, attribute

Array = npt.NDArray[np.float64]


@dataclasses.dataclass
class Affine:
    """y = x * factor + term, each (C,) or, of one number for all, ()."""

    x: str
    factor: Array
    term: Array


def fold(net: Net) -> None:
    """Fold all of them, in the order of the graph."""
    for node in [n for n in net.nodes if n.op_type == "Gemm"]:
        _plain_product(net, node)
    for node in list(net.nodes):
        found = _affine(net, node)
        if found is None or _behind(net, node, found) or _before(net, node, found):
            continue
        if found.factor.ndim and len(net.shapes[found.x]) in (3, 4):
            _depthwise(net, node, found)
        elif node.op_type == "BatchNormalization":
            _pair(net, node, found)
    for node in net.nodes:
        _own(net, node)


def _plain_product(net: Net, node: Any) -> None:
    """Gemm with alpha, beta and transA as one without, where its weights and bias are constants."""
    from onnx import helper

    alpha, beta = (float(attribute(node, name, 1.0)) for name in ("alpha", "beta"))
    known = net.constant(node, 1) is not None
    known = known and (len(node.input) < 3 or net.constant(node, 2) is not None)
    if known and (alpha, beta) != (1.0, 1.0):
        weights = np.asarray(net.constant(node, 1), np.float64) * alpha
        node.input[1] = net.put(f"{node.name}.weights", weights)
        if len(node.input) > 2:
            bias = np.asarray(net.constant(node, 2), np.float64) * beta
            node.input[2] = net.put(f"{node.name}.bias", bias)
        _without(node, "alpha", "beta")
    _one_each(net, node)
    shape = net.shapes.get(node.input[0], ())
    if attribute(node, "transA", 0) and len(shape) == 2:
        turned = f"{node.name}.turned"
        net.shapes[turned] = shape[::-1]
        net.floats.add(turned)
        made = helper.make_node("Transpose", [node.input[0]], [turned], turned, perm=[1, 0])
        net.nodes.insert(net.nodes.index(node), made)
        node.input[0] = turned
        _without(node, "transA")


def _one_each(net: Net, node: Any) -> None:
    """A constant C of Gemm that is one number, or one row, as a number for each output."""
    bias, outputs = net.constant(node, 2), net.shapes.get(node.output[0], ())
    if (
        bias is None
        or not outputs
        or bias.shape == outputs[-1:]
        or bias.size not in (1, outputs[-1])
    ):
        return
    if bias.size == 1 or bias.shape[-1] == outputs[-1]:
        wide = np.broadcast_to(bias.reshape(-1), outputs[-1:])
        node.input[2] = net.put(f"{node.name}.bias", wide)


def _without(node: Any, *names: str) -> None:
    """Attributes that have their usual value from now on."""
    kept = [a for a in node.attribute if a.name not in names]
    del node.attribute[:]
    node.attribute.extend(kept)


def _affine(net: Net, node: Any) -> Affine | None:
    """What a node is, where it is one of these."""
    if node.name in net.head:
        return None
    if node.op_type == "BatchNormalization":
        parts = [net.constant(node, i) for i in range(1, 5)]
        if node.input[0] not in net.shapes or any(p is None for p in parts) or node.output[1:]:
            return None
        scale, shift, mean, variance = (np.asarray(p, np.float64) for p in parts)
        factor = scale / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
        return Affine(node.input[0], factor, shift - mean * factor)
    if node.op_type not in ("Add", "Sub", "Mul", "Div") or len(node.input) != 2:
        return None
    if node.output[0] in net.masked:  # a mask is no number of a channel
        return None
    where = [i for i in (0, 1) if node.input[i] in net.constants]
    if len(where) != 1 or (node.op_type == "Div" and where != [1]):
        return None
    x, data = node.input[1 - where[0]], net.constants[node.input[where[0]]]
    if x not in net.shapes or x not in net.floats or data.dtype != np.float32:
        return None
    value = _channels(np.asarray(data, np.float64), net.shapes[x])
    if value is None:
        return None
    one, none = np.ones_like(value), np.zeros_like(value)
    if node.op_type == "Mul":
        return Affine(x, value, none)
    if node.op_type == "Div":
        return Affine(x, 1 / value, none) if value.all() else None
    if node.op_type == "Add":
        return Affine(x, one, value)
    return Affine(x, one, -value) if where == [1] else Affine(x, -one, value)


def _channels(data: Array, shape: tuple[int, ...]) -> Array | None:
    """A constant as one number for each channel (axis 1), or one for all; None: neither."""
    if data.size == 1:
        return data.reshape(())
    full = (1,) * (len(shape) - data.ndim) + data.shape
    if len(shape) < 2 or len(full) != len(shape) or full[1] != shape[1]:
        return None
    return data.reshape(-1) if data.size == shape[1] else None


def _weights_axis(net: Net, node: Any) -> int | None:
    """The axis of outputs in a node's constant weights; None where it has none to change."""
    if net.constant(node, 1) is None or (len(node.input) > 2 and net.constant(node, 2) is None):
        return None
    if node.op_type == "Conv":
        return 0
    plain = attribute(node, "alpha", 1.0) == attribute(node, "beta", 1.0) == 1.0
    if node.op_type == "Gemm" and plain and not attribute(node, "transA", 0):
        return 0 if attribute(node, "transB", 0) else 1
    return None


def _behind(net: Net, node: Any, found: Affine) -> bool:
    """Into the convolution or product that writes x, when nothing else reads it."""
    maker = net.maker(found.x)
    if maker is None or not net.alone(found.x) or (axis := _weights_axis(net, maker)) is None:
        return False
    weights = np.asarray(net.constant(maker, 1), np.float64)
    outputs = weights.shape[axis]
    factor, term = (np.broadcast_to(v, outputs) for v in (found.factor, found.term))
    spread = [-1 if i == axis else 1 for i in range(weights.ndim)]
    _put(net, maker, weights * factor.reshape(spread), _bias(net, maker, outputs) * factor + term)
    maker.output[0] = node.output[0]
    net.nodes.remove(node)
    return True


def _before(net: Net, node: Any, found: Affine) -> bool:
    """Into the fully connected node that alone reads y."""
    name = node.output[0]
    if len(net.shapes[found.x]) != 2 or not net.alone(name):
        return False
    (reader,) = net.readers(name)
    axis = _weights_axis(net, reader) if reader.op_type == "Gemm" else None
    if axis is None or reader.input[0] != name:
        return False
    weights = np.asarray(net.constant(reader, 1), np.float64)
    rows = np.moveaxis(weights, axis, 0)  # (O, K)
    factor, term = (np.broadcast_to(v, rows.shape[1]) for v in (found.factor, found.term))
    bias = _bias(net, reader, len(rows)) + rows @ term
    _put(net, reader, np.moveaxis(rows * factor, 0, axis), bias)
    reader.input[0] = found.x
    net.nodes.remove(node)
    return True


def _bias(net: Net, node: Any, outputs: int) -> Array:
    data = net.constant(node, 2)
    wide = np.zeros(outputs) if data is None else np.asarray(data, np.float64).reshape(-1)
    return np.broadcast_to(wide, outputs).copy()


def _put(net: Net, node: Any, weights: Array, bias: Array) -> None:
    """New constants: another node may share the old ones."""
    first = node.input[0]
    names = net.put(f"{node.name}.weights", weights), net.put(f"{node.name}.bias", bias)
    del node.input[:]
    node.input.extend([first, *names])


def _depthwise(net: Net, node: Any, found: Affine) -> None:
    """A convolution with one weight for each channel, in the place of a node."""
    from onnx import helper

    rank, channels = len(net.shapes[found.x]), found.factor.size
    factor, term = (np.broadcast_to(v, channels) for v in (found.factor, found.term))
    weights = factor.reshape(channels, *[1] * (rank - 1))
    names = net.put(f"{node.name}.weights", weights), net.put(f"{node.name}.bias", term)
    made = helper.make_node("Conv", [found.x, *names], [node.output[0]], node.name, group=channels)
    net.nodes[net.nodes.index(node)] = made


def _pair(net: Net, node: Any, found: Affine) -> None:
    """A BatchNormalization as a product and a sum with constants."""
    from onnx import helper

    shape = (1, found.factor.size, *[1] * (len(net.shapes[found.x]) - 2))
    factor = net.put(f"{node.name}.factor", found.factor.reshape(shape))
    term, middle = net.put(f"{node.name}.term", found.term.reshape(shape)), f"{node.name}.product"
    net.shapes[middle] = net.shapes[found.x]
    net.floats.add(middle)
    at = net.nodes.index(node)
    net.nodes[at : at + 1] = [
        helper.make_node("Mul", [found.x, factor], [middle], middle),
        helper.make_node("Add", [middle, term], [node.output[0]], node.name),
    ]


def _own(net: Net, node: Any) -> None:
    """Weights that several nodes read are copied: each has scales of its own."""
    if _weights_axis(net, node) is not None and len(net.readers(node.input[1])) > 1:
        node.input[1] = net.put(f"{node.name}.weights", net.constants[node.input[1]])
