# SPDX-License-Identifier: Apache-2.0
"""A pipeline of scikit-learn, a Scaler and dense layers: ONNX Runtime's numbers, the device's
bytes; how it ends in front of the operators of ai.onnx.ml that choose a label."""

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
from openkpu.compiler.onnx import file
from openkpu.words import option


def pipeline(scalers: list[dict[str, list[float]]], label: bool = False) -> bytes:
    """x (1, 6) -> scaled, two dense layers, softmax; with a label the largest one's name."""
    rng, nodes, x = np.random.default_rng(1), [], "x"
    for i, fields in enumerate(scalers):
        made = {"name": "scaler" if i else "", "domain": file.SCALERS, **fields}
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
        nodes.append(helper.make_node("ZipMap", ["scores"], ["map"], domain=file.SCALERS))
        outputs = [helper.make_tensor_value_info("map", TensorProto.FLOAT, None)]
    graph = helper.make_graph(
        nodes,
        "pipeline",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 6])],
        outputs,
        [numpy_helper.from_array(v.astype(np.float32), k) for k, v in known.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(file.SCALERS, 1)]
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
        match=rf"\(ZipMap\): an op.* expected its Scaler or.*; {option('ends', 'scores')} ends",
    ):
        prepare.prepared(data, "net")
    assert prepare.prepared(data, "net", ends=["scores"]).outputs == ["scores"]
