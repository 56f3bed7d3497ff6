# SPDX-License-Identifier: Apache-2.0
"""Random convolutional networks as ONNX files, written without the onnx package.

Only what a compiler for the K210 takes to its KPU: 1x1, 3x3 and depthwise convolutions of stride 1
or 2, activation functions, pools of 2x2, and sums of two branches. ONNX is protobuf; the numbers
below are the fields of onnx.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from openkpu.arithmetic.integers import ceil_div

FLOAT = 1  # TensorProto.DataType
A_FLOAT, A_INT, A_INTS = 1, 2, 7  # AttributeProto.AttributeType
OPSET = 11


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field: int, value: int) -> bytes:
    """An integer field."""
    return _varint(field << 3) + _varint(value)


def block(field: int, data: bytes | str) -> bytes:
    """A string, bytes or message field."""
    raw = data.encode() if isinstance(data, str) else data
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw


def attribute(name: str, value: float | int | Sequence[int]) -> bytes:
    """AttributeProto."""
    if isinstance(value, float):
        body = _varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, A_FLOAT)
    elif isinstance(value, int):
        body = number(3, value) + number(20, A_INT)
    else:
        body = b"".join(number(8, v) for v in value) + number(20, A_INTS)
    return block(1, name) + body


def tensor(name: str, data: np.ndarray) -> bytes:
    """TensorProto of floats."""
    raw = np.ascontiguousarray(data, dtype="<f4")
    dims = b"".join(number(1, n) for n in raw.shape)
    return dims + number(2, FLOAT) + block(8, name) + block(9, raw.tobytes())


def value_info(name: str, shape: Sequence[int]) -> bytes:
    """ValueInfoProto of a float tensor."""
    dims = b"".join(block(1, number(1, n)) for n in shape)
    return block(1, name) + block(2, block(1, number(1, FLOAT) + block(2, dims)))


class Graph:
    """A network under construction; values are named v0, v1 ..."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.nodes = self.constants = self.shapes = b""
        self.input = shape
        self.count = 0

    def node(
        self,
        kind: str,
        inputs: Sequence[str],
        shape: Sequence[int],
        **attributes: float | int | Sequence[int],
    ) -> str:
        """Add a node with a result (C, H, W); the result's name."""
        self.count += 1
        out = f"v{self.count}"
        body = b"".join(block(1, name) for name in inputs) + block(2, out)
        body += block(3, f"n{self.count}") + block(4, kind)
        body += b"".join(block(5, attribute(k, v)) for k, v in attributes.items())
        self.nodes += block(1, body)
        self.shapes += block(13, value_info(out, (1, *shape)))
        return out

    def constant(self, data: np.ndarray) -> str:
        """Add a constant; its name."""
        self.count += 1
        name = f"c{self.count}"
        self.constants += block(5, tensor(name, data))
        return name

    def model(self, output: str, shape: tuple[int, int, int]) -> bytes:
        """ModelProto."""
        graph = self.nodes + block(2, "net") + self.constants
        graph += block(11, value_info("x", (1, *self.input)))
        graph += block(12, value_info(output, (1, *shape))) + self.shapes
        return number(1, 6) + block(7, graph) + block(8, block(1, "") + number(2, OPSET))


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
