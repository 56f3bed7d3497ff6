# SPDX-License-Identifier: Apache-2.0
"""Maps that are padded with channels: on the device, in one task list, exactly; before a sum
nothing is written for the zeros (docs/compiler.md 3)."""

from __future__ import annotations

import dataclasses

import pytest

from models.tests.compiler.compiled_graphs import Maker, alone, compiled, equal, layers
from openkpu import configs
from openkpu.compiler import build
from openkpu.compiler.bands import fit
from openkpu.compiler.form.graph import Elementwise, Graph, Tensor
from openkpu.compiler.program import HostPart


def padded(m: Maker, x: Tensor, front: int, behind: int, value: int | None = None) -> Tensor:
    _, c, h, w = x.shape
    fields = {"before": (0, front, 0, 0), "after": (0, behind, 0, 0)}
    number = x.zero if value is None else value
    return m.move([x], (1, front + c + behind, h, w), "pad", value=number, **fields)


def block(
    width: int, c: int, front: int, behind: int, how: str, swapped: bool, dtype: str = "int8"
) -> Graph:
    """A residual block whose shortcut is padded; a convolution behind it."""
    m = Maker(width + c + front, dtype)
    x = m.conv(m.input(1, 3, 5, width), c, (1, 1))
    y = m.conv(m.conv(x, c, (3, 3), groups=c), front + c + behind, (1, 1))
    wide = padded(m, x, front, behind)
    pair = (y, wide) if swapped else (wide, y)
    z = m.both(how, *pair, scale=0.09)
    return m.done(m.conv(z, 4, (1, 1)), z)


@pytest.mark.parametrize("how", ["add", "sub"])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(  # lines of 6 pixels share a row with 3 channels, of 20 with one
    ("width", "c", "front", "behind"),
    [
        (6, 8, 0, 4),
        (6, 10, 0, 6),
        (6, 3, 0, 5),
        (6, 8, 4, 3),
        (6, 8, 2, 2),
        (20, 6, 0, 1),
        (20, 7, 0, 3),
        (40, 5, 2, 3),
    ],
)
@pytest.mark.tier(check=["*-True-*"])
def test_sums(width: int, c: int, front: int, behind: int, swapped: bool, how: str) -> None:
    graph = block(width, c, front, behind, how, swapped)
    program = compiled(graph)
    assert alone(program)
    equal(graph, program)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_nothing_is_written_for_zeros(dtype: str) -> None:
    """Channels that fill rows: a sum of the ones that both have, and a table of the others."""
    program = compiled(block(6, 8, 0, 4, "add", False, dtype))
    assert layers(program) == ["1x1", "3x3 dw", "1x1", "ew", "1x1 dw", "1x1"]
    (part,) = program.device_parts
    sums, rest = (part.network.layers[i].out_shape[0] for i in (3, 4))
    assert (sums, rest) == (8, 4)


def test_a_clamp_is_of_all_channels() -> None:
    """The sum's ReLU also limits the channels to which zeros are added."""
    m = Maker(8)
    x = m.conv(m.input(1, 3, 5, 6), 8, (1, 1))
    wide, y = padded(m, x, 0, 4), m.conv(x, 12, (1, 1))
    z = m.both("add", wide, y, scale=0.05, zero=-20)
    last = m.graph.nodes[-1]
    assert isinstance(last, Elementwise)
    last.clamp = (-20, 60)
    graph = m.done(z)
    equal(graph, compiled(graph))


def test_several_readers() -> None:
    """Two sums read one padded map; a third reader that is no sum has it written."""
    for more in (False, True):
        m = Maker(9)
        x = m.conv(m.input(1, 3, 5, 6), 8, (1, 1))
        wide, ys = padded(m, x, 0, 4), [m.conv(x, 12, (1, 1)) for _ in range(2)]
        ends = [m.both("add", wide, y, scale=0.08) for y in ys]
        ends += [m.conv(wide, 3, (1, 1))] * more
        graph = m.done(*ends)
        program = compiled(graph)
        assert alone(program)
        equal(graph, program)


@pytest.mark.parametrize(("width", "c", "front", "behind"), [(6, 8, 0, 4), (20, 7, 3, 2)])
@pytest.mark.parametrize("end", ["conv", "pool", "result", "both"])
def test_other_readers(end: str, width: int, c: int, front: int, behind: int) -> None:
    """The padded map is written on the device."""
    m = Maker(width)
    x = m.conv(m.input(1, 3, 5, width), c, (1, 1))
    y = padded(m, x, front, behind)
    if end == "conv":
        y = m.conv(y, 5, (3, 3))
    elif end == "pool":
        y = m.pool(y, "max", (2, 2))
    elif end == "both":
        y = m.both("mul", y, y, scale=0.3)
    graph = m.done(y)
    program = compiled(graph)
    assert alone(program)
    equal(graph, program)


