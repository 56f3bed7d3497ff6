# SPDX-License-Identifier: Apache-2.0
"""Values of elements of a product: against fractions, and by hand."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from openkpu.generators.generate_fp16 import fp16_numbers
from openkpu_tb.coverage import float16
from openkpu_tb.uvm.sequences.special import aimed


def half(values: list[list[float]]) -> np.ndarray:
    return np.array(values, dtype=np.float16)


def found(a: np.ndarray, b: np.ndarray, wide: bool) -> set[str]:
    """What an element is said to be."""
    return {name for name, mask in float16.value_kinds(a, b, wide).items() if mask[0, 0]}


@pytest.mark.parametrize(
    ("row", "column", "narrow", "wide"),
    [
        ([1.0, 2.0], [3.0, 1.0], {"ordinary"}, {"ordinary"}),
        ([0.0, 0.0], [3.0, 1.0], set(), set()),
        ([2.0, -2.0], [1.0, 1.0], {"cancelled to zero"}, {"cancelled to zero"}),
        ([2048.0, 1.0], [1.0, 1.0], {"tie to even, down"}, {"ordinary"}),
        ([2050.0, 1.0], [1.0, 1.0], {"tie to even, up"}, {"ordinary"}),
        ([2048.0, 2.0], [1.0, 1.0], {"ordinary"}, {"ordinary"}),
        ([4096.0, 1.0], [4096.0, 1.0], {"overflow"}, {"tie to even, down"}),
        ([4096.0, 3.0], [4096.0, 1.0], {"overflow"}, {"tie to even, up"}),
        ([65504.0, 16.0], [1.0, 1.0], {"overflow", "tie to even, up"}, {"ordinary"}),
        ([65504.0, 8.0], [1.0, 1.0], {"highest number"}, {"ordinary"}),
        ([0.001, 0.0], [0.01, 1.0], {"subnormal result"}, {"ordinary"}),
        ([0.001, 0.0], [0.00001, 1.0], {"rounded to zero", "subnormal operand"}, None),
        ([np.inf, 1.0], [0.0, 1.0], {"NaN made"}, {"NaN made"}),
        ([np.inf, np.inf], [1.0, -1.0], {"NaN made"}, {"NaN made"}),
        ([np.inf, 1.0], [-1.0, 1.0], {"infinite operand"}, {"infinite operand"}),
        ([np.nan, 1.0], [0.0, 1.0], {"NaN operand"}, {"NaN operand"}),
    ],
)
def test_by_hand(row: list, column: list, narrow: set, wide: set | None) -> None:
    a, b = half([row]), half([[n] for n in column])
    assert found(a, b, False) == narrow
    if wide is not None:
        assert found(a, b, True) == wide


def test_ties_and_zeros_against_fractions() -> None:
    """Random numbers of all kinds: a tie lies in the middle of two neighbours of its target."""
    rng = np.random.default_rng(4)
    seen = set()
    for turn in range(300):
        a, b = fp16_numbers(rng, (3, 2)), fp16_numbers(rng, (2, 4))
        wide = bool(turn % 2)
        said = float16.value_kinds(a, b, wide)
        target = np.float32 if wide else np.float16
        for i, j in np.ndindex(3, 4):
            terms = [(a[i, k], b[k, j]) for k in range(2)]
            if not all(np.isfinite(n) for pair in terms for n in pair):
                assert not said["cancelled to zero"][i, j]
                continue
            exact = sum((Fraction(float(x)) * Fraction(float(y)) for x, y in terms), Fraction(0))
            zero = not exact and any(x and y for x, y in terms)
            assert said["cancelled to zero"][i, j] == zero
            with np.errstate(over="ignore"):
                near = target(float(exact))  # within one of the right one
                around = [near, *(np.nextafter(near, target(s * np.inf)) for s in (1, -1))]
            if not all(np.isfinite(n) for n in around):
                continue
            numbers_near = sorted(Fraction(float(n)) for n in around)
            middles = [(p + q) / 2 for p, q in itertools.pairwise(numbers_near)]
            tie = bool(said["tie to even, down"][i, j] or said["tie to even, up"][i, j])
            assert tie == (exact in middles), (a, b, i, j)
            seen.add((wide, tie))
    assert len(seen) == 4


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("value", float16.VALUES)
def test_what_is_aimed_at_is_hit(value: str, wide: bool) -> None:
    """The sequences' products have the value inside and at both edges."""
    bins = {(float16.TARGETS[wide], value, place) for place in float16.PLACES}
    hit = set()
    for seed in range(4):
        layer = aimed(np.random.default_rng(seed), value, 5, 4, 12, wide)
        hit |= {bin for _, bin in float16.sample(layer.weights, layer.x, 5, wide)}
    able = set(filter(float16.possible_value, bins))
    assert able in (set(), bins) and able <= hit, able - hit
    assert all(map(float16.possible_value, hit))
