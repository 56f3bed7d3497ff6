# SPDX-License-Identifier: Apache-2.0
"""Einsum of float ONNX models: numpy's numbers, the device's bytes, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx", reason="make setup GROUPS=models brings onnx")
pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")
from models.tests.floats.spelled import check_spelled
from models.tests.readers.test_onnx_exporters import File
from openkpu.compiler.calibration import prepare
from openkpu.compiler.errors import CompileError

SIZES = {"b": 1, "h": 2, "i": 6, "j": 6, "d": 4, "c": 8, "o": 5}
# equation, the second operand: computed from the input as the first one is, or weights
CASES = [
    ("bhid,bhjd->bhij", "computed"),  # attention
    ("bhij,bhjd->bhid", "computed"),
    ("bhid,bhjd->bihj", "computed"),
    ("bic,co->bio", "weights"),
    ("co,bic->boi", "weights first"),
    ("bic,oc->bo", "weights"),  # rows are summed
    ("bic,bjc", "computed"),  # the result by the rule
    ("bic->bci", ""),
    ("bic->bi", ""),
    ("bhid,hdo->bio", "weights"),
]


def model(equation: str, second: str) -> tuple[bytes, tuple[int, ...]]:
    terms = equation.partition("->")[0].split(",")
    shapes = [tuple(SIZES[c] for c in term) for term in terms]
    f, rng = File(), np.random.default_rng(4)
    at = 1 if second == "weights first" else 0
    x = f.node("Relu" if second == "" else "LeakyRelu", "x")
    operands = [x]
    if second == "computed":
        y = f.node("Mul", "x", f.put(0.7))
        rest = shapes[1] == shapes[0]
        operands.append(y if rest else f.node("Reshape", y, f.put(list(shapes[1]), np.int64)))
    elif second:
        weights = f.put(rng.normal(0, 0.5, shapes[1 - at]))
        operands.insert(1 - at, weights)
    y = f.node("Einsum", *operands, equation=equation.encode())
    return f.data(y, shapes[at], (None,)), shapes[at]


@pytest.mark.parametrize(("equation", "second"), CASES)
def test_einsum(equation: str, second: str) -> None:
    """Spelled out it has ONNX Runtime's numbers; quantised, the device's bytes are the
    reference's and near them."""
    if equation == "bhij,bhjd->bhid":
        SIZES["d"] = SIZES["i"]
    try:
        data, shape = model(equation, second)
    finally:
        SIZES["d"] = 4
    rng = np.random.default_rng(5)
    many = [{"x": rng.normal(0, 1, shape).astype(np.float32)} for _ in range(8)]
    net = prepare.prepared(data, "net")
    assert not any(n.op_type == "Einsum" for n in net.nodes)
    check_spelled(net, data, many)


@pytest.mark.parametrize(
    ("equation", "shape", "message"),
    [
        ("bii->bi", (1, 6, 6), "a diagonal, expected each letter once"),
        ("b...c->bc", (1, 6, 8), "expected a letter for each axis"),
    ],
)
def test_refused(equation: str, shape: tuple[int, ...], message: str) -> None:
    f = File()
    y = f.node("Einsum", f.node("Relu", "x"), equation=equation.encode())
    with pytest.raises(CompileError, match=message):
        prepare.prepared(f.data(y, shape, (None,)), "net")
