# SPDX-License-Identifier: Apache-2.0
"""Requantisation: batch norm and activation against exact arithmetic, for every sum."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from openkpu.arithmetic.activation import Activation
from openkpu.arithmetic.params import ActTable, BatchNorm
from openkpu.compiler.form import reference
from openkpu.compiler.lowering import requant


def bytes_of(fit: requant.Fit, sums: np.ndarray, channel: int = 0) -> np.ndarray:
    """What the device makes of the sums of a channel (docs/kpu.md 1.2)."""
    norm = BatchNorm.unpack(fit.bn)
    v = ((sums * norm.mul[channel]) >> norm.shift[channel]) + norm.add[channel]
    return Activation(ActTable.unpack(fit.act))(v).astype(np.int64)


def exact(sums: np.ndarray, factor: Fraction, bias: int, zero: int, clamp: tuple[int, int]):
    return np.clip(reference.scaled_once(sums + bias, factor) + zero, *clamp)


@pytest.mark.parametrize("seed", range(30))
def test_every_sum(seed: int) -> None:
    """As many sums differ as the fit says, at most; where it misses no edge none does."""
    rng = np.random.default_rng(seed)
    factor = Fraction(float(np.float32(10 ** rng.uniform(-4, -0.5))))
    zero, ends = int(rng.integers(0, 256)), sorted(rng.integers(0, 256, 2).tolist())
    clamp = (0, 255) if seed % 3 else (ends[0], ends[1])
    bias, reach = int(rng.integers(-20_000, 20_000)), (-60_000, 70_000)
    fit = requant.fit([factor], [bias], zero, clamp, (np.array([reach[0]]), np.array([reach[1]])))
    sums = np.arange(reach[0], reach[1] + 1)
    wrong = np.abs(bytes_of(fit, sums) - exact(sums, factor, bias, zero, clamp))
    print(f"seed {seed}: factor {float(factor):.3g}, {fit.missed} of {fit.edges} edges missed")
    assert wrong.max() <= 1 and (wrong > 0).sum() <= 2 * fit.missed
    assert fit.missed <= 3


@pytest.mark.parametrize("zero", [0, 1, 127, 128, 255])
@pytest.mark.parametrize("low", [0, 5, 6])
@pytest.mark.parametrize("factor", [Fraction(1, 2), Fraction(1, 4), Fraction(3, 8)])
def test_ties_go_to_even(factor: Fraction, low: int, zero: int) -> None:
    """Scales that are powers of two make halves, on both parities of zero point and clamp."""
    reach = np.array([-3000]), np.array([3000])
    fit = requant.fit([factor], [3], zero, (low, 250), reach)
    sums = np.arange(-3000, 3001)
    assert not fit.missed
    assert np.array_equal(bytes_of(fit, sums), exact(sums, factor, 3, zero, (low, 250)))


@pytest.mark.parametrize("factor", [Fraction(1, 4), Fraction(3, 8), Fraction(1, 2)])
@pytest.mark.parametrize("width", [0, 1, 3, 20])
def test_edge_beside_the_sums(factor: Fraction, width: int) -> None:
    """A factor a little beside a simple one, whose ties it must not meet: also where the only edge
    lies beside the sums that occur."""
    for apart in (Fraction(1, 1 << 27), Fraction(-1, 1 << 27)):
        for start in range(-90, 90):
            sums = np.arange(start, start + width + 1)
            reach = sums[:1], sums[-1:]
            fit = requant.fit([factor + apart], [0], 128, (0, 255), reach)
            want = exact(sums, factor + apart, 0, 128, (0, 255))
            wrong = int((bytes_of(fit, sums) != want).sum())
            assert wrong == 0 or (wrong <= fit.missed <= fit.edges), (start, apart)


def test_ties_up() -> None:
    """As pooling tasks round."""
    reach = np.array([-600]), np.array([600])
    fit = requant.fit([Fraction(1, 4)], [0], 100, (0, 255), reach, up=True)
    sums = np.arange(-600, 601)
    want = np.clip(reference.half_up(sums, Fraction(1, 4)) + 100, 0, 255)
    assert not fit.missed and np.array_equal(bytes_of(fit, sums), want)


@pytest.mark.parametrize("clamp", [(0, 0), (7, 8), (7, 7), (254, 255)])
def test_narrow_clamps(clamp: tuple[int, int]) -> None:
    reach = np.array([-6000]), np.array([6000])
    fit = requant.fit([Fraction(1, 20)], [0], 8, clamp, reach)
    sums = np.arange(-6000, 6001)
    assert np.array_equal(bytes_of(fit, sums), exact(sums, Fraction(1, 20), 0, 8, clamp))


def test_channels_share_the_activation() -> None:
    """Factors of a few orders of magnitude in one layer, one of them large."""
    factors = [Fraction(1, 3), Fraction(1, 5000), Fraction(37, 10)]
    ends = np.array([-900, -400_000, -60]), np.array([900, 400_000, 60])
    fit = requant.fit(factors, [10, -700, 0], 128, (0, 255), ends)
    for o, factor in enumerate(factors):
        sums = np.arange(ends[0][o], ends[1][o] + 1)
        want = exact(sums, factor, (10, -700, 0)[o], 128, (0, 255))
        wrong = np.abs(bytes_of(fit, sums, o) - want)
        assert (wrong > 0).sum() <= 2 * fit.missed and wrong.max() <= 1
