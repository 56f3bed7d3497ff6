# SPDX-License-Identifier: Apache-2.0
"""Lowerings of everything but convolutions, against the exact reference."""

from __future__ import annotations

import time

import numpy as np
import pytest

from models.tests.compiler.compiled_graphs import Maker, alone, compiled, differs, equal, layers
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import functions
from openkpu.compiler.form.graph import Graph, Host, Table, Tensor
from openkpu.compiler.lowering import segments


# ------------------------------------------------------------------ fully connected
@pytest.mark.parametrize("k", [8, 640])
def test_dense(k: int) -> None:
    m = Maker(1)
    graph = m.done(m.dense(m.dense(m.input(1, k), 24), 7))
    program = compiled(graph)
    assert alone(program) and len(layers(program)) == 2
    equal(graph, program)


def test_dense_of_rows() -> None:
    """(1, T, K): a 1x1 convolution over T pixels."""
    m = Maker(2)
    graph = m.done(m.dense(m.dense(m.input(1, 15, 12), 24), 7))
    program = compiled(graph)
    assert alone(program) and layers(program) == ["1x1", "1x1"]
    equal(graph, program)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1)])
def test_flattened_map(order: tuple[int, ...]) -> None:
    """A map in the order of ONNX or of TFLite: the weights change their places, no byte does."""
    m = Maker(3)
    x = m.conv(m.input(1, 6, 10, 10), 8, (3, 3), (2, 2))
    shape = tuple(x.shape[a] for a in order)
    flat = m.move([m.move([x], shape, "transpose", axes=order)], (1, 200), "reshape")
    graph = m.done(m.dense(flat, 10))
    program = compiled(graph)
    assert alone(program) and layers(program) == ["3x3 p5", "1x1 fc"]
    equal(graph, program)


# ---------------------------------------------------------------------------- pools
@pytest.mark.parametrize("how", ["max", "average"])
@pytest.mark.parametrize(
    ("kernel", "strides", "pads"),
    [
        ((2, 2), (2, 2), (0, 0, 0, 0)),
        ((3, 3), (2, 2), (0, 0, 1, 1)),
        ((3, 2), (1, 2), (1, 0, 1, 1)),
        ((16, 16), (3, 2), (3, 4, 2, 1)),
        ((20, 18), (1, 1), (0, 0, 0, 0)),
    ],
)
def test_pools(
    how: str, kernel: tuple[int, int], strides: tuple[int, int], pads: tuple[int, int, int, int]
) -> None:
    for counted in (False, True) if how == "average" and any(pads) else (False,):
        m = Maker(4)
        x = m.conv(m.input(1, 6, 20, 18), 6, (1, 1))
        graph = m.done(m.pool(x, how, kernel, strides, pads, counted))
        program = compiled(graph)
        assert alone(program) and layers(program) == ["1x1", "pool"]
        equal(graph, program)


@pytest.mark.parametrize(
    ("kernel", "pads"), [((3, 3), (0, 0, 1, 1)), ((2, 2), (0, 0, 0, 0)), ((3, 3), (2, 1, 0, 0))]
)
def test_pool_of_a_turned_map(kernel: tuple[int, int], pads: tuple[int, int, int, int]) -> None:
    """Windows that leave a line at the end, or begin before the map."""
    m = Maker(5)
    x = m.conv(m.input(1, 6, 22, 18), 6, (3, 3), (2, 2))
    graph = m.done(m.pool(x, "max", kernel, (2, 2), pads))
    program = compiled(graph)
    assert alone(program) and layers(program) == ["3x3 p5", "pool"]
    equal(graph, program)


def test_pool_with_another_scale() -> None:
    """A maximum and an average of whole windows are exact."""
    for how in ("max", "average"):
        m = Maker(6)
        x = m.input(1, 6, 12, 12, scale=0.05)
        y = m.pool(x, how, (2, 2), (2, 2), same=False)
        y.scale = 0.031
        graph = m.done(y)
        program = compiled(graph)
        assert program.reports["n0"].steps == 0
        equal(graph, program)


