# SPDX-License-Identifier: Apache-2.0
"""Networks whose maps do not fit the AI RAM, in bands of lines: every byte as without bands
(docs/compiler.md 6)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from models.tests.compiler.compiled_graphs import Maker
from models.tests.compiler.mobilenet import mobilenet_v2
from openkpu import configs
from openkpu.compiler import agree, build, okpu, run
from openkpu.compiler.bands import fit
from openkpu.compiler.bands.lines import window
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Graph, Tensor
from openkpu.compiler.passes.rewrites import variants
from openkpu.compiler.program import Program
from openkpu.export import source
from openkpu.export.image import ExportError
from openkpu.layer.argument import LayerArg
from openkpu.prediction.cycles_model import predict_network

pytestmark = pytest.mark.fixed  # the same with every seed
WHOLE = 32768


def chain(m: Maker) -> list[Tensor]:
    """Two 3x3 convolutions and a 1x1 one, of odd height."""
    x = m.conv(m.input(1, 3, 29, 40), 8, (3, 3))
    return [m.conv(m.conv(x, 8, (3, 3)), 5, (1, 1))]


def strided(m: Maker) -> list[Tensor]:
    """Strides of 2 at odd and even heights, with a halo, of maps turned or not."""
    x = m.conv(m.input(1, 4, 37, 34), 12, (3, 3), (2, 2))
    x = m.conv(x, 12, (3, 3), groups=12)
    x = m.conv(x, 24, (1, 1))
    return [m.conv(m.conv(x, 24, (3, 3), (2, 2), groups=24), 6, (1, 1))]


def residual(m: Maker) -> list[Tensor]:
    """Sums whose maps come from other bands, twice behind each other."""
    x = m.input(1, 8, 24, 36)
    for _ in range(2):
        y = m.conv(m.conv(x, 24, (1, 1)), 24, (3, 3), groups=24)
        x = m.both("add", x, m.conv(y, 8, (1, 1)), scale=0.06)
    return [x]


def tiny(m: Maker) -> list[Tensor]:
    """A block with a sum, small enough for a slow simulator."""
    x = m.input(1, 3, 9, 34)
    y = m.conv(m.conv(x, 6, (1, 1)), 6, (3, 3), groups=6)
    return [m.both("add", x, m.conv(y, 3, (1, 1)), scale=0.06)]


def pooled(m: Maker) -> list[Tensor]:
    """Pooling tasks with padding, a concatenation, a global average at the end."""
    x = m.conv(m.input(1, 3, 26, 40), 8, (3, 3))
    a = m.pool(x, "max", (3, 3), (2, 2), (1, 1, 1, 1))
    b, c = m.conv(a, 8, (3, 3)), m.conv(a, 4, (1, 1))
    c.scale, c.zero = b.scale, b.zero
    y = m.conv(m.move([b, c], (1, 12, 13, 20), "concat", axis=1), 40, (1, 1))
    return [m.pool(y, "average", (13, 20))]


def two_results(m: Maker) -> list[Tensor]:
    """A result in the middle that does not fit, and is read on."""
    x = m.conv(m.input(1, 3, 30, 40), 12, (3, 3))
    return [x, m.conv(x, 4, (3, 3), (2, 2))]


def with_constant(m: Maker) -> list[Tensor]:
    """A constant map is added, line by line."""
    x = m.conv(m.input(1, 3, 30, 40), 8, (3, 3))
    y = m.both("add", x, m.tensor(1, 8, 30, 40, data=m.bytes(1, 8, 30, 40)), scale=0.07)
    return [m.conv(y, 4, (3, 3))]


def constant_first(m: Maker) -> list[Tensor]:
    """A constant map is added to the input, which no other layer loads."""
    x = m.input(1, 16, 14, 33)
    y = m.both("add", x, m.tensor(1, 16, 14, 33, data=m.bytes(1, 16, 14, 33)), scale=0.07)
    return [m.conv(y, 8, (3, 3))]


def joined_result(m: Maker) -> list[Tensor]:
    """A result that does not fit is a concatenation: two layers write a part each."""
    x = m.input(1, 3, 44, 65)
    a, b, c = m.conv(x, 8, (3, 3)), m.conv(x, 5, (1, 1)), m.conv(x, 4, (1, 1))
    for y in (b, c):
        y.scale, y.zero = a.scale, a.zero
    y = m.move([a, b], (1, 13, 44, 65), "concat", axis=1)
    return [y, m.conv(y, 4, (3, 3)), c]


def two_chains(m: Maker) -> list[Tensor]:
    """A concatenation whose parts are written by two chains, the second one reads it on."""
    m.rng = np.random.default_rng(47)
    x = m.conv(m.input(1, 1, 28, 63), 1, (5, 5))
    a, b = m.conv(x, 8, (3, 3)), m.conv(x, 5, (1, 1))
    b.scale, b.zero = a.scale, a.zero
    y = m.move([a, b], (1, 13, 28, 63), "concat", axis=1)
    y = m.both("add", y, m.tensor(1, 13, 28, 63, data=m.bytes(1, 13, 28, 63)), scale=0.07)
    return [m.pool(y, "average", (2, 2), (2, 2))]


def one_line(m: Maker) -> list[Tensor]:
    """A map of one line does not take less in bands, but in parts of its channels."""
    x = m.conv(m.input(1, 8, 1, 60), 200, (1, 1))
    return [m.pool(m.conv(x, 200, (3, 3), groups=200), "average", (1, 60))]


def one_result(m: Maker) -> list[Tensor]:
    """A result that is stored in bands."""
    return [m.conv(m.input(1, 3, 24, 20), 8, (3, 3))]


def dilated(m: Maker) -> list[Tensor]:
    """Moved copies of the input, which are channels of one map: more layers than a chain's maps."""
    x = m.conv(m.input(1, 4, 30, 40), 4, (3, 3), dilation=(2, 2))
    return [m.conv(x, 6, (3, 3))]


