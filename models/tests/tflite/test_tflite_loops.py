# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers of float TFLite files, as loops and as LSTM, and turned axes: LiteRT's numbers,
and the reference's bytes once they are calibrated; loops without a known end are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from models.tests.quantised.test_float_tflite import floating
from models.tests.tflite.test_tflite_rarer import Q, runtime, theirs
from openkpu import configs
from openkpu.compiler import agree, build
from openkpu.compiler.calibration import prepare, quantise
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.onnx import translate as onnx_translate
from openkpu.compiler.tflite import loops
from openkpu.compiler.tflite import translate as tflite
from openkpu.compiler.tflite.floats import float_form
from openkpu.words import option
from openkpu.writers import Quant, Value
from openkpu.writers.flat import FlatGraph, FlatTensor
from openkpu.writers.tflite_model import TfliteModel

ort = pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")

ONE = Quant(1.0)
STEPS, SIZE, HIDDEN = 5, 3, 4
Part = tuple[Value | int, ...]


def plain(m: TfliteModel, shape: Sequence[int], dtype: type = np.float32, **more: Any) -> Value:
    """A tensor without scales."""
    shape = tuple(int(n) for n in shape)
    tensor = FlatTensor(f"p{len(m.tensors)}", shape, np.dtype(dtype), **more)
    m.add_tensor(tensor)
    return Value(tensor.name, shape, ONE)


def number(m: TfliteModel, data: npt.ArrayLike) -> Value:
    """A constant of floats."""
    data = np.asarray(data, np.float32)
    return plain(m, data.shape, data=data)


def counted(m: TfliteModel, data: npt.ArrayLike) -> Value:
    """A constant of integers."""
    data = np.asarray(data, np.int32)
    return plain(m, data.shape, np.int32, data=data)


def given(m: TfliteModel, shape: Sequence[int], dtype: type = np.float32) -> Value:
    value = plain(m, shape, dtype)
    m.inputs.append(m._index[value.name])
    return value


def made(
    m: TfliteModel,
    kind: str,
    inputs: Sequence[Value],
    shape: Sequence[int],
    options: str = "",
    dtype: type = np.float32,
    **fields: Any,
) -> Value:
    y = plain(m, shape, dtype)
    m.op(kind, inputs, [y], options, **fields)
    return y


def until(limit: int, *shapes: tuple[int, ...], of: str = "counter") -> FlatGraph:
    """Of variables (counter, *shapes): is the counter below the limit, or is it about a number?"""
    m = TfliteModel(np.float32)
    counter = given(m, (), np.int32)
    states = [given(m, shape) for shape in shapes]
    if of == "counter":
        return m.graph([made(m, "LESS", [counter, counted(m, limit)], (), dtype=np.bool_)])
    least = made(
        m, "REDUCE_MIN", [states[0], counted(m, range(len(shapes[0])))], (), "ReducerOptions"
    )
    return m.graph([made(m, "LESS", [least, number(m, float(limit))], (), dtype=np.bool_)])


