# SPDX-License-Identifier: Apache-2.0
"""Where a map differs from the one that was expected."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
import numpy.typing as npt


class First(TypedDict):
    """The first byte that differs, in the order channel, row, column."""

    at: list[int]  # channel c, row y, column x
    got: int | None  # 0..255; None: unknown (never written in the simulation)
    expected: int  # 0..255


def difference(
    got: npt.NDArray, *expected: npt.NDArray, unknown: npt.NDArray | None = None
) -> tuple[int, First | None]:
    """(bytes of ``got`` that differ from any of ``expected`` or are unknown, the first of them).

    All (C, H, W) of a one-byte type, ``unknown`` nonzero where a byte of ``got`` means nothing.
    """
    seen = got.view(np.uint8)
    unclear = np.zeros(seen.shape, dtype=bool) if unknown is None else unknown.astype(bool)
    wrong = unclear.copy()
    for other in expected:
        wrong |= seen != other.view(np.uint8)
    if not wrong.any():
        return 0, None
    at = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))
    wanted = [int(other.view(np.uint8)[at]) for other in expected]
    # of several the one that differs; of an unknown byte any
    value = next((v for v in wanted if v != int(seen[at])), wanted[0])
    clear = None if unclear[at] else int(seen[at])
    return int(wrong.sum()), First(at=list(at), got=clear, expected=value)


def describe_difference(count: int, first: First | None) -> str:
    """One line for a reader."""
    if first is None:
        return f"{count} bytes differ"
    c, y, x = first["at"]
    got = "unknown" if first["got"] is None else f"0x{first['got']:02x}"
    return (
        f"{count} bytes differ, first at c={c} y={y} x={x}:"
        f" got {got}, expected 0x{first['expected']:02x}"
    )
