# SPDX-License-Identifier: Apache-2.0
"""Functions that a converter left as floats, or as a choice, between tensors of bytes: one table,
of LiteRT's bytes for every byte."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from models.tests.quantised.test_float_tflite import floating
from models.tests.tflite.test_tflite_rarer import runtime, theirs
from openkpu import configs
from openkpu.compiler import build, okpu, run
from openkpu.compiler.calibration import prepare, quantise
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Conv, Host, Move, Table
from openkpu.compiler.onnx import translate
from openkpu.compiler.tflite import translate as tflite
from openkpu.compiler.tflite.floats import float_form
from openkpu.writers import Quant, Value, Weights
from openkpu.writers.flat import FlatTensor
from openkpu.writers.tflite_model import TfliteModel

SHAPE = (1, 8, 8, 4)  # 256 numbers
Make = Callable[[TfliteModel, Value], Value]
IN, OUT = Quant(0.047, 5), Quant(0.031, -20)
DIAGONAL = Weights(np.eye(8, dtype=np.int8).reshape(8, 8, 1, 1) * 100, 0.01)


def inner(m: TfliteModel, dtype: type = np.float32, like: Value | None = None) -> Value:
    """A tensor of floats or truth values, of the shape of all."""
    shape = SHAPE if like is None else like.shape
    inside = tuple(shape[a] for a in (0, 2, 3, 1)) if len(shape) == 4 else shape
    made = m.add_tensor(FlatTensor(f"f{len(m.tensors)}", inside, np.dtype(dtype)))
    return Value(m.tensors[made].name, shape, Quant(1.0))


class Floats(TfliteModel):
    """A model without bytes."""


def floats(m: TfliteModel, x: Value) -> Value:
    if isinstance(m, Floats):
        return x
    y = inner(m, like=x)
    m.op("DEQUANTIZE", [x], [y], "DequantizeOptions")
    return y


def bytes_of(m: TfliteModel, x: Value, out: Quant = OUT) -> Value:
    if isinstance(m, Floats):
        return x
    y = m.value(x.shape, out)
    m.op("QUANTIZE", [x], [y], "QuantizeOptions")
    return y


def number(m: TfliteModel, value: float) -> int:
    return m.integers(np.array(value), np.float32)


def unary(kind: str, options: str = "", out: Quant = OUT, **fields: float) -> Make:
    """DEQUANTIZE, an operator of floats, QUANTIZE."""

    def make(m: TfliteModel, x: Value) -> Value:
        y = inner(m)
        m.op(kind, [floats(m, x)], [y], options, "", **fields)
        return bytes_of(m, y, out)

    return make


def with_number(kind: str, value: float, options: str, first: bool = False, act: int = 0) -> Make:
    def make(m: TfliteModel, x: Value) -> Value:
        y, one = inner(m), floats(m, x)
        other = number(m, value)
        fields = {"fusedActivationFunction": act} if act else {}
        m.op(kind, [other, one] if first else [one, other], [y], options, "", **fields)
        return bytes_of(m, y)

    return make


def squared_apart(m: TfliteModel, x: Value) -> Value:
    """Several operators: of the same floats twice."""
    one, y, z = floats(m, x), inner(m), inner(m)
    m.op("TANH", [one], [y])
    m.op("SQUARED_DIFFERENCE", [one, y], [z], "SquaredDifferenceOptions")
    return bytes_of(m, z)


def chosen(compare: str, dtype: type) -> Make:
    """A SELU as TensorFlow's quantiser leaves it, of bytes or of floats."""

    def make(m: TfliteModel, x: Value) -> Value:
        one = x if dtype == np.int8 else floats(m, x)
        limit = m.constant(np.array(3, np.int8), Quant(0.021, -4))
        condition = inner(m, np.bool_)
        place: Value | int = limit if dtype == np.int8 else number(m, 0.25)
        m.op(compare, [one, place], [condition], "")
        if dtype == np.int8:
            above = m.binary("mul", x, m.constant(np.array(127, np.int8), Quant(0.00827, 0)), OUT)
            below = m.value(SHAPE, OUT)
            m.op("EXP", [x], [below], "ExpOptions")
            y = m.value(SHAPE, OUT)
            m.op("SELECT_V2", [condition, above, below], [y], "SelectV2Options")
            return y
        below, y = inner(m), inner(m)
        m.op("EXP", [one], [below], "ExpOptions")
        m.op("SELECT_V2", [condition, one, below], [y], "SelectV2Options")
        return bytes_of(m, y)

    return make


def softsign(m: TfliteModel, x: Value) -> Value:
    """A quotient of bytes: x / (1 + |x|)."""
    positive = m.unary("abs", x, Quant(0.047, -128))
    more = m.binary(
        "add", positive, m.constant(np.array(100, np.int8), Quant(0.01, 0)), Quant(0.03, -128)
    )
    y = m.value(SHAPE, Quant(1 / 128, 0))
    m.op("DIV", [x, more], [y], "DivOptions")
    return y


def twice(m: TfliteModel, x: Value) -> Value:
    """An island behind another one, whose bytes something else reads."""
    return unary("ELU")(m, unary("NEG", "NegOptions")(m, x))


