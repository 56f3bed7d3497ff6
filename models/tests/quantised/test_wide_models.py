# SPDX-License-Identifier: Apache-2.0
"""Float models quantised with weights of 16 bits: nearer to the float model, and on the device byte
for byte as the reference has them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from models.tests.quantised import exported
from models.tests.quantised.exported import ACTIVATIONS, BLOCKS, DYNAMO, OLD, Exported
from openkpu import configs
from openkpu.compiler import build, run
from openkpu.compiler.calibration import prepare, quantise, weighted
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Conv, Dense, Graph
from openkpu.compiler.form.rarer import Deconv
from openkpu.compiler.onnx import translate

pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")


def transposed(groups: int) -> bytes:
    """A transposed convolution, and one behind it."""
    m = Exported(OLD)
    weights = m.const(m.rng.normal(0, 0.3, (4, 6 // groups, 2, 2)))
    fields = {"kernel_shape": [2, 2], "strides": [2, 2], "group": groups}
    bias = m.const(m.rng.normal(0, 0.3, 6))
    y = m.node("ConvTranspose", m.input(1, 4, 6, 6), weights, bias, **fields)
    return m.done(m.node("Relu", m.conv(m.node("Relu", y), 6, 5)))


def product() -> bytes:
    """A product with a term behind it, over an axis of its own."""
    m = Exported(DYNAMO)
    y = m.node("MatMul", m.input(1, 7, 16), m.const(m.rng.normal(0, 0.3, (16, 12))))
    return m.done(m.node("Relu", m.node("Add", y, m.const(m.rng.normal(0, 0.3, 12)))))


def long_sums() -> bytes:
    """12,000 weights of one size, which with all 16 bits would take sums beyond 36."""
    m = Exported(OLD)
    x = m.flat(m.input(1, 30, 20, 20))
    weights = m.const(m.rng.uniform(0.9, 1, (5, 12000)) * m.rng.choice([-1, 1], (5, 1)))
    return m.done(m.node("Gemm", x, weights, m.const(np.zeros(5)), transB=1))


def large_biases() -> bytes:
    """Biases beside which the weights of some channels are next to nothing, and of one nothing."""
    m = Exported(OLD)
    y = m.conv(m.input(1, 4, 6, 6), 4, 6)
    weights, bias = m.constants["val_0"], m.constants["val_1"]
    weights[1:4] *= np.array([1e-3, 1e-6, 0]).reshape(3, 1, 1, 1)
    bias[:] = 40, -25, 30, -10, 5, 1
    return m.done(ACTIVATIONS["leaky"](m, y))


MODELS: dict[str, Callable[[], bytes]] = {
    **{name: (lambda name=name: exported.network(OLD, name)) for name in BLOCKS},
    "opset11": lambda: exported.classifier(OLD, "hard_swish", 11),
    "opset21": lambda: exported.classifier(DYNAMO, "hard_swish", 21),
    "transposed": lambda: transposed(1),
    "transposed-groups": lambda: transposed(2),
    "product": product,
    "long-sums": long_sums,
    "large-biases": large_biases,
}
FIRST = ("residual", "opset11", "opset21", "transposed", "product", "long-sums", "large-biases")


def quantised(data: bytes, wide: bool) -> tuple[Graph, list[dict[str, np.ndarray]]]:
    """The graph, and samples that the calibration has not seen."""
    net = prepare.prepared(exported.checked(data), "net")
    rng = np.random.default_rng(1)
    given = [
        {v.name: rng.normal(0, 1, net.shapes[v.name]).astype(np.float32) for v in net.inputs}
        for _ in range(14)
    ]
    names = [n.name for n in net.nodes if weighted.has_weights(net, n)] if wide else []
    made = quantise.quantised_net(net, given[:11], "minmax", "net", names)
    return translate.read_onnx(made, "net"), given[11:]


def decibels(data: bytes, graph: Graph, left: list[dict[str, np.ndarray]]) -> float:
    """Signal to noise of the results; on the way the device's bytes are the reference's."""
    program = build.build_program(graph, configs.load_config("k210"))
    signal = noise = 0.0
    for feeds in left:
        want, found = reference.evaluate(graph, feeds), run.run_program(program, feeds)
        for name, real in zip(graph.outputs, exported.run(data, feeds), strict=True):
            assert np.array_equal(want[name], found[name]), name
            signal += float((real**2).sum())
            noise += float(((found[name] - real) ** 2).sum())
    return 10 * math.log10(signal / noise)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.tier(check=[name for name in MODELS if name not in FIRST])
def test_every_layer(name: str) -> None:
    """All weights of 16 bits; the factors of a layer are steps of 2^-36 at least."""
    data = MODELS[name]()
    graph, left = quantised(data, wide=True)
    nodes = [n for n in graph.nodes if isinstance(n, (Conv, Dense, Deconv))]
    assert nodes and all(np.abs(n.weights).max() > 255 for n in nodes)
    for node in (n for n in nodes if not isinstance(n, Deconv)):
        (x,), (y,) = graph.of(node.inputs), graph.of(node.outputs)
        factors = [x.exact * type(x.exact)(s) / y.exact for s in node.w_scale]
        assert all(f.denominator <= 1 << 36 for f in factors), (node.name, factors)
        assert all(f.numerator < 1 << 23 for f in factors), (node.name, factors)
    narrow = decibels(data, quantised(data, wide=False)[0], left)
    assert decibels(data, graph, left) > min(narrow - 1, 30)


def test_unsigned_weights() -> None:
    """A file whose weights are uint16 around 32768: the same as int16 around 0."""
    import onnx
    from onnx import numpy_helper

    net = prepare.prepared(exported.classifier(OLD, "relu"), "net")
    names = [n.name for n in net.nodes if weighted.has_weights(net, n)]
    rng = np.random.default_rng(1)
    feeds = [{"x": rng.normal(0, 1, (1, 3, 16, 16)).astype(np.float32)} for _ in range(3)]
    signed = quantise.quantised_net(net, feeds, "minmax", "net", names)
    model, found = onnx.load_model_from_string(signed), 0
    for tensor in model.graph.initializer:
        if (value := numpy_helper.to_array(tensor)).dtype == np.int16:
            moved = (value.astype(np.int32) + 32768).astype(np.uint16)
            tensor.CopyFrom(numpy_helper.from_array(moved, tensor.name))
            found += 1
    assert found == 2 * len(names), "weights and zero points"
    graphs = [translate.read_onnx(m, "net") for m in (signed, model.SerializeToString())]
    assert {int(n.w_zero[0]) for n in graphs[1].nodes if isinstance(n, (Conv, Dense))} == {32768}
    programs = [build.build_program(g, configs.load_config("small")) for g in graphs]
    for feed in feeds:
        first, second = (run.run_program(program, feed) for program in programs)
        assert all(np.array_equal(first[name], second[name]) for name in graphs[0].outputs)
