# SPDX-License-Identifier: Apache-2.0
"""PADV2 and MIRROR_PAD of TFLite, quantised and float, beside LiteRT (docs/compiler.md 2)."""

from __future__ import annotations

import numpy as np
import pytest

from models.tests.compiler.compiled_graphs import compiled, equal
from models.tests.quantised.test_float_tflite import floating, litert
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.tflite import translate as tflite
from openkpu.compiler.tflite.floats import float_form
from openkpu.writers import Quant, Value, Weights
from openkpu.writers.flat import FlatTensor
from openkpu.writers.tflite_model import TfliteModel

Q = Quant(0.05, 3)
PADS = [[0, 0], [2, 1], [0, 3], [1, 0]]  # of (N, H, W, C)


def model(
    kind: str, pads: list[list[int]] = PADS, mode: int = 0, fill: int = 40, real: bool = False
) -> bytes:
    """A convolution behind the operator."""
    m, rng = TfliteModel(np.int8), np.random.default_rng(4)
    x = m.input((1, 4, 5, 6), Q)
    sizes = [pads[i] for i in (0, 3, 1, 2)]
    shape = [n + sum(p) for n, p in zip(x.shape, sizes, strict=True)]
    wide: Value = m.value(shape, Q)
    words = [x, m.integers(pads)]
    if kind == "PADV2":
        data = np.array([fill], np.int8)
        one = FlatTensor("fill", (1,), data.dtype, data, [Q.scale], [Q.zero_point])
        m.op(kind, [*words, m.add_tensor(one)], [wide], "PadV2Options")
    else:
        m.op(kind, words, [wide], "MirrorPadOptions", mode=mode)
    weights = rng.integers(-127, 128, (6, shape[1], 3, 3)).astype(np.int8)
    y = m.conv(wide, Weights(weights, 0.004), Quant(0.2, -4), pads="valid")
    return (floating(m, "float32") if real else m).finish([wide, y])


CASES = {
    "number": ("PADV2", PADS, 0),
    "reflect": ("MIRROR_PAD", PADS, 0),
    "symmetric": ("MIRROR_PAD", PADS, 1),
    "all of it": ("MIRROR_PAD", [[0, 0], [5, 4], [6, 6], [4, 0]], 1),
}


@pytest.mark.parametrize("case", CASES)
def test_quantised(case: str) -> None:
    data = model(*CASES[case])
    graph = tflite.read_tflite(data, case)
    equal(graph, compiled(graph))
    x = np.random.default_rng(5).integers(-128, 128, (1, 4, 5, 6))
    values = reference.evaluate(graph, {graph.inputs[0]: x})
    theirs = litert(data, [x.transpose(0, 2, 3, 1).astype(np.int8)])
    for name, their in zip(graph.outputs, theirs, strict=True):
        apart = np.abs(values[name].transpose(0, 2, 3, 1) - their.astype(np.int64))
        assert apart.max() <= (name == graph.outputs[1]) and (apart > 0).mean() < 0.02


@pytest.mark.parametrize("case", ["number", "reflect"])
def test_float(case: str) -> None:
    ort = pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings it")
    kind, pads, mode = CASES[case]
    data = model(kind, pads, mode, real=True)
    made = float_form.converted(data, case)
    x = np.random.default_rng(5).normal(0, 2, (1, 5, 6, 4)).astype(np.float32)
    session = ort.InferenceSession(made, providers=["CPUExecutionProvider"])
    mine = session.run(None, {session.get_inputs()[0].name: x})
    for one, other in zip(mine, litert(data, [x]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "pads", "mode", "text"),
    [
        ("MIRROR_PAD", [[0, 0], [5, 0], [0, 0], [0, 0]], 0, "more than can be mirrored"),
        ("MIRROR_PAD", [[0, 0], [0, 0], [0, 7], [0, 0]], 1, "more than can be mirrored"),
        ("MIRROR_PAD", PADS, 3, "mode 3, expected REFLECT or SYMMETRIC"),
    ],
)
def test_refused(kind: str, pads: list[list[int]], mode: int, text: str) -> None:
    with pytest.raises(CompileError, match=text):
        tflite.read_tflite(model(kind, pads, mode), "net")


def test_symmetric_of_floats_is_refused() -> None:
    with pytest.raises(CompileError, match=r"MIRROR_PAD.*SYMMETRIC of a float model"):
        float_form.converted(model("MIRROR_PAD", PADS, 1, real=True), "net")