@pytest.mark.parametrize("scale", [0.31, 0.05 / 9, 0.002])
@pytest.mark.parametrize(
    ("kernel", "strides", "pads"),
    [
        ((11, 13), (1, 1), (0, 0, 0, 0)),  # the whole map
        ((3, 3), (1, 1), (1, 1, 1, 1)),
        ((3, 2), (2, 2), (0, 0, 0, 0)),
        ((5, 4), (2, 1), (2, 2, 2, 1)),
    ],
)
def test_average_is_rounded_once(
    scale: float, kernel: tuple[int, int], strides: tuple[int, int], pads: tuple[int, ...]
) -> None:
    """Steps of the output that are a fraction of the input's: a second rounding would be seen."""
    m = Maker(7)
    x = m.conv(m.input(1, 7, 11, 13), 7, (1, 1))
    x.scale = 0.05
    y = m.pool(x, "average", kernel, strides, pads, any(pads), same=False)  # pyright: ignore
    y.scale = scale
    graph = m.done(y)
    program = compiled(graph)
    wrong, most = differs(graph, program)
    report = program.reports["n1"]
    if scale > 0.05 and kernel == (5, 4):  # a pooling task and a table, which is faster
        assert most <= report.steps == 1
    else:
        assert wrong == 0 == report.steps - report.missed


@pytest.mark.parametrize("kernel", [(4, 4), (2, 2)])
def test_ties_of_averages(kernel: tuple[int, int]) -> None:
    """Scales that are powers of two: a tenth of the averages lies at a half, and goes up."""
    m = Maker(7)
    x = m.input(1, 64, 4, 4, scale=1 / 16)
    y = m.pool(x, "average", kernel, kernel, same=False)
    y.scale = 1 / 8
    graph = m.done(y)
    equal(graph, compiled(graph))


def test_average_that_is_rounded_twice_says_so() -> None:
    """Windows at the edge divide by fewer pixels: the report has as many steps as may be."""
    m = Maker(8)
    x = m.input(1, 6, 12, 12, scale=0.05)
    y = m.pool(x, "average", (3, 3), (1, 1), (1, 1, 1, 1), same=False)
    y.scale = 0.01
    graph = m.done(y)
    program = compiled(graph)
    assert 1 < differs(graph, program)[1] <= program.reports["n0"].steps == 3


def test_windows_that_the_device_lacks() -> None:
    m = Maker(7)
    x = m.conv(m.input(1, 2, 40, 40), 2, (1, 1))
    graph = m.done(m.pool(x, "average", (17, 17)))
    with pytest.raises(CompileError, match=r"node 'n1' \(Pool\): a window of \(17, 17\)"):
        compiled(graph)


# ---------------------------------------------------------------- element by element
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("how", ["add", "sub", "mul", "max", "min"])
def test_two_maps(how: str, dtype: str) -> None:
    """Products, maxima and minima are exact; of sums no more pairs differ than the report says."""
    m = Maker(8, dtype)
    x = m.input(1, 6, 10, 9)
    y = m.both(how, m.conv(x, 6, (3, 3)), m.conv(x, 6, (1, 1)), scale=0.07)
    graph = m.done(y)
    program = compiled(graph)
    assert alone(program)
    wrong, most = differs(graph, program)
    missed = program.reports["n2"].missed
    assert most <= 1 and wrong <= max(3, missed) and (how in ("add", "sub") or not missed + wrong)


def with_constant(how: str, which: int, kind: str) -> Graph:
    """An element-wise node of the input and a constant of this kind, operand ``which``."""
    m = Maker(9)
    x = m.input(1, 6, 10, 9)
    shape = {"number": (1,), "channels": (1, 6, 1, 1), "map": (1, 6, 10, 9)}[kind]
    constant = m.tensor(*shape, data=m.bytes(*shape))
    pair = (constant, x) if which == 0 else (x, constant)
    if how == "mul" and kind == "map":
        constant.zero, x.zero = 3, -20  # the second factor's is not above the first one's
        pair = (constant, x)
    return m.done(m.both(how, *pair, scale=0.07 if how != "mul" else 0.03))


KINDS = ("number", "channels", "map")
TAKEN = [(how, kind) for how in ("add", "sub", "mul", "max", "min") for kind in KINDS]


@pytest.mark.parametrize("zeros", [(100, -90), (-90, 100), (90, 120), (-120, -100)])
@pytest.mark.parametrize("one_sided", [0, -1, 1])
def test_product_with_a_map(zeros: tuple[int, int], one_sided: int) -> None:
    """Whatever the zero points are: bytes of a constant may lie elsewhere, or it comes second."""
    m = Maker(16)
    x, constant = m.input(1, 6, 10, 9, zero=zeros[0]), m.tensor(1, 6, 10, 9, zero=zeros[1])
    constant.data = m.bytes(1, 6, 10, 9)
    if one_sided:  # all factors above the zero point, or below
        ends = (zeros[1], 127) if one_sided > 0 else (-128, zeros[1])
        constant.data = np.clip(constant.data, *ends)
    graph = m.done(m.both("mul", x, constant, scale=0.03))
    program = compiled(graph)
    assert alone(program)
    if one_sided < 0:  # the constant's zero point may be 255: no layer brings it first
        assert layers(program) == ["1x1 dw", "ew"]
    equal(graph, program)


