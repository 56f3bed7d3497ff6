# SPDX-License-Identifier: Apache-2.0
"""Layer normalisations as Keras exports them: one node for what is one, LiteRT's numbers always."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.tests.quantised.test_float_tflite import floating
from models.tests.tflite.test_tflite_rarer import Q, runtime, theirs
from openkpu import configs
from openkpu.compiler import agree, build
from openkpu.compiler.calibration import prepare, quantise
from openkpu.compiler.form.graph import Host
from openkpu.compiler.onnx import translate
from openkpu.compiler.tflite.floats import float_form
from openkpu.writers import Value, Weights
from openkpu.writers.tflite_model import TfliteModel

onnx = pytest.importorskip("onnx", reason="make setup GROUPS=models brings onnx")
ort = pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")
RNG = np.random.default_rng(7)
GAIN, OFFSET = RNG.uniform(0.5, 2, 8), RNG.normal(0, 1, 8)


def normalised(m: TfliteModel, x: Value, gain: bool, offset: bool, other: str = "") -> list[Value]:
    """The operators of Keras' LayerNormalization; the results of the model."""

    def of(kind: str, inputs: list[Any], shape: Any, options: str = "", **fields: int) -> Value:
        y = m.value(shape, Q)
        m.op(kind, inputs, [y], options, "", **fields)
        return y

    def number(value: Any) -> int:
        return m.integers(np.asarray(value), np.float32)

    map_ = len(x.shape) == 4
    one = (1, 1, *x.shape[2:]) if map_ else (*x.shape[:-1], 1)
    axis = m.integers([len(x.shape) - 1 if gain else -1])
    mean = of("MEAN", [x, axis], one, "ReducerOptions", keepDims=True)
    minus = of("NEG", [mean], one, "NegOptions")
    apart = of("SQUARED_DIFFERENCE", [mean, x] if offset else [x, mean], x.shape)
    less = m.integers([1]) if other == "mean of lines" else axis
    power_one = one
    if other == "mean of lines":
        power_one = (*x.shape[:2], 1, x.shape[3]) if map_ else (x.shape[0], 1, x.shape[2])
    power = of("MEAN", [apart, less], power_one, "ReducerOptions", keepDims=True)
    act = {"fusedActivationFunction": int(other == "activation inside")}
    more = of("ADD", [power, number(1e-3)], power_one, "AddOptions", **act)
    root = of("RSQRT", [more], power_one)
    factor = root
    if gain:
        spread = GAIN.reshape(1, 1, 1, 8) if map_ else GAIN.reshape(1, 1, 8)
        factor = of("MUL", [root, number(spread)], x.shape, "MulOptions")
    scaled = of("MUL", [x, factor], x.shape, "MulOptions")
    below = {"without minus": mean, "another factor": x}.get(other, minus)
    wide = np.broadcast_shapes(below.shape, factor.shape)
    shift = of("MUL", [below, factor], wide, "MulOptions")
    if offset:
        spread = OFFSET.reshape(1, 1, 1, 8) if map_ else OFFSET.reshape(1, 1, 8)
        shift = of("ADD", [shift, number(spread)], x.shape, "AddOptions")
    y = of("ADD", [scaled, shift], x.shape, "AddOptions")
    if other == "mean read twice":
        return [of("ADD", [y, mean], x.shape, "AddOptions")]
    return [y, mean] if other == "mean is a result" else [y]


def written(rank: int, gain: bool, offset: bool, other: str = "") -> bytes:
    m = TfliteModel(np.int8)
    x = m.input((1, 8, 6, 4) if rank == 4 else (1, 6, 8), Q)
    outputs = normalised(m, x, gain, offset, other)
    return floating(m, "float32").finish(outputs)


def given(rank: int, seed: int = 2) -> np.ndarray:
    shape = (1, 6, 4, 8) if rank == 4 else (1, 6, 8)
    return np.random.default_rng(seed).normal(0.4, 1.3, shape).astype(np.float32)


def kinds(data: bytes) -> list[str]:
    return [n.op_type for n in onnx.load_model_from_string(data).graph.node]


def result(made: bytes, x: np.ndarray) -> np.ndarray:
    session = ort.InferenceSession(made)
    return session.run(None, {session.get_inputs()[0].name: x})[0]


@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("gain", [True, False])
@pytest.mark.parametrize("rank", [3, 4])
def test_one_node(rank: int, gain: bool, offset: bool) -> None:
    data = written(rank, gain, offset)
    made = float_form.converted(data, "net")
    assert [k for k in kinds(made) if k not in ("Transpose", "Identity")] == ["LayerNormalization"]
    np.testing.assert_allclose(
        result(made, given(rank)), theirs(runtime(data), given(rank)), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("other", ["mean read twice", "mean is a result", "activation inside"])
def test_another_thing(other: str) -> None:
    """What else is read, or computed, stays as the file has it; the numbers are LiteRT's."""
    data = written(3, True, True, other)
    made = float_form.converted(data, "net")
    assert "LayerNormalization" not in kinds(made)
    np.testing.assert_allclose(
        result(made, given(3)), theirs(runtime(data), given(3)), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("other", ["mean of lines", "without minus", "another factor"])
def test_other_arithmetic(other: str) -> None:
    """Of other axes, of another sign, or another sum."""
    data = written(3, False, False, other)
    made = float_form.converted(data, "net")
    assert "LayerNormalization" not in kinds(made)
    np.testing.assert_allclose(
        result(made, given(3)), theirs(runtime(data), given(3)), rtol=1e-4, atol=1e-5
    )


def test_compiled() -> None:
    """Between two layers: the host computes it, and the numbers are nearly the float model's."""
    m = TfliteModel(np.int8)
    rng = np.random.default_rng(4)
    weights = [Weights(rng.integers(-99, 99, (8, 8, 1, 1)).astype("i1"), 0.005) for _ in "12"]
    x = m.conv(m.input((1, 8, 6, 4), Q), weights[0], Q)
    y = m.conv(normalised(m, x, True, True)[0], weights[1], Q)
    data = floating(m, "float32").finish([y])
    made = float_form.converted(data, "net")
    (name,) = [v.name for v in ort.InferenceSession(made).get_inputs()]
    feeds = [{name: given(4, seed)} for seed in range(8)]
    net = quantise.quantised_net(prepare.prepared(made, "net"), feeds, "minmax", "net")
    graph = translate.read_onnx(net, "net")
    assert [n.how for n in graph.nodes if isinstance(n, Host)][1:2] == ["layernorm"]
    program = build.build_program(graph, configs.load_config("k210"))
    (tensor,) = (graph.tensors[n] for n in graph.inputs)
    order = given(4) if tensor.shape == (1, 6, 4, 8) else given(4).transpose(0, 3, 1, 2)
    assert agree.faults(graph, program, {tensor.name: order}) == []
