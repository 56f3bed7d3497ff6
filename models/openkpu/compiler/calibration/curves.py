# SPDX-License-Identifier: Apache-2.0
"""What stays float: functions of one tensor, however many nodes an exporter writes for them, and
results that are joined for the caller alone.

x * sigmoid(x), GELU with its Erf or its tanh, x * clip(x + 3, 0, 6) / 6: each number of the result
is a function of one number of x, so of one byte, and becomes one table. What lies inside stays
float: a quantisation there would cost precision and a layer.

Detectors join scores and boxes in pixels.  Bytes of one scale would lose the scores, so where the
ranges of the parts are far apart, the concatenation and the moves behind it stay float: the host
joins numbers, each of its own scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from openkpu.compiler.calibration.net import Net

UNARY = frozenset(
    (
        *("Atan", "Celu", "Ceil", "Cos", "Floor", "Round", "Sign", "Sin", "Softsign"),
        *("Abs", "Cast", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu"),
        *("Log", "Mish", "Neg", "QuickGelu", "Reciprocal", "Selu", "Sigmoid", "Softplus", "Sqrt"),
        *("Tanh", "Swish", "Shrink", "ThresholdedRelu", "Not"),
    )
)
BINARY = frozenset(
    (
        *("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "PRelu"),
        *("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "And", "Or", "Xor"),
    )
)
CHOICE = "Where"
LIMITS = frozenset(("Clip", "Relu"))
FLOAT_RESULTS = ("Softmax", "LogSoftmax")
HOSTED = frozenset((*FLOAT_RESULTS, "LayerNormalization", "LpNormalization"))  # have no clamp
TAIL = frozenset(("Concat", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"))
APART = 2.0  # of the widest range by the narrowest one: one bit of eight


def inside(net: Net) -> dict[str, str]:
    """For each node of such a function: the tensor that it is a function of, by the node's name."""
    roots: dict[str, str] = {}  # of tensors that are functions of another one
    found: dict[str, str] = {}
    with net.fixed():
        for node in net.nodes:
            if (root := _root(net, node, roots)) is not None:
                roots[node.output[0]] = root
                found[node.name] = root
    return found


def rooted(net: Net) -> None:
    """Put an Identity behind inputs, and behind results that stay float, that are read as numbers
    of such functions: it is what is quantised then."""
    from onnx import helper

    found = inside(net)
    floats = [n.output[0] for n in net.nodes if n.op_type in FLOAT_RESULTS or n.name in net.head]
    for name in (*(value.name for value in net.inputs), *floats):
        readers = [n for n in net.readers(name) if n.name in found and n.name not in net.head]
        if not readers:
            continue
        copy = f"{name}/identity"
        net.shapes[copy] = net.shapes[name]
        net.floats.add(copy)
        for node in readers:
            node.input[:] = [copy if n == name else n for n in node.input]
        at = next((i for i, n in enumerate(net.nodes, 1) if name in n.output), 0)
        net.nodes.insert(at, helper.make_node("Identity", [name], [copy], copy))


def _root(net: Net, node: Any, roots: dict[str, str]) -> str | None:
    """The tensor that a node's result is a function of; None: it is none, or of several."""
    if node.op_type in LIMITS:
        x = node.input[0]
        # alone behind a convolution it is that node's own clamp
        maker = net.maker(x)
        hosted = maker is None or maker.op_type in HOSTED or maker.name in net.head
        own = net.alone(x) and not hosted
        return roots.get(x, x) if x in roots or not own else None
    if node.op_type in UNARY:
        return _of(net, node.input[0], roots)
    count = 3 if node.op_type == CHOICE else 2
    if node.op_type not in (*BINARY, CHOICE) or len(node.input) != count:
        return None
    if node.op_type == "PRelu":
        single = net.constants.get(node.input[1])
        return None if single is None or single.size > 1 else _of(net, node.input[0], roots)
    ends = []
    for name in node.input:
        if name in net.constants:
            if net.constants[name].size > 1:
                return None
            continue
        ends.append(_of(net, name, roots))
    return ends[0] if len(set(ends)) == 1 else None


def _of(net: Net, name: str, roots: dict[str, str]) -> str | None:
    return roots.get(name, name if name in net.floats else None)


def float_head(net: Net) -> set[str]:
    """Names of nodes that scale the numbers of a vector at an input, each by its own constants.

    One scale for numbers of different units would leave the small ones no bytes: the processor
    computes these in float, and what comes out is quantised.
    """
    found: set[str] = set()
    for value in net.inputs:
        name = value.name
        while len(net.shapes.get(name, ())) == 2 and name not in net.outputs:
            readers = net.readers(name)
            if len(readers) != 1 or not _scales_each(net, readers[0], name):
                break
            found.add(readers[0].name)
            _own_constant(net, readers[0], name)
            name = readers[0].output[0]
    return found


def _own_constant(net: Net, node: Any, x: str) -> None:
    """What another node reads as well would become bytes for it."""
    at = 1 - list(node.input).index(x)
    node.input[at] = net.put(f"{node.name}.own", net.constants[node.input[at]])


def _scales_each(net: Net, node: Any, x: str) -> bool:
    """A sum, difference, product or quotient with a number for each element."""
    if node.op_type not in ("Add", "Sub", "Mul", "Div") or len(node.input) != 2:
        return False
    data = net.constants.get(node.input[1 - list(node.input).index(x)])
    first = node.input[0] == x or node.op_type in ("Add", "Mul")
    last = net.shapes[x][-1]  # a column of constants would make rows of the vector
    return data is not None and first and data.size == last > 1 and data.shape[-1] == last


def float_tail(net: Net, ranges: Any) -> set[str]:
    """Names of nodes at the end that stay float."""
    with net.fixed():
        return _float_tail(net, ranges)


def _float_tail(net: Net, ranges: Any) -> set[str]:
    tail: set[str] = set()
    for node in reversed(net.nodes):
        readers = [r for name in node.output for r in net.readers(name)]
        if node.op_type in TAIL and all(r.name in tail for r in readers):
            tail.add(node.name)
    found: set[str] = set()
    for node in net.nodes:
        if node.name not in tail:
            continue
        behind = any(maker.name in found for maker in map(net.maker, node.input) if maker)
        if behind or (node.op_type == "Concat" and _apart(node, ranges)):
            found.add(node.name)
    return found


def _apart(node: Any, ranges: Any) -> bool:
    """Are the ranges of the parts so different that one scale loses a bit of some?"""
    spans = []
    for name in node.input:
        if name not in ranges.data:
            return False
        low, high = (np.asarray(end) for end in (ranges[name].lowest, ranges[name].highest))
        spans.append(max(float(high.max()), 0.0) - min(float(low.min()), 0.0))
    return max(spans) > APART * min(spans)
