# SPDX-License-Identifier: Apache-2.0
"""Tables of bytes as layers of the KPU: exact in all 256 places, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from openkpu.arithmetic.activation import ROUNDINGS
from openkpu.kmodel.operations.operations import Dequantize, Quantize
from openkpu.kmodel.program import View
from openkpu.kmodel.residence.requantize import find_line, requantize_layer
from openkpu.layer.golden import run_layer
from openkpu.layer.layout import Layout

BYTES = np.arange(256)


def by_cpu(scale: float, bias: float, to_scale: float, to_bias: float) -> np.ndarray:
    """What a CPU makes of the 256 bytes: dequantize, then quantize, in float32."""
    memory = {name: np.zeros(1024, np.uint8) for name in ("src", "real", "dst")}
    memory["src"][:256] = BYTES
    src, real, dst = View("src", 0, (256,)), View("real", 0, (256,), "<f4"), View("dst", 0, (256,))
    Dequantize(offset=0, src=src, dst=real, scale=scale, bias=bias).run(memory)
    Quantize(offset=0, src=real, dst=dst, scale=to_scale, bias=to_bias).run(memory)
    return memory["dst"][:256].copy()


def layer_of(table: np.ndarray, rounding: str, eight_bit: bool = True) -> np.ndarray | None:
    """What the golden model makes of the bytes with the layer that was found."""
    line = find_line(table, rounding)
    if line is None:
        return None
    layer = requantize_layer(
        line, Layout(4, 8, 32), 100, offset=0, eight_bit=eight_bit, title="requantize"
    )
    x = np.stack([np.roll(BYTES, c).reshape(8, 32) for c in range(4)]).astype(np.uint8)
    tables = layer.weights, layer.bn, layer.act
    y = run_layer(layer.arg, x, *tables, eight_bit=eight_bit, rounding=rounding).y
    assert all(np.array_equal(y[c], table[x[c]]) for c in range(4)), "channels differ"
    return y[0].reshape(-1)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_scales_of_two_maps(rounding: str) -> None:
    """Random pairs of scales, as compilers choose them, and corners of them."""
    rng = np.random.default_rng(14)
    for number in range(300):
        scale, to_scale = rng.uniform(0.003, 0.3, 2)
        bias, zero = -scale * rng.integers(0, 256), int(rng.integers(0, 256))
        if number % 10 == 0:
            bias, zero, scale = 0.0, 0, 2.0 ** -rng.integers(2, 8)  # halves are ties, and exact
            to_scale = scale * rng.choice([0.5, 1, 2, 4])
        table = by_cpu(scale, bias, 1 / to_scale, zero)
        found = layer_of(table, rounding, eight_bit=bool(number % 2))
        assert found is not None and np.array_equal(found, table), (number, scale, bias, to_scale)


CORNERS = {
    "the same": BYTES,
    "backwards": 255 - BYTES,
    "nothing": 0 * BYTES,
    "seven": 0 * BYTES + 7,
    "all": 0 * BYTES + 255,
    "a step": 255 * (BYTES > 99),
    "a step of one": 1 * (BYTES > 254),
    "steep": np.clip(40 * BYTES - 2000, 0, 255),
    "steep backwards": np.clip(9000 - 100 * BYTES, 0, 255),
    "flat": BYTES // 255,
    "clamped below": np.clip(BYTES - 200, 0, 255),
    "clamped above": np.clip(BYTES + 200, 0, 255),
}


@pytest.mark.parametrize("name", CORNERS)
def test_corners(name: str) -> None:
    """Lines with one bound or none, and the steepest ones."""
    table = CORNERS[name].astype(np.uint8)
    for rounding in ROUNDINGS:
        found = layer_of(table, rounding)
        assert found is not None and np.array_equal(found, table), rounding


def test_what_no_line_gives() -> None:
    """One byte off the line, a curve, a permutation."""
    rng = np.random.default_rng(3)
    line = by_cpu(0.05, -0.3, 13.0, 4.0)
    for place in (1, 100, 250):
        off = line.copy()
        off[place] += 3
        assert find_line(off, "nncase") is None, place
    curve = (BYTES.astype(np.float64) ** 2 / 255).astype(np.uint8)
    even = np.rint(BYTES / 2).astype(np.uint8)  # halves go up and down in turn
    for table in (curve, even, rng.permutation(256).astype(np.uint8)):
        assert find_line(table, "nncase") is None
