# SPDX-License-Identifier: Apache-2.0
"""Vectors whose numbers have different units: none of them loses its bytes to the widest one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytest.importorskip("onnx", reason="make setup GROUPS=models brings onnx")
pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")
import onnx
from onnx import TensorProto, helper, numpy_helper

from models.tests.floats.spelled import check_spelled
from models.tests.readers.test_onnx_reader import run
from openkpu import configs
from openkpu.compiler import agree, build
from openkpu.compiler.calibration import prepare, quantise
from openkpu.compiler.data import Values
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.form.check import check_graph
from openkpu.compiler.form.graph import Graph, Host
from openkpu.compiler.onnx import translate

UNITS = np.array([0.01, 1000, 2, 30, 0.5, 7], np.float32)
SMALL = configs.load_config("small")


def model(nodes: list[tuple[str, list[str], str]], constants: dict[str, np.ndarray]) -> bytes:
    """x (1, 6), these nodes up to ``y``, and a dense layer behind them."""
    rng = np.random.default_rng(1)
    known = {**constants, "w": rng.normal(0, 1, (6, 4))}
    made = [helper.make_node(kind, inputs, [out], out) for kind, inputs, out in nodes]
    graph = helper.make_graph(
        [*made, helper.make_node("MatMul", [nodes[-1][2] if nodes else "x", "w"], ["scores"])],
        "units",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 6])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 4])],
        [numpy_helper.from_array(v.astype(np.float32), k) for k, v in known.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def samples(units: np.ndarray, count: int = 40) -> list[Values]:
    rng = np.random.default_rng(2)
    return [{"x": (rng.normal(0, 1, (1, 6)) * units).astype(np.float32)} for _ in range(count)]


def hosted(data: bytes, many: list[Values]) -> tuple[Graph, list[str]]:
    """The quantised graph, and its host's nodes in front of the first layer."""
    net = prepare.prepared(data, "net")
    graph = translate.read_onnx(quantise.quantised_net(net, many, "minmax", "net"), "net")
    return graph, [n.how for n in graph.nodes if isinstance(n, Host)]


@pytest.mark.parametrize(
    ("nodes", "hows"),
    [
        ([("Sub", ["x", "c"], "a"), ("Div", ["a", "s"], "b")], ["minus", "over"]),
        ([("Mul", ["t", "x"], "a"), ("Add", ["a", "o"], "b")], ["times", "plus"]),
        ([("Add", ["x", "c"], "a"), ("Div", ["a", "s"], "b")], ["plus", "over"]),
    ],
)
def test_scaled_by_the_model(nodes: list[tuple[str, list[str], str]], hows: list[str]) -> None:
    """Sums and factors in front of the first product are computed in float."""
    known = {"c": 0.5 * UNITS, "s": UNITS, "t": 1 / UNITS, "o": np.linspace(-1, 1, 6)}
    data, many = model(nodes, known), samples(UNITS)
    graph, found = hosted(data, many)
    assert found == [*hows, "quantize", "dequantize"]
    check_spelled(prepare.prepared(data, "net"), data, many)
    assert agree.faults(graph, build.build_program(graph, SMALL), many[3]) == []


@pytest.mark.parametrize("function", ["Relu", "Sigmoid", "HardSwish", "Identity", "Softmax"])
def test_a_function_of_what_is_scaled(function: str) -> None:
    nodes = [("Sub", ["x", "c"], "a"), ("Div", ["a", "s"], "b"), (function, ["b"], "r")]
    data, many = model(nodes, {"c": 0.5 * UNITS, "s": UNITS}), samples(UNITS)
    assert hosted(data, many)[1][:3] == ["minus", "over", "quantize"]
    check_spelled(prepare.prepared(data, "net"), data, many)


def test_a_constant_that_others_read() -> None:
    """It stays float for the first node, though another one reads bytes of it."""
    nodes = [("Sub", ["x", "c"], "a"), ("Div", ["a", "s"], "b"), ("Relu", ["b"], "r")]
    nodes += [("Add", ["r", "c"], "z")]
    data, many = model(nodes, {"c": 0.5 * UNITS, "s": UNITS}), samples(UNITS)
    graph, found = hosted(data, many)
    assert found[:3] == ["minus", "over", "quantize"]
    gains = [n.gain for n in graph.nodes if isinstance(n, Host) and n.how == "minus"]
    assert gains[0] is not None and (gains[0] == (0.5 * UNITS).astype(np.float32)).all()


