# SPDX-License-Identifier: Apache-2.0
"""Float ONNX models as PyTorch exports them: quantised, all of them on the device, every byte as
the reference has it, and near the float model."""

from __future__ import annotations

import ast
import dataclasses
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from models.tests.quantised import exported
from models.tests.quantised.exported import ACTIVATIONS, BLOCKS, DYNAMO, OLD, Exported
from openkpu import configs
from openkpu.checkout import ROOT
from openkpu.compiler import build, run
from openkpu.compiler.calibration import equalise, prepare, quantise, samples, scales
from openkpu.compiler.calibration.runner import FloatRunner
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Conv, Elementwise, Graph, Host, Move, Pool, Table
from openkpu.compiler.lowering.nodes import lower_elementwise
from openkpu.compiler.onnx import translate
from openkpu.compiler.program import HostPart, Program
from openkpu.words import METHODS

pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")

ENDS = {"quantize", "dequantize", "softmax", "table"}  # what the host may do, at both ends


@dataclasses.dataclass
class Made:
    """A float model and what became of it."""

    data: bytes
    graph: Graph
    program: Program
    left: list[dict[str, np.ndarray]]  # samples that the calibration has not seen

    def decibels(self) -> float:
        """Signal to noise of the result against the float model in ONNX Runtime; the program's
        bytes are compared with the reference's on the way."""
        signal = noise = 0.0
        for feeds in self.left:
            want, found = (
                reference.evaluate(self.graph, feeds),
                run.run_program(self.program, feeds),
            )
            for name, real in zip(self.graph.outputs, exported.run(self.data, feeds), strict=True):
                assert np.array_equal(want[name], found[name]), name
                signal += float((real**2).sum())
                noise += float(((found[name] - real) ** 2).sum())
        return 10 * np.log10(signal / noise)

    @property
    def hosted(self) -> list[str]:
        """What the host does."""
        parts = [p for p in self.program.parts if isinstance(p, HostPart)]
        return [n.how if isinstance(n, Host) else n.kind for p in parts for n in p.nodes]


def made(data: bytes, seed: int = 1, method: str = "minmax", spread: float = 1.0) -> Made:
    """Quantised on 24 random samples of a normal distribution, compiled for k210."""
    net = prepare.prepared(exported.checked(data), "net")
    rng = np.random.default_rng(seed)
    given = [
        {v.name: rng.normal(0, spread, net.shapes[v.name]).astype(np.float32) for v in net.inputs}
        for _ in range(28)
    ]
    graph = translate.read_onnx(quantise.quantised_net(net, given[:24], method, "net"), "net")
    return Made(data, graph, build.build_program(graph, configs.load_config("k210")), given[24:])


def on_the_device(found: Made) -> None:
    """One task list; the host has the ends alone."""
    assert len(found.program.device_parts) == 1
    assert set(found.hosted) <= ENDS, found.hosted


@pytest.mark.parametrize("how", [OLD, DYNAMO])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.tier(check=["*-dynamo", "tanh-*", "sigmoid-*", "elu-*", "gelu-*", "hard_sigmoid-*"])
def test_activations(activation: str, how: str) -> None:
    """Each becomes a clamp, or one table, however many nodes the exporter wrote."""
    found = made(exported.classifier(how, activation))
    on_the_device(found)
    tables = [n for n in found.graph.nodes if isinstance(n, Table)]
    assert len(tables) == (0 if activation in ("relu", "clip") else 2), tables
    assert not [n for n in found.graph.nodes if isinstance(n, Elementwise)]
    assert found.decibels() > 24


@pytest.mark.parametrize("how", [OLD, DYNAMO])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.tier(check=["*-dynamo"])
def test_blocks(block: str, how: str) -> None:
    found = made(exported.network(how, block))
    on_the_device(found)
    assert found.hosted == ["quantize", "softmax"]
    assert found.decibels() > 20
    sums = [n.name for n in found.graph.nodes if isinstance(n, Elementwise) and n.how == "add"]
    assert all(not found.program.reports[n].steps for n in sums), "sums are exact"


