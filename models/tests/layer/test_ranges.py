# SPDX-License-Identifier: Apache-2.0
"""The worst cases behind the range claims in conv.py and golden.py, against Python integers."""

from __future__ import annotations

import numpy as np
import pytest

from models.tests.layer import oracle
from openkpu.arithmetic.params import ActTable, BatchNorm
from openkpu.generators.generate import random_layer
from openkpu.layer import conv
from openkpu.layer.argument import LayerArg
from openkpu.layer.conv import window_blocks
from openkpu.layer.golden import run_layer, wrap36
from openkpu.layer.vectors import VectorLayer

LOWEST = -(1 << 35)


def sums(arg: LayerArg, x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """s and sx of the whole map."""
    s, sx = (np.zeros(arg.conv_shape, dtype=np.int64) for _ in range(2))
    for o, y, part, part_x in window_blocks(arg, x, weights):
        s[o, y], sx[o, y] = part, part_x
    return s, sx


def test_largest_convolution_sum_is_exact() -> None:
    """1024 channels, 3x3, every pixel 255, every weight 65535: 2^37.2."""
    arg = LayerArg.make(1024, 3, 3, 2, kernel=3, eight_bit=False, pad_value=255)
    x = np.full(arg.in_shape, 255, dtype=np.uint8)
    weights = np.full(arg.weight_count, 65535, dtype=np.uint16)
    weights[-1] = 65534  # an odd one: a lost last bit would show
    s, sx = sums(arg, x, weights)
    assert (s[0] == 1024 * 9 * 255 * 65535).all()
    assert (s[1] == 1024 * 9 * 255 * 65535 - 255).all()
    assert (sx == 1024 * 9 * 255).all()


def test_random_large_sums_are_exact() -> None:
    rng = np.random.default_rng(7)
    arg = LayerArg.make(1024, 3, 3, 1, kernel=3, eight_bit=False, pad_value=255)
    x = rng.integers(250, 256, arg.in_shape).astype(np.uint8)
    weights = rng.integers(65000, 65536, arg.weight_count).astype(np.uint16)
    s, _ = sums(arg, x, weights)
    flat = x.reshape(-1).tolist()
    kernel = weights.reshape(1024, 9).tolist()
    centre = sum(flat[c * 9 + tap] * kernel[c][tap] for c in range(1024) for tap in range(9))
    assert int(s[0, 1, 1]) == centre


def test_largest_fully_connected_sum_is_exact() -> None:
    """One 16-bit load at the field's limit, all 255 x 65535."""
    arg = LayerArg.make(64, 32, 31, 2, fc=True, eight_bit=False)
    x = np.full(arg.in_shape, 255, dtype=np.uint8)
    weights = np.full(arg.weight_count, 65535, dtype=np.uint16)
    weights[0] = 65534
    s, sx = sums(arg, x, weights)
    total = arg.taps * 255 * 65535
    assert s.reshape(-1).tolist() == [total - 255, total]
    assert int(sx[0, 0, 0]) == arg.taps * 255


def test_float64_holds_the_longest_conceivable_vector() -> None:
    """Fields allow 2^10 * 2^10 * 2^9 pixels; every partial sum stays an exact integer."""
    assert (1 << 29) * 255 * 65535 < 1 << 53


def test_depthwise_sums_fit_int32() -> None:
    assert 9 * 255 * 65535 < 1 << 31
    arg = LayerArg.make(2, 3, 3, depthwise=True, kernel=3, eight_bit=False, pad_value=255)
    x = np.full(arg.in_shape, 255, dtype=np.uint8)
    s, sx = sums(arg, x, np.full(arg.weight_count, 65535, dtype=np.uint16))
    assert (s == 9 * 255 * 65535).all() and (sx == 9 * 255).all()


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("shift", [0, 15])
def test_largest_terms(sign: int, shift: int) -> None:
    """Every zero-point, batch-norm and activation term at its end, signs both ways."""
    most = {24: (1 << 23) - 1, 40: (1 << 39) - 1}
    least = {24: -(1 << 23), 40: -(1 << 39)}
    end = most if sign > 0 else least
    arg = LayerArg.make(
        1024, 1, 1, 2, kernel=3, eight_bit=False, pad_value=255,
        arg_x=end[24], shr_x=shift, arg_w=end[24], shr_w=shift, arg_add=end[40],
    )  # fmt: skip
    x = np.full(arg.in_shape, 255, dtype=np.uint8)
    weights = np.full(arg.weight_count, 65535, dtype=np.uint16)
    bn = BatchNorm.make([end[24], -end[24] - (sign < 0)], 0, [sign * ((1 << 31) - 1)] * 2)
    start = np.full(16, -LOWEST - 1)
    start[0] = LOWEST
    act = ActTable.make(start, -(1 << 15), 63, 255)
    got = run_layer(arg, x, weights, bn.pack(), act.pack(), eight_bit=False, debug=True)
    window = 1024 * 9
    s, sx, sw = window * 255 * 65535, window * 255, window * 65535
    terms = ((arg.arg_x * sx) >> shift) + ((arg.arg_w * sw) >> shift) + arg.arg_add * 1024
    alu = oracle.signed(s + terms, 36)
    table = list(
        zip(*(getattr(act, f).tolist() for f in ("start", "mul", "shift", "add")), strict=True)
    )
    for o in range(2):
        v = oracle.signed(((alu * int(bn.mul[o])) >> 0) + int(bn.add[o]), 36)
        assert int(got.alu[o, 0, 0]) == alu and int(got.v[o, 0, 0]) == v
        assert int(got.y[o, 0, 0]) == oracle.activate(v, table, "nncase", False)


def test_wrap_to_36_bits() -> None:
    values = [0, -1, (1 << 35) - 1, 1 << 35, -(1 << 35), -(1 << 35) - 1, (1 << 62) + 5, 1 << 36]
    want = [oracle.signed(v, 36) for v in values]
    assert wrap36(np.array(values)).tolist() == want


@pytest.mark.parametrize("seed", range(40))
def test_small_blocks_change_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Maps that are cut into many blocks, with every pool and kernel, give the same bytes."""
    layer = random_layer(np.random.default_rng(seed), pool=seed % 10, h=13, w=11, fc=False)
    monkeypatch.setattr(conv, "COLUMN_BYTES", 300)
    monkeypatch.setattr(conv, "BLOCK", 5)
    blocks = list(conv.window_blocks(layer.arg, layer.x, layer.weights.view(width(layer))))
    assert len(blocks) > 2
    y = run_layer(
        layer.arg, layer.x, layer.weights, layer.bn, layer.act, eight_bit=layer.eight_bit
    ).y
    assert (y == layer.y).all()


def width(layer: VectorLayer) -> str:
    """numpy name of a weight."""
    return "<u1" if layer.eight_bit else "<u2"
