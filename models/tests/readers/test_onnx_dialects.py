# SPDX-License-Identifier: Apache-2.0
"""ONNX models as exporters leave them, each against onnxruntime and the golden model: numbers for
each channel in float, batch norm, batches, types and shapes that a reader may mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from models.tests.readers.single_operators import build as build_case
from models.tests.readers.test_onnx_exporters import File
from models.tests.readers.test_onnx_reader import agree, run
from openkpu import configs
from openkpu.compiler import build
from openkpu.compiler import run as execute
from openkpu.compiler.data import result
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Conv, Graph, Move
from openkpu.compiler.onnx import translate as onnx_reader

SHAPE = (1, 4, 9, 8)
RNG = np.random.default_rng(11)
Make = Callable[[File, str], str]


def weights(f: File, *shape: int) -> str:
    """int8 weights with a scale for each output."""
    data, scale = RNG.integers(-127, 128, shape), RNG.uniform(0.005, 0.02, shape[0])
    words = f.put(data, np.int8), f.put(scale), f.put(np.zeros(shape[0]), np.int8)
    return f.node("DequantizeLinear", *words, axis=0)


def conv(f: File, x: str, out: int = 8, inner: int = 4, bias: bool = True) -> str:
    more = [f.put(RNG.normal(size=out))] if bias else []
    return f.node("Conv", x, weights(f, out, inner, 3, 3), *more, pads=[1] * 4)


def numbers(low: float, high: float, *shape: int) -> np.ndarray:
    return RNG.uniform(low, high, shape).astype(np.float32)


def device(graph: Graph) -> None:
    """The golden model's bytes of the device are those of the reference."""
    program = build.build_program(graph, configs.load_config("k210"))
    assert not sum(r.steps for r in program.reports.values() if not r.missed)
    rng = np.random.default_rng(5)
    x = {n: rng.uniform(-7, 7, graph.tensors[n].shape).astype(np.float32) for n in graph.inputs}
    found, exact = execute.run_program(program, x), reference.evaluate(graph, x)
    for name in graph.outputs:
        assert (found[name] != exact[name]).mean() < 0.01


def model(make: Make, shape: tuple[Any, ...] = SHAPE, opset: int = 17, scale: float = 0.3) -> bytes:
    """x quantised, then ``make``, then quantised again."""
    f = File(opset)
    y = f.qdq(make(f, f.qdq("x", 0.05, 128)), scale, 120)
    graph = onnx.load_model_from_string(f.data(y, shape, (None,)))
    graph.graph.output[0].type.tensor_type.ClearField("shape")
    return graph.SerializeToString()


def norm(f: File, x: str, count: int = 8) -> str:
    """A batch norm, some of its factors below 0 and one of them 0."""
    scale = numbers(-1, 1, count)
    scale[2] = 0
    words = scale, numbers(-1, 1, count), numbers(-1, 1, count), numbers(0.2, 2, count)
    return f.node("BatchNormalization", x, *(f.put(w) for w in words), epsilon=1e-3)


AFFINE: dict[str, Make] = {
    "norm": lambda f, x: norm(f, conv(f, x)),
    "norm without bias": lambda f, x: norm(f, conv(f, x, bias=False)),
    "norm, relu": lambda f, x: f.node("Relu", norm(f, conv(f, x))),
    "norm of bytes": lambda f, x: norm(f, f.qdq(conv(f, x), 0.3, 120)),
    "norm of an input": lambda f, x: norm(f, x, 4),
    "norm of bytes, relu": lambda f, x: f.node("Relu", norm(f, f.qdq(conv(f, x), 0.3, 120))),
    "factor": lambda f, x: f.node("Mul", conv(f, x), f.put(numbers(-2, 2, 8, 1, 1))),
    "number": lambda f, x: f.node("Mul", conv(f, x), f.put(2.5)),
    "quotient": lambda f, x: f.node("Div", conv(f, x), f.put(numbers(1, 2, 1, 8, 1, 1))),
    "difference": lambda f, x: f.node("Sub", f.put(numbers(-2, 2, 8, 1, 1)), conv(f, x)),
    "factor of bytes": lambda f, x: f.node("Mul", x, f.put(numbers(-2, 2, 4, 1, 1))),
    "sum with bytes": lambda f, x: f.node("Add", f.put(numbers(-2, 2, 4, 1, 1)), x),
    "quotient of bytes": lambda f, x: f.node("Div", x, f.put(numbers(1, 2, 4, 1, 1))),
    "less bytes": lambda f, x: f.node("Sub", f.put(numbers(-2, 2, 4, 1, 1)), x),
}