def step_of(
    seed: int, way: str, back: bool = False, nested: bool = False, shift: int = 0
) -> FlatGraph:
    """Of variables (counter, state (1, H), results (STEPS, 1, H), data (STEPS, 1, SIZE)): a step
    of h = tanh(W x + R h + b), whose result is put into its place of the list."""
    rng, m = np.random.default_rng(seed), TfliteModel(np.float32)
    i, h = given(m, (), np.int32), given(m, (1, HIDDEN))
    results, data = given(m, (STEPS, 1, HIDDEN)), given(m, (STEPS, 1, SIZE))
    place = made(m, "SUB", [counted(m, STEPS - 1), i], (), "SubOptions", np.int32) if back else i
    x = made(m, "GATHER", [data, place], (1, SIZE), "GatherOptions")
    weights, again = (number(m, rng.normal(0, 0.7, (HIDDEN, n))) for n in (SIZE, HIDDEN))
    bias = number(m, rng.normal(0, 0.3, HIDDEN))
    dense = "FullyConnectedOptions"
    ahead = made(m, "FULLY_CONNECTED", [x, weights, bias], (1, HIDDEN), dense)
    behind = plain(m, (1, HIDDEN))
    m.op("FULLY_CONNECTED", [h, again, -1], [behind], dense)
    z = made(m, "ADD", [ahead, behind], (1, HIDDEN), "AddOptions")
    new = made(m, "TANH", [z], (1, HIDDEN))
    if nested:  # h = 0.5 * h, twice
        ends = [plain(m, (), np.int32), plain(m, (1, HIDDEN))]
        fields = {"condSubgraphIndex": 3, "bodySubgraphIndex": 4}
        m.op("WHILE", [counted(m, 0), new], ends, "WhileOptions", "", **fields)
        new = ends[1]
    one = made(m, "RESHAPE", [new, counted(m, [1, 1, HIDDEN])], (1, 1, HIDDEN), "ReshapeOptions")
    after = made(m, "ADD", [i, counted(m, 1)], (), "AddOptions", np.int32)
    if way == "update":
        put = made(m, "ADD", [place, counted(m, shift)], (), "AddOptions", np.int32)
        start = made(
            m,
            "PACK",
            [put, counted(m, 0), counted(m, 0)],
            (3,),
            "PackOptions",
            np.int32,
            valuesCount=3,
        )
        listed = made(m, "DYNAMIC_UPDATE_SLICE", [results, one, start], (STEPS, 1, HIDDEN))
    else:
        listed = cut(m, results, one, place)
    return m.graph([after, new, listed, data])


def cut(m: TfliteModel, results: Value, one: Value, place: Value) -> Value:
    """The list with another element, as TensorFlow lowers it: two slices, one of them empty at
    either end, and a join. The file leaves their sizes open."""
    at = made(m, "RESHAPE", [place, counted(m, [1])], (1,), "ReshapeOptions", np.int32)
    join = {"options": "ConcatenationOptions", "dtype": np.int32}
    size = made(m, "CONCATENATION", [at, counted(m, [-1, -1])], (3,), **join)
    behind = made(m, "ADD", [place, counted(m, 1)], (), "AddOptions", np.int32)
    first = made(m, "RESHAPE", [behind, counted(m, [1])], (1,), "ReshapeOptions", np.int32)
    begin = made(m, "CONCATENATION", [first, counted(m, [0, 0])], (3,), **join)
    parts = []
    for ends in ([counted(m, [0, 0, 0]), size], [begin, counted(m, [-1, -1, -1])]):
        part = plain(m, (1, 1, 1), open=(-1, -1, -1))
        m.op("SLICE", [results, *ends], [part], "SliceOptions")
        parts.append(part)
    whole = [parts[0], one, parts[1]]
    return made(m, "CONCATENATION", whole, (STEPS, 1, HIDDEN), "ConcatenationOptions")


def halved() -> FlatGraph:
    m = TfliteModel(np.float32)
    i, h = given(m, (), np.int32), given(m, (1, HIDDEN))
    after = made(m, "ADD", [i, counted(m, 1)], (), "AddOptions", np.int32)
    return m.graph([after, made(m, "MUL", [h, number(m, [0.5])], (1, HIDDEN), "MulOptions")])


SHAPES = (1, HIDDEN), (STEPS, 1, HIDDEN), (STEPS, 1, SIZE)


def looped(
    way: str = "cut",
    result: str = "list",
    steps: int = STEPS,
    body: FlatGraph | None = None,
    condition: FlatGraph | None = None,
    count: int = 4,
    graph: int = 2,
    **fields: Any,
) -> bytes:
    """x (1, STEPS, SIZE) -> all states, or the last one."""
    m = TfliteModel(np.float32)
    x = given(m, (1, STEPS, SIZE))
    turned = counted(m, [STEPS, 1, SIZE])
    data = made(m, "RESHAPE", [x, turned], (STEPS, 1, SIZE), "ReshapeOptions")
    rng = np.random.default_rng(2)
    first = [number(m, rng.normal(0, 0.5, shape)) for shape in SHAPES[:2]]
    ends = [plain(m, (), np.int32), *(plain(m, shape) for shape in SHAPES)]
    ins = [counted(m, 0), *first, data]
    places = {"condSubgraphIndex": 1, "bodySubgraphIndex": graph}
    m.op("WHILE", ins[:count], ends[:count], "WhileOptions", "", **places)
    y = ends[1] if result == "last" else ends[2]
    more = [until(2, SHAPES[0]), halved()] if fields.get("nested") else []
    body = body or step_of(1, way, **fields)
    return m.finish([y], condition or until(steps, *SHAPES), body, *more)