def large_kernels(m: Maker) -> list[Tensor]:
    """25 copies, some of them made of others."""
    x = m.conv(m.input(1, 2, 20, 20), 4, (1, 1))
    return [m.conv(m.conv(x, 4, (5, 5), groups=4), 3, (1, 1))]


def copies_first(m: Maker) -> list[Tensor]:
    """All copies at a time take more rows than there are, in the first convolution."""
    x = m.conv(m.input(1, 1, 28, 63), 2, (5, 5))
    return [m.conv(x, 8, (3, 3))]


def further_input(m: Maker) -> list[Tensor]:
    """A layer in the middle of the list loads a map of the host's."""
    x, more = m.input(1, 3, 20, 30), m.input(1, 8, 20, 30)
    return [m.conv(m.both("add", m.conv(x, 8, (3, 3)), more), 4, (3, 3))]


def excited(m: Maker) -> list[Tensor]:
    """Squeeze and excite of a map whose pixels the host puts in order before: nearest resizing."""
    x = m.input(1, 3, 12, 20)
    places = (
        (0,),
        tuple(range(8)),
        tuple(n // 2 for n in range(24)),
        tuple(n // 2 for n in range(40)),
    )
    y = m.move([m.conv(x, 8, (3, 3))], (1, 8, 24, 40), "take", places=places)
    factors = m.conv(m.pool(y, "average", (24, 40)), 8, (1, 1))
    return [m.both("mul", y, factors)]


GRAPHS: dict[str, tuple[Callable[[Maker], list[Tensor]], int]] = {
    "chain": (chain, 200),
    "strided": (strided, 256),
    "residual": (residual, 420),
    "tiny": (tiny, 80),
    "pooled": (pooled, 192),
    "two_results": (two_results, 160),
    "with_constant": (with_constant, 240),
    "constant_first": (constant_first, 280),
    "joined_result": (joined_result, 836),
    "two_chains": (two_chains, 518),
    "one_line": (one_line, 100),
    "one_result": (one_result, 80),
    "dilated": (dilated, 300),
    "large_kernels": (large_kernels, 340),
    "copies_first": (copies_first, 200),
    "further_input": (further_input, 150),
}


def graph_of(name: str, dtype: str = "int8") -> Graph:
    m = Maker(41, dtype)
    return m.done(*GRAPHS[name][0](m))


def on(graph: Graph, rows: int, name: str = "nano_fpga") -> Program:
    return build.build_program(
        graph, dataclasses.replace(configs.load_config(name), ai_ram_rows=rows)
    )


def values(graph: Graph) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {
        n: rng.integers(*graph.tensors[n].limits, graph.tensors[n].shape, endpoint=True)
        for n in graph.inputs
    }


def most_rows(program: Program) -> int:
    """Rows of the AI RAM that the layers reach."""
    layers = [arg for part in program.device_parts for arg in part.network.layers]
    maps = [m for arg in layers for m in (*arg.in_layouts, arg.out_layout)]
    return max(m.base + m.rows for m in maps)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", GRAPHS)
def test_every_byte(name: str, dtype: str) -> None:
    """In one list, within the rows, as the reference and the list without bands have it."""
    rows = GRAPHS[name][1]
    banded, whole = on(graph_of(name, dtype), rows), on(graph_of(name, dtype), WHOLE)
    assert len(banded.device_parts) == 1 and banded.layers > whole.layers
    assert most_rows(banded) <= rows < most_rows(whole)
    graph = graph_of(name, dtype)
    given = values(graph)
    found, plain = run.run_program(banded, given), run.run_program(whole, given)
    want = reference.evaluate(graph, given)
    missed = sum(r.missed + r.steps for r in whole.reports.values())
    for output in graph.outputs:
        assert np.array_equal(found[output], plain[output])
        assert np.abs(found[output] - want[output]).max() <= (1 if missed else 0)


@pytest.mark.parametrize(("make", "rows"), [(further_input, 150), (excited, 300)])
def test_cost_where_layers_load_inputs(make: Callable[[Maker], list[Tensor]], rows: int) -> None:
    """The list that bands are compared with loads the host's maps as well: it can be predicted,
    and run, like that of a device that holds all of it."""
    graphs = [(m := Maker(41)).done(*make(m)) for _ in range(2)]
    banded, whole = on(graphs[0], rows), on(graphs[1], WHOLE)
    parts = [p for p in banded.device_parts if p.whole is not None]
    assert parts and any(arg.load_map for p in parts if p.whole for arg in p.whole.layers)
    assert most_rows(banded) <= rows
    config = dataclasses.replace(configs.load_config("nano_fpga"), ai_ram_rows=rows)
    assert all(p.whole and predict_network(config, p.whole).cycles for p in parts)
    given = values(graphs[0])
    (name,) = banded.graph.outputs
    assert np.array_equal(run.run_program(banded, given)[name], run.run_program(whole, given)[name])
    for part in parts:
        assert part.whole is not None
        loads = {i: m.shape for i, m in part.whole.loaded.items()}
        assert loads == {i: arg.in_shape for i, arg in enumerate(part.whole.layers) if arg.load_map}


def long(m: Maker) -> list[Tensor]:
    """Many 3x3 layers, of bands with few lines."""
    x = m.input(1, 4, 30, 30)
    for number in range(44):
        x = m.conv(x, 4, (3, 3) if number % 2 else (1, 1))
    return [x]


@pytest.mark.check
def test_several_lists() -> None:
    """More layers than a list has, in bands: lists one behind the other."""
    m = Maker(41)
    program = on(m.done(*long(m)), 30)
    sizes = [len(part.network.layers) for part in program.device_parts]
    assert len(sizes) == 2 and sum(sizes) > 1023 >= max(sizes) and most_rows(program) <= 30
    given = values(program.graph)
    (name,) = program.graph.outputs
    want = reference.evaluate(program.graph, given)[name]
    found = run.run_program(program, given)[name]
    missed = sum(r.missed for r in program.reports.values())
    assert np.abs(found - want).max() <= (1 if missed else 0)
    again = okpu.loads_okpu(okpu.dumps(program), "net.okpu")
    assert np.array_equal(run.run_program(again, given)[name], found)
    with pytest.raises(ExportError, match=r"2 task lists, expected one; one has at most 1,023 lay"):
        source.of_program(program, "net.tflite")


@pytest.mark.parametrize(
    ("name", "rows", "most", "lists"),
    [
        *(("residual", 420, 18, 2), ("residual", 840, 8, 3), ("residual", 840, 4, 4)),
        *(("pooled", 192, 8, 3), ("pooled", 384, 4, 2), ("joined_result", 1672, 4, 2)),
        *(("strided", 256, 12, 2), ("with_constant", 240, 18, 2), ("chain", 200, 18, 2)),
    ],
)
def test_cut_anywhere(
    name: str, rows: int, most: int, lists: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists of a few layers: sums, results and concatenations whose parts are made in others."""
    monkeypatch.setattr(fit, "MOST_LAYERS", most)
    monkeypatch.setattr(fit, "ROOM", most - 1)
    program = on(graph_of(name), rows)
    sizes = [len(part.network.layers) for part in program.device_parts]
    assert len(sizes) == len(program.parts) == lists and max(sizes) <= most
    assert most_rows(program) <= rows
    graph = graph_of(name)
    assert not agree.faults(graph, program, values(graph))


def test_parts_of_a_map_are_read_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of a loop, each with its part of one map: a later list reads the map, so that the list
    in front copies no part for it, and both are about as long."""
    monkeypatch.setattr(fit, "MOST_LAYERS", 40)
    monkeypatch.setattr(fit, "ROOM", 38)
    m = Maker(7)
    steps = 48
    whole = m.conv(m.input(1, 4, 1, 1), 4 * steps, (1, 1))
    cut = {"how": "slice", "steps": (1, 1, 1, 1)}
    parts = [m.move([whole], (1, 4, 1, 1), starts=(0, 4 * i, 0, 0), **cut) for i in range(steps)]
    state = m.conv(m.input(1, 4, 1, 1), 4, (1, 1))
    for part in parts:
        state = m.both("add", state, part, scale=0.1)
    graph = m.done(state)
    program = on(graph, WHOLE)
    sizes = [len(part.network.layers) for part in program.device_parts]
    assert len(sizes) * 38 < sum(sizes) + 38 and max(sizes) - min(sizes) <= 4
    assert sum(len(part.outputs) for part in program.device_parts) <= 2 * len(sizes)
    assert not agree.faults(graph, program, values(graph))


def test_maps_that_lie_down_in_one_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two forms that both fit, the one in which the host has fewer turns."""
    monkeypatch.setattr(fit, "MOST_LAYERS", 80)
    monkeypatch.setattr(fit, "ROOM", 79)
    m = Maker(41)
    x = m.input(1, 4, 30, 20)
    for side in (1, 3, 1, 3):
        x = m.conv(x, 4, (side, side))
    graph = m.done(x)
    config = dataclasses.replace(configs.load_config("nano_fpga"), ai_ram_rows=30)
    upright, lying = (build.Builder(form, config).run() for form in variants(graph))
    assert len(upright.parts) > len(lying.parts) == 1
    program = on(graph, 30)
    assert len(program.parts) == 1 and not agree.faults(graph, program, values(graph))


def test_layers_of_one_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that needs more layers than a list has is named."""
    monkeypatch.setattr(fit, "MOST_LAYERS", 20)
    monkeypatch.setattr(fit, "ROOM", 19)
    with pytest.raises(CompileError, match=r"'n1' \(Conv\): \d+ layers, a task list has 20: exp"):
        on(graph_of("two_results"), 160)


@pytest.mark.check
def test_several_lists_of_whole_maps() -> None:
    """The same without bands, with a branch over the end of the first list."""
    m = Maker(5)
    x = early = m.conv(m.input(1, 2, 1, 1), 2, (1, 1))
    for _ in range(1060):
        x = m.conv(x, 2, (1, 1))
    graph = m.done(m.both("add", x, early, scale=0.1))
    program = on(graph, WHOLE)
    sizes = [len(part.network.layers) for part in program.device_parts]
    assert len(sizes) == 2 and sum(sizes) >= 1062 and max(sizes) <= 1023
    assert not agree.faults(graph, program, values(graph))


def test_program_file() -> None:
    """A banded program is the same after a file."""
    program = on(graph_of("residual"), GRAPHS["residual"][1])
    again = okpu.loads_okpu(okpu.dumps(program), "net.okpu")
    given = values(program.graph)
    for name in program.graph.outputs:
        assert np.array_equal(
            run.run_program(again, given)[name], run.run_program(program, given)[name]
        )


def test_a_result_in_bands_is_not_exported() -> None:
    """The file, the output, and why its map is in pieces; parts of channels are no bands."""
    with pytest.raises(ExportError, match=r"^net.okpu: output 't1': stored .* map: it is .* bands"):
        source.of_program(on(graph_of("one_result"), 80), "net.okpu")
    with pytest.raises(ExportError, match=r"^net.okpu: output 't\d+': stored .* expected one map$"):
        source.of_program(on(graph_of("joined_result"), WHOLE), "net.okpu")


def test_halo() -> None:
    """Lines of the input that lines of the output need, by the definition of each layer."""
    conv = LayerArg.make(4, 20, 30, kernel=3)
    for (first, behind), lines, computed in (
        ((5, 9), (4, 10), (4, 10)),
        ((0, 9), (0, 10), (0, 10)),
        ((5, 20), (4, 20), (4, 20)),
        ((0, 20), (0, 20), (0, 20)),
    ):
        seen = window(conv, first, behind)
        assert ((seen.low, seen.high), (seen.first, seen.behind)) == (lines, computed)
    halves = LayerArg.make(4, 21, 30, kernel=3, pool=5)  # of pairs the first: 2y - 1 to 2y + 1
    for (first, behind), lines, computed in (
        ((3, 5), (4, 10), (2, 5)),
        ((0, 5), (0, 10), (0, 5)),
        ((3, 10), (4, 21), (2, 10)),
    ):
        seen = window(halves, first, behind)
        assert ((seen.low, seen.high), (seen.first, seen.behind)) == (lines, computed)


def test_shared_tables() -> None:
    """Bands of a layer read the same weights: they are in the image once."""
    banded = on(graph_of("chain"), GRAPHS["chain"][1])
    whole = on(graph_of("chain"), WHOLE)
    sizes = [p.device_parts[0].network.weights.size for p in (banded, whole)]
    assert sizes[0] <= sizes[1] + 200  # copies have a few


def dilated_sum(m: Maker) -> list[Tensor]:
    """Far taps in front of a sum and a stride: what a chain needs is hard to estimate."""
    x = m.conv(m.input(1, 3, 23, 37), 6, (3, 3), dilation=(8, 8))
    y = m.conv(x, 6, (3, 3), dilation=(3, 3), groups=6)
    return [m.conv(m.both("add", x, y, scale=0.1), 5, (3, 3), (2, 2), dilation=(2, 2))]


@pytest.mark.check
@pytest.mark.parametrize("rows", [276, 242, 235, 230, 219, 207, 153])
def test_more_rows_are_never_too_few(rows: int) -> None:
    """153 rows hold the network in bands, and so does every larger AI RAM."""
    m = Maker(47)
    graph = m.done(*dilated_sum(m))
    inputs = values(graph)
    got, expected = (
        run.run_program(on(graph, rows, "small"), inputs),
        reference.evaluate(graph, inputs),
    )
    for name in graph.outputs:
        assert np.array_equal(got[name], expected[name]), name


@pytest.mark.check
def test_mobilenet() -> None:
    """A small MobileNetV2 on half of the AI RAM, as on 2 MiB."""
    given = values(mobilenet_v2(96, 10))
    small, large = (on(mobilenet_v2(96, 10), rows) for rows in (1024, WHOLE))
    assert most_rows(small) <= 1024 and len(small.device_parts) == 1
    (name,) = small.graph.outputs
    assert np.array_equal(run.run_program(small, given)[name], run.run_program(large, given)[name])
