# SPDX-License-Identifier: Apache-2.0
"""Where a map differs: count, first place in the order c, y, x, what was got and expected."""

import numpy as np

from openkpu.compare import describe_difference, difference

Y = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


def test_equal() -> None:
    assert difference(Y, Y.view(np.int8), Y.copy()) == (0, None)


def test_first_of_several() -> None:
    got = Y.copy()
    got[1, 2, 3], got[1, 0, 1], got[1, 0, 3] = 0x80, 0xFF, 0
    count, first = difference(got, Y)
    assert count == 3
    assert first == {"at": [1, 0, 1], "got": 0xFF, "expected": 13}
    assert describe_difference(count, first) == (
        "3 bytes differ, first at c=1 y=0 x=1: got 0xff, expected 0x0d"
    )


def test_second_expectation_differs() -> None:
    other = Y.copy()
    other[0, 1, 2] = 99
    assert difference(Y, Y, other) == (1, {"at": [0, 1, 2], "got": 6, "expected": 99})


def test_unknown_byte() -> None:
    unknown = np.zeros_like(Y)
    unknown[0, 2, 0] = 1
    count, first = difference(Y, Y, unknown=unknown)
    assert (count, first) == (1, {"at": [0, 2, 0], "got": None, "expected": 8})
    assert "c=0 y=2 x=0: got unknown, expected 0x08" in describe_difference(count, first)