@pytest.mark.parametrize("back", [False, True], ids=["forward", "back"])
@pytest.mark.parametrize("way", ["cut", "update"])
@pytest.mark.parametrize("result", ["list", "last"])
def test_steps(way: str, result: str, back: bool) -> None:
    check(looped(way, result, back=back))


def test_loop_in_a_loop() -> None:
    check(looped(nested=True))


@pytest.mark.parametrize("back", [False, True], ids=["forward", "back"])
@pytest.mark.parametrize("way", ["cut", "update"])
@pytest.mark.parametrize("steps", [1, STEPS - 2])
def test_fewer_steps(steps: int, way: str, back: bool) -> None:
    """The places that no step fills keep their numbers."""
    check(looped(way, steps=steps, back=back))


@pytest.mark.parametrize("shift", [-2, 3])
def test_places_beyond_the_list(shift: int) -> None:
    """An update begins where it fits."""
    check(looped("update", shift=shift))


def test_outputs_keep_their_names() -> None:
    data = looped()
    session, interpreter = ort.InferenceSession(float_form.converted(data, "net")), runtime(data)
    expected = [entry["name"] for entry in interpreter.get_output_details()]
    assert [entry.name for entry in session.get_outputs()] == expected


def test_a_comparison_is_no_place_to_end() -> None:
    m = TfliteModel(np.float32)
    x = given(m, (1, 4))
    which = made(m, "GREATER", [x, number(m, [0.0])], (1, 4), dtype=np.bool_)
    y = plain(m, (1, 4))
    m.op("IF", [which], [y], "IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=1)
    with pytest.raises(CompileError, match="control flow") as error:
        float_form.converted(m.finish([y], halved()), "net")
    assert option("ends", "") not in str(error.value)


def test_no_step() -> None:
    with pytest.raises(CompileError, match=r"output 'p.*' is not computed"):
        float_form.converted(looped(steps=0), "net")


def check(data: bytes, feed: npt.NDArray | None = None, places: float = 2e-6) -> npt.NDArray:
    """LiteRT's numbers; calibrated, the compiled program has the reference's bytes."""
    onnx = float_form.converted(data, "net")
    session, interpreter = ort.InferenceSession(onnx), runtime(data)
    entry = session.get_inputs()[0]
    rng = np.random.default_rng(7)
    feeds = rng.normal(0, 1, (6, *entry.shape)).astype(np.float32)
    if feed is not None:
        feeds = feed[None]
    for x in feeds:
        interpreter.reset_all_variables()
        want = theirs(interpreter, x)
        (found,) = session.run(None, {entry.name: x})
        assert found.shape == want.shape
        np.testing.assert_allclose(found, want, atol=places)
    if feed is None:
        many = [{entry.name: x} for x in feeds]
        done = quantise.quantised_net(prepare.prepared(onnx, "net"), many, "minmax", "net")
        graph = onnx_translate.read_onnx(done, "net")
        program = build.build_program(graph, configs.load_config("small"))
        assert agree.faults(graph, program, many[0]) == []
        (got,) = (reference.evaluate(graph, many[-1])[name] for name in graph.outputs)
        assert np.abs(got.reshape(want.shape) - want).max() < 0.1
    return want


def test_a_loop_that_depends_on_numbers_is_refused() -> None:
    states = until(3, *SHAPES, of="state")
    with pytest.raises(CompileError, match=r"\(WHILE\): a loop whose steps are not known before"):
        float_form.converted(looped(condition=states), "net")


def test_an_endless_loop_is_refused() -> None:
    """The counter stays."""
    m = TfliteModel(np.float32)
    ends = [given(m, (), np.int32), *(given(m, shape) for shape in SHAPES)]
    with pytest.raises(CompileError, match="a loop of more than 4,096 steps"):
        float_form.converted(looped(body=m.graph(ends)), "net")


def test_as_many_steps_as_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MOST_STEPS", STEPS - 1)
    check(looped(steps=STEPS - 1))
    with pytest.raises(CompileError, match=f"a loop of more than {STEPS - 1} steps"):
        float_form.converted(looped(), "net")


@pytest.mark.parametrize("more", [{"count": 3}, {"graph": 7}, {"graph": 0}, {"graph": 1}], ids=str)
def test_damaged_loops(more: dict[str, Any]) -> None:
    with pytest.raises(CompileError, match="damaged TFLite model"):
        float_form.converted(looped(**more), "net")


def test_a_loop_of_bytes() -> None:
    """Three sums with a constant; each has the network's scale."""
    m, body = TfliteModel(np.int8), TfliteModel(np.int8)
    x = m.input((1, 8, 6, 4), Q)
    ends = [plain(m, (), np.int32), m.value(x.shape, Q)]
    places = {"condSubgraphIndex": 1, "bodySubgraphIndex": 2}
    m.op("WHILE", [counted(m, 0), x], ends, "WhileOptions", "", **places)
    i, h = given(body, (), np.int32), body.input((1, 8, 6, 4), Q)
    after = made(body, "ADD", [i, counted(body, 1)], (), "AddOptions", np.int32)
    more = body.constant(np.full((1, 8, 1, 1), 17, np.int8), Q)
    y = body.binary("add", h, more, Q)
    below = TfliteModel(np.int8)
    counter, _ = given(below, (), np.int32), below.input((1, 8, 6, 4), Q)
    condition = made(below, "LESS", [counter, counted(below, 3)], (), dtype=np.bool_)
    data = m.finish([ends[1]], below.graph([condition]), body.graph([after, y]))
    graph, interpreter = tflite.read_tflite(data, "net"), runtime(data)
    assert [node.operator for node in graph.nodes] == ["ADD"] * 3
    feed = np.random.default_rng(1).integers(-128, 128, (1, 8, 6, 4))
    want = theirs(interpreter, feed.transpose(0, 2, 3, 1).astype(np.int8))
    found = reference.evaluate(graph, {graph.inputs[0]: feed})[graph.outputs[0]]
    assert np.abs(found.transpose(0, 2, 3, 1).astype(int) - want).max() <= 1
    program = build.build_program(graph, configs.load_config("small"))
    assert agree.faults(graph, program, {graph.inputs[0]: feed}) == []


# ------------------------------------------------------------------------------------------- LSTM
def lstm(
    shape: tuple[int, int, int] = (1, 6, SIZE),
    major: bool = False,
    clip: float = 10.0,
    size: float = 0.5,
    more: dict[int, Sequence[int]] | None = None,
    without: Sequence[int] = (),
    act: int = 4,
    states: str = "zeros",
) -> bytes:
    """x (batch, steps, SIZE), or with steps in front -> all states; ``more`` inputs of a shape."""
    rng, m = np.random.default_rng(5), TfliteModel(np.float32)
    x = given(m, shape)
    batch = shape[1] if major else shape[0]
    shapes = [(HIDDEN, SIZE)] * 4 + [(HIDDEN, HIDDEN)] * 4
    inputs: list[Any] = [x, *(number(m, rng.normal(0, size, s)) for s in shapes), -1, -1, -1]
    inputs += [number(m, rng.normal(size, size, HIDDEN)) for _ in range(4)]
    first = [plain(m, (batch, HIDDEN), variable=True) for _ in range(2)]
    inputs += [-1, -1, *first, -1, -1, -1, -1]
    for at, extent in (more or {}).items():
        inputs[at] = number(m, rng.normal(0, 0.5, extent))
    for at in without:
        inputs[at] = -1
    y = plain(m, (*shape[:2], HIDDEN))
    fields = {"fusedActivationFunction": act, "cellClip": clip, "timeMajor": major}
    m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [y], "UnidirectionalSequenceLSTMOptions", **fields)
    return m.finish([y])


