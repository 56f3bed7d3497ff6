# SPDX-License-Identifier: Apache-2.0
"""Scales with which the device gives every byte of the exact result.

From the ranges of a calibration, for ``TensorQuantOverrides`` of ONNX Runtime:

* Tensors with the same numbers have one scale: what moves bytes or averages them keeps the scale
  that it reads, and all parts of a concatenation have one, so that it costs nothing.
* A scale is n * 2^k with n of 8 bits: at most a 128th above what the range needs.
* All of a chain of sums are multiples of one 2^k, the results odd ones: a sum divided by an odd
  number is no tie, nor near one.
* With n and m of input and output, a channel's weights have the scale m * j * 2^k, j of 15 bits:
  input times weights by output is then n * j * 2^k, which the device's factor of 23 bits holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from openkpu.compiler.calibration.curves import LIMITS
from openkpu.compiler.calibration.net import Net, attribute

# operators whose outputs have the numbers of their inputs, or averages of them
SAME = frozenset(
    (
        *("AveragePool", "Concat", "Flatten", "GlobalAveragePool", "GlobalMaxPool"),
        *("Identity", "MaxPool"),
        *("Pad", "ReduceMean", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"),
    )
)
MOST_N = 255  # 8 bits; two factors of a sum differ by as much
LEAST_N = 16  # of a chain of sums; below it the next multiple is too far
MOST_J = (1 << 15) - 1
BITS = 8  # of weights


class Families:
    """Tensors that have one scale, by one of their names."""

    def __init__(self, heads: Mapping[str, str]) -> None:
        self.heads = dict(heads)

    def head(self, name: str) -> str:
        """The name of a tensor's family."""
        while self.heads.get(name, name) != name:
            name = self.heads[name]
        return name

    def join(self, one: str, other: str) -> None:
        """Both are of one family."""
        self.heads[self.head(one)] = self.head(other)


def chosen_scales(net: Net, ranges: Any, within: Mapping[str, str]) -> dict[str, Any]:
    """``TensorQuantOverrides`` of all tensors and weights; ``within``: nodes that stay float."""
    families = Families({})
    for node in net.nodes:
        if node.op_type in SAME:
            parts = node.input if node.op_type == "Concat" else node.input[:1]
            ends = [n for n in (*parts, *node.output) if n in net.floats]
            for one in ends[1:]:
                families.join(one, ends[0])
    spans = _joined(families, ranges)
    steps = {name: _grid(_step(span), MOST_N) for name, span in spans.items()}
    steps |= _sums(net, families, spans, within)
    found: dict[str, Any] = {}
    for name, (low, _) in spans.items():
        count, unit = steps[name]
        zero = min(max(round(-128 - low / (count * unit)), -128), 127)
        found[name] = [_quant(count * unit, zero)]
    for node in net.nodes:
        found |= _weights(net, node, steps, within)
    return found


def _quant(scale: float, zero: int, kind: Any = np.int8) -> dict[str, Any]:
    return {"scale": np.array(scale, np.float32), "zero_point": np.array(zero, kind)}


def _joined(families: Families, ranges: Any) -> dict[str, tuple[float, float]]:
    """(low, high) of each tensor, 0 among them: that of all of its family."""
    spans: dict[str, tuple[float, float]] = {}
    for name in ranges:
        head = families.head(name)
        low, high = spans.get(head, (0.0, 0.0))
        least, most = float(np.min(ranges[name].lowest)), float(np.max(ranges[name].highest))
        spans[head] = min(low, least), max(high, most)
    return {name: spans[families.head(name)] for name in ranges}


def _step(span: tuple[float, float]) -> float:
    return (span[1] - span[0]) / 255 or 1.0


def _grid(step: float, most: int) -> tuple[int, float]:
    """(n, 2^k) whose product is the least one that is not below ``step``, n at most ``most``."""
    unit = 2.0 ** math.ceil(math.log2(step / most))
    return math.ceil(step / unit), unit


def _sums(
    net: Net,
    families: Families,
    spans: Mapping[str, tuple[float, float]],
    within: Mapping[str, str],
) -> dict[str, tuple[int, float]]:
    """(n, 2^k) of what chains of sums read and write."""
    chains, kept = Families(families.heads), []
    for node in net.nodes:
        constant = set(node.input) & set(net.constants)
        if node.op_type in ("Add", "Sub") and node.name not in within and not constant:
            kept.append(node)
            for name in node.input:
                chains.join(name, node.output[0])
    results = {families.head(_result(net, n, within)) for n in kept}
    for node in kept:
        chains.join(_result(net, node, within), node.output[0])
    found: dict[str, tuple[int, float]] = {}
    for chain in {chains.head(n.output[0]) for n in kept}:
        names = [n for n in spans if chains.head(n) == chain]
        _, unit = _grid(max(_step(spans[n]) for n in names), MOST_N)
        for name in names:
            count = math.ceil(_step(spans[name]) / unit)
            count += families.head(name) in results and count % 2 == 0
            if count >= LEAST_N:
                found[name] = count, unit
    return found


def _result(net: Net, node: Any, within: Mapping[str, str]) -> str:
    """The tensor that a node writes in the end: its own, or that of the clamp behind it."""
    name = node.output[0]
    if net.alone(name):
        (reader,) = net.readers(name)
        if reader.op_type in LIMITS and reader.name not in within:
            return reader.output[0]
    return name


def _weights(
    net: Net, node: Any, steps: Mapping[str, tuple[int, float]], within: Mapping[str, str]
) -> dict[str, Any]:
    """Scales of the weights of a convolution or product, one for each output."""
    axes = {"Conv": 0, "Gemm": 0 if attribute(node, "transB", 0) else 1, "MatMul": -1}
    data = net.constant(node, 1)
    y = _result(net, node, within)
    if (
        node.op_type not in axes
        or data is None
        or y not in steps
        or len(net.readers(node.input[1])) > 1
    ):
        return {}
    axis = axes[node.op_type] % data.ndim
    rows = np.abs(np.moveaxis(data, axis, 0).reshape(data.shape[axis], -1)).max(axis=1)
    most, (m, _), channels = (1 << (BITS - 1)) - 1, steps[y], []
    usual = float(rows.max()) or 1.0  # of a channel without weights: its bias is counted in it
    for size in rows:
        j, unit = _grid((float(size) or usual) / most / m, MOST_J)
        channels.append(_quant(m * j * unit, 0))
    channels[0]["axis"] = axis
    return {node.input[1]: channels}
