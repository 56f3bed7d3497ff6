# SPDX-License-Identifier: Apache-2.0
"""ONNX: reductions over any axes, places that are gathered, operands that numpy's rule spreads,
beside ONNX Runtime; on the device's model and out of a float model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="make setup GROUPS=models brings onnx")
from models.tests.readers.test_onnx_exporters import File
from models.tests.readers.test_onnx_reader import run
from openkpu import configs
from openkpu.compiler import agree, build
from openkpu.compiler.calibration import prepare, quantise
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.onnx import translate as onnx_reader

Shape = tuple[int, ...]
Make = Callable[[File, str], str]
MAP, ROWS = (1, 8, 6, 4), (1, 12, 8)


def reduced(kind: str, *axes: int, keep: int = 1) -> Make:
    def make(f: File, x: str) -> str:
        if kind == "ReduceSum":
            return f.node(kind, x, f.put([*axes], np.int64), keepdims=keep)
        f.opset = 17  # axes are an attribute until 18
        return f.node(kind, x, axes=[*axes], keepdims=keep) if axes else f.node(kind, x)

    return make


def gathered(axis: int, places: object) -> Make:
    return lambda f, x: f.node("Gather", x, f.put(places, np.int64), axis=axis)


def spread(kind: str, *axes: int, of: str = "ReduceMean", step: float = 0.0231) -> Make:
    """The operand and its own mean over axes."""

    def make(f: File, x: str) -> str:
        mean = f.qdq(f.node(of, x, axes=[*axes], keepdims=1), step, 1, np.int8)
        return f.node(kind, x, mean)

    return make


def crossed(f: File, x: str) -> str:
    """Lines by columns: both operands are spread."""
    ends = [f.node("ReduceMean", x, axes=[axis], keepdims=1) for axis in (2, 3)]
    return f.node("Add", *(f.qdq(y, 0.0231, 1, np.int8) for y in ends))


def halves(kind: str) -> Make:
    """Two parts of the operand, element by element."""

    def make(f: File, x: str) -> str:
        ends = [[f.put([n], np.int64) for n in (at, at + 2, 1)] for at in (0, 2)]
        return f.node(kind, *(f.node("Slice", x, *e) for e in ends))

    return make


def beside(kind: str, *shape: int) -> Make:
    """The operand and a constant."""
    data = np.random.default_rng(5).integers(-127, 128, shape)

    def make(f: File, x: str) -> str:
        return f.node(kind, x, f.node("DequantizeLinear", f.put(data, np.int8), f.put(0.0123)))

    return make


def places_nd(*index: Any) -> Make:
    return lambda f, x: f.node("GatherND", x, f.put([*index], np.int64))


def expanded(*shape: int) -> Make:
    return lambda f, x: f.node("Expand", x, f.put([*shape], np.int64))


def cropped(*pads: int) -> Make:
    return lambda f, x: f.node("Pad", x, f.put([*pads], np.int64))


def pointwise(f: File, x: str) -> str:
    """A convolution 1x1, a function, a sum."""
    w = f.node("DequantizeLinear", f.put(np.eye(4).reshape(4, 4, 1, 1) * 99, np.int8), f.put(0.01))
    y = f.qdq(f.node("Conv", x, w), 0.0513, 3, np.int8)
    return f.node("Sub", f.qdq(f.node("Tanh", y), 0.01, 0, np.int8), y)


CASES: dict[str, tuple[Shape, Make]] = {
    "pixels in another order": ((1, 8, 4, 3), places_nd([0, 7], [0, 0], [0, 0])),
    "rows by two numbers": (ROWS, places_nd([[0, 3], [0, -1]], [[-1, 0], [0, 3]])),
    "a row twelve times": ((1, 1, 8), expanded(1, 12, 8)),
    "a vector of a matrix": ((3, 8), expanded(1, 4, 3, 8)),
    "a crop": (MAP, cropped(0, 0, -1, 0, 0, 0, -2, -1)),
    "a crop and a border": (MAP, cropped(0, 0, -1, 1, 0, 0, 2, -1)),
    "lines of 1,600 pixels": ((1, 4, 1, 1600), pointwise),
    "700 lines": ((1, 4, 700, 2), pointwise),
    "mean of channels": (MAP, reduced("ReduceMean", 1)),
    "mean of lines": (MAP, reduced("ReduceMean", 2)),
    "mean of columns, gone": (MAP, reduced("ReduceMean", -1, keep=0)),
    "mean of channels and columns": (MAP, reduced("ReduceMean", 1, 3)),
    "mean of all": (MAP, reduced("ReduceMean")),
    "mean of steps": (ROWS, reduced("ReduceMean", 1)),
    "mean of rows": (ROWS, reduced("ReduceMean", 2, keep=0)),
    "max of channels": (MAP, reduced("ReduceMax", 1)),
    "max of a map": (MAP, reduced("ReduceMax", 2, 3, keep=0)),
    "max of steps": (ROWS, reduced("ReduceMax", 1, keep=0)),
    "max of a matrix": ((5, 7), reduced("ReduceMax", 0)),
    "sum of channels": (MAP, reduced("ReduceSum", 1)),
    "sum of columns": (MAP, reduced("ReduceSum", 3)),
    "sum of steps": (ROWS, reduced("ReduceSum", 1)),
    "mean of 1,500 steps": ((1, 1500, 4), reduced("ReduceMean", 1)),
    "mean of 997 rows": ((1, 997, 8), reduced("ReduceMean", 2)),
    "a row": (ROWS, gathered(1, 3)),
    "the last row": (ROWS, gathered(1, -1)),
    "rows in another order": (ROWS, gathered(1, [3, 1, 1, 11])),
    "channels, every second": (MAP, gathered(1, [1, 3, 5, 7])),
    "columns backwards": (MAP, gathered(3, [3, 2, 1, 0])),
    "places in two axes": (ROWS, gathered(2, [[0, 5], [7, 2]])),
    "rows less their mean": (ROWS, spread("Sub", 2)),
    "steps less their mean": (ROWS, spread("Sub", 1)),
    "rows by their mean": (ROWS, spread("Mul", 2)),
    "a map less its channels' mean": (MAP, spread("Sub", 1)),
    "a map and its lines' mean": (MAP, spread("Add", 2)),
    "lines and columns": (MAP, crossed),
    "rows divided by their greatest": (ROWS, spread("Div", 2, of="ReduceMax", step=0.05)),
    "a row and a constant of rows": ((1, 1, 8), beside("Add", 1, 12, 8)),
    "a column of factors": ((1, 12, 8), beside("Mul", 12, 1)),
    "sums of 2,100 columns": ((1, 4, 2100), halves("Add")),
    "a pixel and a constant map": ((1, 8, 1, 1), beside("Sub", 1, 8, 6, 4)),
}
STEP = 0.06


@pytest.mark.parametrize("name", CASES)
def test_quantised(name: str) -> None:
    """ONNX Runtime's bytes, one step beside them where its number is a tie but for float32; every
    node on the device's model as in the reference."""
    shape, make = CASES[name]
    f, real = File(), File()
    y = make(f, f.qdq("x", 0.05, 3, np.int8))
    data = f.data(f.qdq(y, STEP, -4, np.int8), shape, (None,))
    steps = real.data(make(real, real.qdq("x", 0.05, 3, np.int8)), shape, (None,))
    graph = onnx_reader.read_onnx(data, "net")
    program = build.build_program(graph, configs.load_config("small"))
    for seed in range(2):
        x = {"x": np.random.default_rng(seed).normal(0, 2, shape).astype(np.float32)}
        assert agree.faults(graph, program, x) == []
        mine = reference.evaluate(graph, x)[graph.outputs[0]]
        (theirs,), (real_numbers,) = run(data, x), run(steps, x)
        apart = np.abs(mine - theirs) / STEP
        tie = np.abs(np.abs(real_numbers / STEP) % 1 - 0.5) < 1e-3
        assert mine.shape == theirs.shape and len(np.unique(theirs)) > (theirs.size > 1)
        assert apart.max() < 1.01 and apart[~tie].max(initial=0) < 0.01


