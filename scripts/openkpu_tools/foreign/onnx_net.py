# SPDX-License-Identifier: Apache-2.0
"""Random convolutional networks as ONNX models.

Only what a compiler for the K210 takes to its KPU: 1x1, 3x3 and depthwise convolutions of stride 1
or 2, activation functions, pools of 2x2, and sums of two branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from openkpu.arithmetic.integers import ceil_div

OPSET = 11


def value_info(name: str, shape: Sequence[int]) -> onnx.ValueInfoProto:
    """A float tensor (1, *shape)."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, *shape])


class Graph:
    """A network under construction; values are named v0, v1 ..."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.shapes: list[onnx.ValueInfoProto] = []
        self.input = shape
        self.count = 0

    def node(
        self,
        kind: str,
        inputs: Sequence[str],
        shape: Sequence[int],
        **attributes: Any,
    ) -> str:
        """Add a node with a result (C, H, W); the result's name."""
        self.count += 1
        out = f"v{self.count}"
        self.nodes.append(helper.make_node(kind, inputs, [out], f"n{self.count}", **attributes))
        self.shapes.append(value_info(out, shape))
        return out

    def constant(self, data: np.ndarray) -> str:
        """Add a constant; its name."""
        self.count += 1
        name = f"c{self.count}"
        self.constants.append(numpy_helper.from_array(data.astype(np.float32), name))
        return name

    def model(self, output: str, shape: tuple[int, int, int]) -> bytes:
        """The file."""
        ends = [value_info("x", self.input)], [value_info(output, shape)]
        graph = helper.make_graph(self.nodes, "net", *ends, self.constants, value_info=self.shapes)
        opset = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opset, ir_version=6).SerializeToString()


def random_network(rng: np.random.Generator) -> tuple[tuple[int, int, int], bytes]:
    """(input shape (C, H, W), ONNX file) of two to six convolutions."""
    c, h, w = int(rng.choice([1, 3, 4])), *(int(n) for n in rng.integers(12, 72, 2))
    graph, value, shape = Graph((c, h, w)), "x", (c, h, w)
    for _ in range(int(rng.integers(2, 7))):
        value, shape = _convolution(rng, graph, value, shape)
    return (c, h, w), graph.model(value, shape)


def _convolution(
    rng: np.random.Generator, graph: Graph, value: str, shape: tuple[int, int, int]
) -> tuple[str, tuple[int, int, int]]:
    """A convolution, its activation, perhaps a pool or a sum with what went in."""
    c, h, w = shape
    depthwise = c > 1 and rng.random() < 0.3
    k = 3 if depthwise else int(rng.choice([1, 3]))
    o = c if depthwise else int(rng.integers(1, 33))
    stride = 2 if k == 3 and min(h, w) >= 16 and rng.random() < 0.2 else 1
    inner = 1 if depthwise else c
    weights = rng.normal(0, 1.5 / np.sqrt(k * k * inner), (o, inner, k, k))
    h, w = (ceil_div(n, stride) for n in (h, w))
    out = graph.node(
        "Conv",
        [value, graph.constant(weights), graph.constant(rng.normal(0, 0.2, o))],
        (o, h, w),
        kernel_shape=[k, k],
        pads=[k // 2] * 4,
        strides=[stride] * 2,
        group=c if depthwise else 1,
        dilations=[1, 1],
    )
    if stride == 1 and o == c and rng.random() < 0.3:
        out = graph.node("Add", [out, value], (o, h, w))
    kind = str(rng.choice(["Relu", "LeakyRelu", "Sigmoid", "Tanh", "none"]))
    if kind == "LeakyRelu":
        out = graph.node(kind, [out], (o, h, w), alpha=0.125)
    elif kind != "none":
        out = graph.node(kind, [out], (o, h, w))
    if stride == 1 and min(h, w) >= 12 and rng.random() < 0.35:
        pool = str(rng.choice(["MaxPool", "AveragePool"]))
        h, w = h // 2, w // 2
        how = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0] * 4}
        out = graph.node(pool, [out], (o, h, w), **how)
    return out, (o, h, w)
