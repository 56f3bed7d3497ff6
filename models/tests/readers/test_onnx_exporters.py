# SPDX-License-Identifier: Apache-2.0
"""ONNX models as torch, TensorFlow and other tools write them, by the rules of test_onnx_reader."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from models.tests.readers.single_operators import SHAPE, build
from models.tests.readers.test_onnx_reader import agree, feeds_of, run
from openkpu import configs
from openkpu.compiler import okpu
from openkpu.compiler.build import build_program
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Conv
from openkpu.compiler.onnx import translate as onnx_reader
from openkpu.compiler.run import run_program


class File:
    """A model of few lines."""

    def __init__(self, opset: int = 17) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.opset, self.count = opset, 0

    def put(self, data: Any, dtype: Any = np.float32) -> str:
        """A constant; its name."""
        self.count += 1
        name = f"c{self.count}"
        self.initializers.append(numpy_helper.from_array(np.asarray(data, dtype), name))
        return name

    def node(self, kind: str, *inputs: str, domain: str = "", **fields: Any) -> str:
        """A node; its output's name."""
        self.count += 1
        name = f"{kind}{self.count}"
        node = helper.make_node(kind, inputs, [name], name=f"n/{name}", domain=domain, **fields)
        self.nodes.append(node)
        return name

    def qdq(self, x: str, scale: float, zero: int = 0, dtype: Any = np.uint8) -> str:
        """QuantizeLinear, DequantizeLinear."""
        words = self.put(scale), self.put(zero, dtype)
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *words), *words)

    def data(self, y: str, shape: tuple, out: tuple, kind: int = TensorProto.FLOAT) -> bytes:
        """The file with the input x and the output y."""
        graph = helper.make_graph(
            self.nodes,
            "g",
            [helper.make_tensor_value_info("x", kind, shape)],
            [helper.make_tensor_value_info(y, TensorProto.FLOAT, out)],
            self.initializers,
        )
        sets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=sets)
        model.ir_version = 8
        return model.SerializeToString()