@pytest.mark.parametrize("name", CASES)
def test_calibrated(name: str) -> None:
    """Between layers of a float model that is quantised here."""
    shape, make = CASES[name]
    rng, f = np.random.default_rng(4), File()
    count = shape[1] if len(shape) == 4 else shape[-1]
    weights = rng.normal(0, 0.4, (count, count, *[1] * (2 * (len(shape) == 4))))
    kind = "Conv" if len(shape) == 4 else "MatMul"
    data = f.data(make(f, f.node(kind, "x", f.put(weights))), shape, (None,))
    many = [{"x": rng.normal(0, 1, shape).astype(np.float32)} for _ in range(8)]
    made = quantise.quantised_net(prepare.prepared(data, "net"), many, "minmax", "net")
    graph = onnx_reader.read_onnx(made, "net")
    assert (
        agree.faults(graph, build.build_program(graph, configs.load_config("k210")), many[0]) == []
    )
    found = reference.evaluate(graph, many[0])[graph.outputs[0]]
    (want,) = run(data, many[0])
    assert found.shape == want.shape and np.abs(found - want).max() < 0.1 * np.abs(want).max() + 0.1


BAD: dict[str, tuple[Make, str]] = {
    "axis": (reduced("ReduceMax", 1, 5), r"over axes \[1, 5\] of \(1, 8, 6, 4\), expected some"),
    "places": (gathered(1, [0, 8]), "indices from 0 to 8, axis 1 has 8"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    make, text = BAD[name]
    f = File()
    data = f.data(f.qdq(make(f, f.qdq("x", 0.05, 3, np.int8)), STEP, 0, np.int8), MAP, (None,))
    with pytest.raises(CompileError, match=text):
        onnx_reader.read_onnx(data, "net")
