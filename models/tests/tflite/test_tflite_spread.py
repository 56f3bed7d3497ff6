# SPDX-License-Identifier: Apache-2.0
"""Dilated convolutions that a TFLite file has as SPACE_TO_BATCH_ND, convolution, BATCH_TO_SPACE_ND
(docs/compiler.md 2), beside LiteRT, which computes the three."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.tests.compiler.compiled_graphs import compiled, equal
from models.tests.quantised.test_float_tflite import floating, litert
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Conv, Graph
from openkpu.compiler.tflite import translate as tflite
from openkpu.compiler.tflite.floats import float_form
from openkpu.writers import Quant, Value, Weights
from openkpu.writers.tflite_model import TfliteModel

Q, OUT = Quant(0.05, 3), Quant(0.2, -4)
# input (C, H, W), block, pads, crops, depthwise, padding of the convolution, what the graph has:
# padding (top, left, bottom, right)
CASES: dict[str, Any] = {
    "same": ((6, 8, 12), (2, 2), [[2, 2], [2, 2]], [[0, 0], [0, 0]], False, "valid", (2, 2, 2, 2)),
    "odd": ((6, 7, 10), (3, 3), [[3, 5], [3, 5]], [[0, 2], [0, 2]], False, "valid", (3, 3, 3, 3)),
    "valid": ((5, 9, 13), (2, 4), [[0, 1], [0, 3]], [[0, 1], [0, 3]], False, "valid", (0,) * 4),
    "depthwise": ((6, 7, 8), (2, 2), [[2, 3], [2, 2]], [[0, 1], [0, 0]], True, "valid", (2,) * 4),
    "inside": ((6, 8, 12), (2, 3), [[0, 0], [0, 0]], [[0, 0], [0, 0]], False, "same", (2, 3, 2, 3)),
    "front": ((6, 8, 8), (2, 2), [[3, 3], [4, 2]], [[1, 1], [2, 0]], False, "valid", (2,) * 4),
}


def spread(
    m: TfliteModel, x: Value, block: tuple[int, ...], pads: list[list[int]], quant: Quant
) -> Value:
    """SPACE_TO_BATCH_ND of a map, (N, C, H, W), or of a signal, (N, L, C)."""
    at = 2 if len(x.shape) == 4 else 1
    shape = list(x.shape)
    for i, (size, pair) in enumerate(zip(block, pads, strict=True)):
        assert not (shape[at + i] + sum(pair)) % size
        shape[at + i] = (shape[at + i] + sum(pair)) // size
        shape[0] *= size
    y = m.value(shape, quant)
    m.op("SPACE_TO_BATCH_ND", [x, m.integers(block), m.integers(pads)], [y])
    return y


def joined(m: TfliteModel, x: Value, block: tuple[int, ...], crops: list[list[int]]) -> Value:
    """BATCH_TO_SPACE_ND."""
    at = 2 if len(x.shape) == 4 else 1
    shape = list(x.shape)
    for i, (size, pair) in enumerate(zip(block, crops, strict=True)):
        shape[at + i] = shape[at + i] * size - sum(pair)
        shape[0] //= size
    y = m.value(shape, x.quant)
    m.op("BATCH_TO_SPACE_ND", [x, m.integers(block), m.integers(crops)], [y])
    return y


def weights_of(channels: int, depthwise: bool, kernel: tuple[int, int] = (3, 3)) -> Weights:
    """Of eight outputs, or one for each channel."""
    rng = np.random.default_rng(4)
    size = (channels, 1) if depthwise else (8, channels)
    bias = rng.integers(-3000, 3000, size[0], np.int32)
    return Weights(rng.integers(-127, 128, (*size, *kernel)).astype(np.int8), 0.004, bias=bias)


def model(case: str, batch: int = 1, outputs: str = "y", real: bool = False) -> bytes:
    """A map, the three parts, and a RELU behind them."""
    shape, block, pads, crops, depthwise, padding, _ = CASES[case]
    m = TfliteModel(np.int8)
    x = m.input((batch, *shape), Q)
    apart = spread(m, x, block, pads, Q)
    groups = shape[0] if depthwise else 1
    made = m.conv(apart, weights_of(shape[0], depthwise), OUT, pads=padding, groups=groups)
    y = m.unary("relu", joined(m, made, block, crops), OUT)
    ends = {"x": apart, "made": made, "y": y}
    return (floating(m, "float32") if real else m).finish([ends[e] for e in outputs.split()])


def signal(axis: int, real: bool = False) -> bytes:
    """A signal (N, L, C): a map of one line (axis 0) or column (1) of it is convolved."""
    m = TfliteModel(np.int8)
    x = m.input((1, 21, 6), Q)
    apart = spread(m, x, (4,), [[4, 7]], Q)
    n, length, c = apart.shape
    wide = m.value((n, c, 1, length) if axis == 0 else (n, c, length, 1), Q)
    m.op("EXPAND_DIMS", [apart, m.integers(1 + axis)], [wide], "ExpandDimsOptions")
    kernel = (1, 3) if axis == 0 else (3, 1)
    made = m.conv(wide, weights_of(6, False, kernel), OUT, pads="valid")
    flat = m.value((n, length - 2, 8), OUT)
    m.op("SQUEEZE", [made], [flat], "SqueezeOptions")
    y = joined(m, flat, (4,), [[0, 3]])
    return (floating(m, "float32") if real else m).finish([y])


def feeds(data: bytes, name: str) -> tuple[Graph, np.ndarray]:
    """The graph, and random bytes for its input."""
    graph = tflite.read_tflite(data, name)
    shape = graph.tensors[graph.inputs[0]].shape
    return graph, np.random.default_rng(5).integers(-128, 128, shape)


def like_litert(data: bytes, name: str) -> Graph:
    """The graph computes LiteRT's bytes, but for roundings of a step."""
    graph, x = feeds(data, name)
    equal(graph, compiled(graph))
    values = reference.evaluate(graph, {graph.inputs[0]: x})[graph.outputs[0]]
    mine = values.transpose(0, 2, 3, 1) if values.ndim == 4 else values
    (theirs,) = litert(data, [(x.transpose(0, 2, 3, 1) if x.ndim == 4 else x).astype(np.int8)])
    apart = np.abs(mine - theirs.astype(np.int64))
    assert apart.max() <= 1 and (apart > 0).mean() < 0.02 and np.unique(theirs).size > 20
    return graph


