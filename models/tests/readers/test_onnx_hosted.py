# SPDX-License-Identifier: Apache-2.0
"""ONNX: linear resizing, log softmax, normalisation, vectors by their lengths, and choices between
functions, beside ONNX Runtime; in the QDQ form and out of a float model."""

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
from openkpu.compiler.form.between import COORDINATES, kernel_shares, shares
from openkpu.compiler.form.graph import Host, Table
from openkpu.compiler.onnx import translate as onnx_reader

SHAPE = (1, 8, 6, 4)
Make = Callable[[File, str], tuple[str, tuple[int, ...]]]
STEP = 0.03


def resized(how: str, *size: int, scales: bool = False) -> Make:
    """Linear, to a size or by scales."""

    def make(f: File, x: str) -> tuple[str, tuple[int, ...]]:
        given = ["", f.put([1, 1, size[0] / 6, size[1] / 4]), ""] if scales else ["", "", ""]
        given[2] = given[2] if scales else f.put([1, 8, *size], np.int64)
        inputs = [x, *given][: 3 if scales else 4]
        y = f.node("Resize", *inputs, mode="linear", coordinate_transformation_mode=how)
        return y, (1, 8, *size)

    return make


def along(kind: str, **fields: int) -> Make:
    return lambda f, x: (f.node(kind, x, domain="", **fields), SHAPE)


def normal(kind: str, count: int = 8, **fields: Any) -> Make:
    """Maps of channels normalised; ``count`` numbers of scale and bias."""

    def make(f: File, x: str) -> tuple[str, tuple[int, ...]]:
        f.opset = 21  # the first with GroupNormalization that is not deprecated
        scale, bias = np.linspace(0.5, 1.5, count), np.linspace(-1, 1, count)
        return f.node(kind, x, f.put(scale), f.put(bias), **fields), SHAPE

    return make


def selu(compare: str) -> Make:
    def make(f: File, x: str) -> tuple[str, tuple[int, ...]]:
        condition = f.node(compare, x, f.put(0.1))
        below = f.node("Mul", f.node("Sub", f.node("Exp", x), f.put(1.0)), f.put(1.67))
        return f.node("Where", condition, x, below), SHAPE

    return make


def between_numbers(f: File, x: str) -> tuple[str, tuple[int, ...]]:
    return f.node("Where", f.node("Less", f.put(0.4), x), f.put(-2.0), f.put(1.5)), SHAPE


CASES: dict[str, Make] = {
    "half_pixel": resized("half_pixel", 12, 8),
    "half_pixel, thrice": resized("half_pixel", 18, 12),
    "half_pixel, less": resized("half_pixel", 4, 3),
    "pytorch_half_pixel": resized("pytorch_half_pixel", 1, 7),
    "asymmetric": resized("asymmetric", 13, 9),
    "align_corners": resized("align_corners", 11, 7),
    "by scales": resized("half_pixel", 9, 8, scales=True),
    "log softmax": along("LogSoftmax", axis=1),
    "log softmax of columns": along("LogSoftmax", axis=-1),
    "vectors": along("LpNormalization", axis=1, p=2),
    "maps": normal("InstanceNormalization"),
    "groups": normal("GroupNormalization", num_groups=4),
    "one group": normal("GroupNormalization", num_groups=1),
    "groups of one": normal("GroupNormalization", num_groups=8),
    "greater": selu("Greater"),
    "greater or equal": selu("GreaterOrEqual"),
    "less": selu("Less"),
    "less or equal": selu("LessOrEqual"),
    "between numbers": between_numbers,
}