@pytest.mark.parametrize("zeros", [(10, 90), (90, 10)])
def test_product_of_two_inputs(zeros: tuple[int, int]) -> None:
    """Both come from storage, whichever has the larger zero point."""
    m = Maker(17)
    x, y = (m.input(1, 6, 10, 9, zero=zero) for zero in zeros)
    graph = m.done(m.both("mul", x, y, scale=0.03))
    equal(graph, compiled(graph))


@pytest.mark.parametrize("shape", [(1, 7, 1, 1), (1, 1, 20, 18), (1, 7, 20, 1), (1, 7, 1, 18)])
@pytest.mark.parametrize("how", ["add", "sub", "mul", "max"])
@pytest.mark.parametrize("first", [True, False])
def test_a_map_that_is_spread(shape: tuple[int, ...], how: str, first: bool) -> None:
    """A computed operand of one pixel or of one channel beside a map (squeeze and excite)."""
    m = Maker(18)
    x, small = m.conv(m.input(1, 5, 20, 18), 7, (3, 3)), m.conv(m.input(*shape), shape[1], (1, 1))
    pair = (small, x) if first else (x, small)
    y = m.both(how, *pair, scale=0.07 if how != "mul" else 0.03)
    y.shape = x.shape
    graph = m.done(y)
    program = compiled(graph)
    assert {program.reports[n.name].runs for n in graph.nodes} == {"device"}
    wrong, most = differs(graph, program)
    assert most <= 1 and (wrong == 0 or program.reports[graph.nodes[-1].name].missed)


def test_a_map_that_is_spread_over_a_turned_one() -> None:
    """TensorFlow's stride 2: lines lie in reverse order, one channel for all of them as well."""
    m = Maker(19)
    x = m.conv(m.input(1, 5, 20, 18), 8, (3, 3), (2, 2))
    y = m.both("mul", x, m.conv(x, 1, (1, 1)), scale=0.03)
    y.shape = x.shape
    z = m.both("add", y, m.pool(y, "average", (10, 9), (1, 1), (0, 0, 0, 0)), scale=0.05)
    z.shape = x.shape
    graph = m.done(z)
    program = compiled(graph)
    assert alone(program)
    assert differs(graph, program)[1] <= 1


@pytest.mark.parametrize("how", ["add", "sub"])
@pytest.mark.parametrize("ratio", [300.0, 1e4, 1e-4, 1e-9, 1e-30])
def test_scales_far_apart(how: str, ratio: float) -> None:
    """Exact but for a step, or refused: never silently another sum."""
    m = Maker(20)
    x, y = m.input(1, 4, 5, 6, scale=0.05), m.input(1, 4, 5, 6, scale=0.05 * ratio)
    graph = m.done(m.both(how, x, y, scale=0.07))
    try:
        program = compiled(graph)
    except CompileError as error:
        assert "expected scales that are nearer" in str(error) and ratio > 255
    else:
        assert differs(graph, program)[1] <= 1


@pytest.mark.parametrize("how", ["add", "sub", "mul", "max", "conv", "dense", "average"])
@pytest.mark.parametrize("scale", [1e-5, 1e-12, 1e-25])
def test_scales_of_the_output_far_off(how: str, scale: float) -> None:
    """One line that says so, or the exact result, which is all at the ends of the range."""
    m = Maker(21)
    x = m.input(*((1, 8) if how == "dense" else (1, 4, 5, 6)))
    if how == "conv":
        y = m.conv(x, 4, (3, 3))
    elif how == "dense":
        y = m.dense(x, 4)
    elif how == "average":
        y = m.pool(x, "average", (5, 6), (1, 1), (0, 0, 0, 0), same=False)
    else:
        y = m.both(how, x, m.input(1, 4, 5, 6), scale=1.0)
    y.scale = scale
    graph = m.done(y)
    try:
        program = compiled(graph)
    except CompileError as error:
        assert "scales too far apart" in str(error) and scale < 1e-5
    else:
        assert differs(graph, program)[1] <= 1


