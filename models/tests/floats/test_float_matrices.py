# SPDX-License-Identifier: Apache-2.0
"""Products of float ONNX models with a constant in front or with several matrices: ONNX Runtime's
numbers, the device's bytes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx", reason="make setup GROUPS=models brings onnx")
pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")
from models.tests.floats.spelled import check_spelled
from models.tests.readers.test_onnx_exporters import File
from openkpu.compiler.calibration import prepare

# the computed matrices, the constant ones, are these in front?
CASES = [
    ((1, 6, 8), (5, 6), True),  # a graph's edges, a mixer of tokens
    ((1, 4, 6, 8), (5, 6), True),
    ((6, 8), (5, 6), True),
    ((1, 4, 6, 8), (4, 5, 6), True),
    ((1, 1, 6, 8), (4, 5, 6), True),
    ((1, 6, 8), (6,), True),  # a vector
    ((1, 4, 6, 8), (6,), True),
    ((1, 6, 8), (8,), False),
    ((6, 8), (8,), False),
    ((1, 4, 6, 8), (4, 8, 5), False),  # a matrix for each head
    ((1, 4, 6, 8), (1, 4, 8, 5), False),
    ((1, 4, 6, 8), (1, 1, 8, 5), False),
    ((1, 6, 8), (3, 8, 5), False),
    ((6, 8), (3, 8, 5), False),
    ((1, 2, 1, 6, 8), (3, 8, 5), False),  # both are repeated
    ((1, 2, 3, 6, 8), (3, 8, 5), False),
]


@pytest.mark.parametrize(("shape", "weights", "front"), CASES, ids=str)
def test_products(shape: tuple[int, ...], weights: tuple[int, ...], front: bool) -> None:
    f, rng = File(), np.random.default_rng(4)
    w = f.put(rng.normal(0, 0.5, weights))
    x = f.node("LeakyRelu", "x")
    y = f.node("Relu", f.node("MatMul", *((w, x) if front else (x, w))))
    data = f.data(y, shape, (None,))
    many = [{"x": rng.normal(0, 1, shape).astype(np.float32)} for _ in range(8)]
    net = prepare.prepared(data, "net")
    check_spelled(net, data, many)
