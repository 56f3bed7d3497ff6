# SPDX-License-Identifier: Apache-2.0
"""LiteRT and ONNX Runtime beside the exact reference: every difference has an explanation."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from models.tests.single_operators import CASES, build
from openkpu import digits
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Conv, Graph
from openkpu.compiler.onnx import translate as onnx_reader
from openkpu.compiler.tflite import translate as tflite
from openkpu.judges import Judgement, litert, mlperf, ort
from openkpu.judges.reasons import RULES, explain

pytest.importorskip("ai_edge_litert", reason="make setup GROUPS=test brings LiteRT")
pytest.importorskip("onnxruntime", reason="make setup GROUPS=test brings onnxruntime")

SHARED = Path(os.environ.get("OPENKPU_SHARED", Path(__file__).resolve().parents[3] / "shared"))
ALL = tuple(RULES)
Way = Literal["plain", "optimised", "saturating"]


def inputs_of(graph: Graph, seed: int) -> dict[str, np.ndarray]:
    """Random bytes, or floats."""
    rng, found = np.random.default_rng(seed), {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        if tensor.dtype == "float32":
            found[name] = rng.uniform(0, 1, tensor.shape).astype(np.float32)
        else:
            found[name] = rng.integers(*tensor.limits, tensor.shape, endpoint=True)
    return found


def lite(data: bytes, name: str, kernels: str, graph: Graph | None = None) -> Judgement:
    """A TFLite model in one set of kernels; another graph than its own is a plant."""
    graph = graph or tflite.read_tflite(data, name)
    found = Judgement(name, kernels, litert.KERNELS[kernels])
    runner = litert.LitertRunner(data, kernels)
    for seed in (1, 2):
        values = inputs_of(graph, seed)
        found.take(graph, values, runner.run(graph, values))
    return found


@pytest.mark.parametrize("kernels", litert.KERNELS)
@pytest.mark.parametrize("name", [n for n in digits.MODELS if n.endswith(".tflite")])
def test_digits_in_litert(name: str, kernels: str) -> None:
    found = lite((digits.FOLDER / name).read_bytes(), name, kernels)
    assert len(found.rows) >= 10 and found.total.values > 8_000
    assert found.total.reasons["none"] == 0 and found.total.worst <= 1
    if kernels == "reference":
        assert found.total.differ == found.total.reasons["two"] > 0


@pytest.mark.parametrize("way", ort.WAYS)
@pytest.mark.parametrize("name", [n for n in digits.MODELS if n.endswith(".onnx")])
def test_digits_in_onnxruntime(name: str, way: Way) -> None:
    data = (digits.FOLDER / name).read_bytes()
    graph = onnx_reader.read_onnx(data, name)
    found = Judgement(name, way, ort.WAYS[way])
    runner = ort.OrtRunner(data, way, graph)
    for seed in (1, 2):
        values = inputs_of(graph, seed)
        found.take(graph, values, runner.run(graph, values))
    assert len(found.rows) >= 10 and found.total.values > 8_000 and found.ends.values == 20
    if way != "saturating":  # without VNNI that is another computation
        assert found.total.reasons["none"] == 0 and found.total.worst <= 1


@pytest.mark.parametrize("kernels", litert.KERNELS)
@pytest.mark.parametrize("case", CASES)
def test_operator_in_litert(case: str, kernels: str) -> None:
    """Among the operators what TFLite's own definitions leave open; hard-swish is off by two."""
    found = lite(build(case, "tflite"), case, kernels)
    assert found.total.reasons["none"] == 0
    assert found.total.values > 0


def test_wrong_weight_is_seen() -> None:
    """One weight another, one step: nothing explains it."""
    name = "residual_int8.tflite"
    data = (digits.FOLDER / name).read_bytes()
    graph = tflite.read_tflite(data, name)
    assert lite(data, name, "reference", graph).total.reasons["none"] == 0
    node = next(n for n in graph.nodes if isinstance(n, Conv))
    at = graph.nodes.index(node)
    weights = node.weights.copy()
    weights[0, 0, 1, 1] -= np.sign(weights[0, 0, 1, 1] or 1)
    graph.nodes[at] = dataclasses.replace(node, weights=weights)
    found = lite(data, name, "reference", graph)
    wrong = {row.node for row in found.rows.values() if row.reasons["none"]}
    assert wrong == {node.name}, "where it arises, and not behind it"


def test_wrong_table_is_seen() -> None:
    data = build("logistic", "tflite")
    graph = tflite.read_tflite(data, "logistic")
    (node,) = graph.nodes
    graph.nodes[0] = dataclasses.replace(node, table=np.roll(node.table, 4))  # pyright: ignore
    assert lite(data, "logistic", "xnnpack", graph).total.reasons["none"] > 0


