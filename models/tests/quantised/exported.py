# SPDX-License-Identifier: Apache-2.0
"""Float models as PyTorch's two exporters write them, made with ``onnx.helper``: no torch here.

The older exporter names nodes /layer/Conv, gives opset 11 to 17, GlobalAveragePool and Flatten, and
leaves constants in the graph; ``dynamo=True`` names nodes node_conv2d, gives opset 18 to 20,
ReduceMean for averages of the whole map, and Reshape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OLD, DYNAMO = "old", "dynamo"


class Exported:
    """A model in the making."""

    def __init__(self, how: str = OLD, seed: int = 1, opset: int | None = None) -> None:
        self.how, self.rng = how, np.random.default_rng(seed)
        self.opset = opset or (13 if how == OLD else 20)
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs: list[Any] = []

    def input(self, *shape: int, name: str = "x") -> str:
        sizes = ["batch", *shape[1:]] if self.how == OLD else list(shape)
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes))
        return name

    def const(self, data: Any, dtype: Any = np.float32) -> str:
        name = f"val_{len(self.constants)}"
        self.constants[name] = np.asarray(data, dtype)
        return name

    def node(
        self, kind: str, *inputs: str, outputs: int = 1, domain: str = "", **fields: Any
    ) -> Any:
        number = len(self.nodes)
        names = [f"{kind.lower()}_{number}_{i}" for i in range(outputs)]
        label = f"/net/{kind}_{number}" if self.how == OLD else f"node_{kind.lower()}_{number}"
        made = helper.make_node(kind, inputs, names, label, **fields)
        self.nodes.append(made)
        return names[0] if outputs == 1 else names

    def conv(
        self, x: str, c: int, o: int, k: int = 3, stride: int = 1, group: int = 1, bias: bool = True
    ) -> str:
        taps = c // group * k * k
        weights = self.rng.normal(0, 1.4 / math.sqrt(taps), (o, c // group, k, k))
        inputs = [x, self.const(weights)]
        inputs += [self.const(self.rng.normal(0, 0.3, o))] if bias else []
        pads = [k // 2] * 4
        fields = {"dilations": [1, 1], "kernel_shape": [k, k], "group": group}
        return self.node("Conv", *inputs, pads=pads, strides=[stride] * 2, **fields)

    def norm(self, x: str, c: int) -> str:
        rng = self.rng
        parts = rng.uniform(0.5, 1.5, c), rng.normal(0, 0.3, c), rng.normal(0, 0.2, c)
        inputs = [self.const(v) for v in (*parts, rng.uniform(0.3, 1.2, c))]
        return self.node("BatchNormalization", x, *inputs, epsilon=1e-5, momentum=0.9)

    def mean(self, x: str, keep: bool = True) -> str:
        """adaptive_avg_pool2d(x, 1), or x.mean((2, 3))."""
        if self.how == OLD:
            y = self.node("GlobalAveragePool", x)
            return y if keep else self.node("Flatten", y, axis=1)
        axes = self.const([-1, -2], np.int64)
        return self.node("ReduceMean", x, axes, keepdims=int(keep), noop_with_empty_axes=0)

    def flat(self, x: str) -> str:
        if self.how == OLD:
            return self.node("Flatten", x, axis=1)
        return self.node("Reshape", x, self.const([1, -1], np.int64), allowzero=1)

    def linear(self, x: str, k: int, o: int) -> str:
        weights = self.rng.normal(0, 1.4 / math.sqrt(k), (o, k))
        inputs = self.const(weights), self.const(self.rng.normal(0, 0.3, o))
        return self.node("Gemm", x, *inputs, alpha=1.0, beta=1.0, transB=1)

    def scalar(self, value: float) -> str:
        """A number: a Constant node of the older exporter, an initializer of the newer one."""
        if self.how == DYNAMO:
            return self.const(value)
        data = numpy_helper.from_array(np.asarray(value, np.float32))
        return self.node("Constant", value=data)

    def done(self, *outputs: str) -> bytes:
        ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
        data = [numpy_helper.from_array(v, k) for k, v in self.constants.items()]
        graph = helper.make_graph(self.nodes, "main_graph", self.inputs, ends, data)
        domains = {n.domain for n in self.nodes} - {""}
        opsets = [
            helper.make_opsetid("", self.opset),
            *(helper.make_opsetid(d, 1) for d in domains),
        ]
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 8 if self.how == OLD else 10
        return onnx.shape_inference.infer_shapes(model).SerializeToString()


# ------------------------------------------------------- activations, as each exporter writes them
def silu(m: Exported, x: str) -> str:
    return m.node("Mul", x, m.node("Sigmoid", x))


def hard_swish(m: Exported, x: str) -> str:
    """Before opset 14: x * clip(x + 3, 0, 6) / 6."""
    if m.opset >= 14:
        return m.node("HardSwish", x)
    inner = m.node("Add", x, m.scalar(3.0))
    limited = m.node("Clip", inner, m.scalar(0.0), m.scalar(6.0))
    return m.node("Div", m.node("Mul", x, limited), m.scalar(6.0))


def gelu_erf(m: Exported, x: str) -> str:
    inner = m.node("Erf", m.node("Div", x, m.scalar(math.sqrt(2))))
    product = m.node("Mul", x, m.node("Add", inner, m.scalar(1.0)))
    return m.node("Mul", product, m.scalar(0.5))


def gelu_tanh(m: Exported, x: str) -> str:
    cube = m.node("Mul", m.node("Pow", x, m.scalar(3.0)), m.scalar(0.044715))
    inner = m.node("Mul", m.node("Add", x, cube), m.scalar(math.sqrt(2 / math.pi)))
    outer = m.node("Add", m.node("Tanh", inner), m.scalar(1.0))
    return m.node("Mul", m.node("Mul", x, m.scalar(0.5)), outer)


def clip(m: Exported, x: str) -> str:
    return m.node("Clip", x, m.scalar(0.0), m.scalar(6.0))


def prelu(m: Exported, x: str) -> str:
    return m.node("PRelu", x, m.const([[[0.2]]]))


ACTIVATIONS: dict[str, Callable[[Exported, str], str]] = {
    "relu": lambda m, x: m.node("Relu", x),
    "clip": clip,
    "silu": silu,
    "hard_swish": hard_swish,
    "hard_sigmoid": lambda m, x: m.node("HardSigmoid", x, alpha=1 / 6, beta=0.5),
    "sigmoid": lambda m, x: m.node("Sigmoid", x),
    "tanh": lambda m, x: m.node("Tanh", x),
    "leaky": lambda m, x: m.node("LeakyRelu", x, alpha=0.1),
    "elu": lambda m, x: m.node("Elu", x, alpha=1.0),
    "prelu": prelu,
    "gelu_erf": gelu_erf,
    "gelu_tanh": gelu_tanh,
    "gelu": lambda m, x: m.node("Gelu", x) if m.opset >= 20 else gelu_erf(m, x),
}


# ------------------------------------------------------------------------------------- networks
def classifier(how: str, activation: str, opset: int | None = None) -> bytes:
    """Convolution, batch norm, activation, twice; mean, linear."""
    m = Exported(how, opset=opset)
    act = ACTIVATIONS[activation]
    x = m.input(1, 3, 16, 16)
    x = act(m, m.norm(m.conv(x, 3, 12, bias=False), 12))
    x = act(m, m.norm(m.conv(x, 12, 20, stride=2, bias=False), 20))
    x = m.mean(x, keep=False)
    return m.done(m.linear(x, 20, 10))


def residual(m: Exported, x: str) -> str:
    y = m.node("Relu", m.norm(m.conv(x, 8, 8, bias=False), 8))
    return m.node("Relu", m.node("Add", m.norm(m.conv(y, 8, 8, bias=False), 8), x))


def branches(m: Exported, x: str) -> str:
    a, b = m.node("Relu", m.conv(x, 8, 4, 1)), m.conv(x, 8, 6, 3)
    return m.node("Concat", a, silu(m, b), m.node("MaxPool", x, **window(3, 1)), axis=1)


def window(k: int, stride: int) -> dict[str, Any]:
    return {"kernel_shape": [k, k], "strides": [stride] * 2, "pads": [k // 2] * 4}


def sliced(m: Exported, x: str) -> str:
    ends = [m.const([n], np.int64) for n in (2, 7, 1, 1)]
    return m.conv(m.node("Slice", x, *ends), 5, 8, 1)


def parted(m: Exported, x: str) -> str:
    a, b = m.node("Split", x, m.const([4, 4], np.int64), outputs=2, axis=1)
    return m.node("Concat", m.node("Relu", m.conv(a, 4, 4)), b, axis=1)


def shuffled(m: Exported, x: str) -> str:
    """Channels of two groups change places, as ShuffleNet has it."""
    wide = m.node("Reshape", x, m.const([1, 2, 4, 12, 12], np.int64))
    turned = m.node("Transpose", wide, perm=[0, 2, 1, 3, 4])
    return m.conv(m.node("Reshape", turned, m.const([1, 8, 12, 12], np.int64)), 8, 8, group=8)


def padded(m: Exported, x: str) -> str:
    pads = m.const([0, 0, 1, 1, 0, 0, 1, 1], np.int64)
    y = m.node("Pad", x, pads, m.const(0.0), mode="constant")
    weights = m.const(m.rng.normal(0, 0.2, (8, 8, 3, 3)))
    return m.node("Conv", y, weights, kernel_shape=[3, 3])


def average(m: Exported, x: str) -> str:
    return m.conv(m.node("AveragePool", x, count_include_pad=1, **window(3, 1)), 8, 8, 1)


def preactivation(m: Exported, x: str) -> str:
    return m.node("Add", m.conv(m.node("Relu", m.norm(x, 8)), 8, 8), x)


def affine(m: Exported, x: str) -> str:
    """A factor and a term for each channel, with nothing to fold them into."""
    y = m.node(
        "Mul", m.node("MaxPool", x, **window(3, 1)), m.const(m.rng.uniform(0.5, 2, (1, 8, 1, 1)))
    )
    return m.node("Add", y, m.const(m.rng.normal(0, 1, (8, 1, 1))))


def product(m: Exported, x: str) -> str:
    return m.node("Mul", m.conv(x, 8, 8, 1), m.node("Sigmoid", m.conv(x, 8, 8, 1)))


BLOCKS: dict[str, Callable[[Exported, str], str]] = {
    "residual": residual,
    "branches": branches,
    "sliced": sliced,
    "parted": parted,
    "shuffled": shuffled,
    "padded": padded,
    "average": average,
    "preactivation": preactivation,
    "affine": affine,
    "product": product,
}


def network(how: str, block: str, opset: int | None = None) -> bytes:
    """A stem of 8 channels, 12x12, the block, its mean, a linear layer, softmax."""
    m = Exported(how, opset=opset)
    x = m.node("Relu", m.norm(m.conv(m.input(1, 3, 12, 12), 3, 8, bias=False), 8))
    y = BLOCKS[block](m, x)
    channels = 18 if block == "branches" else 8
    y = m.linear(m.flat(m.mean(y)), channels, 10)
    return m.done(m.node("Softmax", y, axis=-1))


def pytorch(how: str) -> bytes:
    """The classifier of docs/compiler.md 6, of 10 classes, without its training."""
    m = Exported(how, opset=17 if how == OLD else 20)

    def block(x: str, c: int, o: int, stride: int) -> str:
        x = m.node("Relu", m.norm(m.conv(x, c, c, stride=stride, group=c, bias=False), c))
        return silu(m, m.norm(m.conv(x, c, o, 1, bias=False), o))

    x = m.node("Relu", m.norm(m.conv(m.input(1, 3, 32, 32), 3, 16, stride=2), 16))
    x = block(block(x, 16, 32, 1), 32, 64, 2)
    if how == OLD:  # x.mean((2, 3)) has its axes as an attribute there
        return m.done(m.linear(m.node("ReduceMean", x, axes=[2, 3], keepdims=0), 64, 10))
    return m.done(m.linear(m.mean(x, keep=False), 64, 10))


def run(data: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What ONNX Runtime makes of it in float."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, feeds)]


def checked(data: bytes) -> bytes:
    """The same; the checker's error for a model that no exporter would write."""
    onnx.checker.check_model(data, full_check=True)
    return data


