# SPDX-License-Identifier: Apache-2.0
"""Dilated convolutions as dilated layers (docs/kpu.md 1.16, docs/compiler.md 3): every byte as the
exact reference has it, for devices with and without them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.tests.compiler.compiled_graphs import Maker, alone, equal, layers
from models.tests.readers.single_operators import FORMATS, SHAPE, conv
from openkpu import configs
from openkpu.compiler import build, okpu, run
from openkpu.compiler.bands.lines import Window, window
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.lowering import costs
from openkpu.compiler.lowering.axes import Axis
from openkpu.compiler.program import Program
from openkpu.compiler.source import read_graph
from openkpu.layer.argument import LayerArg
from openkpu.network.device_rules import check_network
from openkpu.network.network import NetworkError
from openkpu.writers import Quant, Writer
from openkpu.writers.onnx_model import OnnxModel
from openkpu.writers.tflite_model import TfliteModel

SAME, VALID = {}, {"pads": "valid"}
HALF = {"strides": (2, 2)}
# (C, H, W), O, dilation, further options of Maker.conv, the layers with and without their dilation
NATIVE = {
    "dense": ((5, 14, 12), 8, 2, SAME, ["3x3 by 2"]),
    "depthwise": ((20, 14, 12), 20, 3, {"groups": 20}, ["3x3 dw by 3"]),
    "largest": ((7, 19, 21), 9, 8, SAME, ["3x3 by 8"]),
    "smaller-map": ((16, 2, 3), 8, 4, SAME, ["3x3 by 4"]),
    "valid": ((12, 15, 13), 8, 3, VALID, ["3x3 by 3"]),
    "depthwise-valid": ((12, 15, 13), 12, 5, {**VALID, "groups": 12}, ["3x3 dw by 5"]),
    "long-lines": ((3, 6, 150), 4, 7, SAME, ["3x3 by 7"]),
    "groups": ((16, 12, 11), 32, 2, {"groups": 4}, ["3x3 by 2"] * 4),
    "more-outputs": ((4, 5, 6), 1030, 2, SAME, ["3x3 by 2"] * 2),
    "multiplier": ((4, 12, 11), 12, 2, {"groups": 4}, ["3x3 by 2"]),
    "one-line": ((8, 1, 40), 8, 4, {"kernel": (1, 3)}, ["3x3 by 4"]),
    "clamp": ((5, 9, 11), 8, 2, {"clamp": (-20, 77)}, ["3x3 by 2"]),
    # a pool that picks excludes dilation, so another layer picks
    "stride2": ((8, 14, 12), 8, 2, HALF, ["3x3 by 2", "3x3 dw p5"]),
    "odd-stride2": ((8, 15, 13), 8, 2, {**HALF, "pads": (2, 2, 2, 2)}, ["3x3 by 2", "pool"]),
}


def graph_of(shape: tuple[int, int, int], o: int, far: int, how: dict[str, Any]) -> Graph:
    """The convolution behind a 1x1 one, so that the host cannot arrange what it reads."""
    m = Maker(3)
    x = m.conv(m.input(1, *shape), shape[0], (1, 1))
    return m.done(m.conv(x, o, **{"kernel": (3, 3), "dilation": (far, far), **how}))


def on(graph: Graph, most: int, name: str = "k210", **other: int) -> Program:
    """The program for a device whose largest dilation is ``most``."""
    config = dataclasses.replace(configs.load_config(name), dilation=most, **other)
    return build.build_program(graph, config)


def args_of(program: Program) -> Iterator[LayerArg]:
    for part in program.device_parts:
        yield from part.network.layers


def cycles(program: Program, name: str = "k210") -> int:
    config = configs.load_config(name)
    return costs.lists_cycles(config, [part.network for part in program.device_parts])


@pytest.mark.parametrize("name", NATIVE)
def test_native(name: str) -> None:
    """As far as the device reaches one layer; beyond that none, more cycles and the same bytes."""
    shape, o, far, how, expected = NATIVE[name]
    graph = graph_of(shape, o, far, how)
    native, moved = on(graph, far), on(graph, far - 1)
    assert layers(native)[1:] == expected and alone(native)
    assert {arg.dilation for arg in args_of(moved)} == {1} and alone(moved)
    equal(graph, native)
    equal(graph, moved)
    assert cycles(native) < cycles(moved)


@pytest.mark.parametrize(
    ("kernel", "dilation"), [((3, 3), (2, 3)), ((3, 3), (1, 2)), ((5, 5), (2, 2)), ((3, 3), (9, 9))]
)
def test_other_windows(kernel: tuple[int, int], dilation: tuple[int, int]) -> None:
    """Unequal distances, further taps, more than any device has: as without dilated layers."""
    m = Maker(3)
    x = m.conv(m.input(1, 4, 22, 21), 4, (1, 1))
    graph = m.done(m.conv(x, 8, kernel, dilation=dilation))
    program = on(graph, 8)
    assert {arg.dilation for arg in args_of(program)} == {1}
    assert layers(program) == layers(on(graph, 1))
    equal(graph, program)


def test_no_pooling_tasks() -> None:
    """A stride that a pooling task would pick, on a device without them."""
    graph = graph_of((8, 14, 12), 8, 2, {**HALF, "pads": (2, 2, 1, 1)})
    assert "pool" in layers(on(graph, 8))
    program = on(graph, 8, pool_lanes=0)
    assert "pool" not in layers(program)
    equal(graph, program)


def model(kind: str, groups: int, far: int) -> bytes:
    """A file with one dilated convolution, of int8 numbers."""
    m: Writer = TfliteModel(np.int8) if kind == "tflite" else OnnxModel(kind, np.int8, opset=14)
    x = m.input(SHAPE, Quant(0.05, 3))
    make = conv(8, 8 // groups, 3, 3, groups=groups, dilation=(far, far))
    return m.finish(make(m, x, np.random.default_rng(far), 0))


@pytest.mark.parametrize("far", [2, 5])
@pytest.mark.parametrize("groups", [1, 8])
@pytest.mark.parametrize("kind", FORMATS)
def test_files(kind: str, groups: int, far: int, tmp_path: Path) -> None:
    """TFLite and ONNX files, for configurations with and without dilated layers."""
    path = tmp_path / ("net.tflite" if kind == "tflite" else "net.onnx")
    path.write_bytes(model(kind, groups, far))
    graph = read_graph(path)
    for config in ("k210", "small", "nano"):
        most = configs.load_config(config).dilation
        program = build.build_program(graph, configs.load_config(config))
        word = "3x3 dw" if groups > 1 else "3x3"
        native = layers(program) == [f"{word} by {far}"]
        assert native == (far <= most) and alone(program)
        equal(graph, program)


def test_another_device() -> None:
    """A program for a device with dilated layers is refused by one without, from a file as well;
    the program for that one runs on both."""
    graph = graph_of((5, 14, 12), 8, 4, SAME)
    nano, k210 = (configs.load_config(name) for name in ("nano", "k210"))
    program = okpu.loads_okpu(okpu.dumps(build.build_program(graph, k210)), "net.okpu")
    said = r"^layer 1: dilation 4, configuration nano has dilation = 1$"
    with pytest.raises(NetworkError, match=said):
        check_network(program.device_parts[0].network, nano)
    for config in (nano, k210):
        check_network(build.build_program(graph, nano).device_parts[0].network, config)


def chain(m: Maker) -> Graph:
    """Dilated layers behind each other; one depthwise, one whose halo is larger than a band."""
    x = m.conv(m.input(1, 3, 33, 40), 8, (3, 3), dilation=(2, 2))
    x = m.conv(m.conv(x, 8, (3, 3), dilation=(3, 3), groups=8), 8, (1, 1))
    return m.done(m.conv(x, 5, (3, 3), dilation=(7, 7)))


@pytest.mark.parametrize("rows", [500, 320, 260])
def test_bands(rows: int) -> None:
    """In bands of lines on small AI RAM: every byte of the list without them (docs/compiler.md 7),
    and of the reference."""
    graph = chain(Maker(41))
    banded, whole = (on(graph, 8, "small", ai_ram_rows=n) for n in (rows, 32768))
    assert len(banded.device_parts) == 1 and banded.layers > whole.layers
    far = {arg.dilation for arg in args_of(banded)}
    assert far == {arg.dilation for arg in args_of(whole)} == {1, 2, 3, 7}
    maps = [m for arg in args_of(banded) for m in (*arg.in_layouts, arg.out_layout)]
    assert max(m.base + m.rows for m in maps) <= rows
    given = {"t0": np.random.default_rng(7).integers(-128, 128, (1, 3, 33, 40))}
    (name,) = graph.outputs
    found, plain = (run.run_program(p, given)[name] for p in (banded, whole))
    assert np.array_equal(found, plain)
    equal(graph, banded)


@pytest.mark.parametrize(
    ("pool", "first", "behind", "expected"),
    [
        # taps 3 lines up and down, and what the false padding of a band spoils
        (0, 5, 9, (2, 12, 2, 12)),
        (0, 2, 9, (0, 12, 0, 12)),
        (0, 9, 18, (6, 21, 6, 21)),
        (0, 0, 21, (0, 21, 0, 21)),
        # pairs of lines: two of the output hold the three lines
        (1, 3, 5, (2, 14, 1, 7)),
        (1, 1, 5, (0, 14, 0, 7)),
        (1, 6, 9, (8, 21, 4, 10)),
        # lines 4y to 4y + 3: one holds them
        (3, 2, 3, (4, 16, 1, 4)),
        (3, 2, 4, (4, 20, 1, 5)),
    ],
)
def test_halo(pool: int, first: int, behind: int, expected: tuple[int, int, int, int]) -> None:
    """Lines that a band of a map of 21 lines reads and computes, taps 3 apart."""
    arg = LayerArg.make(4, 21, 30, kernel=3, dilation=3, pool=pool)
    assert window(arg, first, behind) == Window(*expected)


def test_covers() -> None:
    """Copies of a line, each moved, and the device's taps in them are the pixels of the node."""
    rng, seen = np.random.default_rng(5), 0
    for _ in range(400):
        taps, apart, stride, far = (int(n) for n in rng.integers((1, 1, 1, 1), (6, 4, 3, 5)))
        size, top = int(rng.integers(1, 14)), int(rng.integers(0, 6))
        room = size + top - (taps - 1) * apart - 1
        if room < 0:
            continue
        axis = Axis(taps, apart, stride, top, size, 0, size, room // stride + 1)
        line = {at: at + 1 for at in range(size)}  # every other pixel is the zero point, 0
        for anchor, reach in itertools.product(axis.anchors(), (0, 1)):
            for t, cover in (axis.cover(anchor, reach, far) or {}).items():
                copy = {at: line.get(at + t, 0) for at in range(size)}
                for (n, k), output in itertools.product(cover.items(), range(axis.outputs)):
                    pixel = copy.get(output * stride + anchor + n * far, 0)
                    assert pixel == line.get(output * stride + k * apart - top, 0)
                    assert abs(n) <= reach
                    seen += n != 0 and far > 1
    assert seen > 1000