@pytest.mark.parametrize("case", AFFINE)
def test_numbers_for_each_channel(case: str) -> None:
    """They become weights and biases: biases in whole steps of the sum, so that a byte may be one
    step off onnxruntime's, which has floats; a wrong factor would show in most of them."""
    data = model(AFFINE[case])
    graph = onnx_reader.read_onnx(data, case)
    assert {type(n) for n in graph.nodes if n.kind != "host"} == {Conv}
    x = {"x": RNG.uniform(-7, 7, SHAPE).astype(np.float32)}
    mine, theirs = reference.evaluate(graph, x)[graph.outputs[0]], run(data, x)[0]
    steps = np.abs(mine - theirs) / 0.3
    assert steps.max() < 1.01 and (steps > 0.5).mean() < 0.02
    assert np.unique(theirs).size > 20
    device(graph)


def test_norm_of_vectors() -> None:
    """Behind a product, and of bytes of rank 2."""
    f = File()
    x = f.qdq("x", 0.05, 128)
    y = norm(f, f.node("Gemm", x, weights(f, 8, 20), transB=1))
    z = norm(f, f.qdq(y, 0.05, 128))
    graph = agree(f.data(f.qdq(z, 0.05, 128), (1, 20), (1, 8)), "vectors")
    device(graph)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda f, x: norm(f, f.node("Relu", conv(f, x))), "between an activation and this"),
        (lambda f, x: f.node("Div", x, f.put([[[0.0]], [[1]], [[1]], [[1]]])), "divides by 0"),
        (lambda f, x: f.node("Div", f.put(numbers(1, 2, 4, 1, 1)), x), "expected one number"),
        (lambda f, x: norm(f, x, 5), "numbers, expected 4"),
        (
            lambda f, x: f.node(
                "BatchNormalization", x, *(f.put(np.full(4, v)) for v in (1, 1, 1, -1))
            ),
            "a variance below 0",
        ),
    ],
)
def test_numbers_that_are_refused(make: Make, text: str) -> None:
    with pytest.raises(CompileError, match=text):
        onnx_reader.read_onnx(model(make), "net.onnx")


# --------------------------------------------------------------------- types and shapes
@pytest.mark.parametrize("kind", [TensorProto.INT8, TensorProto.UINT8])
def test_type_that_an_attribute_names(kind: int) -> None:
    """QuantizeLinear without a zero point: ``output_dtype`` says what it gives."""
    f = File(21)
    scale = f.put(0.05)
    x = f.node("DequantizeLinear", f.node("QuantizeLinear", "x", scale, output_dtype=kind), scale)
    graph = agree(f.data(f.qdq(f.node("Relu", x), 0.05), SHAPE, SHAPE), "typed")
    want = "int8" if kind == TensorProto.INT8 else "uint8"
    assert graph.tensors[graph.nodes[0].outputs[0]].dtype == want
    m = onnx.load_model_from_string(f.data(x, SHAPE, SHAPE))
    zero = helper.make_tensor("zero", TensorProto.INT8, (), [0])
    m.graph.initializer.append(zero)
    m.graph.node[0].input.append("zero")
    if kind == TensorProto.UINT8:
        with pytest.raises(CompileError, match="output_dtype uint8, its zero point is int8"):
            onnx_reader.read_onnx(m.SerializeToString(), "m")


