# SPDX-License-Identifier: Apache-2.0
"""Written TFLite and ONNX models: both runtimes read them, and give the same bytes but a step."""

from __future__ import annotations

import numpy as np
import pytest

from models.tests.readers.single_operators import CASES, build
from openkpu.writers import same_pads, window_shape

litert = pytest.importorskip(
    "ai_edge_litert.interpreter", reason="make setup GROUPS=test brings LiteRT"
)
onnxruntime = pytest.importorskip("onnxruntime", reason="make setup GROUPS=test brings onnxruntime")

# LiteRT's kernels round at other places than onnxruntime: a step, of what approximates two
STEPS = {"hard-swish": 2}


def run_tflite(model: bytes, seed: int) -> list[np.ndarray]:
    """Outputs (N, C, H, W) for random bytes."""
    interpreter = litert.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    rng = np.random.default_rng(seed)
    for detail in interpreter.get_input_details():
        n, h, w, c = detail["shape"]
        limits = np.iinfo(detail["dtype"])
        x = rng.integers(limits.min, limits.max + 1, (n, c, h, w)).astype(detail["dtype"])
        interpreter.set_tensor(detail["index"], x.transpose(0, 2, 3, 1))
    interpreter.invoke()
    found = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    return [y.transpose(0, 3, 1, 2) if y.ndim == 4 else y for y in found]


def run_onnx(model: bytes, seed: int) -> list[np.ndarray]:
    """Outputs for the same bytes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(seed)
    feeds = {}
    for value in session.get_inputs():
        dtype = np.int8 if value.type == "tensor(int8)" else np.uint8
        limits = np.iinfo(dtype)
        feeds[value.name] = rng.integers(limits.min, limits.max + 1, value.shape).astype(dtype)
    return session.run(None, feeds)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("case", CASES)
def test_three_forms_are_one_operator(case: str, dtype: type) -> None:
    if case == "grouped" and dtype is np.uint8:
        pytest.skip("LiteRT has no grouped convolution of uint8")
    first = run_tflite(build(case, "tflite", dtype), 3)
    for form in ("qdq", "qoperator"):
        found = run_onnx(build(case, form, dtype), 3)
        assert len(first) == len(found)
        for a, b in zip(first, found, strict=True):
            assert a.shape == b.shape
            worst = np.abs(a.astype(int) - b.astype(int)).max()
            assert worst <= STEPS.get(case, 1), form
            # an average of four has a tie in every fourth place: away from zero, or to even
            assert (a == b).mean() > 0.85, form
        if case not in ("softmax", "argmax"):
            assert len(np.unique(first[0])) > 5, "the case says nothing"


def test_same_padding_is_tensorflows() -> None:
    """From TensorFlow's definition: out = ceil(in / stride), the odd one of the pads behind."""
    assert same_pads(8, 3, 2) == (0, 1)
    assert same_pads(9, 3, 2) == (1, 1)
    assert same_pads(49, 10, 2) == (4, 5)
    assert same_pads(10, 4, 2) == (1, 1)
    assert same_pads(8, 1, 2) == (0, 0)
    assert same_pads(7, 3, 1, 2) == (2, 2)
    assert window_shape((49, 10), (10, 4), (2, 2), "same") == (25, 5)
    assert window_shape((9, 7), (3, 3), (1, 1), (2, 0, 1, 3)) == (10, 8)
    assert window_shape((9, 7), (3, 3), (2, 2), "valid") == (4, 3)
