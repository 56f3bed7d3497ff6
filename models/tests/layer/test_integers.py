# SPDX-License-Identifier: Apache-2.0
"""Quotients and multiples, rounded up, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openkpu.arithmetic.integers import ceil_div, round_up


@pytest.mark.parametrize(
    ("value", "by", "quotient", "multiple"),
    [
        (0, 8, 0, 0),
        (1, 8, 1, 8),
        (8, 8, 1, 8),
        (9, 8, 2, 16),
        (7, 1, 7, 7),
        (-1, 8, 0, 0),
        (-9, 8, -1, -8),
    ],
)
def test_values(value: int, by: int, quotient: int, multiple: int) -> None:
    assert ceil_div(value, by) == quotient
    assert round_up(value, by) == multiple


@given(st.integers(-(1 << 80), 1 << 80), st.integers(1, 1 << 70))
def test_of_any_size(value: int, by: int) -> None:
    """Numbers that no float holds."""
    assert ceil_div(value, by) == math.ceil(Fraction(value, by))
    multiple = round_up(value, by)
    assert multiple % by == 0 and 0 <= multiple - value < by


def test_by_nothing() -> None:
    with pytest.raises(ZeroDivisionError):
        ceil_div(1, 0)
