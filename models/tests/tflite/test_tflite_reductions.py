# SPDX-License-Identifier: Apache-2.0
"""Means and maxima over some axes, of bytes and of floats, beside LiteRT; layers of more than 1,024
channels whose input comes out of storage."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from models.tests.quantised.test_float_tflite import floating
from models.tests.readers.single_operators import weights
from models.tests.tflite.test_tflite_rarer import Q, runtime, theirs
from openkpu import configs
from openkpu.compiler import agree, build
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.tflite import translate as tflite
from openkpu.compiler.tflite.floats import float_form
from openkpu.judges import Judgement
from openkpu.writers import Quant, Value, Weights
from openkpu.writers.tflite_model import TfliteModel

MAP, SIGNAL = (1, 6, 4, 8), (1, 12, 8)  # as the file has them
AXES: list[tuple[tuple[int, ...], list[int]]] = [
    (MAP, [1]),
    (MAP, [2]),
    (MAP, [1, 2]),
    (MAP, [2, 1]),
    (MAP, [3]),
    (MAP, [-1]),
    (MAP, [2, 3]),
    (MAP, [-3, 2, 3]),
    (SIGNAL, [1]),
    (SIGNAL, [-1]),
    (SIGNAL, [1, 2]),
    ((5, 8), [1]),
    ((1, 3, 6, 4, 8), [4]),
    (MAP, [1, 3]),
    ((1, 3, 6, 4, 8), [1, 2]),
    ((1, 1500, 4), [1]),
]
KINDS = ("MEAN", "REDUCE_MAX", "SUM")
NAMES = [f"{kind}{axes} of {len(shape)}" for kind in KINDS for shape, axes in AXES]
CASES = {
    name: (kind, shape, axes)
    for name, (kind, (shape, axes)) in zip(
        NAMES, [(k, c) for k in KINDS for c in AXES], strict=True
    )
}


def written(
    kind: str, shape: tuple[int, ...], axes: list[int], keep: bool
) -> tuple[TfliteModel, Value]:
    """A reduction of an input; shape and axes are the file's."""
    m = TfliteModel(np.int8)
    order = (0, 3, 1, 2) if len(shape) == 4 else range(len(shape))
    x = m.input([shape[a] for a in order], Q)
    out = {"REDUCE_MAX": Q, "MEAN": Quant(0.031, -9), "SUM": Quant(0.13, -9)}[kind]
    made = list(np.mean(np.empty(shape), tuple(axes), keepdims=keep).shape)
    y = m.value([made[a] for a in (0, 3, 1, 2)] if len(made) == 4 else made, out)
    m.op(kind, [x, m.integers(axes)], [y], "ReducerOptions", "", keepDims=keep)
    return m, y


def order(x: np.ndarray) -> np.ndarray:
    """As the graph has it."""
    return x.transpose(0, 3, 1, 2) if x.ndim == 4 else x


def beside_litert(data: bytes, shape: tuple[int, ...], config: str, reasons: Sequence[str]) -> None:
    """LiteRT's bytes but for these reasons; the device's are the reference's."""
    graph, interpreter = tflite.read_tflite(data, "net"), runtime(data)
    program = build.build_program(graph, configs.load_config(config))
    found = Judgement("net", "optimised", tuple(reasons))
    for seed in range(2):
        given = np.random.default_rng(seed).integers(-128, 128, shape)
        inside = {graph.inputs[0]: order(given)}
        want = theirs(interpreter, given.astype(np.int8)).astype(np.int64)
        found.take(graph, inside, {graph.outputs[0]: order(want)})
        assert agree.faults(graph, program, inside) == []
    assert found.total.values > 0 and not found.total.reasons["none"], found.total


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_of_bytes(name: str, keep: bool) -> None:
    """LiteRT's bytes but for its roundings; the device's are the reference's."""
    kind, shape, axes = CASES[name]
    m, y = written(kind, shape, axes, keep)
    data = m.finish([y])
    reasons = () if kind == "REDUCE_MAX" else ("two", "half", "fixed")
    beside_litert(data, shape, "k210", reasons)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_of_floats(name: str, keep: bool) -> None:
    """The ONNX model computes LiteRT's numbers."""
    ort = pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings it")
    kind, shape, axes = CASES[name]
    m, y = written(kind, shape, axes, keep)
    data = floating(m, "float32").finish([y])
    session = ort.InferenceSession(float_form.converted(data, "net"))
    given = np.random.default_rng(2).normal(0, 2, shape).astype(np.float32)
    (mine,) = session.run(None, {session.get_inputs()[0].name: given})
    want = theirs(runtime(data), given)
    assert mine.shape == want.shape
    np.testing.assert_allclose(mine, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", ["int8", "float32"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "shape, axes, text",
    [
        (MAP, [4], r"over axes \[4\] of \(1, 6, 4, 8\), expected some of 4"),
        (MAP, [1, -5], r"over axes \[1, -5\] of \(1, 6, 4, 8\), expected some of 4"),
    ],
)
def test_refused(kind: str, form: str, shape: tuple[int, ...], axes: list[int], text: str) -> None:
    good = [a for a in axes if -len(shape) <= a < len(shape)] or [1]
    m, y = written(kind, shape, good, True)
    m.tensors[m.operators[-1].inputs[1]].data = np.array(axes, np.int32)
    m.tensors[m.operators[-1].inputs[1]].shape = (len(axes),)
    read = tflite.read_tflite
    if form == "float32":
        m, read = floating(m, form), float_form.converted
    with pytest.raises(CompileError, match=rf"^net: \S+ \S+ \({kind}\): {text}") as error:
        read(m.finish([y]), "net")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("form", ["int8", "float32"])