def planted(shift: int) -> tuple[Graph, Conv, list[np.ndarray], np.ndarray]:
    """A convolution, its inputs, its exact outputs; scales so that ties come."""
    graph = tflite.read_tflite(build("conv3x3", "tflite"), "c")
    (node,) = graph.nodes
    assert isinstance(node, Conv)
    node = dataclasses.replace(node, w_scale=np.full(5, 2.0**-shift))
    x, y = graph.of((*node.inputs, *node.outputs))
    x.scale = y.scale = 1.0
    graph.nodes[0] = node
    values = inputs_of(graph, 4)[graph.inputs[0]]
    return graph, node, [values], reference.compute(graph, node, [values])


def test_reasons_are_not_given_to_what_is_exact_or_far_off() -> None:
    graph, node, x, exact = planted(9)
    assert not any(p.any() for p in explain(graph, node, x, exact, exact, ALL).values())
    inside = (exact > -120) & (exact < 120)
    for step in (2, -2, 5):
        theirs = np.where(inside, exact + step, exact)
        found = explain(graph, node, x, exact, theirs, ALL)
        assert np.array_equal(found["none"], inside)


def test_ties_are_near_a_half() -> None:
    """A factor of 2^-9: every 512th sum is a tie, and a step beside a tie has that reason only."""
    graph, node, x, exact = planted(9)
    ones = dataclasses.replace(node, w_scale=np.ones(5), clamp=(-(1 << 40), 1 << 40))
    wide = dataclasses.replace(graph.tensors[node.outputs[0]], zero=0)
    other = dataclasses.replace(graph, tensors={**graph.tensors, wide.name: wide})
    sums = reference.compute(other, ones, x)
    tie = sums % 512 == 256
    inside = (exact > -120) & (exact < 120)
    theirs = np.where(inside, np.where(exact % 2, exact + 1, exact - 1), exact)
    low = (sums // 512) + graph.tensors[node.outputs[0]].zero
    theirs = np.where(tie & inside, 2 * low + 1 - exact, theirs)
    found = explain(graph, node, x, exact, theirs, ("half",))
    assert np.array_equal(found["half"], tie & inside)
    assert np.array_equal(found["none"], inside & ~tie)


def test_all_outputs_changes_nothing() -> None:
    name = "separable_int8.tflite"
    data = (digits.FOLDER / name).read_bytes()
    graph = tflite.read_tflite(data, name)
    values = inputs_of(graph, 9)
    whole = litert.LitertRunner(litert.all_outputs(data), "optimised").run(graph, values)
    plain = litert.LitertRunner(data, "optimised").run(graph, values)
    assert set(whole) == set(plain) and len(whole) > 10
    assert all(np.array_equal(whole[k], plain[k]) for k in whole)


# ------------------------------------------------------------------ models of MLPerf Tiny


def test_arrays_in_c() -> None:
    text = "/* 2020 */ int n[3] = {1, -2, /* 7 */ 3};\nconst float g[1][2] = {\n {0.5, -1e-3}};"
    assert mlperf.c_array(text).tolist() == [1, -2, 3]
    assert mlperf.c_array(text.partition("\n")[2]).tolist() == [0.5, -0.001]
    with pytest.raises(ValueError, match="no initialised array"):
        mlperf.c_array("int n;")


def published(name: str) -> Path:
    path = SHARED / mlperf.FOLDER / name
    if not path.exists():
        pytest.skip(f"{path} is not there; OPENKPU_SHARED names another place")
    return path


@pytest.mark.parametrize("name", mlperf.MODELS)
def test_mlperf_samples(name: str) -> None:
    path = published(name)
    graph = tflite.read_tflite(path.read_bytes(), name)
    found = mlperf.samples(name, graph, path.parent)
    assert found.dtype == np.int8 and found.shape[1:] == graph.tensors[graph.inputs[0]].shape
    counts = {"ad01_int8.tflite": 40, "str_ww_ref_model.tflite": 45, "vww_96_int8.tflite": 2}
    assert len(found) == counts.get(name, 1)
    # the one published picture of the image classification is black
    assert "Resnet" in name or found.std() > 5


@pytest.mark.parametrize("kernels", litert.KERNELS)
@pytest.mark.parametrize("name", mlperf.MODELS)
@pytest.mark.tier(check=["*large*", "*-optimised", "vww*-reference"])
def test_mlperf_in_litert(name: str, kernels: str) -> None:
    path = published(name)
    data = path.read_bytes()
    graph = tflite.read_tflite(data, name)
    found = Judgement(name, kernels, litert.KERNELS[kernels])
    runner = litert.LitertRunner(data, kernels)
    real = {graph.inputs[0]: mlperf.samples(name, graph, path.parent)[0]}
    for values in (real, inputs_of(graph, 1)):
        found.take(graph, values, runner.run(graph, values))
    print(found.total)
    assert len(found.rows) >= len(graph.nodes) - 1
    assert found.total.reasons["none"] == 0 and found.total.worst <= 1
    assert found.total.differ < found.total.values / 100
    assert kernels != "xnnpack" or found.total.differ < found.total.values / 10_000
