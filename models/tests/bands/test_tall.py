# SPDX-License-Identifier: Apache-2.0
"""Maps with more lines, or longer ones, than a layer of the device has (docs/compiler.md 7)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("onnx", reason="make setup GROUPS=models brings onnx")
pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")
from models.tests.readers.test_onnx_exporters import File
from openkpu import configs
from openkpu.compiler import agree, build
from openkpu.compiler.calibration import prepare, quantise
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.onnx import translate

Shape = tuple[int, ...]
RNG = np.random.default_rng(1)
DOUBLE = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}


def conv(f: File, x: str, o: int, i: int, k: int = 3, s: int = 1, groups: int = 1) -> str:
    w = f.put(RNG.normal(0, 0.3, (o, i // groups, k, k)))
    return f.node("Relu", f.node("Conv", x, w, pads=[k // 2] * 4, strides=[s, s], group=groups))


def pool(f: File, x: str, kind: str, k: int, s: int, pad: int = 0) -> str:
    return f.node(kind, x, kernel_shape=[k, k], strides=[s, s], pads=[pad] * 4)


def doubled(f: File, x: str, how: str = "nearest") -> str:
    more = {**DOUBLE, "nearest_mode": "floor"} if how == "nearest" else {"mode": how}
    return f.node("Resize", x, "", f.put([1, 1, 2, 2]), **more)


def detector(f: File, x: str) -> str:
    """Strides from the picture on, as detectors have them."""
    x = conv(f, conv(f, x, 8, 3, 3, 2), 16, 8, 3, 2)
    return f.node("GlobalAveragePool", x)


def residual(f: File, x: str) -> str:
    x = conv(f, x, 8, 3)
    return pool(f, f.node("Add", x, conv(f, x, 8, 8)), "MaxPool", 3, 2, 1)


def joined(f: File, x: str) -> str:
    both = f.node("Concat", f.node("Sigmoid", conv(f, x, 8, 3)), conv(f, x, 8, 3), axis=1)
    return conv(f, both, 4, 16, 1)


def feature_pyramid(f: File, x: str) -> str:
    x = conv(f, x, 8, 3)
    return conv(f, f.node("Concat", x, doubled(f, conv(f, x, 8, 8, 3, 2)), axis=1), 4, 16, 1)


def transposed(f: File, x: str) -> str:
    x = pool(f, conv(f, x, 8, 3), "MaxPool", 2, 2)
    x = f.node("ConvTranspose", x, f.put(RNG.normal(0, 0.3, (8, 4, 2, 2))), strides=[2, 2])
    return f.node("Sigmoid", x)


def large_windows(f: File, x: str) -> str:
    x = pool(f, conv(f, x, 8, 3, 5), "AveragePool", 3, 1, 1)
    return conv(f, pool(f, x, "MaxPool", 5, 1, 2), 4, 8)


def separable(f: File, x: str) -> str:
    return conv(f, conv(f, conv(f, x, 3, 3, groups=3), 8, 3, 7, 2), 8, 8)


def connected(f: File, x: str) -> str:
    flat = f.node("Flatten", pool(f, conv(f, x, 8, 3), "MaxPool", 8, 8))
    return f.node("Gemm", flat, f.put(RNG.normal(0, 0.1, (8 * 80 * 4, 10))))


CASES: dict[str, tuple[Callable[[File, str], str], Shape]] = {
    "detector": (detector, (1, 3, 640, 64)),
    "picture 1280 x 720": (
        lambda f, x: conv(f, conv(f, x, 8, 3, 3, 2), 8, 8, 3, 2),
        (1, 3, 720, 1280),
    ),
    "result": (lambda f, x: conv(f, conv(f, x, 8, 3), 3, 8), (1, 3, 600, 40)),
    "residual": (residual, (1, 3, 1100, 40)),
    "joined": (joined, (1, 3, 1100, 40)),
    "feature pyramid": (feature_pyramid, (1, 3, 640, 64)),
    "feature pyramid, wide": (feature_pyramid, (1, 3, 48, 1100)),
    "transposed": (transposed, (1, 3, 640, 64)),
    "large windows": (large_windows, (1, 3, 640, 32)),
    "separable": (separable, (1, 3, 1024, 48)),
    "connected": (connected, (1, 3, 640, 32)),
    "whole map": (lambda f, x: f.node("GlobalAveragePool", conv(f, x, 8, 3)), (1, 3, 1100, 40)),
    "513 lines": (lambda f, x: conv(f, x, 4, 3), (1, 3, 513, 17)),
    "961 pixels": (lambda f, x: conv(f, x, 4, 3), (1, 3, 17, 961)),
}


def quantised(f: File, y: str, shape: Shape) -> tuple[Graph, dict[str, np.ndarray]]:
    many = [{"x": RNG.normal(0, 1, shape).astype(np.float32)} for _ in range(2)]
    net = prepare.prepared(f.data(y, shape, (None,)), "net")
    return translate.read_onnx(quantise.quantised_net(net, many, "minmax", "net"), "net"), many[0]


@pytest.mark.parametrize("name", CASES)
def test_tall(name: str) -> None:
    """The device's bytes are the reference's, which has no limits; no layer is beyond them."""
    make, shape = CASES[name]
    f = File()
    graph, feed = quantised(f, make(f, "x"), shape)
    program = build.build_program(graph, configs.load_config("small"))
    assert agree.faults(graph, program, feed) == []
    for part in program.device_parts:
        assert not part.whole or max(arg.i_col_high for arg in part.whole.layers) <= 512
        for arg in part.network.layers:
            assert max(arg.i_col_high, arg.o_col_high) <= 512
            assert max(arg.i_row_wid, arg.o_row_wid) <= 960


@pytest.mark.parametrize("length", [1000, 4001])
@pytest.mark.parametrize("upright", [False, True])
def test_signals(length: int, upright: bool) -> None:
    """Signals of more samples than a line has pixels, with windows of 7 and 3."""
    f = File()

    def size(*numbers: int) -> list[int]:
        return [n for number in numbers for n in ((number, 1) if upright else (number,))]

    def signal(x: str, o: int, i: int, k: int) -> str:
        w = f.put(RNG.normal(0, 0.3, (o, i, *size(k))))
        pads = [k // 2, 0, k // 2, 0] if upright else [k // 2] * 2
        return f.node("Relu", f.node("Conv", x, w, pads=pads))

    x = signal("x", 16, 4, 7)
    x = f.node("MaxPool", x, kernel_shape=size(2), strides=size(2))
    y = f.node("GlobalAveragePool", signal(x, 16, 16, 3))
    graph, feed = quantised(f, y, (1, 4, *size(length)))
    program = build.build_program(graph, configs.load_config("small"))
    assert agree.faults(graph, program, feed) == []


def test_a_part_of_a_concatenation_that_another_list_writes() -> None:
    """The list in bands stores the part that it has: the map of the whole is not there yet."""
    f = File()
    x = conv(f, "x", 16, 3)
    less = doubled(f, conv(f, x, 16, 16, 3, 2), "linear")  # the host's, between two lists
    both = f.node("Concat", less, x, axis=1)
    graph, feed = quantised(f, conv(f, both, 8, 32), (1, 3, 64, 64))
    config = dataclasses.replace(configs.load_config("small"), ai_ram_rows=1024)
    program = build.build_program(graph, config)
    assert len(program.device_parts) > 1
    assert agree.faults(graph, program, feed) == []


def test_too_wide_and_too_tall() -> None:
    f = File()
    graph, _ = quantised(f, conv(f, "x", 4, 3), (1, 3, 970, 970))
    with pytest.raises(CompileError, match="expected up to 960 pixels, 16384 lines"):
        build.build_program(graph, configs.load_config("small"))