def test_damaged_sizes(form: str) -> None:
    """A size of 0, and no sizes at all where an axis is asked for."""
    for shape in ((1, 0, 4, 8), ()):
        m, y = written("MEAN", MAP, [-1], True)
        m.tensors[m.inputs[0]].shape = shape
        m.tensors[m._index[y.name]].open = (-1, 6, 4, 1)
        read = tflite.read_tflite if form == "int8" else float_form.converted
        data = (m if form == "int8" else floating(m, form)).finish([y])
        with pytest.raises(CompileError, match=r"^net: ") as error:
            read(data, "net")
        assert "\n" not in str(error.value)


# ------------------------------------------------------------------ more than 1,024 channels
def wide_vector(m: TfliteModel, rng: np.random.Generator) -> Value:
    """A fully connected layer of the 1,280 channels that a map of 2x2 has on average."""
    x = m.input((1, 16, 2, 2), Q)
    y = m.conv(x, weights(rng, 0, 1280, 16, 1, 1), Quant(0.05, -7))
    mean = m.mean(y, Quant(0.02, 3), keep=False)
    return m.fully(mean, weights(rng, 0, 10, 1280), Quant(0.02, 4))


def wide_pixel(m: TfliteModel, rng: np.random.Generator) -> Value:
    """The same of one pixel of a map of 2x2."""
    x = m.input((1, 16, 2, 2), Q)
    y = m.conv(x, weights(rng, 0, 1280, 16, 1, 1), Quant(0.05, -7))
    pixel = m.reshape(m.slice(y, (0, 0, 1, 0), (1, 1280, 1, 1)), (1, 1280))
    return m.fully(pixel, weights(rng, 0, 10, 1280), Quant(0.02, 4))


def wide_flat(m: TfliteModel, rng: np.random.Generator) -> Value:
    """The same of all pixels of a map, 1,280 numbers."""
    x = m.input((1, 16, 2, 2), Q)
    y = m.conv(x, weights(rng, 0, 320, 16, 1, 1), Quant(0.05, -7))
    return m.fully(m.reshape(y, (1, 1280)), weights(rng, 0, 10, 1280), Quant(0.02, 4))


def staged(m: TfliteModel, rng: np.random.Generator) -> Value:
    """A map of 1,152 channels that the host writes, and whose parts several layers read."""
    x = m.input((1, 1152, 3, 3), Q)
    data = rng.integers(-127, 128, (1152, 1, 3, 3)).astype(np.int8)
    own = Weights(data, rng.uniform(0.002, 0.004, 1152), np.zeros(1152, np.int32))
    return m.conv(x, own, Quant(0.05, -7), groups=1152)


def read_twice(m: TfliteModel, rng: np.random.Generator) -> Value:
    """The same map, whole for one layer behind its parts."""
    x = m.input((1, 1152, 3, 3), Q)
    small = m.pool("max", x, (3, 3), (1, 1))
    one = m.conv(small, weights(rng, 0, 8, 1152, 1, 1), Quant(0.05, -7))
    two = m.conv(x, weights(rng, 0, 8, 1152, 1, 1), Quant(0.05, -7))
    return m.binary("add", one, two, Quant(0.1, 0))


def channels(graph: Graph) -> int:
    """The most that a tensor has."""
    return max(t.shape[1] for t in graph.tensors.values() if len(t.shape) > 1)


@pytest.mark.parametrize("make", [wide_vector, wide_pixel, wide_flat, staged, read_twice])
def test_many_channels(make: Callable[[TfliteModel, np.random.Generator], Value]) -> None:
    m, rng = TfliteModel(np.int8), np.random.default_rng(5)
    data = m.finish([make(m, rng)])
    graph = tflite.read_tflite(data, "net")
    assert channels(graph) > 1024
    program = build.build_program(graph, configs.load_config("k210"))
    for seed in range(2):
        (name,) = graph.inputs
        given = np.random.default_rng(seed).integers(-128, 128, graph.tensors[name].shape)
        assert agree.faults(graph, program, {name: given}) == []