@pytest.mark.parametrize("shape", [(5,), (1, 5), (1,), ()])
def test_bias_that_is_spread(shape: tuple[int, ...]) -> None:
    f = File()
    y = f.node(
        "Gemm", f.qdq("x", 0.05, 128), weights(f, 5, 20), f.put(numbers(-3, 3, *shape)), transB=1
    )
    agree(f.data(f.qdq(y, 0.1, 100), (5, 20), (5, 5)), "bias")


@pytest.mark.parametrize("shape", [(5, 1), (5, 5)])
def test_bias_for_each_line(shape: tuple[int, ...]) -> None:
    """As many lines as outputs: no number for each output."""
    f = File()
    y = f.node(
        "Gemm", f.qdq("x", 0.05, 128), weights(f, 5, 20), f.put(numbers(-3, 3, *shape)), transB=1
    )
    with pytest.raises(CompileError, match=r"expected \(5,\), a number a channel"):
        onnx_reader.read_onnx(f.data(f.qdq(y, 0.1, 100), (5, 20), (5, 5)), "bias")


@pytest.mark.parametrize("kind", ["Add", "Mul", "Max"])
def test_number_with_more_axes(kind: str) -> None:
    """It gives the result its axes."""
    f = File()
    y = f.node(kind, f.put(np.full((1, 1, 1), 0.3)), f.qdq("x", 0.05, 128))
    graph = agree(f.data(f.qdq(y, 0.07, 128), (1, 10), (1, 1, 10)), "axes")
    assert graph.tensors[graph.outputs[0]].shape == (1, 1, 10)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64])
def test_class_in_another_type(kind: int) -> None:
    f = File()
    y = f.qdq(conv(f, f.qdq("x", 0.05, 128)), 0.3, 120)
    y = f.node("Cast", f.node("ArgMax", y, axis=1, keepdims=0), to=kind)
    m = onnx.load_model_from_string(f.data(y, SHAPE, (1, 9, 8)))
    m.graph.output[0].type.tensor_type.elem_type = kind
    graph = agree(m.SerializeToString(), "class")
    program = build.build_program(graph, configs.load_config("k210"))
    x = {"x": RNG.uniform(-7, 7, SHAPE).astype(np.float32)}
    name = graph.outputs[0]
    made = result(graph.tensors[name], execute.run_program(program, x)[name])
    assert made.dtype == helper.tensor_dtype_to_np_dtype(kind)
    assert np.array_equal(made, run(m.SerializeToString(), x)[0])


@pytest.mark.parametrize("kind", ["Max", "Min"])
def test_many_operands(kind: str) -> None:
    """Of three tensors with scales of their own, one rounding; of one nothing is left."""
    f = File()
    x = f.qdq("x", 0.05, 128)
    others = [f.qdq(conv(f, x, 4), s, z) for s, z in ((0.11, 90), (0.07, 131))]
    y = f.node(kind, f.node(kind, x), *others)
    data = f.data(f.qdq(y, 0.06, 120), SHAPE, SHAPE)
    graph = onnx_reader.read_onnx(data, kind)
    x = {"x": RNG.uniform(-7, 7, SHAPE).astype(np.float32)}
    steps = np.abs(reference.evaluate(graph, x)[graph.outputs[0]] - run(data, x)[0]) / 0.06
    assert steps.max() < 1.01 and (steps > 0.5).mean() < 0.1  # where it is a tie
    device(graph)


@pytest.mark.parametrize("late", [True, False])
def test_padding_with_a_number(late: bool) -> None:
    """Behind DequantizeLinear, as quantize_static leaves it; of the floats of an input."""
    f = File()
    x = f.qdq("x", 0.05, 128) if late else "x"
    value = f.qdq(f.put(0.5), 0.05, 0) if late else f.put(2.0)
    y = f.node("Pad", x, f.put([0, 0, 1, 1, 0, 0, 2, 1], np.int64), value)
    y = y if late else f.qdq(y, 0.05, 128)
    y = f.qdq(conv(f, y), 0.3, 120)
    agree(f.data(y, SHAPE, (1, 8, 12, 10)), "pad")