@pytest.mark.parametrize("opset", [11, 12, 14, 17, 18, 21])
@pytest.mark.tier(check=["12", "14", "17", "18"])
def test_opsets(opset: int) -> None:
    found = made(exported.classifier(OLD if opset < 18 else DYNAMO, "hard_swish", opset))
    on_the_device(found)
    assert found.decibels() > 24


@pytest.mark.parametrize("opset", [7, 8, 9])
def test_models_of_the_zoo(opset: int) -> None:
    """Opsets from before quantisation, constants among the inputs."""
    found = made(exported.zoo(opset))
    on_the_device(found)
    assert [v.name for v in prepare.prepared(exported.zoo(opset), "net").inputs] == ["data"]
    assert found.decibels() > 24


@pytest.mark.parametrize("method", METHODS)
def test_methods(method: str) -> None:
    """Ranges by all three; of a normal distribution none loses much."""
    assert made(exported.network(OLD, "residual"), method=method).decibels() > 20


def test_joins_cost_nothing() -> None:
    """All parts of a concatenation have its scale, also where they are read elsewhere."""
    found = made(exported.network(OLD, "branches"))
    (concat,) = [n for n in found.graph.nodes if isinstance(n, Move) and n.how == "concat"]
    numbers = {(t.scale, t.zero) for t in found.graph.of((*concat.inputs, *concat.outputs))}
    assert len(numbers) == 1
    assert [n.function for n in found.graph.nodes if isinstance(n, Table)] == ["Sigmoid, mul"]


def test_averages_keep_their_scale() -> None:
    """The device's pooling tasks then give them exactly."""
    found = made(exported.network(DYNAMO, "average"))
    pools = [n for n in found.graph.nodes if isinstance(n, Pool)]
    assert [n.count_pads for n in pools] == [True, False]
    for pool in pools:
        x, y = found.graph.of((*pool.inputs, *pool.outputs))
        assert x.same_numbers(y)