def test_fake_quantised_weights() -> None:
    """PyTorch's exporter of trained quantisation: float weights, quantised by the graph, float
    biases, ranges of seven bits as a Clip of bytes, Relu between Conv and QuantizeLinear."""
    rng, f = np.random.default_rng(5), File()
    x = f.qdq("x", 0.05, 120)
    words = f.put(rng.uniform(0.004, 0.01, 6)), f.put(np.zeros(6), np.int8)
    w = f.node("QuantizeLinear", f.put(rng.normal(0, 0.4, (6, 3, 3, 3))), *words, axis=0)
    w = f.node("Clip", w, f.put(-127, np.int8), f.put(127, np.int8))
    w = f.node("DequantizeLinear", w, *words, axis=0)
    y = f.node("Conv", x, w, f.put(rng.normal(0, 1, 6)), pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    y = f.node("Relu", y)
    words = f.put(0.04), f.put(0, np.uint8)
    y = f.node("QuantizeLinear", y, *words)
    y = f.node("Clip", y, f.put(0, np.uint8), f.put(127, np.uint8))
    y = f.node("DequantizeLinear", y, *words)
    graph = agree(f.data(y, ("N", 3, 8, 8), ("N", 6, 8, 8)), "torch")
    assert [type(n).__name__ for n in graph.nodes] == ["Host", "Conv", "Table", "Host"]


def test_linear_layer_of_torch() -> None:
    """MatMul with turned weights, the bias an Add of its own; a shape that the graph computes."""
    rng, f = np.random.default_rng(6), File()
    x = f.qdq("x", 0.05, 120)
    shape = f.node("Shape", x)
    first = f.node("Gather", shape, f.put(0, np.int64), axis=0)
    first = f.node("Unsqueeze", first, f.put([0], np.int64))
    target = f.node("Concat", first, f.put([-1], np.int64), axis=0)
    flat = f.qdq(f.node("Reshape", x, target), 0.05, 120)
    words = f.put(rng.uniform(0.004, 0.01, 5)), f.put(np.zeros(5), np.int8)
    weights = f.put(rng.integers(-127, 128, (5, 48)), np.int8)
    w = f.node("DequantizeLinear", weights, *words, axis=0)
    y = f.node("MatMul", flat, f.node("Transpose", w, perm=[1, 0]))
    y = f.node("Add", f.put(rng.normal(0, 1, 5)), y)
    graph = agree(f.data(f.qdq(y, 0.07, 100), ("N", 3, 4, 4), ("N", 5)), "linear")
    assert [type(n).__name__ for n in graph.nodes] == ["Host", "Move", "Dense", "Host"]


def test_bias_that_torch_quantises() -> None:
    """PyTorch's exporter has the bias' scale, zero points and integers computed by the graph."""
    rng, f = np.random.default_rng(8), File()
    x = f.qdq("x", 0.05, 120)
    words = f.put(rng.uniform(0.004, 0.01, 4)), f.put(np.zeros(4), np.int8)
    w = f.node("DequantizeLinear", f.put(rng.integers(-127, 128, (4, 3, 1, 1)), np.int8), *words)
    f.nodes[-1].attribute.append(helper.make_attribute("axis", 0))
    scale = f.node("Mul", words[0], f.put(0.05))
    zero = numpy_helper.from_array(np.zeros(1, np.int32))
    zeros = f.node("ConstantOfShape", f.node("Shape", scale), value=zero)
    bias = rng.normal(0, 1, 4).astype(np.float32)
    made = f.node("QuantizeLinear", f.put(bias), scale, zeros, axis=0)
    made = f.node("DequantizeLinear", made, scale, zeros, axis=0)
    y = f.qdq(f.node("Conv", x, w, made), 0.07, 100)
    graph = onnx_reader.read_onnx(f.data(y, (1, 3, 8, 8), (1, 4, 8, 8)), "torch")
    (node,) = [n for n in graph.nodes if isinstance(n, Conv)]
    steps = node.w_scale * graph.tensors[node.inputs[0]].scale  # pyright: ignore
    assert np.abs(node.bias * steps - bias).max() <= steps.max() / 2 * 1.0001


def test_bias_with_a_quantisation_of_its_own() -> None:
    """MatMul and Add each quantised, the bias int8: an element-wise node with a constant."""
    rng, f = np.random.default_rng(9), File()
    x = f.qdq("x", 0.05, 120)
    weights = f.put(rng.integers(-127, 128, (20, 6)), np.int8)
    w = f.node("DequantizeLinear", weights, f.put(rng.uniform(0.004, 0.01, 6)), axis=1)
    y = f.qdq(f.node("MatMul", x, w), 0.06, 110)
    bias = f.node("DequantizeLinear", f.put(rng.integers(-127, 128, 6), np.int8), f.put(0.02))
    y = f.qdq(f.node("Relu", f.node("Add", y, bias)), 0.05, 0)
    graph = agree(f.data(y, (1, 20), (1, 6)), "matmul")
    assert [n.kind for n in graph.nodes] == ["host", "dense", "elementwise", "host"]


def test_chain_of_functions_is_one_table() -> None:
    """x * clip(x + 3, 0, 6) / 6 and GELU by Erf, written out, with one rounding."""
    f = File()
    x = f.qdq("x", 0.05, 120)
    gate = f.node("Clip", f.node("Add", x, f.put(3.0)), f.put(0.0), f.put(6.0))
    y = f.qdq(f.node("Div", f.node("Mul", x, gate), f.put(6.0)), 0.03, 13)
    graph = agree(f.data(y, (1, 2, 16, 16), (1, 2, 16, 16)), "swish")
    assert [type(n).__name__ for n in graph.nodes] == ["Host", "Table", "Host"]
    f = File()
    x = f.qdq("x", 0.05, 120)
    share = f.node("Add", f.node("Erf", f.node("Div", x, f.put(2**0.5))), f.put(1.0))
    y = f.qdq(f.node("Mul", f.node("Mul", x, share), f.put(0.5)), 0.03, 13)
    graph = agree(f.data(y, (1, 2, 16, 16), (1, 2, 16, 16)), "gelu")
    assert [type(n).__name__ for n in graph.nodes] == ["Host", "Table", "Host"]


def test_joins_of_other_scales_are_requantised() -> None:
    """Concat in QDQ: parts with scales of their own, the result with another."""
    f = File()
    a, b = f.qdq("x", 0.05, 120), f.qdq("x", 0.09, 60)
    y = f.qdq(f.node("Relu", f.node("Concat", a, b, axis=1)), 0.06, 10)
    graph = agree(f.data(y, (1, 2, 8, 8), (1, 4, 8, 8)), "concat")
    assert [n.kind for n in graph.nodes].count("move") == 1


@pytest.mark.parametrize("count", [0, 1])
def test_average_with_ceil_and_counted_pads(count: int) -> None:
    f = File()
    x = f.qdq("x", 0.05, 120)
    fields: dict[str, Any] = {"ceil_mode": 1 - count, "count_include_pad": count}
    y = f.node("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], **fields)
    size = 5 if count else 6
    agree(f.data(f.qdq(y, 0.04, 100), (1, 2, 10, 10), (1, 2, size, size)), "average")


@pytest.mark.parametrize("late", [True, False])
def test_signals(late: bool) -> None:
    """(1, C, L): convolutions with a bias of their own or an Add, pools, means; reshapes around
    maps of one line, which cost the device nothing between two of them."""
    rng, f = np.random.default_rng(11), File(opset=18)
    x = f.qdq("x", 0.05, 120)
    words = f.put(rng.uniform(0.004, 0.01, 6)), f.put(np.zeros(6), np.int8)
    w = f.node("DequantizeLinear", f.put(rng.integers(-127, 128, (6, 3, 5)), np.int8), *words)
    f.nodes[-1].attribute.append(helper.make_attribute("axis", 0))
    bias = rng.normal(0, 1, 6)
    fields: dict[str, Any] = {"pads": [2, 1], "strides": [2], "dilations": [1], "kernel_shape": [5]}
    if late:
        y = f.node("Add", f.node("Conv", x, w, **fields), f.put(bias.reshape(1, 6, 1)))
    else:
        y = f.node("Conv", x, w, f.put(bias), **fields)
    y = f.qdq(f.node("Relu", y), 0.06, 0)
    y = f.qdq(f.node("MaxPool", y, kernel_shape=[2], strides=[2]), 0.06, 0)
    y = f.qdq(f.node("AveragePool", y, kernel_shape=[3], pads=[1, 1]), 0.05, 3)
    w = f.node("DequantizeLinear", f.put(rng.integers(-127, 128, (6, 1, 3)), np.int8), f.put(0.01))
    y = f.qdq(f.node("Conv", y, w, group=6, auto_pad="SAME_UPPER"), 0.06, 100)
    kept = f.data(y, (1, 3, 40), (1, 6, 10))
    graph = agree(kept, "signal")
    assert graph.tensors[graph.outputs[0]].shape == (1, 6, 10)
    kinds = [n.kind for n in graph.nodes if n.kind not in ("host", "move")]
    assert kinds == ["conv", "pool", "pool", "conv"]
    y = f.qdq(f.node("ReduceMean", y, f.put([-1], np.int64), keepdims=0), 0.05, 100)
    agree(f.data(y, (1, 3, 40), (1, 6)), "signal")


def test_softmax_at_the_end_stays_float() -> None:
    f = File()
    y = f.node("Softmax", f.qdq("x", 0.05, 120), axis=-1)
    data = f.data(y, (1, 10), (1, 10))
    graph = onnx_reader.read_onnx(data, "softmax")
    assert graph.nodes[-1].outputs == (y,)
    feeds = feeds_of(graph, 1)
    found = reference.evaluate(graph, feeds)[y]
    assert np.allclose(found, run(data, feeds)[0], atol=1e-6) and found.dtype == np.float32


def test_function_at_the_end_stays_float() -> None:
    """Tanh without QuantizeLinear, as quantize_static leaves it: a table of the processor."""
    f = File()
    x = f.qdq("x", 0.05, 120)
    y = f.node("Tanh", f.qdq(f.node("MaxPool", x, kernel_shape=[2, 2]), 0.05, 120))
    data = f.data(y, (1, 2, 9, 9), (1, 2, 8, 8))
    graph = onnx_reader.read_onnx(data, "tanh")
    assert [n.kind for n in graph.nodes] == ["host", "pool", "host"]
    feeds = feeds_of(graph, 1)
    found = reference.evaluate(graph, feeds)[y]
    assert found.dtype == np.float32 and np.allclose(found, run(data, feeds)[0], atol=1e-6)
    program = build_program(graph, configs.load_config("small"))
    again = okpu.loads_okpu(okpu.dumps(program), "net.okpu")
    assert np.array_equal(run_program(again, feeds)[y], found)


def test_sizes_below_0_are_open() -> None:
    """-1 for a batch, as TensorFlow's users write it."""
    f = File()
    y = f.qdq(f.node("MaxPool", f.qdq("x", 0.05, 120), kernel_shape=[2, 2], strides=[2, 2]), 0.05)
    data = f.data(y, (-1, 3, 10, 8), (-1, 3, 5, 4))
    assert onnx_reader.read_onnx(data, "m").tensors["x"].shape == (1, 3, 10, 8)
    data = f.data(y, (-1, 3, -1, -1), (-1, 3, -1, -1))
    graph = onnx_reader.read_onnx(data, "m", shape=(1, 3, 10, 8))
    assert graph.tensors[graph.outputs[0]].shape == (1, 3, 5, 4)
    with pytest.raises(CompileError, match="a dynamic shape; --shape=1x3xNxN fixes it"):
        onnx_reader.read_onnx(data, "m")


def test_what_no_output_needs() -> None:
    """Nodes that exporters leave behind, and the mask of a Dropout: onnxruntime leaves them out."""
    f = File()
    x = f.qdq("x", 0.05, 120)
    f.node("NonZero", "x")
    f.node("Dropout", f.node("Sin", "x"))
    f.nodes[-1].output.append("")  # a second result that is left out, as is an input of Clip below
    x = f.qdq(f.node("Clip", x, "", f.put(np.float32(2))), 0.05, 120)
    pooled = f.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    f.nodes[-1].output.append("indices")
    dropped = f.node("Dropout", f.qdq(pooled, 0.05, 120))
    f.nodes[-1].output.append("mask")
    graph = agree(f.data(dropped, (1, 3, 10, 8), (1, 3, 5, 4)), "m")
    assert not [node.name for node in graph.nodes if "NonZero" in node.name or "Sin" in node.name]


def test_a_mask_that_is_read() -> None:
    f = File()
    dropped = f.node("Dropout", f.qdq("x", 0.05, 120))
    f.nodes[-1].output.append("mask")
    y = f.qdq(f.node("Where", "mask", dropped, dropped), 0.05, 120)
    with pytest.raises(CompileError, match="the mask is an output, expected the values only"):
        onnx_reader.read_onnx(f.data(y, (1, 3, 10, 8), (1, 3, 10, 8)), "m")


def test_shape_fixes_an_open_one() -> None:
    f = File()
    y = f.qdq(f.node("MaxPool", f.qdq("x", 0.05, 120), kernel_shape=[2, 2], strides=[2, 2]), 0.05)
    data = f.data(y, ("N", 3, "H", "W"), ("N", 3, "h", "w"))
    graph = onnx_reader.read_onnx(data, "m", shape=(1, 3, 10, 8))
    assert graph.tensors["x"].shape == (1, 3, 10, 8)
    assert graph.tensors[graph.outputs[0]].shape == (1, 3, 5, 4)
    with pytest.raises(CompileError) as error:
        onnx_reader.read_onnx(data, "m")
    assert str(error.value) == (
        "m: input 'x' is Nx3xHxW, a dynamic shape; --shape=1x3xNxN fixes it"
    )
    with pytest.raises(CompileError, match="--shape=1x4x10x8 does not fit input 'x'"):
        onnx_reader.read_onnx(data, "m", shape=(1, 4, 10, 8))


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("back", ["float", "bytes", "none"])
def test_layout_of_tensorflow(early: bool, back: str) -> None:
    """Turned to (N, C, H, W) before or behind the quantisation, and back at the end: no node of the
    graph, but the layout of input and output."""
    rng, f = np.random.default_rng(7), File()
    x = f.node("Transpose", "x", perm=[0, 3, 1, 2]) if early else "x"
    x = f.qdq(x, 0.05, 120)
    x = x if early else f.node("Transpose", x, perm=[0, 3, 1, 2])
    data = f.put(rng.integers(-127, 128, (4, 3, 3, 3)), np.int8)
    w = f.node("DequantizeLinear", data, f.put(0.004))
    y = f.node("Conv", x, w)
    words = f.put(0.06), f.put(100, np.uint8)
    y = f.node("QuantizeLinear", y, *words)
    if back == "bytes":
        y = f.node("Transpose", y, perm=[0, 2, 3, 1])
    y = f.node("DequantizeLinear", y, *words)
    if back == "float":
        y = f.node("Transpose", y, perm=[0, 2, 3, 1])
    out = (1, 4, 6, 5) if back == "none" else (1, 6, 5, 4)
    data = f.data(y, (1, 8, 7, 3), out)
    graph = onnx_reader.read_onnx(data, "tf")
    assert [n.kind for n in graph.nodes] == ["host", "conv", "host"]
    first, last = graph.tensors["x"], graph.tensors[y]
    assert (first.shape, first.layout) == ((1, 3, 8, 7), "NHWC")
    layout = "NCHW" if back == "none" else "NHWC"
    assert (last.shape, last.layout, graph.outputs) == ((1, 4, 6, 5), layout, [y])
    values = feeds_of(graph, 2)
    (theirs,) = run(data, {"x": values["x"].transpose(0, 2, 3, 1)})
    mine = reference.evaluate(graph, values)[y]
    mine = mine if back == "none" else mine.transpose(0, 2, 3, 1)
    assert (mine != theirs).sum() <= 1


def test_layout_of_the_input() -> None:
    graph = onnx_reader.read_onnx(build("conv3x3", "qdq"), "x")
    assert graph.tensors[graph.inputs[0]].layout == "NCHW"
    assert graph.tensors[graph.inputs[0]].shape == SHAPE


def test_float_biases_are_rounded() -> None:
    """To steps of input scale times weights' scale, to the nearest."""
    f = File()
    x = f.qdq("x", 0.5, 120)
    w = f.node("DequantizeLinear", f.put(np.ones((3, 2, 1, 1)), np.int8), f.put(0.25))
    bias = f.put([0.125 * 3.4, 0.125 * 3.6, -0.125 * 2.7])
    y = f.qdq(f.node("Conv", x, w, bias), 0.7, 100)
    graph = onnx_reader.read_onnx(f.data(y, (1, 2, 4, 4), (1, 3, 4, 4)), "bias")
    (node,) = [n for n in graph.nodes if isinstance(n, Conv)]
    assert node.bias.tolist() == [3, 4, -3]


def test_reshape_keeps_sizes_by_zeros() -> None:
    f = File()
    y = f.node("Reshape", f.qdq("x", 0.05, 120), f.put([0, 0, -1], np.int64))
    graph = agree(f.data(f.qdq(y, 0.05, 120), (1, 6, 4, 5), (1, 6, 20)), "reshape")
    assert graph.tensors[graph.outputs[0]].shape == (1, 6, 20)


@pytest.mark.parametrize("kind", ["Sub", "Div", "Max", "Pow"])
@pytest.mark.parametrize("first", [True, False])
def test_constants_on_either_side(kind: str, first: bool) -> None:
    """3 - x is not x - 3; 3 / x is infinite at 0, which is the end of the output's range."""
    f = File()
    x, c = f.qdq("x", 0.05, 120), f.put(3.0)
    y = f.qdq(f.node(kind, c, x) if first else f.node(kind, x, c), 0.04, 60)
    data = f.data(y, (1, 2, 16, 16), (1, 2, 16, 16))
    agree(data, kind)


@pytest.mark.parametrize("kind", ["Log", "Sqrt", "Reciprocal"])
def test_no_number_is_an_end_or_refused(kind: str) -> None:
    """1 / 0 and log 0 are infinite; the root or logarithm of a number below 0 is none."""
    f = File()
    y = f.qdq(f.node(kind, f.qdq("x", 0.05, 0)), 0.04, 120)
    agree(f.data(y, (1, 2, 16, 16), (1, 2, 16, 16)), kind)
    if kind != "Reciprocal":
        f = File()
        y = f.qdq(f.node(kind, f.qdq("x", 0.05, 1)), 0.04, 120)
        with pytest.raises(CompileError, match="has no value for some bytes"):
            onnx_reader.read_onnx(f.data(y, (1, 2, 16, 16), (1, 2, 16, 16)), "net")


def test_difference_of_two_functions() -> None:
    """Both of the same bytes: x - tanh(x) is one table."""
    f = File()
    x = f.qdq("x", 0.05, 120)
    y = f.qdq(f.node("Sub", x, f.node("Tanh", x)), 0.04, 60)
    graph = agree(f.data(y, (1, 2, 16, 16), (1, 2, 16, 16)), "sub")
    assert [n.kind for n in graph.nodes].count("table") == 1


def test_bytes_with_two_meanings() -> None:
    """Two consumers give the same bytes other scales: each computes with its own."""
    f = File()
    bytes_ = f.node("QuantizeLinear", "x", f.put(0.05), f.put(120, np.uint8))
    parts = [
        f.node("DequantizeLinear", bytes_, f.put(scale), f.put(zero, np.uint8))
        for scale, zero in ((0.05, 120), (0.09, 90))
    ]
    y = f.qdq(f.node("Add", *parts), 0.11, 110)
    agree(f.data(y, (1, 2, 8, 8), (1, 2, 8, 8)), "two")


def test_infinite_limit_is_none() -> None:
    f = File()
    y = f.node("Clip", f.qdq("x", 0.05, 120), f.put(-1.0), f.put(np.inf))
    agree(f.data(f.qdq(y, 0.05, 120), (1, 2, 8, 8), (1, 2, 8, 8)), "clip")


def test_outputs_have_their_names() -> None:
    """Also where bytes only move, and where two outputs are one tensor."""
    f = File()
    x = f.qdq("x", 0.05, 120)
    moved = f.node("Transpose", x, perm=[0, 1, 3, 2])
    words = f.put(0.05), f.put(120, np.uint8)
    y = f.node("QuantizeLinear", moved, *words)
    data = f.data(y, (1, 2, 4, 8), (1, 2, 8, 4))
    model = onnx.load_model_from_string(data)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.UINT8
    model.graph.node.append(helper.make_node("Identity", [y], ["again"]))
    second = helper.make_tensor_value_info("again", TensorProto.UINT8, (1, 2, 8, 4))
    model.graph.output.append(second)
    graph = agree(model.SerializeToString(), "names")
    assert graph.outputs == [y, "again"]


def test_local_functions_are_followed() -> None:
    """A function of the model itself is no custom operator."""
    f = File()
    x = f.qdq("x", 0.05, 120)
    y = f.node("Twice", x, domain="own")
    data = f.data(f.qdq(y, 0.1, 120), (1, 2, 8, 8), (1, 2, 8, 8))
    model = onnx.load_model_from_string(data)
    body = [helper.make_node("Add", ["a", "a"], ["b"])]
    sets = [helper.make_opsetid("", 17)]
    model.functions.append(helper.make_function("own", "Twice", ["a"], ["b"], body, sets))
    model.opset_import.append(helper.make_opsetid("own", 1))
    graph = agree(model.SerializeToString(), "functions")
    assert [n.kind for n in graph.nodes] == ["host", "table", "host"]


def test_largest_of_the_whole_map() -> None:
    f = File()
    y = f.qdq(f.node("GlobalMaxPool", f.qdq("x", 0.05, 120)), 0.05, 120)
    agree(f.data(y, (1, 3, 6, 5), (1, 3, 1, 1)), "largest")


def test_other_turns_are_moves() -> None:
    """Only from (N, H, W, C) to (N, C, H, W) is a layout."""
    f = File()
    x = f.node("Transpose", f.qdq("x", 0.05, 120), perm=[0, 1, 3, 2])
    y = f.qdq(f.node("MaxPool", x, kernel_shape=[2, 1]), 0.05, 120)
    graph = agree(f.data(y, (1, 2, 6, 5), (1, 2, 4, 6)), "turn")
    assert graph.tensors["x"].layout == "NCHW" and graph.tensors["x"].shape == (1, 2, 6, 5)


def test_outputs_without_a_shape() -> None:
    f = File()
    y = f.qdq(f.node("MaxPool", f.qdq("x", 0.05, 120), kernel_shape=[2, 1]), 0.05, 120)
    model = onnx.load_model_from_string(f.data(y, (1, 2, 6, 5), (1, 2, 5, 5)))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    graph = agree(model.SerializeToString(), "open")
    assert graph.tensors[y].shape == (1, 2, 5, 5)