@pytest.mark.parametrize(
    "number", [0.52, -1.27, 40.0, float("-inf"), float("inf")], ids=lambda v: f"{v:g}"
)
def test_padding_with_a_number_between_steps(number: float) -> None:
    """No step of the input: one of the output, which has a scale of its own."""
    f = File()
    words = f.put([0, 2, 1, 1, 0, 0, 2, 1], np.int64), f.put(number)
    y = f.qdq(f.node("Pad", f.qdq("x", 0.05, 128), *words), 0.037, 90)
    graph = agree(f.data(y, SHAPE, (1, 6, 12, 10)), "pad")
    assert {n.how for n in graph.nodes if isinstance(n, Move)} == {"pad"}
    data = f.data(f.qdq(conv(f, y, 8, 6), 0.3, 120), SHAPE, (1, 8, 12, 10))
    device(onnx_reader.read_onnx(data, "pad"))


@pytest.mark.parametrize("kind", ["Relu", "HardSwish"])
def test_padding_behind_a_function(kind: str) -> None:
    """One table, then the number in the output's steps."""
    f = File()
    words = f.put([0, 0, 1, 1, 0, 0, 2, 1], np.int64), f.put(0.33)
    y = f.qdq(f.node("Pad", f.node(kind, f.qdq("x", 0.05, 128)), *words), 0.0297, 20)
    data = f.data(y, SHAPE, (1, 4, 12, 10))
    x = {"x": RNG.uniform(-7, 7, SHAPE).astype(np.float32)}
    graph = onnx_reader.read_onnx(data, kind)
    steps = np.abs(reference.evaluate(graph, x)[graph.outputs[0]] - run(data, x)[0]) / 0.0297
    assert steps.max() < 1.01 and (steps > 0.5).mean() < 0.02  # float32 may lie beyond a tie
    data = f.data(f.qdq(conv(f, y), 0.3, 120), SHAPE, (1, 8, 12, 10))
    device(onnx_reader.read_onnx(data, kind))


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize("late", [True, False])
def test_padding_with_the_map(mode: str, late: bool) -> None:
    """The map's own elements once more, of bytes or of floats."""
    f = File(19)
    x = f.qdq("x", 0.05, 128) if late else "x"
    y = f.node("Pad", x, f.put([0, 1, 3, 1, 0, 0, 2, 4], np.int64), mode=mode)
    y = f.qdq(y, 0.05, 128)
    agree(f.data(y, SHAPE, (1, 5, 14, 13)), mode)
    data = f.data(f.qdq(conv(f, y, 8, 5), 0.3, 120), SHAPE, (1, 8, 14, 13))
    device(onnx_reader.read_onnx(data, mode))


def test_padding_that_is_refused() -> None:
    for pads, mode, text in (
        ([0, 0, 9, 0, 0, 0, 0, 0], "reflect", "reflect with pads"),
        ([0, 0, 1, 0, 0, 0, 0, 0], "mirror", "mode mirror, expected constant, reflect"),
        ([0, 0, -9, 0, 0, 0, 0, 0], "edge", "leave nothing of"),
        ([0, 0, 1, 0, 0, 0], "edge", "expected 8 numbers"),
    ):
        f = File()
        y = f.node("Pad", f.qdq("x", 0.05, 128), f.put(pads, np.int64), mode=mode)
        m = onnx.load_model_from_string(f.data(f.qdq(y, 0.05, 128), SHAPE, (None,)))
        m.graph.output[0].type.tensor_type.ClearField("shape")
        with pytest.raises(CompileError, match=text):
            onnx_reader.read_onnx(m.SerializeToString(), "net.onnx")


