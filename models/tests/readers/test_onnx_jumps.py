# SPDX-License-Identifier: Apache-2.0
"""ONNX functions with steps, beside ONNX Runtime: the argument is a number of float32, as its last
bit decides on which side of a step it is; and operands that are constants of other types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="make setup GROUPS=models brings onnx")
from models.tests.readers.test_onnx_exporters import File
from models.tests.readers.test_onnx_reader import run
from openkpu.compiler.form import reference
from openkpu.compiler.onnx import translate as onnx_reader

EVERY = (1, 4, 8, 8)  # a shape for all bytes
SCALES = (0.1, 0.05, 0.02, 0.03)


def both(f: File, y: str, scale: float, zero: int) -> tuple[np.ndarray, np.ndarray]:
    """(reference's, ONNX Runtime's) results of all 256 bytes."""
    data = f.data(y, EVERY, EVERY)
    x = ((np.arange(256) - zero) * scale).astype(np.float32).reshape(EVERY)
    graph = onnx_reader.read_onnx(data, "net")
    values = reference.evaluate(graph, {graph.inputs[0]: x})
    (theirs,) = run(data, {"x": x})
    assert len(np.unique(theirs)) > 1
    return values[graph.outputs[0]], theirs


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", ["Floor", "Ceil", "Round", "Sign"])
def test_function_with_steps(kind: str, scale: float) -> None:
    f = File()
    y = f.qdq(f.node(kind, f.qdq("x", scale, 128)), scale, 128)
    mine, theirs = both(f, y, scale, 128)
    assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("scale", SCALES)
def test_steps_of_a_product(scale: float) -> None:
    """Each operator in front of the step rounds to float32."""
    f = File()
    x = f.node("Mul", f.node("Add", f.qdq("x", scale, 128), f.put(0.3)), f.put(10.0))
    mine, theirs = both(f, f.qdq(f.node("Round", x), 1.0, 128), scale, 128)
    assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("kind", ["Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
def test_comparison_with_a_number_that_bytes_have(kind: str) -> None:
    """The scale as float32 decides, not as a decimal: 10.0 is 100 steps of 0.1."""
    for scale in SCALES:
        for steps in (50, 70, 100, 3):
            f = File()
            x = f.qdq("x", scale, 20)
            chosen = f.node("Where", f.node(kind, x, f.put(scale * steps)), x, f.put(0.0))
            mine, theirs = both(f, f.qdq(chosen, scale, 20), scale, 20)
            assert np.array_equal(mine, theirs), (scale, steps)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("fields", [{}, {"lambd": 10 * 0.1, "bias": 0.7}], ids=["usual", "other"])
def test_shrunk(fields: dict[str, Any], scale: float) -> None:
    f = File()
    y = f.qdq(f.node("Shrink", f.qdq("x", scale, 128), **fields), scale, 128)
    mine, theirs = both(f, y, scale, 128)
    assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("fields", [{}, {"alpha": 0.6}], ids=["usual", "other"])
def test_thresholded(fields: dict[str, Any], scale: float) -> None:
    f = File()
    y = f.qdq(f.node("ThresholdedRelu", f.qdq("x", scale, 128), **fields), scale, 128)
    mine, theirs = both(f, y, scale, 128)
    assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("kind", ["And", "Or", "Xor"])
def test_joined_conditions(kind: str) -> None:
    f = File()
    x = f.qdq("x", 0.05, 128)
    above = f.node("Greater", x, f.put(-1.0))
    other = f.node("Not", f.node("Greater", x, f.put(2.0)))
    equal = f.node("Or", f.node(kind, above, other), f.node("Equal", x, f.put(4.5)))
    mine, theirs = both(f, f.qdq(f.node("Where", equal, x, f.put(-6.0)), 0.05, 128), 0.05, 128)
    assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("exponent", [np.int64(2), np.array([2], np.int32), np.int64(3)])
def test_power_with_an_integer(exponent: np.ndarray) -> None:
    f = File()
    power = f.put(exponent, exponent.dtype)
    y = f.qdq(f.node("Pow", f.qdq("x", 0.03, 128), power), 0.4, 100)
    mine, theirs = both(f, y, 0.03, 128)
    assert np.abs(mine - theirs).max() < 0.401 and (mine == theirs).mean() > 0.99  # a tie


def test_quotient_by_bytes_of_each_channel() -> None:
    """The divisor is a constant behind DequantizeLinear, one number for each channel."""
    f = File()
    divisor = f.put(np.array([97, 53, -41, 127]).reshape(1, 4, 1, 1), np.int8)
    by = f.node("DequantizeLinear", divisor, f.put(0.02), f.put(0, np.int8))
    mine, theirs = both(f, f.qdq(f.node("Div", f.qdq("x", 0.05, 128), by), 0.1, 128), 0.05, 128)
    assert np.abs(mine - theirs).max() < 0.101  # a step where the weights of 8 bits make one
    assert (mine == theirs).mean() > 0.97
