# SPDX-License-Identifier: Apache-2.0
"""ONNX models as graphs: the exact reference of what was read gives onnxruntime's bytes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from models.tests.readers.single_operators import CASES, build
from openkpu import digits
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Conv, Dense, Elementwise, Graph, Host, Pool, Table
from openkpu.compiler.onnx import translate as onnx_reader

onnxruntime = pytest.importorskip("onnxruntime", reason="make setup GROUPS=test brings onnxruntime")

TIE = 2**-10  # of a step: float32 of onnxruntime may fall to the other side so close to a half
# as in single_operators, and: what exporters write instead
OTHER: dict[str, Any] = {"float_io": True, "auto_pad": True, "reduce_mean": True, "opset": 18}


def run(data: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """onnxruntime's outputs, node by node as the file has them."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def feeds_of(graph: Graph, seed: int) -> dict[str, np.ndarray]:
    """Random inputs: all bytes, or floats of their range."""
    rng, found = np.random.default_rng(seed), {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        if tensor.dtype == "float32":
            found[name] = rng.uniform(-7, 7, tensor.shape).astype(np.float32)
        else:
            low, high = tensor.limits
            found[name] = rng.integers(low, high + 1, tensor.shape).astype(tensor.dtype)
    return found


def half(graph: Graph, name: str, values: dict[str, np.ndarray]) -> np.ndarray:
    """How far the exact numbers of a tensor are from a half, in steps."""
    node = graph.maker(name)
    while isinstance(node, Host) and node.how == "dequantize":
        node = graph.maker(node.inputs[0])
    assert node is not None
    x = [values[n] for n in node.inputs]
    tensor = graph.tensors[node.outputs[0]]
    if isinstance(node, Table):  # any table of these cases: a tie, or a unit of float32
        return np.zeros(tensor.shape)
    assert isinstance(node, (Conv, Dense, Pool, Elementwise)), node
    fine = 1 << 20
    wide = dataclasses.replace(node, clamp=(-(1 << 50), 1 << 50))
    assert tensor.scale is not None
    finer = dataclasses.replace(tensor, scale=tensor.scale / fine, zero=0)
    other = dataclasses.replace(graph, tensors={**graph.tensors, tensor.name: finer})
    steps = reference.compute(other, wide, x) / fine
    return np.abs(np.abs(steps - np.floor(steps)) - 0.5)


def agree(data: bytes, name: str, seed: int = 3) -> Graph:
    """The graph; its outputs equal onnxruntime's but a step, where the exact number is a tie."""
    graph = onnx_reader.read_onnx(data, name)
    feeds = feeds_of(graph, seed)
    values = reference.evaluate(graph, feeds)
    for out, theirs in zip(graph.outputs, run(data, feeds), strict=True):
        mine = values[out]
        assert mine.shape == theirs.shape and graph.tensors[out].dtype == theirs.dtype.name
        other = mine != theirs
        if other.any():
            assert half(graph, out, values)[other].max() < TIE
            steps = np.unique(np.abs(mine.astype(float) - theirs)[other])
            tensor = graph.tensors[out]
            node = graph.maker(out)
            if tensor.dtype == "float32" and node is not None:
                steps = steps / (graph.tensors[node.inputs[0]].scale or 1)
            assert np.allclose(steps, 1, rtol=1e-4)
    return graph


@pytest.mark.parametrize("options", [{}, OTHER], ids=["plain", "other"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("form", ["qdq", "qoperator"])
@pytest.mark.parametrize("case", CASES)
def test_operator(case: str, form: str, dtype: type, options: dict[str, Any]) -> None:
    agree(build(case, form, dtype, **options), case)


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
@pytest.mark.parametrize("opset", [11, 13, 15, 21, 23])
@pytest.mark.parametrize(
    "case", ["conv3x3-stride2", "mean", "split", "fully-nobias", "slice", "add"]
)
def test_opset(case: str, form: str, opset: int) -> None:
    if opset < 13:  # a scale per channel is younger
        agree(build(case, form, np.uint8, opset=opset), case)
    else:
        agree(build(case, form, np.int8, opset=opset), case)


def test_one_node_for_each_operator() -> None:
    """Quantisation nodes and activations are no nodes of their own."""
    for form in ("qdq", "qoperator"):
        for act in ("conv3x3", "conv3x3-relu", "conv3x3-relu6"):
            if form == "qoperator" and act != "conv3x3":
                continue
            graph = onnx_reader.read_onnx(build(act, form), act)
            assert [type(n) for n in graph.nodes] == [Conv]
    graph = onnx_reader.read_onnx(build("conv3x3-relu6", "qdq"), "x")
    (node,) = graph.nodes
    assert isinstance(node, Conv)
    # zero point -7, scale 0.06: from 0 to 6 are bytes -7 to 93
    assert node.clamp == (-7, 93)


@pytest.mark.parametrize("name", [n for n in digits.MODELS if n.endswith(".onnx")])
def test_digits(name: str) -> None:
    """The committed models: every result of 60 scans, the batch being open in the file."""
    data = (digits.FOLDER / name).read_bytes()
    graph = onnx_reader.read_onnx(data, name)
    assert graph.tensors["x"].shape == (1, 1, 8, 8) and graph.outputs == ["logits"]
    test = digits.load_data()[1]
    images = test.images[:60, None].astype(np.float32) / 16
    mine = np.concatenate([reference.evaluate(graph, {"x": x})["logits"] for x in images])
    theirs = run(data, {"x": images[:, 0]})[0]
    assert (mine != theirs).mean() < 0.002
    assert (mine.argmax(axis=1) == test.labels[:60]).mean() > 0.95
