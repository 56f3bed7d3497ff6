# SPDX-License-Identifier: Apache-2.0
"""LiteRT and ONNX Runtime beside the exact reference: every difference has an explanation."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from models.tests.compiler.compiled_graphs import Maker
from models.tests.readers.single_operators import CASES, build
from openkpu import digits
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Conv, Graph
from openkpu.compiler.form.rarer import Deconv, Prelu, Product
from openkpu.compiler.onnx import translate as onnx_reader
from openkpu.compiler.tflite import translate as tflite
from openkpu.judges import Judgement, litert, mlperf, ort
from openkpu.judges.reasons import RULES, explain

pytest.importorskip("ai_edge_litert", reason="make setup GROUPS=test brings LiteRT")
pytest.importorskip("onnxruntime", reason="make setup GROUPS=test brings onnxruntime")

SHARED = Path(os.environ.get("OPENKPU_SHARED", Path(__file__).resolve().parents[4] / "shared"))
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


def rarer(kind: str) -> Graph:
    """A node of a rarer operator, with numbers on which one rounding and two differ."""
    m = Maker(8)
    x = m.input(1, 5, 40, 48)
    y = m.tensor(1, 5, 40, 48)
    if kind == "prelu":
        slopes = m.rng.integers(-127, 128, 5) * 0.0037
        return m.done(m.node(Prelu, [x], y, slopes=slopes, step=0.0037))
    if kind == "product":
        other = m.input(1, 5, 48, 48)
        y.scale = 2.5
        return m.done(m.node(Product, [x, other], y, clamp=y.limits))
    how = m._products(x, 5, 45, y) | {"weights": m.rng.integers(-127, 128, (5, 5, 3, 3))}
    return m.done(m.node(Deconv, [x], y, clamp=y.limits, pads=(1, 1), **how))


@pytest.mark.parametrize("kind", ["deconv", "prelu", "product"])
def test_rarer_nodes_rounded_twice(kind: str) -> None:
    """What the reference kernels give is explained; a byte that is a step off elsewhere is not."""
    graph = rarer(kind)
    (node,) = graph.nodes
    values, exact = inputs_of(graph, 3), None
    x = [values[n] for n in graph.inputs]
    exact = reference.compute(graph, node, x)
    theirs = reference.compute(graph, node, x, reference.TWO)
    found = explain(graph, node, x, exact, theirs, litert.KERNELS["reference"])
    assert (theirs != exact).sum() > 0 and not found["none"].any()
    low, high = graph.tensors[node.outputs[0]].limits
    inside = np.argwhere((theirs == exact) & (exact > low + 2) & (exact < high - 2))
    wrong = 0
    for at in map(tuple, inside[::301]):
        planted = exact.copy()
        planted[at] += 1 - 2 * (sum(at) % 2)
        found = explain(graph, node, x, exact, planted, litert.KERNELS["reference"])
        wrong += int(found["none"][at])
    assert wrong > 0.95 * len(inside[::301]) > 10


def test_constants_of_bytes() -> None:
    """A constant of int8 is taken in wide integers: its distance to the zero point has 9 bits."""
    m = Maker(4)
    x = m.input(1, 3, 8, 8)
    other = m.tensor(1, 3, 1, 1, zero=-128)
    other.data = np.array([-128, 0, 127], np.int8).reshape(1, 3, 1, 1)
    graph = m.done(m.both("sub", x, other, scale=0.2))
    values = inputs_of(graph, 1)
    found = Judgement("net", "plain", ALL)
    found.take(graph, values, reference.evaluate(graph, values))
    assert found.total.values == 192 and not found.total.differ


def test_float_bias_is_near_a_half() -> None:
    """A bias that the model has as a float moves the number that is rounded, by as much alone."""
    m = Maker(8)
    x = m.input(1, 5, 40, 48)
    y = m.conv(x, 6, (3, 3))
    graph = m.done(y)
    (node,) = graph.nodes
    assert isinstance(node, Conv)
    node.weights, node.w_scale = node.weights // 20, node.w_scale * 20
    values = inputs_of(graph, 3)[x.name]
    exact = reference.compute(graph, node, [values])
    rest = np.array([0.5, -0.5, 0.25, 0.0, 0.4, -0.3])
    many = dataclasses.replace(node, bias=node.bias * 1000 + (rest * 1000).astype(np.int64))
    many.weights, many.w_scale = node.weights * 1000, node.w_scale / 1000
    theirs = reference.compute(graph, many, [values])
    differ = theirs != exact
    assert differ.sum() > 5 and not differ[:, 3].any()
    assert explain(graph, node, [values], exact, theirs, ("half",))["none"].sum() > 5
    graph.rests[node.name] = rest
    assert not explain(graph, node, [values], exact, theirs, ("half",))["none"].any()
    graph.rests[node.name] = -rest
    assert explain(graph, node, [values], exact, theirs, ("half",))["none"].sum() > 5


def test_end_of_a_clamp_is_near_a_half() -> None:
    """-2.5 steps are the integer -2 or -3; -2.7 steps are -3 alone."""
    m = Maker(8)
    x = m.input(1, 5, 9, 8)
    y = m.conv(x, 6, (3, 3), clamp=(-2, 40))
    y.scale, y.zero = 0.2, 0
    graph = m.done(y)
    (node,) = graph.nodes
    values = inputs_of(graph, 3)[x.name]
    exact = reference.compute(graph, node, [values])
    theirs = reference.compute(graph, dataclasses.replace(node, clamp=(-3, 40)), [values])  # pyright: ignore
    off = (theirs != exact).sum()
    assert off > 5
    assert explain(graph, node, [values], exact, theirs, ("half",))["none"].sum() == off
    graph.ends[y.name] = -0.54, 8.0
    assert explain(graph, node, [values], exact, theirs, ("half",))["none"].sum() == off
    graph.ends[y.name] = -0.5, 8.0
    assert not explain(graph, node, [values], exact, theirs, ("half",))["none"].any()
    further = np.where(theirs != exact, -4, exact)
    assert explain(graph, node, [values], exact, further, ("half",))["none"].sum() == off


def test_ends_of_onnx_models() -> None:
    """A float bias behind a QDQ convolution, a Clip whose end is a tie: against the float kernels
    of ONNX Runtime nothing is left."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(2)
    data = {
        "s": np.float32(0.1), "z": np.int8(3), "ws": np.float32(0.05), "ys": np.float32(0.2),
        "w": rng.integers(-127, 128, (6, 5, 3, 3)).astype(np.int8), "wz": np.int8(0),
        "b": rng.normal(0, 1, 6).astype(np.float32),
        "low": np.float32(-0.7), "high": np.float32(12.3),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xf"], "xd"),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], "wd"),
        helper.make_node("Conv", ["xf", "wf", "b"], ["cf"], "conv"),
        helper.make_node("Clip", ["cf", "low", "high"], ["lf"], "clip"),
        helper.make_node("QuantizeLinear", ["lf", "ys", "wz"], ["y"], "yq"),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.INT8, shape)
        for name, shape in (("x", (1, 5, 40, 40)), ("y", (1, 6, 38, 38)))
    ]
    made = helper.make_graph(
        nodes, "net", ends[:1], ends[1:], [numpy_helper.from_array(v, k) for k, v in data.items()]
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    blob = model.SerializeToString()
    graph = onnx_reader.read_onnx(blob, "net")
    assert (
        graph.ends["y"] == (float(np.float32(-0.7)), float(np.float32(12.3)))
        and graph.rests["conv"].any()
    )
    found, runner = (
        Judgement("net", "plain", ort.WAYS["plain"]),
        ort.OrtRunner(blob, "plain", graph),
    )
    values = inputs_of(graph, 1)
    theirs = runner.run(graph, values)
    found.take(graph, values, theirs)
    assert found.total.reasons["half"] > 0 and not found.total.reasons["none"], found.total
    y = theirs["y"].copy()
    y[0, 0, 3, 3] += 2
    wrong = Judgement("net", "plain", ort.WAYS["plain"])
    wrong.take(graph, values, {**theirs, "y": y})
    assert wrong.total.reasons["none"] == 1


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