def zoo(opset: int) -> bytes:
    """A classifier as the ONNX Model Zoo has them: opset 7 to 9, IR version 3, constants among the
    inputs, batch normalisation and Clip with attributes."""
    rng = np.random.default_rng(opset)
    constants: dict[str, np.ndarray] = {}
    nodes = []

    def const(name: str, data: Any) -> str:
        constants[name] = np.asarray(data, np.float32)
        return name

    x, c = "data", 3
    for i, (o, stride, limit) in enumerate(((16, 2, None), (24, 1, 6.0))):
        weights = const(f"w{i}", rng.normal(0, 1.4 / math.sqrt(9 * c), (o, c, 3, 3)))
        fields: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1] * 4}
        fields["strides"] = [stride] * 2
        nodes.append(helper.make_node("Conv", [x, weights], [f"c{i}"], f"conv{i}", **fields))
        names = [const(f"{n}{i}", rng.uniform(0.5, 1.5, o)) for n in ("gamma", "beta", "mean")]
        norm = [f"c{i}", *names, const(f"var{i}", rng.uniform(0.5, 2, o))]
        nodes.append(
            helper.make_node("BatchNormalization", norm, [f"n{i}"], f"bn{i}", epsilon=1e-5)
        )
        kind = "Relu" if limit is None else "Clip"
        ends: dict[str, Any] = {} if limit is None else {"min": 0.0, "max": limit}
        nodes.append(helper.make_node(kind, [f"n{i}"], [f"a{i}"], f"act{i}", **ends))
        x, c = f"a{i}", o
    pool: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes.append(helper.make_node("MaxPool", [x], ["p"], "pool", **pool))
    nodes.append(helper.make_node("GlobalAveragePool", ["p"], ["g"], "gap"))
    nodes.append(helper.make_node("Dropout", ["g"], ["d"], "drop", ratio=0.5))
    nodes.append(helper.make_node("Flatten", ["d"], ["f"], "flat"))
    fc = ["f", const("fw", rng.normal(0, 0.3, (10, c))), const("fb", rng.normal(0, 0.3, 10))]
    nodes.append(helper.make_node("Gemm", fc, ["y"], "fc", transB=1))
    value = helper.make_tensor_value_info
    inputs = [value("data", TensorProto.FLOAT, [1, 3, 32, 32])]
    inputs += [value(n, TensorProto.FLOAT, v.shape) for n, v in constants.items()]
    tensors = [numpy_helper.from_array(v, n) for n, v in constants.items()]
    outputs = [value("y", TensorProto.FLOAT, [1, 10])]
    graph = helper.make_graph(nodes, "zoo", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 3
    return model.SerializeToString()