@pytest.mark.parametrize("name", CASES)
def test_quantised(name: str) -> None:
    """ONNX Runtime's numbers; a step beside them where its number is a tie but for float32."""
    f = File()
    y, shape = CASES[name](f, f.qdq("x", 0.05, 3, np.int8))
    data = f.data(f.qdq(y, STEP, -4, np.int8), SHAPE, shape)
    graph = onnx_reader.read_onnx(data, "net")
    kinds = {n.how for n in graph.nodes if isinstance(n, Host)} - {"quantize", "dequantize"}
    tables = sum(isinstance(n, Table) for n in graph.nodes)
    assert (len(kinds), tables) in ((1, 0), (0, 1))
    real = File()
    y, _ = CASES[name](real, real.qdq("x", 0.05, 3, np.int8))
    for seed in range(3):
        x = {"x": np.random.default_rng(seed).normal(0, 2, SHAPE).astype(np.float32)}
        mine = reference.evaluate(graph, x)[graph.outputs[0]]
        ((theirs,), (steps,)) = run(data, x), run(real.data(y, SHAPE, shape), x)
        tie = np.abs(np.abs(steps / STEP) % 1 - 0.5) < 1e-3
        apart = np.abs(mine - theirs) / STEP
        assert mine.shape == theirs.shape and tie.mean() < 0.15
        assert apart[~tie].max() < 0.01 and apart.max() < 1.01
        assert len(np.unique(theirs)) > 1


@pytest.mark.parametrize("name", CASES)
def test_calibrated(name: str) -> None:
    """Between two layers of a float model that is quantised here: the device's bytes are the
    reference's, its numbers nearly the float model's."""
    rng, f = np.random.default_rng(4), File()

    def conv(x: str) -> str:
        return f.node("Conv", x, f.put(rng.normal(0, 0.4, (8, 8, 1, 1))), kernel_shape=[1, 1])

    y, shape = CASES[name](f, conv("x"))
    data = f.data(conv(y), SHAPE, shape)
    many = [{"x": rng.normal(0, 1, SHAPE).astype(np.float32)} for _ in range(8)]
    made = quantise.quantised_net(prepare.prepared(data, "net"), many, "minmax", "net")
    graph = onnx_reader.read_onnx(made, "net")
    program = build.build_program(graph, configs.load_config("k210"))
    assert agree.faults(graph, program, many[0]) == []
    found = reference.evaluate(graph, many[0])[graph.outputs[0]]
    (want,) = run(data, many[0])
    assert np.abs(found - want).mean() < 0.02 * np.abs(want).max()


@pytest.mark.parametrize("coordinates", COORDINATES)
def test_shares(coordinates: str) -> None:
    """Of every size they add up to 1, and lines between two equal ones stay; those of the kernels
    are near them."""
    for size in range(1, 9):
        for outputs in range(1, 20):
            exact = shares(size, outputs, coordinates)
            for found in (exact, kernel_shares(size, outputs, coordinates)):
                np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)
                assert found.min() >= 0 and (found > 0).sum(axis=1).max() <= 2
                assert np.abs(found - exact).max() < outputs * 2**-10


BAD: dict[str, tuple[Make, str]] = {
    "cubic": (
        lambda f, x: (f.node("Resize", x, "", f.put([1, 1, 2, 2]), mode="cubic"), (1, 8, 12, 8)),
        "mode cubic, expected nearest or linear",
    ),
    "channels": (
        lambda f, x: (f.node("Resize", x, "", f.put([1, 2, 1, 1]), mode="linear"), (1, 16, 6, 4)),
        r"linear along axis 1 of \(1, 8, 6, 4\), expected lines or columns",
    ),
    "p": (along("LpNormalization", axis=1, p=1), "p 1, axis 1 of .*, expected p 2, an axis"),
    "groups": (normal("GroupNormalization", num_groups=3), "num_groups 3, expected a divisor of 8"),
    "scales": (normal("InstanceNormalization", 7), r"scale \(7,\), expected \(8,\)"),
    "numbers": (
        lambda f, x: (f.node("Greater", x, f.put([1.0, 2.0, 3.0, 4.0])), SHAPE),
        "a constant of several numbers, expected one",
    ),
    "two tensors": (
        lambda f, x: (f.node("Greater", x, f.qdq(f.node("Exp", x), 0.1, 0, np.int8)), SHAPE),
        "of several results, expected functions of one quantised tensor",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    make, text = BAD[name]
    f = File()
    y, shape = make(f, f.qdq("x", 0.05, 3, np.int8))
    y = f.qdq(y, STEP, -4, np.int8)
    with pytest.raises(CompileError, match=rf"^net: node '\S+' \(\w+\): {text}") as error:
        onnx_reader.read_onnx(f.data(y, SHAPE, shape), "net")
    assert "\n" not in str(error.value)