def test_more_zeros_than_channels() -> None:
    m = Maker(3)
    y = padded(m, m.conv(m.input(1, 3, 5, 6), 4, (1, 1)), 4, 24)
    graph = m.done(m.conv(y, 5, (3, 3)))
    equal(graph, compiled(graph))


def test_padded_behind_strides() -> None:
    """A map whose pixels lie some steps apart, and one that lies turned around."""
    for sizes in ((6, 8), (7, 9)):
        m = Maker(4)
        x = m.conv(m.input(1, 3, *sizes), 8, (3, 3))
        y = m.conv(x, 12, (3, 3), (2, 2))
        short = m.conv(x, 8, (1, 1), (2, 2))
        graph = m.done(m.both("add", padded(m, short, 0, 4), y, scale=0.08))
        program = compiled(graph)
        equal(graph, program)


def test_other_numbers_are_the_hosts() -> None:
    """Channels of another number than zero, and lines with channels."""
    m = Maker(5)
    x = m.conv(m.input(1, 3, 5, 6), 8, (1, 1))
    y = padded(m, x, 0, 4, int(x.zero) + 7)
    graph = m.done(m.conv(y, 5, (3, 3)))
    program = compiled(graph)
    assert any(isinstance(part, HostPart) for part in program.parts)
    equal(graph, program)


def test_parts_of_channels_are_maps() -> None:
    """A slice of channels that fill rows is read alone: the layer behind it is no wider."""
    m = Maker(6)
    x = m.conv(m.input(1, 3, 5, 6), 16, (1, 1))
    some = m.move([x], (1, 8, 5, 6), "slice", starts=(0, 4, 0, 0), steps=(1, 1, 1, 1))
    graph = m.done(m.conv(some, 5, (3, 3)))
    program = compiled(graph)
    assert alone(program) and program.device_parts[0].network.layers[-1].in_shape[0] == 8
    equal(graph, program)


def test_the_choice_is_by_cycles() -> None:
    """Where rows are full, copies take fewer cycles than a convolution with a weight a channel."""
    m = Maker(7)
    x = m.conv(m.input(1, 3, 9, 40), 16, (1, 1))
    graph = m.done(m.conv(padded(m, x, 0, 8), 4, (1, 1)))
    assert layers(compiled(graph)) == ["1x1", "1x1 dw", "1x1 dw", "1x1"]
    narrow = Maker(7)
    x = narrow.conv(narrow.input(1, 3, 9, 6), 5, (1, 1))
    graph = narrow.done(narrow.conv(padded(narrow, x, 0, 8), 4, (1, 1)))
    assert layers(compiled(graph)) == ["1x1", "1x1", "1x1"]


PARTS = {
    "behind each other": ([(0, 4), (4, 12), (12, 13)], 10, 2048),
    "each in rows of its own": ([(0, 6), (6, 13)], 40, 2048),
    "overlapping": ([(0, 8), (4, 13)], 10, 2048),
    "in bands": ([(0, 4), (4, 12), (12, 13)], 10, 20),
    "overlapping, in bands": ([(0, 8), (4, 13)], 10, 20),
}


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("name", PARTS)
def test_results_that_are_parts_of_one_map(name: str, whole: bool) -> None:
    """Channels of one map are several results, with or without the map itself."""
    cuts, width, rows = PARTS[name]
    m = Maker(3)
    x = m.conv(m.input(1, 9, 4, width), 13, (1, 1))
    numbers = [((0, a, 0, 0), (1, b - a, 4, width)) for a, b in cuts]
    outputs = [m.move([x], s, "slice", starts=a, steps=(1, 1, 1, 1)) for a, s in numbers]
    graph = m.done(*outputs, *([x] if whole else []))
    config = dataclasses.replace(configs.load_config("nano_fpga"), ai_ram_rows=rows)
    program = build.build_program(graph, config)
    assert len(program.device_parts) == 1
    equal(graph, program)


def test_lists_cut_between_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list ends between the parts of a map whose shortcut is padded."""
    monkeypatch.setattr(fit, "MOST_LAYERS", 5)
    monkeypatch.setattr(fit, "ROOM", 4)
    m = Maker(24)
    x = m.conv(m.input(1, 9, 2, 10), 9, (1, 1))
    y = m.conv(x, 13, (1, 1))
    graph = m.done(m.both("add", padded(m, x, 4, 0), y, scale=0.1))
    program = compiled(graph, "nano_fpga")
    assert len(program.device_parts) > 1
    equal(graph, program)