EXACT: dict[str, Make] = {
    "elu": unary("ELU"),
    "negative": unary("NEG", "NegOptions"),
    "square": unary("SQUARE", "SquareOptions"),
    "exponential": unary("EXP", "ExpOptions"),
    "logistic": unary("LOGISTIC"),
    "tanh": unary("TANH"),
    "gelu": unary("GELU", "GeluOptions"),
    "gelu with tanh": unary("GELU", "GeluOptions", approximate=True),
    "hard swish": unary("HARD_SWISH", "HardSwishOptions"),
    "leaky": unary("LEAKY_RELU", "LeakyReluOptions", alpha=0.3),
    "relu6": unary("RELU6"),
    "floor": unary("FLOOR"),
    "sine": unary("SIN"),
    "cosine": unary("COS", "CosOptions"),
    "zeros": unary("ZEROS_LIKE", "ZerosLikeOptions"),
    "sum": with_number("ADD", 0.37, "AddOptions"),
    "sum, limited": with_number("ADD", 0.37, "AddOptions", act=1),
    "difference": with_number("SUB", 0.37, "SubOptions", first=True),
    "quotient": with_number("DIV", 0.37, "DivOptions"),
    "maximum": with_number("MAXIMUM", -0.6, "MaximumMinimumOptions"),
    "power": with_number("POW", 2.0, "PowOptions"),
    "squared": squared_apart,
    "chosen floats": chosen("GREATER", np.float32),
    "chosen floats below": chosen("LESS_EQUAL", np.float32),
    "chosen": chosen("GREATER", np.int8),
    "chosen, equal": chosen("GREATER_EQUAL", np.int8),
    "chosen below": chosen("LESS", np.int8),
    "softsign": softsign,
    "twice": twice,
}


def every_byte() -> np.ndarray:
    return np.arange(-128, 128, dtype=np.int8).reshape(1, 8, 4, 8)


@pytest.mark.parametrize("name", EXACT)
def test_every_byte(name: str) -> None:
    """The table has LiteRT's bytes; nothing is left for the host, not even two nodes."""
    m = TfliteModel(np.int8)
    x = m.input(SHAPE, IN)
    data = m.finish([EXACT[name](m, x)])
    graph = tflite.read_tflite(data, "net")
    assert [type(n) for n in graph.nodes] == [Table] * (2 if name == "twice" else 1)
    given = every_byte()
    inside = given.transpose(0, 3, 1, 2).astype(np.int64)
    mine = reference.evaluate(graph, {graph.inputs[0]: inside})[graph.outputs[0]]
    want = theirs(runtime(data), given).astype(np.int64).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(mine, want)
    assert len(np.unique(want)) > (1 if name != "zeros" else 0)


def test_halves() -> None:
    """A tie goes to even, as in LiteRT's kernels that are not the reference ones."""
    m = TfliteModel(np.int8)
    x = m.input(SHAPE, Quant(0.5, 5))
    data = m.finish([unary("ABS", "AbsOptions", Quant(1.0, 0))(m, x)])
    (node,) = tflite.read_tflite(data, "net").nodes
    assert isinstance(node, Table)
    want = theirs(runtime(data), every_byte()).reshape(-1)
    np.testing.assert_array_equal(node.table, want)


@pytest.mark.parametrize(
    "name",
    ["elu", "chosen floats", "chosen floats below", "softsign", "power", "squared"],
)
def test_of_floats(name: str) -> None:
    """The same in a float model: LiteRT's numbers, and one table once it is quantised."""
    ort = pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings it")
    m = Floats(np.int8)
    y = m.conv(EXACT[name](m, m.conv(m.input(SHAPE, IN), DIAGONAL, IN)), DIAGONAL, OUT)
    data = floating(m, "float32").finish([y])
    made = float_form.converted(data, "net")
    session = ort.InferenceSession(made)
    rng = np.random.default_rng(2)
    many = [rng.normal(0, 1.5, (1, 8, 4, 8)).astype(np.float32) for _ in range(6)]
    (given,) = session.get_inputs()
    for feed in many[:2]:
        (mine,) = session.run(None, {given.name: feed})
        np.testing.assert_allclose(mine, theirs(runtime(data), feed), rtol=1e-4, atol=1e-5)
    feeds = [{given.name: feed} for feed in many]
    qdq = quantise.quantised_net(prepare.prepared(made, "net"), feeds, "minmax", "net")
    graph = translate.read_onnx(qdq, "net")
    kinds = [type(n) for n in graph.nodes if not isinstance(n, (Move, Host))]
    assert kinds == [Conv, Table, Conv]
    assert build.build_program(graph, configs.load_config("k210"))