@pytest.mark.parametrize(("how", "kind"), TAKEN)
@pytest.mark.parametrize("which", [0, 1])
def test_constants(how: str, which: int, kind: str) -> None:
    graph = with_constant(how, which, kind)
    program = compiled(graph)
    assert alone(program)
    wrong, most = differs(graph, program)
    missed = sum(r.missed for r in program.reports.values())
    assert most <= 1 and (wrong == 0 or missed)
    assert kind != "number" or not missed


# --------------------------------------------------------------------------- tables
FUNCTIONS: dict[str, tuple[functions.Real, float, int]] = {
    "leaky": (functions.leaky(0.1), 0.05, 0),
    "sigmoid": (functions.sigmoid, 1 / 256, -128),
    "tanh": (functions.tanh, 1 / 128, 0),
    "hard-swish": (functions.hard_swish, 0.03, -110),
    "hard-sigmoid": (functions.hard_sigmoid(1 / 6, 0.5), 1 / 256, -128),
    "elu": (functions.elu(), 0.04, -90),
    "silu": (functions.silu, 0.03, -110),
    "gelu": (functions.gelu, 0.03, -110),
    "exp": (functions.exp, 0.5, -128),
    "softplus": (functions.softplus, 0.03, -128),
    "abs": (abs, 0.03, -128),
    "negative": (lambda r: -r, 0.05, 3),
    "square": (lambda r: r * r, 0.2, -128),
    "requantise": (lambda r: r, 0.031, 17),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("scale", [0.02, 0.047])
def test_functions(name: str, scale: float) -> None:
    """Every byte of the table, in one layer or two."""
    function, step, zero = FUNCTIONS[name]
    m = Maker(11)
    x = m.input(1, 4, 8, 8, scale=scale, zero=-10)
    like = Tensor("y", "int8", x.shape, step, zero)
    y = m.table(x, functions.table_of(function, x, like))
    y.scale, y.zero = step, zero
    graph = m.done(y)
    program = compiled(graph)
    assert alone(program) and layers(program) in (["1x1 dw"], ["1x1 dw", "ew"]), layers(program)
    (part,) = program.device_parts
    port, out = part.inputs[0], part.outputs[0]
    every = np.arange(256, dtype=np.uint8).reshape(port.shape)
    found, node = out.tensor_of({-1: part.network.run(every).y}), graph.nodes[0]
    assert isinstance(node, Table) and np.array_equal(found.reshape(-1), node.table)


@pytest.mark.check
def test_any_table() -> None:
    """A table without a shape is the host's, and still right."""
    m = Maker(12)
    x = m.conv(m.input(1, 4, 8, 8), 4, (1, 1))
    graph = m.done(m.conv(m.table(x, m.bytes(256)), 4, (1, 1)))
    begun = time.process_time()
    program = compiled(graph)
    assert time.process_time() - begun < 6  # seconds; some 1,000 ways are tried
    assert program.reports["n1"].runs == "host" and len(program.device_parts) == 2
    equal(graph, program)


def test_segments() -> None:
    """As few as are needed, never wrong: None rather than another byte."""
    assert segments.fit(np.arange(256)) is not None
    assert segments.fit(np.repeat(np.arange(16) * 9 % 100, 16)) is not None
    assert segments.fit(np.repeat(np.arange(17) * 40 % 255, 15)) is None


# ---------------------------------------------------------------------------- moves
def test_concatenation_costs_nothing() -> None:
    m = Maker(13)
    x = m.input(1, 8, 10, 9)
    parts = [m.conv(x, o, (3, 3)) for o in (8, 5, 3)]
    for part in parts[1:]:
        part.scale, part.zero = parts[0].scale, parts[0].zero
    joined = m.move(parts, (1, 16, 10, 9), "concat", axis=1)
    graph = m.done(m.conv(joined, 4, (1, 1)))
    program = compiled(graph)
    assert alone(program) and layers(program) == ["3x3", "3x3", "3x3", "1x1"]
    equal(graph, program)


def test_joined_twice() -> None:
    """A tensor in two concatenations, and one that is joined with itself."""
    m = Maker(14)
    x = m.input(1, 8, 10, 9)
    a = m.conv(x, 8, (3, 3))
    one = m.move([a, a], (1, 16, 10, 9), "concat", axis=1)
    two = m.move([one, a], (1, 24, 10, 9), "concat", axis=1)
    graph = m.done(m.conv(two, 4, (1, 1)), one)
    program = compiled(graph)
    assert alone(program)
    equal(graph, program)


@pytest.mark.parametrize("first", [0, 3, 8])
def test_slices_cost_nothing(first: int) -> None:
    m = Maker(15)
    x = m.conv(m.input(1, 8, 10, 9), 16, (3, 3))
    where = {"starts": (0, first, 0, 0), "steps": (1, 1, 1, 1)}
    part = m.move([x], (1, 8, 10, 9), "slice", **where)
    graph = m.done(m.conv(part, 4, (3, 3)))
    program = compiled(graph)
    assert alone(program) and layers(program) == ["3x3", "3x3"]
    equal(graph, program)


@pytest.mark.parametrize("how", ["max", "average"])
@pytest.mark.parametrize(("line", "column"), [(0, 0), (0, 3), (4, 0), (2, 1), (4, 3)])
def test_windows_at_the_edges_of_a_part(line: int, column: int, how: str) -> None:
    """A padded pool of a part of a map reads none of the pixels beside the part."""
    m = Maker(16)
    x = m.conv(m.input(1, 8, 10, 9), 8, (3, 3))
    where = {"starts": (0, 0, line, column), "steps": (1, 1, 1, 1)}
    part = m.move([x], (1, 8, 6, 6), "slice", **where)
    graph = m.done(m.pool(part, how, (3, 3), pads=(1, 1, 1, 1)))
    program = compiled(graph)
    assert alone(program)
    equal(graph, program)


def test_pad_becomes_padding() -> None:
    m = Maker(16)
    x = m.input(1, 8, 10, 9)
    edges = {"before": (0, 0, 1, 1), "after": (0, 0, 1, 1), "value": x.zero}
    padded = m.move([x], (1, 8, 12, 11), "pad", **edges)
    graph = m.done(m.conv(padded, 4, (3, 3), pads="valid"))
    program = compiled(graph)
    assert alone(program) and layers(program) == ["3x3"]
    equal(graph, program)


@pytest.mark.parametrize("how", ["rows", "turn"])
def test_moves_of_the_host(how: str) -> None:
    """Elements that a layer cannot read where they lie are put in order by the host."""
    m = Maker(17)
    x = m.conv(m.input(1, 8, 6, 6), 6, (3, 3))
    if how == "rows":
        y = m.move([x], (1, 4, 9, 6), "reshape")
    else:
        y = m.move([x], (1, 6, 6, 6), "transpose", axes=(0, 2, 3, 1))
    graph = m.done(m.conv(y, 4, (3, 3)))
    program = compiled(graph)
    assert len(program.device_parts) == 2
    equal(graph, program)


def test_nothing_for_the_device() -> None:
    m = Maker(18)
    x = m.input(1, 10)
    y = m.tensor(1, 10)
    m.node(Host, [x], y, how="softmax", axis=1)
    with pytest.raises(CompileError, match="no node for the device"):
        compiled(m.done(y))


@pytest.mark.parametrize("seed", range(6))
def test_outputs_and_lifetimes(seed: int) -> None:
    """Several outputs, read and not read again; results stay what they were."""
    m = Maker(20 + seed)
    maps = [m.conv(m.input(1, 4, 12, 12), 8, (3, 3))]
    for _ in range(5):
        x = maps[int(m.rng.integers(len(maps)))]
        maps.append(m.conv(x, 8, (3, 3)))
    graph = m.done(*(maps[i] for i in m.rng.permutation(6)[:3]), maps[-1])
    graph.outputs = list(dict.fromkeys(graph.outputs))
    program = compiled(graph)
    assert alone(program)
    equal(graph, program)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_constant_that_the_host_requantises(dtype: str) -> None:
    """A constant beside a computed map, in another scale, stored in the file's own type."""
    m = Maker(22, dtype)
    x = m.conv(m.input(1, 4, 6, 5), 4, (3, 3))
    constant = m.tensor(1, 4, 6, 5, data=m.bytes(1, 4, 6, 5).astype(dtype))
    like = m.tensor(1, 4, 6, 5, scale=x.scale, zero=x.zero)
    table = functions.requantise(constant, like)
    same = m.node(Table, [constant], like, table=table)
    graph = m.done(m.move([x, same], (1, 8, 6, 5), "concat", axis=1))
    equal(graph, compiled(graph))