FORMS: dict[str, dict[str, Any]] = {
    "batch in front": {},
    "steps in front": {"shape": (6, 1, SIZE), "major": True},
    "no limit": {"clip": 0.0},
    "one step": {"shape": (1, 1, SIZE)},
    "three sequences": {"shape": (3, 6, SIZE)},
    "three sequences, steps in front": {"shape": (6, 3, SIZE), "major": True},
}


@pytest.mark.parametrize("form", FORMS)
def test_lstm(form: str) -> None:
    check(lstm(**FORMS[form]))


def test_the_limit_of_a_cell() -> None:
    """Above a limit of 0.4 the states differ from those without one."""
    shape, feed = (1, 20, SIZE), np.ones((1, 20, SIZE), np.float32)
    limited, free = (check(lstm(shape, clip=clip), feed) for clip in (0.4, 0.0))
    assert np.abs(limited - free).max() > 0.01


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("it has peepholes", {"more": dict.fromkeys((9, 10, 11), (HIDDEN,))}),
        ("it has a projection", {"more": {16: (HIDDEN, HIDDEN)}}),
        ("it has a layer normalisation", {"more": dict.fromkeys(range(20, 24), (HIDDEN,))}),
        ("no weights of an input gate", {"without": [1, 5, 12]}),
        ("activation 1, expected TANH", {"act": 1}),
        ("weights .* do not fit", {"more": dict.fromkeys(range(1, 5), (HIDDEN, 2))}),
        ("expected as many of each", {"more": {3: (HIDDEN, 2)}}),
    ],
)
def test_refused_lstm(words: str, change: dict[str, Any]) -> None:
    with pytest.raises(CompileError, match=words):
        float_form.converted(lstm(**change), "net")