def test_result_of_floats() -> None:
    """A model that ends with such a function of floats: the processor looks it up, as LiteRT."""
    m = TfliteModel(np.int8)
    x = m.input(SHAPE, IN)
    y = inner(m)
    m.op("ELU", [floats(m, m.conv(x, DIAGONAL, IN))], [y])
    data = m.finish([y])
    graph = tflite.read_tflite(data, "net")
    program = okpu.loads_okpu(
        okpu.dumps(build.build_program(graph, configs.load_config("k210"))), "o"
    )
    inside = every_byte().transpose(0, 3, 1, 2).astype(np.int64)
    found = run.run_program(program, {graph.inputs[0]: inside})[graph.outputs[0]]
    want = theirs(runtime(data), every_byte()).transpose(0, 3, 1, 2)
    assert found.dtype == want.dtype == np.float32
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-7)


def test_read_twice() -> None:
    """What else reads the bytes on the way stays."""
    m = TfliteModel(np.int8)
    x = m.input(SHAPE, IN)
    positive = m.unary("abs", x, Quant(0.047, -128))
    other = m.constant(np.array(100, np.int8), Quant(0.01, 0))
    more = m.binary("add", positive, other, Quant(0.03, -128))
    y = m.value(SHAPE, Quant(1 / 128, 0))
    m.op("DIV", [x, more], [y], "DivOptions")
    graph = tflite.read_tflite(m.finish([y, positive]), "net")
    assert [n.operator for n in graph.nodes] == ["ABS", "DIV"]


# ------------------------------------------------------------------------------ refusals
def by_channel(m: TfliteModel, x: Value) -> Value:
    y, numbers = inner(m), m.integers(np.arange(8), np.float32)
    m.op("ADD", [floats(m, x), numbers], [y], "AddOptions")
    return bytes_of(m, y)


def of_two(m: TfliteModel, x: Value) -> Value:
    other, y = m.input(SHAPE, IN), inner(m)
    m.op("ADD", [floats(m, x), floats(m, other)], [y], "AddOptions")
    return bytes_of(m, y)


def by_nothing(m: TfliteModel, x: Value) -> Value:
    y = m.value(SHAPE, OUT)
    m.op("DIV", [m.unary("abs", x, IN), x], [y], "DivOptions")
    return y


def other_scale(m: TfliteModel, x: Value) -> Value:
    condition, y = inner(m, np.bool_), m.value(SHAPE, OUT)
    m.op("GREATER", [x, x], [condition], "GreaterOptions")
    m.op("SELECT_V2", [condition, x, x], [y], "SelectV2Options")
    return y


def infinite(m: TfliteModel, x: Value) -> Value:
    y = inner(m)
    m.op("LOG", [floats(m, m.conv(x, DIAGONAL, IN))], [y])
    return y


def mixed(m: TfliteModel, x: Value) -> Value:
    y = inner(m)
    m.op("ADD", [floats(m, x), x], [y], "AddOptions")
    return bytes_of(m, y)


def fused(m: TfliteModel, x: Value) -> Value:
    return with_number("ADD", 1.0, "AddOptions", act=5)(m, x)


BAD: dict[str, tuple[Make, str]] = {
    "numbers of channels": (by_channel, r"\(ADD\): 'f3' is float32: a float model or a part"),
    "two tensors": (of_two, r"\(ADD\): 'f3' is float32: a float model or a part of one"),
    "division by 0": (by_nothing, r"\(DIV\): a division by 0"),
    "another scale": (other_scale, r"\(SELECT_V2\): 't0' in another scale than the result's"),
    "no number": (infinite, r"\(LOG\): a function of bytes that has no finite number for some"),
    "bytes and floats": (mixed, r"\(ADD\): float32, int8, expected floats"),
    "activation": (fused, r"\(ADD\): fused activation 5, expected none"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    make, text = BAD[name]
    m = TfliteModel(np.int8)
    y = make(m, m.input(SHAPE, IN))
    with pytest.raises(CompileError, match=rf"^net: node '\S+' {text}") as error:
        tflite.read_tflite(m.finish([y]), "net")
    assert "\n" not in str(error.value)


def test_long_chain() -> None:
    """Thousands of operators of floats behind each other are a table like any other."""
    m = TfliteModel(np.int8)
    one = floats(m, m.input(SHAPE, IN))
    for _ in range(3000):
        y = inner(m)
        m.op("NEG", [one], [y], "NegOptions")
        one = y
    graph = tflite.read_tflite(m.finish([bytes_of(m, one, IN)]), "net")
    (node,) = graph.nodes
    assert isinstance(node, Table)
    np.testing.assert_array_equal(node.table, np.arange(-128, 128))


def options_of_another(m: TfliteModel, x: Value) -> Value:
    return unary("LEAKY_RELU", "AddOptions")(m, x)


@pytest.mark.parametrize("make", [options_of_another, unary("LEAKY_RELU")])
@pytest.mark.parametrize("kind", [TfliteModel, Floats])
def test_damaged(kind: type[TfliteModel], make: Make) -> None:
    """Options of another operator, or none; of a model of floats as well."""
    m = kind(np.int8)
    y = make(m, m.input(SHAPE, IN))
    read = tflite.read_tflite
    if kind is Floats:
        m, read = floating(m, "float32"), float_form.converted
    with pytest.raises(CompileError, match=r"^net: node .*options") as error:
        read(m.finish([y]), "net")
    print(error.value)
    assert "\n" not in str(error.value)
