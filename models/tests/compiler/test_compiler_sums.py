# SPDX-License-Identifier: Apache-2.0
"""Sums of two maps: inputs, factors, ties."""

from __future__ import annotations

import numpy as np
import pytest

from models.tests.compiler.compiled_graphs import Maker, alone, compiled, differs, equal
from openkpu.compiler.form import functions
from openkpu.compiler.lowering.nodes.lower_elementwise import best_sum


def test_sum_of_inputs() -> None:
    """Two inputs: the second one is a map that a layer loads from storage."""
    m = Maker(10)
    a, b = m.input(1, 6, 10, 9), m.input(1, 6, 10, 9)
    graph = m.done(m.both("add", a, b, scale=0.07))
    program = compiled(graph)
    (part,) = program.device_parts
    assert alone(program) and sum(arg.load_map for arg in part.network.layers) == 1
    wrong, most = differs(graph, program)
    assert most <= 1 and wrong <= max(3, program.reports["n0"].missed)


@pytest.mark.parametrize("ratio", [1.0, 1.001, 1.37, 2.645, 7.3, 30.0])
def test_factors_of_sums(ratio: float) -> None:
    """The ratio of both factors is off by less than 2^-14 of what moves the result by a range."""
    small = functions.Fraction(float(np.float32(0.7 / ratio)))
    factors = (functions.Fraction(float(np.float32(0.7))), small)
    (weights, arg_x), fit = best_sum(factors, (128, 120), ((0, 255), (0, 255)), 128, (0, 255))
    p, q = (w + arg_x for w in weights)
    off = abs(p / q / ratio - 1) / ratio  # weighted as the smaller operand is
    print(ratio, weights, arg_x, off, fit.missed)
    assert off < 2**-14 and fit.missed < 400 and all(0 <= w < 256 for w in weights)


@pytest.mark.parametrize("scales", [(0.5, 1.0, 1.0), (0.25, 0.75, 1.0), (1.5, 1.0, 2.0)])
@pytest.mark.parametrize("how", ["add", "sub"])
def test_ties_of_sums(scales: tuple[float, float, float], how: str) -> None:
    """Scales whose ratio is a simple fraction: half of the sums are ties, and go to even."""
    m = Maker(23)
    x, y = (m.input(1, 4, 9, 8, scale=scale) for scale in scales[:2])
    graph = m.done(m.both(how, x, y, scale=scales[2], zero=3))
    equal(graph, compiled(graph))
