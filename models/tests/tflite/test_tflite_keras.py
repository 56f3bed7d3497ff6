# SPDX-License-Identifier: Apache-2.0
"""What Keras exports around convolutions: places that are gathered, squares of differences,
operands that are spread, first states of recurrent layers, group normalisation, beside LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.tests.quantised.test_float_tflite import floating
from models.tests.readers.single_operators import weights
from models.tests.tflite.test_tflite_rarer import Q, runtime, theirs
from models.tests.tflite.test_tflite_reductions import beside_litert
from openkpu.compiler.errors import CompileError
from openkpu.compiler.tflite import translate as tflite
from openkpu.compiler.tflite.floats import float_form
from openkpu.writers import Quant, Value
from openkpu.writers.flat import FlatTensor
from openkpu.writers.tflite_model import TfliteModel

Shape = tuple[int, ...]
Make = Callable[[TfliteModel, Value], Value]
MAP, ROWS = (1, 6, 4, 8), (1, 12, 8)  # as the file has them
RNG = np.random.default_rng(8)


def put(m: TfliteModel, kind: str, inputs: list[Any], shape: Shape, **fields: Any) -> Value:
    """An operator whose result has this shape in the file."""
    q, options = fields.pop("q", Q), fields.pop("options", "")
    inner = tuple(shape[a] for a in (0, 3, 1, 2)) if len(shape) == 4 else shape
    y = m.value(inner, q)
    m.op(kind, inputs, [y], options, "", **fields)
    return y


def gathered(shape: Shape, axis: int, places: Any) -> tuple[Shape, Make]:
    def make(m: TfliteModel, x: Value) -> Value:
        out = np.take(np.empty(shape), places, axis).shape
        at = m.integers(np.asarray(places, np.int32))
        y = put(m, "GATHER", [x, at], out, options="GatherOptions", axis=axis)
        return put(m, "ADD", [y, y], out, options="AddOptions", q=Quant(0.0931, 2))

    return shape, make


def apart(shape: Shape, axis: int, kind: str = "SQUARED_DIFFERENCE") -> tuple[Shape, Make]:
    """From the first elements along an axis."""

    def make(m: TfliteModel, x: Value) -> Value:
        one = tuple(1 if i == axis else n for i, n in enumerate(shape))
        ends = [m.integers([0] * len(shape)), m.integers(list(one))]
        first = put(m, "SLICE", [x, *ends], one, options="SliceOptions")
        options = "" if kind.startswith("SQ") else f"{kind.capitalize()}Options"
        y = put(m, kind, [x, first], shape, options=options, q=Quant(0.0713, -60))
        if options:
            return y
        return put(m, "ADD", [y, y], shape, options="AddOptions", q=Quant(0.171, 2))

    return shape, make


def recurrent(m: TfliteModel, x: Value) -> Value:
    """A cell of a vector: the first state is a FILL, then a product of it."""
    data = np.array(3, np.int8)
    zero = m.add_tensor(FlatTensor("zero", (), data.dtype, data, [0.05], [3], 0))
    first = put(m, "FILL", [m.integers([1, 8]), zero], (1, 8), options="FillOptions")
    w = [weights(np.random.default_rng(n), 0, 8, 8) for n in (1, 2)]
    y = m.fully(x, w[0], Quant(0.061, -4))
    state = m.fully(first, w[1], Quant(0.061, 5))
    return put(m, "ADD", [y, state], (1, 8), options="AddOptions", q=Quant(0.083, 2))


def before_it(m: TfliteModel, x: Value) -> Value:
    """A constant row in front of the others, as a class token has it."""
    data = RNG.integers(-128, 128, (1, 1, 8)).astype(np.int8)
    row = m.add_tensor(FlatTensor("row", data.shape, data.dtype, data, [0.05], [3], 0))
    options = {"options": "ConcatenationOptions", "axis": 1}
    y = put(m, "CONCATENATION", [row, x], (1, 13, 8), **options)
    return put(m, "ADD", [y, y], (1, 13, 8), options="AddOptions", q=Quant(0.0931, 2))


def given_input(m: TfliteModel, shape: Shape) -> Value:
    return m.input([shape[a] for a in (0, 3, 1, 2)] if len(shape) == 4 else list(shape), Q)


CASES: dict[str, tuple[Shape, Make]] = {
    "a channel": gathered(MAP, 3, 5),
    "lines": gathered(MAP, 1, [5, 0, 0, 2]),
    "columns backwards": gathered(MAP, -2, [3, 2, 1, 0]),
    "rows": gathered(ROWS, 1, [[0, 3], [11, 7]]),
    "squares of rows": apart(ROWS, 2),
    "squares of steps": apart(ROWS, 1),
    "squares of a map": apart(MAP, 3),
    "rows less their first": apart(ROWS, 2, "SUB"),
    "steps by the first": apart(ROWS, 1, "MUL"),
    "a first state": ((1, 8), recurrent),
    "a constant row": (ROWS, before_it),
}


@pytest.mark.parametrize("name", CASES)
def test_of_bytes(name: str) -> None:
    """LiteRT's bytes but for its roundings; the device's are the reference's."""
    shape, make = CASES[name]
    m = TfliteModel(np.int8)
    data = m.finish([make(m, given_input(m, shape))])
    beside_litert(data, shape, "small", ("two", "half", "fixed", "function"))


