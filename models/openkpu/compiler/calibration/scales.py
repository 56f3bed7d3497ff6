# SPDX-License-Identifier: Apache-2.0
"""Scales with which the device gives every byte of the exact result.

From the ranges of a calibration, for ``TensorQuantOverrides`` of ONNX Runtime:

* Tensors with the same numbers have one scale: a node that moves bytes or averages them keeps its
  input's scale, and all parts of a concatenation have one, so that it needs no computation.
* A scale is n * 2^k with n of 8 bits: at most a 128th above the range's minimum.
* All of a chain of sums are multiples of one 2^k, the results odd ones: a sum divided by an odd
  number is no tie, nor near one.
* With n and m of input and output, a channel's weights have the scale m * j * 2^k, j of 15 bits:
  input times weights by output is then n * j * 2^k, which the device's factor of 23 bits holds.
* Weights of 16 bits make that smaller, so that it is a multiple of 2^-36, which the device's shifts
  reach; their sums stay within its 36 bits, and biases within the 32 of ONNX Runtime.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from openkpu.compiler.calibration.curves import LIMITS
from openkpu.compiler.calibration.net import Net, attribute

# operators whose outputs have the numbers of their inputs, or averages of them
SAME = frozenset(
    (
        *("AveragePool", "Concat", "Flatten", "GlobalAveragePool", "GlobalMaxPool"),
        *(
            "Expand",
            "Gather",
            "GatherND",
            "Identity",
            "MaxPool",
            "Pad",
            "ReduceMax",
            "ReduceMean",
            "Reshape",
            "Resize",
            "Slice",
        ),
        *("Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    )
)
MOST_N = 255  # 8 bits; two factors of a sum differ by as much
LEAST_N = 16  # of a chain of sums; below it the next multiple is too far
MOST_J = (1 << 15) - 1
MASKED = 16.0  # so far below the least score a masked one has no share of a softmax
AXES = {"Conv": 0, "Gemm": 1, "MatMul": -1, "ConvTranspose": 1}  # of outputs in the weights
LEAST_FACTOR = 2.0**-36  # input scale times weights' by output's: a mul of 1 with the most shifts
MOST_SUM, MOST_BIAS = 2.0**34, 2.0**30  # half of what the device, and int32, hold


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


def chosen_scales(
    net: Net,
    ranges: Any,
    within: Mapping[str, str],
    wide: Collection[str] = (),
    tail: Collection[str] = (),
) -> dict[str, Any]:
    """``TensorQuantOverrides`` of all tensors and weights.

    ``within``, ``tail``: nodes that stay float; ``wide``: those with weights of 16 bits.
    """
    families = Families({})
    for node in net.nodes:
        if node.op_type in SAME and node.name not in tail:
            parts = node.input if node.op_type == "Concat" else node.input[:1]
            ends = [n for n in (*parts, *node.output) if n in net.floats]
            for one in ends[1:]:
                families.join(one, ends[0])
    spans = _joined(families, ranges, net.masked)
    for _, mask in net.masked.values():
        spans[mask] = (
            min(float(net.constants[mask].min()), 0.0),
            max(float(net.constants[mask].max()), 0.0),
        )
    steps = {name: _grid(_step(span), MOST_N) for name, span in spans.items()}
    with net.fixed():
        steps |= _sums(net, families, spans, within)
        return _chosen(net, spans, steps, within, wide)


def _chosen(
    net: Net,
    spans: Mapping[str, tuple[float, float]],
    steps: Mapping[str, tuple[int, float]],
    within: Mapping[str, str],
    wide: Collection[str],
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, (low, _) in spans.items():
        count, unit = steps[name]
        zero = min(max(round(-128 - low / (count * unit)), -128), 127)
        found[name] = [_quant(count * unit, zero)]
    for node in net.nodes:
        if node.name in wide:
            found |= _wide_weights(net, node, steps, within)
        else:
            found |= _weights(net, node, steps, within)
    return found


def weights_axis(node: Any) -> int | None:
    """The axis of outputs in the weights of an operator that has some."""
    if node.op_type == "Gemm" and attribute(node, "transB", 0):
        return 0
    return AXES.get(node.op_type)


def _quant(scale: float, zero: int, kind: Any = np.int8) -> dict[str, Any]:
    return {"scale": np.array(scale, np.float32), "zero_point": np.array(zero, kind)}


def limit_masks(net: Net, ranges: Any) -> None:
    """Masks reach as far below 0 as puts the greatest score below the least one by MASKED."""
    for scores, mask in net.masked.values():
        if scores in ranges.data:
            low, high = float(np.min(ranges[scores].lowest)), float(np.max(ranges[scores].highest))
            reach = max(high, 0.0) - min(low, 0.0) + MASKED
            net.constants[mask] = np.maximum(net.constants[mask], np.float32(-reach))


def _joined(
    families: Families, ranges: Any, masked: Mapping[str, tuple[str, str]]
) -> dict[str, tuple[float, float]]:
    """(low, high) of each tensor, 0 among them: that of all of its family.  What a mask puts far
    below the others is as good as nothing behind a softmax."""
    spans: dict[str, tuple[float, float]] = {}
    for name in ranges:
        head = families.head(name)
        low, high = spans.get(head, (0.0, 0.0))
        least, most = float(np.min(ranges[name].lowest)), float(np.max(ranges[name].highest))
        spans[head] = min(low, least), max(high, most)
    for name, (scores, _) in masked.items():
        head, least = families.head(name), spans.get(families.head(scores), (0.0, 0.0))[0]
        if head in spans:
            spans[head] = max(spans[head][0], least - MASKED), spans[head][1]
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
    heads = {chains.head(n.output[0]) for n in kept}
    members: dict[str, list[str]] = {head: [] for head in heads}
    for name in spans:
        if (head := chains.head(name)) in members:
            members[head].append(name)
    for names in members.values():
        some = [n for n in names if any(spans[n])] or names  # zeros have any scale
        widest = max(some, key=lambda n: _step(spans[n]))
        _, unit = _grid(_step(spans[widest]), MOST_N)
        for name in names:
            count = math.ceil(_step(spans[name if name in some else widest]) / unit)
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
    from onnxruntime.quantization import QuantType

    data, axis = net.constant(node, 1), weights_axis(node)
    y = _result(net, node, within)
    own = len(net.readers(node.input[1])) == 1 if data is not None else False
    if node.op_type == "ConvTranspose" and own and attribute(node, "group", 1) > 1:
        return {node.input[1]: [{"quant_type": QuantType.QInt8}]}  # one scale: groups share an axis
    if axis is None or data is None or not own or node.op_type == "ConvTranspose" or y not in steps:
        return {}
    rows = np.abs(np.moveaxis(data, axis, 0).reshape(data.shape[axis], -1)).max(axis=1)
    (m, _), channels = steps[y], []
    usual = float(rows.max()) or 1.0  # of a channel without weights: its bias is counted in it
    for size in rows:
        j, unit = _grid((float(size) or usual) / 127 / m, MOST_J)
        channels.append(_quant(m * j * unit, 0))
    channels[0]["axis"] = axis % data.ndim
    return {node.input[1]: channels}


def _wide_weights(
    net: Net, node: Any, steps: Mapping[str, tuple[int, float]], within: Mapping[str, str]
) -> dict[str, Any]:
    """The same of weights of 16 bits."""
    from onnxruntime.quantization import QuantType

    data, axis = net.constant(node, 1), weights_axis(node)
    x, y = node.input[0], _result(net, node, within)
    assert data is not None and axis is not None
    kind = {"quant_type": QuantType.QInt16}
    axis %= data.ndim
    if node.op_type == "ConvTranspose" and attribute(node, "group", 1) > 1:
        return {node.input[1]: [kind]}
    if x not in steps or y not in steps:
        return {node.input[1]: [{**kind, "axis": axis}]}
    rows = np.abs(np.moveaxis(data, axis, 0).reshape(data.shape[axis], -1)).astype(np.float64)
    bias = net.constant(node, 2)
    bias = np.zeros(len(rows)) if bias is None else np.abs(np.broadcast_to(bias, len(rows)))
    (n, x_unit), (m, y_unit) = steps[x], steps[y]
    usual, channels = float(rows.max()) or 1.0, []
    for row, term in zip(rows, bias, strict=True):
        size = (float(row.max()) or usual) / 32767
        size = max(size, float(row.sum()) * 255 / MOST_SUM, float(term) / (n * x_unit) / MOST_BIAS)
        j, unit = _grid(size / m, MOST_J)
        if (least := LEAST_FACTOR * y_unit / x_unit) > unit:
            j, unit = math.ceil(size / m / least), least
        channels.append({**_quant(m * j * unit, 0, np.int16), **kind})
    channels[0]["axis"] = axis
    return {node.input[1]: channels}
