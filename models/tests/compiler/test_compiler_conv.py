# SPDX-License-Identifier: Apache-2.0
"""Lowerings of convolutions: every byte as the exact reference has it, and the layers expected."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from models.tests.compiler.compiled_graphs import Maker, alone, compiled, differs, equal, layers
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Conv, Dense

# (C, H, W), O, options of Maker.conv, the layers
NATIVE = {
    "1x1": ((12, 9, 11), 8, {"kernel": (1, 1)}, ["1x1"]),
    "3x3": ((5, 9, 11), 8, {"kernel": (3, 3)}, ["3x3"]),
    "clamp": ((5, 9, 11), 8, {"kernel": (3, 3), "clamp": (-20, 77)}, ["3x3"]),
    "depthwise": ((6, 9, 11), 6, {"kernel": (3, 3), "groups": 6}, ["3x3 dw"]),
    "symmetric-stride2": (
        *((5, 10, 12), 8, {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}),
        ["3x3 p5"],
    ),
    "tf-same-stride2": ((5, 10, 12), 8, {"kernel": (3, 3), "strides": (2, 2)}, ["3x3 p5"]),
    "depthwise-tf-same-stride2": (
        *((8, 10, 12), 8, {"kernel": (3, 3), "strides": (2, 2), "groups": 8}),
        ["3x3 dw p5"],
    ),
    "1x1-stride2": ((16, 10, 12), 8, {"kernel": (1, 1), "strides": (2, 2)}, ["1x1 p5"]),
    "1x1-stride4": ((16, 8, 12), 8, {"kernel": (1, 1), "strides": (4, 4)}, ["1x1 p7"]),
    "odd-stride2": ((5, 11, 13), 8, {"kernel": (3, 3), "strides": (2, 2)}, ["3x3 p5"]),
    "1x3": ((5, 9, 11), 8, {"kernel": (1, 3)}, ["3x3"]),
    "2x2": ((5, 9, 11), 8, {"kernel": (2, 2)}, ["3x3"]),
}
# of the rest only that the device does all of it
DEVICE = {
    "5x5": ((4, 14, 12), 8, {"kernel": (5, 5)}),
    "7x7": ((3, 14, 12), 8, {"kernel": (7, 7)}),
    "11x11": ((1, 24, 22), 8, {"kernel": (11, 11)}),
    "1x9": ((4, 9, 20), 8, {"kernel": (1, 9)}),
    "9x1": ((4, 20, 9), 8, {"kernel": (9, 1)}),
    "dilated": ((4, 14, 12), 8, {"kernel": (3, 3), "dilation": (2, 2)}),
    "dilated-3": ((4, 14, 12), 8, {"kernel": (3, 3), "dilation": (3, 1)}),
    "valid": ((4, 14, 12), 8, {"kernel": (3, 3), "pads": "valid"}),
    "valid-stride2": ((4, 15, 13), 8, {"kernel": (3, 3), "pads": "valid", "strides": (2, 2)}),
    "pads": ((4, 14, 12), 8, {"kernel": (3, 3), "pads": (2, 0, 1, 3)}),
    "stride3": ((4, 14, 12), 8, {"kernel": (3, 3), "strides": (3, 3)}),
    "stride4": ((4, 16, 12), 8, {"kernel": (5, 5), "strides": (4, 4)}),
    "stride-2-1": ((4, 14, 12), 8, {"kernel": (3, 3), "strides": (2, 1)}),
    "groups": ((16, 9, 11), 32, {"kernel": (3, 3), "groups": 4}),
    "groups-of-3": ((9, 9, 11), 6, {"kernel": (3, 3), "groups": 3}),
    "multiplier": ((8, 9, 11), 16, {"kernel": (3, 3), "groups": 8}),
    "depthwise-5x5": ((32, 12, 12), 32, {"kernel": (5, 5), "groups": 32}),
    "depthwise-9x1": ((16, 20, 1), 16, {"kernel": (9, 1), "groups": 16, "pads": "valid"}),
    "wide": ((3, 6, 150), 8, {"kernel": (3, 3), "strides": (2, 2)}),
}


def built(shape: tuple[int, int, int], o: int, how: dict, *, inner: bool, dtype: str):
    """The graph; ``inner``: what it reads is computed, so that the host cannot arrange it."""
    m = Maker(3, dtype)
    x = m.input(1, *shape)
    if inner:
        x = m.conv(x, shape[0], (1, 1))
    how = dict(how)
    if "clamp" in how and dtype == "uint8":
        how["clamp"] = tuple(n + 128 for n in how["clamp"])
    return m.done(m.conv(x, o, **how))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", NATIVE)
def test_native(name: str, dtype: str) -> None:
    """One layer, every byte exact."""
    shape, o, how, expected = NATIVE[name]
    graph = built(shape, o, how, inner=False, dtype=dtype)
    program = compiled(graph)
    assert layers(program) == expected and alone(program)
    equal(graph, program)


@pytest.mark.parametrize("name", [*NATIVE, *DEVICE])
def test_inside(name: str) -> None:
    """Behind another layer: the device alone, every byte exact."""
    shape, o, how, *_ = {**NATIVE, **DEVICE}[name]
    graph = built(shape, o, how, inner=True, dtype="int8")
    program = compiled(graph)
    assert alone(program) or name == "pads", program.parts
    equal(graph, program)


@pytest.mark.check
@pytest.mark.parametrize("name", DEVICE)
def test_first(name: str) -> None:
    """Of the network's input, which the host may arrange but not compute with."""
    shape, o, how = DEVICE[name]
    graph = built(shape, o, how, inner=False, dtype="uint8")
    program = compiled(graph, "nano")
    assert len(program.device_parts) == 1
    assert {program.reports[n.name].runs for n in graph.nodes} == {"device"}
    equal(graph, program)