def test_scaled_by_the_compiler() -> None:
    """A product of the raw numbers: each is divided by a power of two, which its weights have."""
    data, many = model([], {}), samples(UNITS)
    made = onnx.load_model_from_string(data)
    (weights,) = made.graph.initializer
    scaled = numpy_helper.to_array(weights) / UNITS[:, None]
    weights.CopyFrom(numpy_helper.from_array(scaled, weights.name))
    changed = made.SerializeToString()
    graph, found = hosted(changed, many)
    assert found == ["over", "quantize", "dequantize"]
    (gain,) = (n.gain for n in graph.nodes if isinstance(n, Host) and n.how == "over")
    assert gain is not None and gain.max() == 1 and (np.log2(gain) % 1 == 0).all()
    check_spelled(prepare.prepared(changed, "net"), changed, many)


def test_numbers_of_one_unit_stay() -> None:
    """Of pictures and the like: the caller's bytes are the network's, also where a few are dark."""
    for units in (np.ones(6), np.array([1, 1, 1, 0.5, 0.01, 0.01])):
        assert hosted(model([], {}), samples(units))[1] == ["quantize", "dequantize"]


def test_one_number_for_all_is_folded() -> None:
    nodes = [("Div", ["x", "c"], "a")]
    assert "over" not in hosted(model(nodes, {"c": np.array([255.0])}), samples(np.ones(6)))[1]


def test_an_input_that_nothing_reads() -> None:
    """It has no weights to carry its scale, and changes nothing of the other input."""
    data, many = model([], {}), samples(UNITS)
    made = onnx.load_model_from_string(data)
    made.graph.input.append(helper.make_tensor_value_info("spare", TensorProto.FLOAT, [1, 6]))
    both = [{**v, "spare": 7 * v["x"]} for v in many]
    (graph, found), (_, alone) = hosted(made.SerializeToString(), both), hosted(data, many)
    assert found == alone and "over" in found
    assert agree.faults(graph, build.build_program(graph, SMALL), both[3]) == []


def test_a_column_of_constants_is_no_unit() -> None:
    """It makes rows of the vector, each with another constant."""
    column = np.linspace(-1, 1, 6)[:, None]
    data, many = model([("Sub", ["x", "c"], "a")], {"c": column}), samples(np.ones(6))
    made = onnx.load_model_from_string(data)
    made.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 6
    data = made.SerializeToString()
    assert "minus" not in hosted(data, many)[1]
    check_spelled(prepare.prepared(data, "net"), data, many)


def test_float_nodes_of_a_quantised_model() -> None:
    """ONNX Runtime's numbers of a file whose first nodes were left out of the quantisation."""
    data, many = model([("Sub", ["x", "c"], "a")], {"c": 0.5 * UNITS}), samples(UNITS)
    made = quantise.quantised_net(prepare.prepared(data, "net"), many, "minmax", "net")
    graph = translate.read_onnx(made, "net")
    program = build.build_program(graph, SMALL)
    for feeds in many:
        assert agree.faults(graph, program, feeds) == []
        (want,) = run(made, feeds)
        found = reference.evaluate(graph, feeds)[graph.outputs[0]]
        step = next(t.step for t in graph.tensors.values() if t.name == graph.nodes[-1].inputs[0])
        assert np.abs(found - want).max() <= step * 1.001
    names = {n.op_type for n in onnx.load_model_from_string(made).graph.node}
    assert "Sub" in names


@pytest.mark.parametrize(
    ("gain", "text"),
    [
        (None, "gain: expected finite floats"),
        (np.full((1, 6), np.nan), "gain: expected finite floats"),
        (np.ones((1, 5)), r"\(1, 6\) and \(1, 5\) to \(1, 6\)"),
        (np.ones((2, 6)), r"\(1, 6\) and \(2, 6\) to \(1, 6\)"),
        (np.ones((1, 6), np.int64), "gain: expected finite floats"),
    ],
)
def test_a_node_that_cannot_be(gain: np.ndarray | None, text: str) -> None:
    """As a damaged program file may have it."""
    graph, _ = hosted(model([("Sub", ["x", "c"], "a")], {"c": UNITS}), samples(UNITS))
    nodes = [
        dataclasses.replace(n, gain=gain) if isinstance(n, Host) and n.how == "minus" else n
        for n in graph.nodes
    ]
    with pytest.raises(CompileError, match=text):
        check_graph(dataclasses.replace(graph, nodes=nodes))