FACTORS = [(0.37, 1.0, 0), (1.0, -2.5, 0), (-1.5, 0.25, 1), (2.0, 0.0, 1), (0.0, 1.0, 0)]


@pytest.mark.parametrize(("alpha", "beta", "turned"), FACTORS)
@pytest.mark.parametrize("integers", [True, False])
def test_product_with_factors(alpha: float, beta: float, turned: int, integers: bool) -> None:
    """Gemm with alpha, beta and transA: the bias as floats, or as bytes of 32 bits."""
    f = File()
    real = numbers(-3, 3, 5)
    bias = f.put(real)
    if integers:
        bias = f.node(
            "DequantizeLinear", f.put(np.rint(real / 1e-3), np.int32), f.put(1e-3), axis=0
        )
    how = {"alpha": alpha, "beta": beta, "transA": turned, "transB": 1}
    y = f.node("Gemm", f.qdq("x", 0.05, 128), weights(f, 5, 20), bias, **how)
    shape = (20, 1) if turned else (1, 20)
    graph = agree(f.data(f.qdq(y, 0.1, 100), shape, (1, 5)), "factors")
    device(graph)


@pytest.mark.parametrize("alpha", [0.37, -2.0])
def test_quantised_product_with_a_factor(alpha: float) -> None:
    """QGemm: alpha is of the bias as well."""
    m = onnx.load_model_from_string(build_case("fully", "qoperator"))
    (node,) = [n for n in m.graph.node if n.op_type == "QGemm"]
    for old in [a for a in node.attribute if a.name == "alpha"]:
        node.attribute.remove(old)
    node.attribute.append(helper.make_attribute("alpha", alpha))
    agree(m.SerializeToString(), "QGemm")


def test_oldest_opset() -> None:
    """Opset 10, the first one with quantisation: limits and pads are attributes."""
    f = File(10)
    x = f.node("Clip", f.qdq("x", 0.05, 128), min=-1.0, max=1.5)
    x = f.node("Pad", f.qdq(x, 0.05, 128), pads=[0, 0, 1, 1, 0, 0, 2, 1])
    data, scale = f.put(RNG.integers(-127, 128, (5, 4, 3, 3)), np.int8), f.put(0.01)
    w = f.node("DequantizeLinear", data, scale, f.put(0, np.int8))
    y = f.qdq(f.node("Conv", x, w), 0.1, 128)
    agree(f.data(y, SHAPE, (1, 5, 10, 8)), "opset 10")


# ------------------------------------------------------------------------------ batches
def net(f: File, x: str, shape: list[int]) -> str:
    y = f.qdq(conv(f, x), 0.3, 120)
    y = f.node("GlobalAveragePool", y)
    y = f.node("Reshape", f.qdq(y, 0.02, 120), f.put(shape, np.int64))
    return f.node("Gemm", y, weights(f, 5, 8), transB=1)


@pytest.mark.parametrize("shape", [[4, 8], [4, -1], [-1, 8], [0, -1]])
def test_batch(shape: list[int]) -> None:
    """Each inference is that of onnxruntime, which computes all four at once."""
    data = model(lambda f, x: net(f, x, shape), (4, *SHAPE[1:]), scale=0.02)
    graph = onnx_reader.read_onnx(data, "batch")
    assert graph.batch == 4 and graph.tensors["x"].shape == SHAPE
    x = RNG.uniform(-7, 7, (4, *SHAPE[1:])).astype(np.float32)
    (theirs,) = run(data, {"x": x})
    mine = [reference.evaluate(graph, {"x": one[None]})[graph.outputs[0]] for one in x]
    apart = np.abs(np.concatenate(mine) - theirs)
    assert apart.shape == (4, 5) and apart.max() < 0.05 and np.ptp(theirs) > 1


def turned(kind: str, **fields: Any) -> Make:
    return lambda f, x: f.node(kind, x, **fields)