def grouped(groups: int, gain: bool, square: str) -> tuple[Shape, Make]:
    """Keras' GroupNormalization of a map, whose channels are apart in groups."""
    shape = (*MAP[:3], groups, MAP[3] // groups)

    def make(m: TfliteModel, x: Value) -> Value:
        sizes, one = m.integers(list(shape)), (1, 1, 1, groups, 1)
        x = put(m, "RESHAPE", [x, sizes], shape, options="ReshapeOptions")
        axes, mean = m.integers([1, 2, 4]), {"options": "ReducerOptions", "keepDims": True}
        m1 = put(m, "MEAN", [x, axes], one, **mean)
        minus = put(m, "NEG", [m1], one, options="NegOptions")
        if square == "SQUARE":
            less = put(m, "SUB", [x, m1], shape, options="SubOptions")
            power = put(m, "SQUARE", [less], shape, options="SquareOptions")
        else:
            power = put(m, "SQUARED_DIFFERENCE", [x, m1], shape)
        more = [put(m, "MEAN", [power, axes], one, **mean), m.integers(1e-3, np.float32)]
        factor = put(m, "RSQRT", [put(m, "ADD", more, one, options="AddOptions")], one)
        wide = one
        if gain:
            wide = (1, 1, 1, groups, shape[4])
            numbers = np.random.default_rng(3).uniform(0.5, 2, wide)
            inputs = [factor, m.integers(numbers, np.float32)]
            factor = put(m, "MUL", inputs, wide, options="MulOptions")
        shift = put(m, "MUL", [minus, factor], wide, options="MulOptions")
        scaled = put(m, "MUL", [x, factor], shape, options="MulOptions")
        y = put(m, "ADD", [scaled, shift], shape, options="AddOptions")
        return put(m, "RESHAPE", [y, m.integers(list(MAP))], MAP, options="ReshapeOptions")

    return MAP, make


GROUPS = {
    "four groups": grouped(4, True, "SQUARE"),
    "one group": grouped(1, True, "SQUARED_DIFFERENCE"),
    "instances": grouped(8, False, "SQUARE"),
}


@pytest.mark.parametrize("name", [*CASES, *GROUPS])
def test_of_floats(name: str) -> None:
    """The ONNX model computes LiteRT's numbers; a group normalisation is one operator."""
    onnx = pytest.importorskip("onnx", reason="make setup GROUPS=models brings onnx")
    ort = pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings it")
    shape, make = (CASES | GROUPS)[name]
    m = TfliteModel(np.int8)
    y = make(m, given_input(m, shape))
    data = floating(m, "float32").finish([y])
    converted = float_form.converted(data, "net")
    kinds = {n.op_type for n in onnx.load_model_from_string(converted).graph.node}
    assert ("InstanceNormalization" in kinds) == (name in GROUPS)
    assert name not in GROUPS or not kinds & {"ReduceMean", "Sqrt", "Sub"}
    session = ort.InferenceSession(converted)
    given = np.random.default_rng(2).normal(0.4, 2, shape).astype(np.float32)
    (mine,) = session.run(None, {session.get_inputs()[0].name: given})
    np.testing.assert_allclose(mine, theirs(runtime(data), given), rtol=1e-4, atol=1e-5)


def test_a_place_that_is_not_there() -> None:
    m = TfliteModel(np.int8)
    inputs = [given_input(m, MAP), m.integers([0, 8])]
    y = put(m, "GATHER", inputs, (*MAP[:3], 2), options="GatherOptions", axis=3)
    with pytest.raises(CompileError, match=r"places \[0, 8\], the axis has 8"):
        tflite.read_tflite(m.finish([y]), "net")