@pytest.mark.parametrize("case", CASES)
def test_map(case: str) -> None:
    graph = like_litert(model(case), case)
    (conv,) = (node for node in graph.nodes if isinstance(node, Conv))
    assert conv.dilation == CASES[case][1] and conv.pads == CASES[case][-1]


@pytest.mark.parametrize("axis", [0, 1])
def test_signal(axis: int) -> None:
    graph = like_litert(signal(axis), "signal")
    (conv,) = (node for node in graph.nodes if isinstance(node, Conv))
    assert conv.dilation == ((1, 4), (4, 1))[axis]
    assert conv.pads == ((0, 4, 0, 4), (4, 0, 4, 0))[axis]


@pytest.mark.parametrize("case", ["odd", "depthwise", "signal"])
def test_float(case: str) -> None:
    ort = pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings it")
    data = signal(0, real=True) if case == "signal" else model(case, real=True)
    made = float_form.converted(data, case)
    session = ort.InferenceSession(made, providers=["CPUExecutionProvider"])
    (wanted,) = session.get_inputs()
    x = np.random.default_rng(5).normal(0, 2, wanted.shape).astype(np.float32)
    (mine,), (theirs,) = session.run(None, {wanted.name: x}), litert(data, [x])
    np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)


def test_batch() -> None:
    """A file of three images is that of one."""
    one, three = (tflite.read_tflite(model("odd", batch), "odd") for batch in (1, 3))
    assert (one.batch, three.batch) == (1, 3)
    x = np.random.default_rng(5).integers(-128, 128, (1, 6, 7, 10))
    mine, theirs = (reference.evaluate(g, {g.inputs[0]: x})[g.outputs[0]] for g in (one, three))
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("outputs", ["y x", "y made"])
def test_what_lies_between_is_read(outputs: str) -> None:
    """The three are no convolution where a part of them is a result of its own."""
    with pytest.raises(
        CompileError, match=r"SPACE_TO_BATCH_ND.*: expected a convolution of stride 1"
    ):
        tflite.read_tflite(model("same", outputs=outputs), "net")


@pytest.mark.parametrize(
    ("pads", "crops"),
    [([[0, 0], [2, 2]], [[2, 2], [0, 0]]), ([[2, 2], [2, 2]], [[0, 0], [0, 4]])],
    ids=["crops alone", "more crops than padding"],
)
def test_crops_of_more_than_padding(
    pads: list[list[int]], crops: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, block, *_, padding, around = CASES["same"]
    monkeypatch.setitem(CASES, "crops", (shape, block, pads, crops, False, padding, around))
    with pytest.raises(
        CompileError, match=r"SPACE_TO_BATCH_ND.*: expected a convolution of stride 1"
    ):
        tflite.read_tflite(model("crops"), "net")
