# SPDX-License-Identifier: Apache-2.0
"""Pipelines of scikit-learn, with dense layers or a linear model: ONNX Runtime's numbers, the
device's bytes; how they end in front of the operators of ai.onnx.ml that choose a label."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx", reason="make setup GROUPS=models brings onnx")
pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")
import onnx
from onnx import TensorProto, helper, numpy_helper

from models.tests.floats.spelled import check_spelled
from openkpu.compiler.calibration import prepare
from openkpu.compiler.errors import CompileError
from openkpu.compiler.onnx import classical
from openkpu.words import option


def pipeline(scalers: list[dict[str, list[float]]], label: bool = False) -> bytes:
    """x (1, 6) -> scaled, two dense layers, softmax; with a label the largest one's name."""
    rng, nodes, x = np.random.default_rng(1), [], "x"
    for i, fields in enumerate(scalers):
        made = {"name": "scaler" if i else "", "domain": classical.DOMAIN, **fields}
        nodes.append(helper.make_node("Scaler", [x], [f"scaled{i}"], **made))
        x = f"scaled{i}"
    shapes = {"w1": (6, 8), "b1": (8,), "w2": (8, 3), "b2": (3,)}
    known = {name: rng.normal(0, 0.5, shape) for name, shape in shapes.items()}
    for kind, inputs, output in (
        ("MatMul", [x, "w1"], "m1"),
        ("Add", ["m1", "b1"], "a1"),
        ("Relu", ["a1"], "r1"),
        ("MatMul", ["r1", "w2"], "m2"),
        ("Add", ["m2", "b2"], "a2"),
        ("Softmax", ["a2"], "scores"),
    ):
        nodes.append(helper.make_node(kind, inputs, [output]))
    outputs = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 3])]
    if label:
        nodes.append(helper.make_node("ZipMap", ["scores"], ["map"], domain=classical.DOMAIN))
        outputs = [helper.make_tensor_value_info("map", TensorProto.FLOAT, None)]
    graph = helper.make_graph(
        nodes,
        "pipeline",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 6])],
        outputs,
        [numpy_helper.from_array(v.astype(np.float32), k) for k, v in known.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(classical.DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.mark.parametrize(
    "scalers",
    [
        [{"offset": [1.0, 2, 3, 4, 5, 6], "scale": [0.5, 1, 2, 0.25, 1.5, 0.75]}],
        [{"offset": [2.0], "scale": [0.5]}],
        [{"offset": [0.5] * 6, "scale": [2.0] * 6}, {"offset": [1.0] * 6, "scale": [0.5] * 6}],
    ],
    ids=["features", "one number", "two"],
)
def test_pipeline(scalers: list[dict[str, list[float]]]) -> None:
    data, rng = pipeline(scalers), np.random.default_rng(2)
    many = [{"x": rng.normal(2, 1, (1, 6)).astype(np.float32)} for _ in range(16)]
    check_spelled(prepare.prepared(data, "net"), data, many)


def test_opsets_that_are_there_twice() -> None:
    """As skl2onnx writes them."""
    model = onnx.load_model_from_string(pipeline([{"offset": [2.0], "scale": [0.5]}]))
    model.opset_import.extend([helper.make_opsetid("", 17)])
    data, rng = model.SerializeToString(), np.random.default_rng(2)
    many = [{"x": rng.normal(2, 1, (1, 6)).astype(np.float32)} for _ in range(4)]
    check_spelled(prepare.prepared(data, "net"), data, many)


def test_labels_are_left_out() -> None:
    data = pipeline([{"offset": [2.0], "scale": [0.5]}], label=True)
    with pytest.raises(
        CompileError,
        match=rf"\(ZipMap\): an op.* expected its Scaler,.*; {option('ends', 'scores')} ends",
    ):
        prepare.prepared(data, "net")
    assert prepare.prepared(data, "net", ends=["scores"]).outputs == ["scores"]


def learned(nodes: list[tuple[str, dict]], end: str, opset: int = 17) -> bytes:
    """x (1, 6) through nodes of the domain, each with its fields; a classifier's label goes
    nowhere, or to the output ``end``."""
    made, x = [], "x"
    for i, (operator, fields) in enumerate(nodes):
        outputs = [f"y{i}"]
        if operator == "LinearClassifier":
            outputs.insert(0, "label")
        made.append(helper.make_node(operator, [x], outputs, domain=classical.DOMAIN, **fields))
        x = f"y{i}"
    graph = helper.make_graph(
        made,
        "learned",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 6])],
        [helper.make_tensor_value_info(end, TensorProto.UNDEFINED, None)],
    )
    graph.output[0].type.tensor_type.elem_type = TensorProto.INT64 if end == "label" else 1
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(classical.DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def coefficients(rows: int) -> dict[str, list[float]]:
    rng = np.random.default_rng(rows)
    return {
        "coefficients": rng.normal(0, 0.5, 6 * rows).round(3).tolist(),
        "intercepts": rng.normal(0, 0.5, rows).round(3).tolist(),
    }


THREE = {**coefficients(3), "classlabels_ints": [4, 7, 9]}
TWO = {**coefficients(2), "classlabels_strings": ["cat", "dog"]}
LEARNED = {
    "regressor": [("LinearRegressor", {"targets": 3, **coefficients(3)})],
    "one target": [("LinearRegressor", coefficients(1))],
    "no intercepts": [("LinearRegressor", {"coefficients": coefficients(1)["coefficients"]})],
    "scores": [("LinearClassifier", {"post_transform": "NONE", **THREE})],
    "softmax": [("LinearClassifier", {"post_transform": "SOFTMAX", **THREE})],
    "logistic": [("LinearClassifier", {"post_transform": "LOGISTIC", **TWO})],
    "sum": [
        ("LinearClassifier", {"post_transform": "SOFTMAX", **THREE}),
        ("Normalizer", {"norm": "L1"}),
    ],
    "one against the rest": [
        ("LinearClassifier", {"post_transform": "LOGISTIC", **THREE}),
        ("Normalizer", {"norm": "L1"}),
    ],
    "length": [
        ("Normalizer", {"norm": "L2"}),
        ("LinearRegressor", {"targets": 3, **coefficients(3)}),
    ],
    "absolute": [
        ("Normalizer", {"norm": "L1"}),
        ("LinearRegressor", {"targets": 3, **coefficients(3)}),
    ],
}


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("name", LEARNED)
def test_linear_models(name: str, opset: int) -> None:
    nodes, rng = LEARNED[name], np.random.default_rng(2)
    data = learned(nodes, f"y{len(nodes) - 1}", opset)
    many = [{"x": rng.normal(0, 1, (1, 6)).astype(np.float32)} for _ in range(16)]
    check_spelled(prepare.prepared(data, "net"), data, many)


@pytest.mark.parametrize(
    ("operator", "fields", "end", "text"),
    [
        ("LinearClassifier", THREE, "label", f"{option('ends', 'y0')} leaves it out"),
        ("LinearClassifier", coefficients(3), "y0", "expected as many for each of 0 results"),
        ("LinearClassifier", {**THREE, **coefficients(1)}, "y0", "6 coefficients and 1 intercepts"),
        ("LinearClassifier", {**THREE, "post_transform": "PROBIT"}, "y0", "post_transform PROBIT"),
        ("LinearRegressor", {"targets": 4, **coefficients(3)}, "y0", "for each of 4 results"),
        ("LinearRegressor", {"targets": 0}, "y0", "0 coefficients and 0 intercepts"),
        ("LinearRegressor", {"post_transform": "SOFTMAX"}, "y0", "post_transform SOFTMAX"),
        ("Normalizer", {"norm": "MAX"}, "y0", "norm MAX, expected L1 or L2"),
        ("Normalizer", {}, "y0", "norm MAX, expected L1 or L2"),
        ("Binarizer", {}, "y0", "expected its Scaler, .*LinearClassifier, or ONNX's own"),
    ],
)
def test_what_is_no_linear_model(operator: str, fields: dict, end: str, text: str) -> None:
    with pytest.raises(CompileError, match=text):
        prepare.prepared(learned([(operator, fields)], end), "net")


def test_a_label_that_another_node_reads() -> None:
    """Its number is none of the network's, whatever is made of it."""
    model = onnx.load_model_from_string(learned(LEARNED["softmax"], "y0"))
    model.graph.node.append(helper.make_node("Cast", ["label"], ["number"], to=TensorProto.FLOAT))
    model.graph.output.append(helper.make_tensor_value_info("number", TensorProto.FLOAT, None))
    data = model.SerializeToString()
    with pytest.raises(CompileError, match=f"the label 'label' .*{option('ends', 'y0')} leaves it"):
        prepare.prepared(data, "net")
    assert prepare.prepared(data, "net", ends=["y0"]).outputs == ["y0"]