MIXED: dict[str, Make] = {
    "reshape": lambda f, x: f.node("Reshape", x, f.put([1, -1], np.int64)),
    "flatten": turned("Flatten", axis=0),
    "transpose": turned("Transpose", perm=[1, 0, 2, 3]),
    "unsqueeze": lambda f, x: f.node("Unsqueeze", x, f.put([0], np.int64)),
    "slice": lambda f, x: f.node("Slice", x, *(f.put([v], np.int64) for v in (0, 1, 0))),
    "concat": lambda f, x: f.node("Concat", x, x, axis=0),
    "pad": lambda f, x: f.node("Pad", x, f.put([1, 0, 0, 0, 0, 0, 0, 0], np.int64)),
    "gather": lambda f, x: f.node("Gather", x, f.put([1, 0], np.int64), axis=0),
    "mean": turned("ReduceMean", axes=[0, 1]),
    "sum of all": turned("ReduceSum"),
    "argmax": lambda f, x: f.node("ArgMax", x, axis=0),
    "softmax": turned("Softmax", axis=0),
    "log softmax": turned("LogSoftmax", axis=0),
    "lengths": turned("LpNormalization", axis=0, p=2),
    "layer norm": lambda f, x: f.qdq(
        f.node("LayerNormalization", x, f.put(1.0), axis=0), 0.05, 120
    ),
}


@pytest.mark.parametrize("case", MIXED)
def test_batch_that_is_mixed(case: str) -> None:
    """An operator along the first axis is refused: one inference at a time is another result."""
    f = File()
    y = MIXED[case](f, f.qdq(conv(f, f.qdq("x", 0.05, 128)), 0.3, 120))
    m = onnx.load_model_from_string(f.data(y, (4, *SHAPE[1:]), (None,)))
    m.graph.output[0].type.tensor_type.ClearField("shape")
    if case == "argmax":
        m.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    with pytest.raises(CompileError, match="mixes the 4 inferences"):
        onnx_reader.read_onnx(m.SerializeToString(), "net.onnx")


def test_inputs_of_other_batches() -> None:
    f = File()
    y = f.node("Add", f.qdq("x", 0.05, 128), f.qdq("z", 0.05, 128))
    m = onnx.load_model_from_string(f.data(f.qdq(y, 0.1, 128), (4, *SHAPE[1:]), (4, *SHAPE[1:])))
    m.graph.input.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, SHAPE))
    with pytest.raises(CompileError, match="another one has a batch of 4"):
        onnx_reader.read_onnx(m.SerializeToString(), "net.onnx")


@pytest.mark.parametrize("kind", ["ConvInteger", "MatMulInteger", "DynamicQuantizeLinear"])
def test_dynamic_quantisation_says_what_to_do(kind: str) -> None:
    f = File()
    inputs = ["x"] if kind.startswith("Dynamic") else ["x", f.put(np.ones((4, 4, 1, 1)), np.uint8)]
    y = f.node("Cast", f.node(kind, *inputs), to=TensorProto.FLOAT)
    if len(inputs) == 1:
        f.nodes[0].output.extend(["scale", "zero"])
    m = onnx.load_model_from_string(f.data(y, SHAPE, SHAPE))
    if len(inputs) > 1:
        m.graph.input[0].type.tensor_type.elem_type = TensorProto.UINT8
    with pytest.raises(CompileError, match="static quantisation: onnxruntime's quantize_static"):
        onnx_reader.read_onnx(m.SerializeToString(), "net.onnx")


def test_functions_of_the_same_steps_are_joined_as_bytes() -> None:
    """A ReLU that the quantiser left in float gives numbers of the input's own scale."""
    f = File()
    x = f.qdq("x", 0.05, 100)
    y = f.qdq(f.node("Concat", f.node("Relu", x), x, axis=1), 0.05, 100)
    data = f.data(y, SHAPE, (SHAPE[0], 2 * SHAPE[1], *SHAPE[2:]))
    agree(data, "joined")