@pytest.mark.parametrize("zero", [0, 3, 100, 128, 255])
def test_weights_of_uint8(zero: int) -> None:
    """Weights with a zero point of their own; where those of channels differ so much that weights
    span over 8 bits, the input is there twice, or three times."""
    m = Maker(5, "uint8")
    x = m.input(1, 6, 9, 9)
    y = m.conv(x, 8, (3, 3))
    node = m.graph.nodes[0]
    assert isinstance(node, Conv)
    weights = np.clip(zero + m.rng.integers(-90, 91, (8, 6, 3, 3)), 0, 255)
    x.zero = 128
    node.weights, node.w_zero = weights, np.full(8, zero)
    program = compiled(m.done(y))
    assert layers(program) == ["3x3"]
    equal(m.graph, program)
    node.weights = weights.copy()
    node.weights[0, 0], node.w_zero = 255, np.array([0] + [zero] * 7)
    node.weights[1, 0] = 0
    program = compiled(m.graph)
    assert layers(program) == (["3x3", "3x3"] if zero else ["3x3"])
    equal(m.graph, program)


@pytest.mark.parametrize("kind", ["3x3", "1x1", "depthwise", "dense"])
def test_a_zero_point_for_each_channel(kind: str) -> None:
    """uint8 with zero points from 0 to 255, as per_channel=True of onnxruntime writes them."""
    m = Maker(6, "uint8")
    if kind == "dense":
        y = m.dense(m.input(1, 24), 8)
    else:
        size, groups = (1, 1) if kind == "1x1" else (3, 3), 8 if kind == "depthwise" else 1
        y = m.conv(m.input(1, 8, 9, 9), 8, size, groups=groups)
    node = m.graph.nodes[0]
    assert isinstance(node, (Conv, Dense))
    node.weights = m.rng.integers(0, 256, node.weights.shape)
    node.w_zero = np.array([0, 255, 3, 200, 128, 77, 250, 5])
    node.weights.reshape(8, -1)[:, :2] = 0, 255
    graph = m.done(y)
    equal(graph, compiled(graph))


def test_turned_maps_stay_turned() -> None:
    """A residual block with a strided shortcut (ResNet): no layer only turns a map around."""
    m = Maker(9)
    x = m.conv(m.input(1, 8, 16, 16), 16, (3, 3))
    y = m.conv(m.conv(x, 32, (3, 3), (2, 2)), 32, (3, 3))
    z = m.conv(x, 32, (1, 1), (2, 2))
    graph = m.done(m.both("add", y, z))
    program = compiled(graph)
    assert layers(program) == ["3x3", "3x3 p5", "3x3", "3x3 dw p5", "1x1", "ew"]
    assert alone(program)
    wrong, most = differs(graph, program)
    missed = program.reports["n4"].missed
    assert most <= 1 and wrong <= missed


def test_too_large() -> None:
    """What does not fit a configuration is said in one line."""
    m = Maker(4)
    graph = m.done(m.conv(m.input(1, 512, 96, 96), 8, (1, 1)))
    with pytest.raises(CompileError, match=r"node 'n0' \(Conv\): .*AI RAM of configuration"):
        compiled(graph, "nano_fpga")
    m = Maker(4)
    graph = m.done(m.conv(m.input(1, 1030, 6, 6), 8, (3, 3)))
    with pytest.raises(CompileError, match=r"node 'n0' \(Conv\)"):
        compiled(graph)


def test_passes_keep_the_graph() -> None:
    """Compilation does not change the graph that it was given."""
    graph = built(*DEVICE["stride4"], inner=False, dtype="int8")
    before = str(graph)
    weights = [dataclasses.asdict(n) for n in graph.nodes]
    compiled(graph)
    assert str(graph) == before and len(weights) == len(graph.nodes)


@pytest.mark.parametrize("groups", [2, 7, 11])
def test_many_channels_in_groups(groups: int) -> None:
    """Over 1,024 outputs in groups that fill no rows of the AI RAM."""
    m = Maker(11)
    x = m.conv(m.input(1, groups * 3, 4, 5), groups * 3, (1, 1))
    graph = m.done(m.conv(x, groups * (1100 // groups + 1), (1, 1), groups=groups))
    program = compiled(graph)
    assert alone(program)
    wrong, most = differs(graph, program)
    missed = sum(r.missed for r in program.reports.values())
    assert most <= 1 and wrong <= 20 * missed


def test_many_channels() -> None:
    """Over 1,024 channels: convolution, sum, table, pool, fully connected in parts."""
    m = Maker(11)
    x = m.conv(m.input(1, 8, 6, 5), 1100, (1, 1))
    y = m.both("add", x, m.table(x, np.arange(-128, 128) // 2))
    y = m.conv(y, 1100, (3, 3), groups=1100)
    y = m.pool(y, "average", (6, 5))
    graph = m.done(m.dense(m.move([y], (1, 1100), "reshape"), 1030))
    program = compiled(graph)
    expected = ["1x1", "1x1", "1x1 dw", "1x1 dw", "ew", "ew", "3x3 dw", "3x3 dw", "pool", "pool"]
    assert layers(program) == [*expected, "1x1", "1x1"] and alone(program)
    wrong, most = differs(graph, program)
    missed = sum(r.missed for r in program.reports.values())
    assert wrong <= missed and most <= 1


@pytest.mark.parametrize("stride", [1, 2])
def test_maps_of_many_pixels(stride: int) -> None:
    """A result of more than 65,536 pixels: the field that holds no more is ignored."""
    m = Maker(3)
    size = (270, 300) if stride == 1 else (480, 640)
    graph = m.done(m.conv(m.input(1, 2, *size), 2, (3, 3), (stride, stride)))
    equal(graph, compiled(graph))