@pytest.mark.parametrize("block", ["residual", "preactivation", "affine"])
def test_batch_norms_are_folded(block: str) -> None:
    """Into weights and biases, or a depthwise convolution; the numbers stay."""
    data = exported.network(OLD, block)
    net = prepare.prepared(data, "net")
    kinds = [n.op_type for n in net.nodes]
    assert "BatchNormalization" not in kinds and "Mul" not in kinds
    groups = [n for n in translate_convs(made(data).graph) if n.depthwise]
    assert len(groups) == (0 if block == "residual" else 1)
    feeds = {"x": np.random.default_rng(4).normal(0, 1, (1, 3, 12, 12)).astype(np.float32)}
    folded = exported.run(net.done().SerializeToString(), feeds)
    for mine, theirs in zip(folded, exported.run(data, feeds), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def translate_convs(graph: Graph) -> list[Conv]:
    return [n for n in graph.nodes if isinstance(n, Conv)]


def test_norm_in_front_of_a_linear_layer() -> None:
    """BatchNorm1d between two linear layers, on both sides of the activation."""
    m = Exported()
    x = m.node("Relu", m.norm(m.linear(m.input(1, 30), 30, 20), 20))
    data = m.done(m.linear(m.norm(x, 20), 20, 10))
    assert [n.op_type for n in prepare.prepared(data, "net").nodes] == ["Gemm", "Relu", "Gemm"]
    assert made(data).decibels() > 24


def test_channel_without_weights() -> None:
    """Its bias is counted in steps of its weights' scale, which must not be coarse then."""
    m = Exported()
    x = m.conv(m.input(1, 3, 8, 8), 3, 8)
    m.constants["val_0"] *= np.float32(1e-3)
    m.constants["val_1"] *= np.float32(1e-3)
    m.constants["val_0"][2] = 0
    m.constants["val_1"][2] = 1.2345e-3
    found = made(m.done(x))
    (name,) = found.graph.outputs
    for feeds in found.left:
        plane = run.run_program(found.program, feeds)[name][0, 2]
        assert np.abs(plane - 1.2345e-3).max() < 0.05e-3


@pytest.mark.parametrize("seed", range(4))
def test_sums_are_exact(seed: int) -> None:
    """A chain of two sums with ranges of any ratio: no pair of bytes is rounded otherwise."""
    m = Exported()
    a, b, c = (m.input(1, 2, 4, 4, name=name) for name in "abc")
    y = m.node("Add", a, b)
    net = prepare.prepared(m.done(m.node("Sub", y, c)), "net")
    rng = np.random.default_rng(seed)
    ends = [n for n in net.floats if n not in net.constants]
    ranges = {
        n: SimpleNamespace(lowest=-rng.uniform(0, 4), highest=rng.uniform(2, 9))
        for n in sorted(ends)
    }
    found = scales.chosen_scales(net, ranges, {})
    step = {n: Fraction(float(found[n][0]["scale"])) for n in ranges}
    for n, span in ranges.items():
        assert (span.highest - span.lowest) / 255 <= step[n] * (1 + 1e-6)
        # the least integer is the lower end, as near as integers are; the upper end is not cut off
        zero = int(found[n][0]["zero_point"])
        assert abs(float(span.lowest / step[n]) + zero + 128) < 0.501, n
        assert float(span.highest / step[n]) + zero < 127.501, n
    for node in net.nodes:
        one, two = (step[n] / step[node.output[0]] for n in node.input)
        factors, how = (one, two), ((30, 50), ((0, 255), (0, 255)), 128, (0, 255))
        _, fit = lower_elementwise.best_sum(factors, *how)
        assert not fit.missed, (node.op_type, factors)


def test_shared_weights() -> None:
    """Two convolutions with the same weights."""
    m = Exported()
    x = m.input(1, 4, 8, 8)
    w = m.const(m.rng.normal(0, 0.3, (4, 4, 3, 3)))
    y = m.node("Relu", m.node("Conv", x, w, pads=[1] * 4))
    found = made(m.done(m.node("Conv", y, w, pads=[1] * 4)))
    on_the_device(found)
    one, other = translate_convs(found.graph)
    assert not np.array_equal(one.w_scale, other.w_scale), "each its own scales"
    assert found.decibels() > 24


def test_several_inputs_and_outputs() -> None:
    m = Exported()
    a, b = m.input(1, 4, 8, 8, name="a"), m.input(1, 4, 8, 8, name="b")
    y = m.node("Add", m.conv(a, 4, 4), b)
    found = made(m.done(y, m.mean(y, keep=False)))
    on_the_device(found)
    assert found.decibels() > 24


@pytest.mark.parametrize("first", ["hard_swish", "normalised"])
def test_what_comes_first(first: str) -> None:
    """A function of the input itself; (x - mean) / deviation of each channel."""
    m = Exported(DYNAMO)
    x = m.input(1, 3, 8, 8)
    if first == "hard_swish":
        y = ACTIVATIONS[first](m, x)
    else:
        shift, factor = m.const([[[0.1]], [[-0.5]], [[0.3]]]), m.const([[[2.0]], [[1.0]], [[0.5]]])
        y = m.node("Div", m.node("Sub", x, shift), factor)
    found = made(m.done(m.conv(y, 3, 8)))
    on_the_device(found)
    assert found.decibels() > 24
    convs = translate_convs(found.graph)
    assert [n.depthwise for n in convs] == ([False] if first == "hard_swish" else [True, False])


def test_input_of_tensorflow() -> None:
    """An input that is turned first is NHWC; samples are in that order."""
    m = Exported()
    x = m.node("Transpose", m.input(1, 10, 12, 3), perm=[0, 3, 1, 2])
    data = m.done(m.conv(x, 3, 4))
    (tensor,) = samples.taken_inputs(prepare.prepared(data, "net")).inputs
    assert tensor.layout == "NHWC" and tensor.shape == (1, 3, 10, 12)
    net = prepare.prepared(data, "net")
    given = [{"x": np.ones((1, 10, 12, 3), np.float32)}]
    graph = translate.read_onnx(quantise.quantised_net(net, given, "minmax", "net"), "net")
    assert graph.tensors[graph.inputs[0]].layout == "NHWC"


def test_rounding_of_64_bits() -> None:
    """With and without Python's integers the reference gives what fractions give, ties too."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        bits = int(rng.integers(1, 62))
        most = min(49, bits + 30)  # the results have 64 bits
        factor = Fraction(int(rng.integers(1, 1 << int(rng.integers(1, most)))), 1 << bits)
        values = rng.integers(-(1 << 24), 1 << 24, 50)
        want = [round(int(v) * factor) for v in values]
        assert reference.scaled_once(values, factor).tolist() == want


def test_channels_become_alike() -> None:
    """Channels of ranges far apart come nearer to each other, and the result keeps its precision.
    What the network computes stays."""
    m = Exported()
    x = m.node("Relu", m.conv(m.input(1, 3, 8, 8), 3, 8))
    for name in ("val_0", "val_1"):
        spread = 1.8 ** -np.arange(8.0)
        data = m.constants[name]
        m.constants[name] = (data * spread.reshape(-1, *[1] * (data.ndim - 1))).astype(np.float32)
    y = m.node("Relu", m.conv(x, 8, 8, group=8))
    data = m.constants["val_2"]
    m.constants["val_2"] = (data * (1.8 ** np.arange(8.0)).reshape(-1, 1, 1, 1)).astype(np.float32)
    data = m.done(m.conv(y, 8, 4, 1))
    net = prepare.prepared(data, "net")
    rng = np.random.default_rng(6)
    feeds = [{"x": rng.normal(0, 1, (1, 3, 8, 8)).astype(np.float32)} for _ in range(8)]
    peaks = equalise.peaks_of(FloatRunner(net, net.floats).run(one) for one in feeds)
    changed = equalise.equalise(net, peaks)
    assert len(changed) == 2
    after = equalise.peaks_of(FloatRunner(net, net.floats).run(one) for one in feeds)
    for name, exponent in zip(changed, (equalise.APART, equalise.JOINED), strict=True):
        before = peaks[name] / peaks[name].max()
        found = after[name] / after[name].max()
        np.testing.assert_allclose(found, before ** (1 - exponent), rtol=1e-3)
    mine = exported.run(net.done().SerializeToString(), feeds[0])
    np.testing.assert_allclose(mine[0], exported.run(data, feeds[0])[0], rtol=1e-4, atol=1e-5)
    assert made(data).decibels() > 30


@pytest.mark.parametrize("how", [OLD, DYNAMO])
def test_page(how: str) -> None:
    """The classifier of the page: its layers, two of them functions, and nothing for the host."""
    found = made(exported.pytorch(how))
    on_the_device(found)
    assert found.hosted == ["quantize", "dequantize"]
    kinds = [type(n).__name__ for n in found.graph.nodes if not isinstance(n, (Move, Host))]
    assert kinds == ["Conv", "Conv", "Conv", "Table", "Conv", "Conv", "Table", "Pool", "Dense"]
    assert found.decibels() > 24


def test_page_is_of_these_layers() -> None:
    """The page's program is one that the imitation imitates: Python, with the same numbers."""
    page = (ROOT / "docs" / "compiler.md").read_text(encoding="utf-8")
    code = page.split("```python\nimport numpy as np\nimport torch")[1].split("```")[0]
    tree = ast.parse("import torch" + code)
    names = {n.name for n in ast.walk(tree) if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    assert {"block", "Net", "fit"} <= names
    assert len([line for line in code.splitlines() if line.strip()]) <= 33
    for part in (
        "Conv2d(3, 16, 3, 2, 1)",
        "block(16, 32, 1), block(32, 64, 2)",
        "Linear(64, classes)",
    ):
        assert part in code


def test_strided_kernel_of_the_input() -> None:
    """A float input is quantised by the host, which then writes its phases as channels: one layer,
    as with an input of bytes."""
    m = Exported()
    found = made(m.done(m.conv(m.input(1, 1, 20, 12), 1, 8, 5, stride=2)))
    assert found.program.layers == 1 and len(found.program.device_parts) == 1
    assert found.decibels() > 24


def test_convolutions_meet_their_edges() -> None:
    """Their factors fit the device's: of a hundred thousand edges next to none is missed."""
    missed = edges = 0
    for seed in range(4):
        m = Exported(seed=seed)
        x = m.node("Relu", m.conv(m.input(1, 16, 8, 8), 16, 64))
        y = m.conv(x, 64, 40, 1)
        reports = made(m.done(y)).program.reports.values()
        missed += sum(r.missed for r in reports)
        edges += sum(r.edges for r in reports)
    print(f"{missed} of {edges}")
    assert edges > 40_000 and missed <= 4
