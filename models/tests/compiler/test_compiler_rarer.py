# SPDX-License-Identifier: Apache-2.0
"""The rarer operators: every byte as the exact reference has it, and what runs where."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from models.tests.compiler.attention_graph import attention
from models.tests.compiler.compiled_graphs import Maker, alone, compiled, equal, layers
from openkpu import configs
from openkpu.compiler import okpu, run
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Graph, Host
from openkpu.compiler.form.rarer import Deconv, Prelu, Product
from openkpu.compiler.program import DevicePart

SLOPES = {
    "plain": lambda rng, c: rng.uniform(0, 1, c),
    "steep": lambda rng, c: rng.uniform(0, 3, c),
    "below": lambda rng, c: rng.uniform(-1, 1, c),
    "nothing": lambda rng, c: np.zeros(c),
    "ends": lambda rng, c: np.resize([0, 1, 0.5, 1e-4], c),
}


# ------------------------------------------------------------------------------- leaky ReLUs
def prelu(kind: str, x_zero: int, y_zero: int, ratio: float, inner: bool, c: int = 6) -> Graph:
    m = Maker(3)
    x = m.input(1, c, 7, 9, zero=x_zero)
    if inner:
        x = m.conv(x, c, (1, 1))
    slopes = np.asarray(SLOPES[kind](m.rng, c)).astype(np.float32).astype(np.float64)
    y = m.tensor(*x.shape, scale=float(np.float32(x.step * ratio)), zero=y_zero)
    return m.done(m.node(Prelu, [x], y, slopes=slopes))


@pytest.mark.parametrize("ratio", [1.0, 0.37, 1.9])
@pytest.mark.parametrize("zeros", [(0, 0), (-128, -128), (127, 127), (-3, 90), (120, -120)])
@pytest.mark.parametrize("kind", SLOPES)
def test_prelu(kind: str, zeros: tuple[int, int], ratio: float) -> None:
    """All 256 bytes of each channel, whatever the slopes, the scales and the zero points."""
    graph = prelu(kind, *zeros, ratio, inner=False, c=5)
    x, y = (graph.tensors[n] for n in (graph.inputs[0], graph.outputs[0]))
    x.shape = y.shape = (1, 5, 16, 16)
    program = compiled(graph)
    assert alone(program)
    values = {x.name: np.broadcast_to(np.arange(-128, 128).reshape(16, 16), x.shape)}
    want, found = reference.evaluate(graph, values), run.run_program(program, values)
    assert np.array_equal(want[y.name], found[y.name])
    assert not program.reports["n0"].missed


def test_prelu_layers() -> None:
    """Two layers where slopes are 0 or more, three where one is below."""
    assert layers(compiled(prelu("plain", -9, 4, 1.0, inner=True))) == ["1x1", "1x1 dw", "ew"]
    many = layers(compiled(prelu("below", -9, 4, 1.0, inner=True)))
    assert many == ["1x1", "1x1 dw", "1x1 dw", "ew"]


def test_prelu_of_a_vector() -> None:
    """Behind a fully connected node, along its last axis."""
    m = Maker(5)
    x = m.dense(m.input(1, 30), 12)
    slopes = m.rng.uniform(-0.5, 1, 12)
    graph = m.done(m.node(Prelu, [x], m.tensor(1, 12), slopes=slopes))
    program = compiled(graph)
    assert alone(program)
    equal(graph, program)


# --------------------------------------------------------------- transposed convolutions
DECONV = {
    # kernel, strides, pads in front, output size - (stride * input size), dilation, groups
    "2x2": ((2, 2), (2, 2), (0, 0), (0, 0), (1, 1), 1),
    "3x3": ((3, 3), (2, 2), (1, 1), (-1, -1), (1, 1), 1),
    "3x3-rest": ((3, 3), (2, 2), (1, 1), (0, 0), (1, 1), 1),
    "3x3-same": ((3, 3), (2, 2), (0, 0), (0, 0), (1, 1), 1),
    "3x3-full": ((3, 3), (2, 2), (0, 0), (1, 1), (1, 1), 1),
    "4x4": ((4, 4), (2, 2), (1, 1), (0, 0), (1, 1), 1),
    "5x2": ((5, 2), (3, 2), (2, 0), (-1, 0), (1, 1), 1),
    "stride1": ((3, 3), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    "dilated": ((2, 3), (2, 2), (0, 1), (2, 1), (3, 2), 1),
    "groups": ((3, 3), (2, 2), (1, 1), (0, 0), (1, 1), 2),
    "depthwise": ((2, 2), (2, 2), (0, 0), (0, 0), (1, 1), 8),
    "1x1-gaps": ((1, 1), (2, 2), (0, 0), (-1, -1), (1, 1), 1),
}
# more phases than pixels: the host writes the input with room around it
LARGER = ("3x3-full", "5x2", "dilated")


def deconv(name: str, inner: bool = True, behind: bool = False, dtype: str = "int8") -> Graph:
    kernel, strides, pads, more, dilation, groups = DECONV[name]
    m = Maker(7, dtype)
    x = m.input(1, 8, 5, 6)
    x = m.conv(x, 8, (1, 1)) if inner else x
    size = [n * s + e for n, s, e in zip((5, 6), strides, more, strict=True)]
    y = m.tensor(1, 8, *size)
    weights = m.rng.integers(-127, 128, (8, 8 // groups, *kernel))
    how = m._products(x, 8, weights[0].size // max(1, strides[0] * strides[1]), y)
    node = {"strides": strides, "pads": pads, "dilation": dilation, "groups": groups}
    y = m.node(Deconv, [x], y, weights=weights, clamp=y.limits, **how, **node)
    return m.done(m.conv(y, 4, (3, 3)) if behind else y)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", DECONV)
def test_deconv(name: str, dtype: str) -> None:
    """The device computes it, and pixels are an index."""
    graph = deconv(name, dtype=dtype)
    program = compiled(graph, "small")
    assert alone(program) or name in LARGER
    equal(graph, program)


@pytest.mark.parametrize("name", ["2x2", "3x3"])
def test_deconv_inside(name: str) -> None:
    """A layer behind it: the host puts the pixels in order, the device does the rest."""
    graph = deconv(name, behind=True)
    program = compiled(graph)
    assert len(program.device_parts) == 2
    assert all(program.reports[n.name].runs == "device" for n in graph.nodes)
    equal(graph, program)


def test_deconv_against_torch_formula() -> None:
    """The reference: a unit pulse gives the kernel where it lies."""
    graph = deconv("3x3-full", inner=False)
    (node,) = graph.nodes
    assert isinstance(node, Deconv)
    x, y = (graph.tensors[n] for n in (node.inputs[0], node.outputs[0]))
    node.bias[:] = 0
    node.w_scale[:] = y.step / x.step / 2
    values = np.full(x.shape, x.zero)
    values[0, 2, 1, 3] += 1
    found = reference.evaluate(graph, {x.name: values})[y.name][0] - y.zero
    want = np.zeros(found.shape, np.int64)
    factor = x.exact * Fraction(node.w_scale[0]) / y.exact
    halves = [[round(int(w) * factor) for w in row] for row in node.weights[:, 2].reshape(8, -1)]
    want[:, 2:5, 6:9] = np.clip(np.reshape(halves, (8, 3, 3)), -128 - y.zero, 127 - y.zero)
    assert np.array_equal(found, want)


# ------------------------------------------------------------------------------ upsampling
def resized(behind: bool) -> Graph:
    m = Maker(6)
    x = m.conv(m.input(1, 6, 5, 7), 8, (3, 3))
    places = (0,), tuple(range(8)), (0, 0, 1, 1, 2, 2, 3, 3, 4, 4), (0, 2, 2, 5, 6, 6)
    y = m.move([x], (1, 8, 10, 6), "take", places=places)
    return m.done(m.conv(y, 5, (3, 3)) if behind else y)


@pytest.mark.parametrize("behind", [False, True])
def test_upsampling(behind: bool) -> None:
    """An index, which a result can have; before a layer the host writes the pixels."""
    graph = resized(behind)
    program = compiled(graph)
    assert alone(program) != behind
    equal(graph, program)


@pytest.mark.parametrize("which", ["larger", "smaller"])
@pytest.mark.parametrize("config", ["k210", "nano_fpga"])
def test_spread_over_what_is_no_map(which: str, config: str) -> None:
    """Factors of channels for a map that was upsampled, and factors that come in another order:
    the host puts the one that does not lie as a map does in order."""
    m = Maker(6)
    x = m.conv(m.input(1, 6, 5, 7), 8, (3, 3))
    places = (0,), tuple(range(8)), (0, 0, 1, 1, 2, 2, 3, 3, 4, 4), (0, 2, 2, 5, 6, 6)
    y = m.move([x], (1, 8, 10, 6), "take", places=places) if which == "larger" else x
    factors = m.conv(m.pool(m.conv(x, 8, (1, 1)), "average", (5, 7)), 8, (1, 1))
    if which == "smaller":
        order = (0,), (3, 3, 0, 0, 7, 7, 1, 1), (0,), (0,)
        factors = m.move([factors], (1, 8, 1, 1), "take", places=order)
    graph = m.done(m.pool(m.both("mul", y, factors), "max", (2, 2), (2, 2)))
    equal(graph, compiled(graph, config))


def test_upsampled_vector() -> None:
    """Elements that are there twice do not count once in a fully connected layer."""
    m = Maker(6)
    x = m.conv(m.input(1, 4, 2, 2), 4, (1, 1))
    places = (0,), (0, 1, 2, 3), (0, 0, 1, 1), (0, 0, 1, 1)
    y = m.move([x], (1, 4, 4, 4), "take", places=places)
    flat = m.dense(m.move([y], (1, 64), "reshape"), 10)
    whole = m.conv(y, 16, (4, 4), pads="valid")
    graph = m.done(flat, whole)
    equal(graph, compiled(graph))


# -------------------------------------------------------------------------------- products
PRODUCTS = {
    "plain": ((5, 12), (12, 7), False),
    "turned": ((9, 16), (11, 16), True),
    "heads": ((1, 4, 10, 8), (1, 4, 10, 8), True),
    "heads-odd": ((1, 3, 7, 5), (1, 3, 5, 9), False),
    "lines": ((1, 2, 40, 12), (1, 2, 12, 6), False),
    "one": ((1, 32), (32, 1), False),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_product(name: str, dtype: str) -> None:
    """Two inputs: one list, the second operand as weights, every byte exact, also out of a file."""
    a, b, turned = PRODUCTS[name]
    m = Maker(2, dtype)
    x, w = m.input(*a), m.input(*b)
    y = m.tensor(
        *np.matmul(np.zeros(a), np.zeros(b).swapaxes(-1, -2) if turned else np.zeros(b)).shape
    )
    y.scale = float(np.float32(x.step * w.step * 74 * 74 * np.sqrt(a[-1]) / 60))
    graph = m.done(m.node(Product, [x, w], y, clamp=y.limits, turned=turned))
    program = compiled(graph, "small")
    assert alone(program)
    equal(graph, program)
    equal(graph, okpu.loads_okpu(okpu.dumps(program), "again"))


@pytest.mark.parametrize("config", ["k210", "nano"])
def test_attention(config: str) -> None:
    """Only softmax, normalisation and orders are the host's; every byte exact."""
    graph = attention()
    program = compiled(graph, config)
    hosted = {n.name for n in graph.nodes if program.reports[n.name].runs == "host"}
    wanted = {n.name for n in graph.nodes if isinstance(n, Host)}
    assert wanted == {h for h in hosted if "order" not in h}
    parts = [p for p in program.parts if isinstance(p, DevicePart)]
    assert sum(len(p.weights) > 0 for p in parts) == 2
    equal(graph, program)


def test_weights_that_do_not_fit() -> None:
    """A product that no layer holds is refused in one line."""
    m = Maker(2)
    x, w = m.input(4, 9300), m.input(9300, 4)
    graph = m.done(m.node(Product, [x, w], m.tensor(4, 4), clamp=(-128, 127)))
    with pytest.raises(ValueError, match=r"node 'n0' \(Product\)"):
        compiled(graph)
    assert configs.load_config("k210").macs
