# SPDX-License-Identifier: Apache-2.0
"""LSTM, GRU and RNN of float ONNX models: ONNX Runtime's numbers, the reference's bytes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="make setup GROUPS=models brings onnx")
pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from openkpu import configs
from openkpu.compiler import agree, build
from openkpu.compiler.calibration import prepare, quantise
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.onnx import translate

PARTS = {"GRU": 3, "LSTM": 4, "RNN": 1}
SIZE, HIDDEN = 5, 6  # a state does not fill rows of four
# of the output that the model has: all states, the last one, that of the cell
SHAPES = {"Y": (0, 4), "Y_h": (1, 3), "Y_c": (2, 3)}


def recurrent(
    kind: str,
    steps: int = 4,
    batch: int = 1,
    output: str = "Y",
    bias: bool = True,
    state: str = "",
    lengths: list[int] | None = None,
    weights: str = "constant",
    peepholes: bool = False,
    **fields: Any,
) -> bytes:
    """A model x (steps, batch, SIZE) -> one output of the operator."""
    ways = 2 if fields.get("direction") == "bidirectional" else 1
    rng, parts = np.random.default_rng(steps + batch), PARTS[kind]
    arrays = {
        "W": rng.normal(0, 0.6, (ways, parts * HIDDEN, SIZE)),
        "R": rng.normal(0, 0.6, (ways, parts * HIDDEN, HIDDEN)),
        "B": rng.normal(0, 0.6, (ways, 2 * parts * HIDDEN)),
        "h0": rng.normal(0, 0.6, (ways, batch, HIDDEN)),
        "c0": rng.normal(0, 0.6, (ways, batch, HIDDEN)),
        "P": rng.normal(0, 0.6, (ways, 3 * HIDDEN)),
    }
    known = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in arrays.items()]
    nodes, inputs = (
        [],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (steps, batch, SIZE))],
    )
    names = ["x", "W", "R", "B" if bias else "", "", "", "", ""]
    if lengths is not None:
        known.append(numpy_helper.from_array(np.array(lengths, np.int32), "lengths"))
        names[4] = "lengths"
    if state:
        names[5:7] = ["h0", "c0"]
    if state == "input":
        known = [t for t in known if t.name not in ("h0", "c0")]
        sizes = (ways, batch, HIDDEN)
        inputs += [helper.make_tensor_value_info(n, TensorProto.FLOAT, sizes) for n in names[5:7]]
    if peepholes:
        names[7] = "P"
    names = names if kind == "LSTM" else names[:6]
    inputs = [v for v in inputs if v.name in names]
    if weights == "computed":
        nodes.append(helper.make_node("Exp", ["x"], ["e"]))
        nodes.append(helper.make_node("ReduceSum", ["e"], ["s"], keepdims=0))
        nodes.append(helper.make_node("Mul", ["W", "s"], ["Ws"]))
        names[1] = "Ws"
    at, rank = SHAPES[output]
    outputs = ["", "", ""]
    outputs[at] = "y"
    while not outputs[-1]:
        outputs.pop()
    while not names[-1]:
        names.pop()
    nodes.append(helper.make_node(kind, names, outputs, kind, hidden_size=HIDDEN, **fields))
    ends = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * rank)]
    graph = helper.make_graph(nodes, "net", inputs, ends, known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model.SerializeToString()


def run(data: bytes, feed: dict[str, np.ndarray]) -> np.ndarray:
    session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feed)[0])


def feed_of(data: bytes, seed: int = 3) -> dict[str, np.ndarray]:
    session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(seed)
    return {i.name: rng.normal(0, 1, i.shape).astype(np.float32) for i in session.get_inputs()}


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_numbers(kind: str, direction: str) -> None:
    """Every output, with and without biases and states, is ONNX Runtime's."""
    outputs = ("Y", "Y_h", "Y_c") if kind == "LSTM" else ("Y", "Y_h")
    resets = (0, 1) if kind == "GRU" else (0,)
    seen = itertools.product(outputs, (False, True), ("", "constant", "input"), (1, 2), resets)
    for output, bias, state, batch, reset in seen:
        more: dict[str, Any] = {"linear_before_reset": 1} if reset else {}
        data = recurrent(
            kind,
            batch=batch,
            output=output,
            bias=bias,
            state=state,
            direction=direction,
            lengths=[4] * batch if bias else None,
            **more,
        )
        net, feed = prepare.prepared(data, "net"), feed_of(data)
        assert not {n.op_type for n in net.nodes} & set(PARTS)
        found = run(net.done().SerializeToString(), feed)
        np.testing.assert_allclose(found, run(data, feed), atol=2e-5)


@pytest.mark.parametrize(
    ("kind", "activations"),
    [("RNN", ["Relu"]), ("LSTM", ["Sigmoid", "Relu", "Tanh"]), ("GRU", ["Sigmoid", "Relu"])],
)
def test_activations(kind: str, activations: list[str]) -> None:
    data = recurrent(kind, activations=activations)
    feed = feed_of(data)
    found = run(prepare.prepared(data, "net").done().SerializeToString(), feed)
    np.testing.assert_allclose(found, run(data, feed), atol=2e-5)


@pytest.mark.parametrize("steps", [1, 12])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_bytes(kind: str, steps: int) -> None:
    """Quantised and compiled: the device's bytes are the reference's, the numbers near the
    float model's."""
    data = recurrent(kind, steps=steps, direction="bidirectional")
    many = [feed_of(data, seed) for seed in range(8)]
    made = quantise.quantised_net(prepare.prepared(data, "net"), many, "minmax", "net")
    graph = translate.read_onnx(made, "net")
    program = build.build_program(graph, configs.load_config("small"))
    assert agree.faults(graph, program, many[0]) == []
    found, want = reference.evaluate(graph, many[0])[graph.outputs[0]], run(data, many[0])
    assert found.shape == want.shape == (steps, 2, 1, HIDDEN)
    assert np.abs(found - want).mean() < 0.02 and np.abs(found - want).max() < 0.12


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lengths": [3]}, r"sequence_lens \[3\], expected 4 of each"),
        ({"peepholes": True}, "it has peepholes, expected none"),
        ({"clip": 0.5}, "clip 0.5, expected none"),
        ({"input_forget": 1}, "input_forget 1, expected none"),
        ({"activations": ["Softsign", "Tanh", "Tanh"]}, "activations Softsign, Tanh, Tanh, expect"),
        ({"weights": "computed"}, "W is computed, expected a constant"),
    ],
)
def test_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(CompileError, match=message) as error:
        prepare.prepared(recurrent("LSTM", **fields), "net")
    assert "LSTM" in str(error.value)
