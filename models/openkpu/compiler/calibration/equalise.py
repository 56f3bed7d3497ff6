# SPDX-License-Identifier: Apache-2.0
"""Channels of a map brought nearer to one range, so that all of them use steps of its one scale.

A ReLU passes a factor above 0 on. So each channel between two convolutions may be divided by a
factor in the first one, whose weights have a scale for each channel, and multiplied by it in the
second. In front of a depthwise convolution that is free; another one, whose weights have one scale
for all channels of its input, loses steps there, so that its factors are nearer to 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.calibration.net import Net, attribute
from openkpu.compiler.data import Values

# exponents in front of a convolution that joins channels, and of a depthwise one: with whole ones
# every channel would fill the range, and inputs beyond the samples be cut off in each of them
JOINED, APART = 0.25, 0.5
MOST = 64.0  # a factor, and one by it
FEW = 0.125  # of the widest range of an input's numbers: most of them would lose three bits
PASSED = frozenset(("LeakyRelu", "MaxPool", "Relu"))  # f(a x) = a f(x) for a above 0


def equalise(net: Net, peaks: dict[str, npt.NDArray]) -> list[str]:
    """Change weights and biases; ``peaks``: the largest magnitude of each channel of a tensor.

    The names of the tensors whose channels have other ranges now.
    """
    found = []
    for first in net.nodes:
        if not _changeable(net, first):
            continue
        name, second = _second(net, first)
        if second is None or name not in peaks:
            continue
        whole = _whole(second)
        each = peaks[name]
        if not each.any():
            continue
        factors = np.where(each > 0, each / each.max(), 1.0) ** (JOINED if whole else APART)
        factors = np.clip(factors, 1 / MOST, 1.0)
        _divide(net, first, factors)
        _multiply(net, second, factors, whole)
        found.append(name)
    return found


def scale_inputs(net: Net, peaks: dict[str, npt.NDArray]) -> None:
    """Numbers of a vector at an input, most of them far below the widest range: the processor
    divides each by a power of two, which the weights of the products that read it have instead."""
    from onnx import helper

    for name in [value.name for value in net.inputs]:
        readers = net.readers(name)
        while len(readers) == 1 and readers[0].name in net.head:
            name = readers[0].output[0]
            readers = net.readers(name)
        products = bool(readers) and all(_product_of(net, n, name) for n in readers)
        if name in net.outputs or not products:
            continue
        each = peaks.get(name, np.zeros(0))
        if not each.any():
            continue
        known = np.where(each > 0, each, each.max())
        if np.median(known) > FEW * known.max():  # as those of a picture are
            continue
        factors = 2.0 ** (np.ceil(np.log2(known)) - np.ceil(np.log2(known.max())))
        scaled, label = f"{name}/scaled", f"{name}.scaled"
        for node in readers:
            weights = net.constants[node.input[1]]
            spread = (1, -1) if attribute(node, "transB", 0) else (-1, 1)
            node.input[0] = scaled
            node.input[1] = net.put(f"{node.name}.of_scaled", weights * factors.reshape(spread))
        made = helper.make_node("Div", [name, net.put(label, factors)], [scaled], label)
        net.nodes.insert(min(net.nodes.index(n) for n in readers), made)
        net.shapes[scaled] = net.shapes[name]
        net.floats.add(scaled)
        net.head.add(label)


def _product_of(net: Net, node: Any, x: str) -> bool:
    """A product of a vector and constants."""
    if node.op_type not in ("Gemm", "MatMul") or attribute(node, "transA", 0):
        return False
    weights = net.constants.get(node.input[1], np.zeros(0))
    return node.input[0] == x and (len(net.shapes.get(x, ())), weights.ndim) == (2, 2)


def peaks_of(runs: Iterable[Values]) -> dict[str, npt.NDArray]:
    """The largest magnitude of each channel (axis 1), of maps and vectors of these runs."""
    found: dict[str, npt.NDArray] = {}
    for run in runs:
        for name, value in run.items():
            if value.dtype.kind == "f" and value.ndim >= 2:
                axes = tuple(i for i in range(value.ndim) if i != 1)
                most = np.abs(value).max(axis=axes).astype(np.float64)
                found[name] = np.maximum(found[name], most) if name in found else most
    return found


def _changeable(net: Net, node: Any) -> bool:
    """A convolution with constants that no other node reads."""
    if node.op_type != "Conv":
        return False
    names = [n for n in node.input[1:] if n]
    return all(n in net.constants and len(net.readers(n)) == 1 for n in names)


def _second(net: Net, first: Any) -> tuple[str, Any]:
    """(the tensor that is read, the convolution that alone reads it) behind what passes factors."""
    name = first.output[0]
    while net.alone(name):
        (reader,) = net.readers(name)
        if reader.op_type in PASSED and reader.input[0] == name and len(reader.output) == 1:
            name = reader.output[0]
            continue
        joins = reader.op_type == "Conv" and reader.input[0] == name and _changeable(net, reader)
        channels = len(net.constants[first.input[1]])
        groups = attribute(reader, "group", 1) if joins else 0
        return name, reader if groups in (1, channels) else None
    return name, None


def _whole(node: Any) -> bool:
    """Does a convolution join channels?"""
    return attribute(node, "group", 1) == 1


def _divide(net: Net, node: Any, factors: npt.NDArray) -> None:
    weights = net.constants[node.input[1]]
    spread = (-1, *[1] * (weights.ndim - 1))
    net.constants[node.input[1]] = (weights / factors.reshape(spread)).astype(np.float32)
    if len(node.input) > 2 and node.input[2]:
        bias = net.constants[node.input[2]] / factors
        net.constants[node.input[2]] = bias.astype(np.float32)


def _multiply(net: Net, node: Any, factors: npt.NDArray, whole: bool) -> None:
    weights = net.constants[node.input[1]]
    ones = [1] * (weights.ndim - 2)
    if not whole and len(weights) != len(factors):  # several outputs of each channel
        factors = np.repeat(factors, len(weights) // len(factors))
    spread = (1, -1, *ones) if whole else (-1, 1, *ones)
    net.constants[node.input[1]] = (weights * factors.reshape(spread)).astype(np.float32)