def test_lstm_of_bytes_is_refused() -> None:
    """Its state has 16 bits. The input is no place to end."""
    m = TfliteModel(np.int8)
    x = m.input((1, 4, 3), Q)
    y = m.value((1, 4, 5), Q)
    m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", [x], [y], "UnidirectionalSequenceLSTMOptions")
    with pytest.raises(CompileError, match="quantised, expected the float model") as error:
        tflite.read_tflite(m.finish([y]), "net")
    assert option("ends", "") not in str(error.value) and str(error.value).endswith("operators")


# ---------------------------------------------------------------------------------- turned axes
AXES = pytest.mark.parametrize("axes", [[1], [2], [3], [-1], [1, 2]], ids=str)


def turned(axes: list[int]) -> tuple[TfliteModel, Value, Value]:
    """A map and the map with these axes turned around."""
    m = TfliteModel(np.int8)
    x = m.input((1, 8, 6, 4), Q)
    y = m.value(x.shape, Q)
    m.op("REVERSE_V2", [x, m.integers(axes)], [y], "ReverseV2Options")
    return m, x, y


@AXES
def test_turned_axes_of_floats(axes: list[int]) -> None:
    m, _, y = turned(axes)
    data = floating(m, "float32").finish([y])
    feed = np.random.default_rng(1).normal(0, 1, (1, 6, 4, 8)).astype(np.float32)
    session = ort.InferenceSession(float_form.converted(data, "net"))
    (found,) = session.run(None, {session.get_inputs()[0].name: feed})
    np.testing.assert_array_equal(found, theirs(runtime(data), feed))


@AXES
def test_turned_axes_of_bytes(axes: list[int]) -> None:
    m, x, y = turned(axes)
    data, feed = m.finish([y]), np.random.default_rng(1).integers(-128, 128, (1, 8, 6, 4))
    graph = tflite.read_tflite(data, "net")
    found = reference.evaluate(graph, {graph.inputs[0]: feed})[graph.outputs[0]]
    want = theirs(runtime(data), feed.transpose(0, 2, 3, 1).astype(np.int8))
    np.testing.assert_array_equal(found.transpose(0, 2, 3, 1), want)
    graph = tflite.read_tflite(m.finish([m.binary("add", x, y, Q)]), "net")
    program = build.build_program(graph, configs.load_config("small"))
    assert agree.faults(graph, program, {graph.inputs[0]: feed}) == []
