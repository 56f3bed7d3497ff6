# SPDX-License-Identifier: Apache-2.0
"""What a product of float16 matrices did, by its operands: the bins of the cross `float16_values`.

Each element of C is looked at by itself, from the exact sum of its products (docs/kpu.md 1.12).
"""

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic import fp16

TARGETS = ("float16", "float32")  # by the field fp32
VALUES = (
    *("ordinary", "subnormal operand", "infinite operand", "NaN operand", "NaN made"),
    *("cancelled to zero", "tie to even, down", "tie to even, up"),
    # of float16 alone: the sums of float32 have room
    *("subnormal result", "rounded to zero", "overflow", "highest number"),
)
NARROW = VALUES[-4:]
PLACES = ("inside", "last row", "last column")
Mask = npt.NDArray[np.bool_]


def possible_value(bin: tuple[str, ...]) -> bool:
    """A bin of target x value x place that can be: float16 alone has the results of NARROW."""
    target, value, _ = bin
    return target == TARGETS[0] or value not in NARROW


def value_kinds(a: npt.NDArray, b: npt.NDArray, wide: bool) -> dict[str, Mask]:
    """Which elements (M, N) of A (M, K) by B (K, N) are of each of VALUES.

    ``a``, ``b``: float16; ``wide``: the result is float32.
    """

    def meets(left: Mask, right: Mask) -> Mask:
        return (left.astype(np.float32) @ right.astype(np.float32)) > 0

    c = fp16.multiply(a, b, wide)
    finite = np.isfinite(a).all(axis=1, keepdims=True) & np.isfinite(b).all(axis=0)
    anything = meets(a != 0, b != 0)
    small = [(x != 0) & (np.abs(x) < 2.0**-14) for x in (a, b)]
    subnormal = meets(small[0], b != 0) | meets(a != 0, small[1])
    infinite = meets(np.isinf(a), b == b) | meets(a == a, np.isinf(b))
    nan = np.isnan(a).any(axis=1, keepdims=True) | np.isnan(b).any(axis=0)
    zero, down, up = _rounding(*fp16.sums(a, b), wide)
    size = np.abs(c.astype(np.float64))
    found = {
        "subnormal operand": finite & subnormal,
        "infinite operand": infinite & np.isinf(c),
        "NaN operand": nan,
        "NaN made": ~nan & np.isnan(c),
        "cancelled to zero": finite & zero & anything,
        "tie to even, down": finite & down,
        "tie to even, up": finite & up,
        "subnormal result": finite & (size > 0) & (size < 2.0**-14),
        "rounded to zero": finite & ~zero & (size == 0),
        "overflow": finite & np.isinf(c),
        "highest number": size == 65504.0,
    }
    if wide:
        found |= dict.fromkeys(NARROW, np.zeros(c.shape, dtype=bool))
    special = np.any(list(found.values()), axis=0)
    return {"ordinary": ~special & anything} | found


def _rounding(
    high: npt.NDArray[np.int64], low: npt.NDArray[np.int64], wide: bool
) -> tuple[Mask, Mask, Mask]:
    """Of exact sums (``fp16.sums``): is it zero, a tie that goes down, a tie that goes up."""
    zero, down, up = (np.zeros(high.shape, dtype=bool) for _ in range(3))
    bits, least = (24, 0) if wide else (11, 24)  # kept; units of 2^-48 that are always dropped
    for at in np.ndindex(high.shape):
        total = abs((int(high[at]) << fp16.LOW) + int(low[at]))
        dropped = max(total.bit_length() - bits, least)
        zero[at] = not total
        if dropped and total & ((1 << dropped) - 1) == 1 << (dropped - 1):
            (up if total >> dropped & 1 else down)[at] = True
    return zero, down, up


def bins(a: npt.NDArray, b: npt.NDArray, wide: bool) -> set[tuple[str, str, str]]:
    """(target, value, place) of all elements of a product; the last row and column are edges."""
    found = set()
    for value, mask in value_kinds(a, b, wide).items():
        parts = {PLACES[1]: mask[-1, :], PLACES[2]: mask[:, -1], PLACES[0]: mask[:-1, :-1]}
        found |= {(TARGETS[wide], value, place) for place, part in parts.items() if part.any()}
    return found


def matrices(
    weights: npt.NDArray[np.uint8], x: npt.NDArray[np.uint8], m: int
) -> tuple[npt.NDArray[np.float16], npt.NDArray[np.float16]]:
    """(A, B) of a layer: bytes of A (M rows), and its map (K, h, w) of bytes."""
    a = np.ascontiguousarray(weights).view(np.uint8).view(fp16.HALF).reshape(m, -1)
    b = np.ascontiguousarray(x).view(np.uint8).reshape(len(x), -1).view(fp16.HALF)
    return a, b


def sample(
    weights: npt.NDArray[np.uint8], x: npt.NDArray[np.uint8], m: int, wide: bool
) -> list[tuple[str, tuple[str, str, str]]]:
    """(cross, bin) of what a layer computes: bytes of A (M rows), map (K, h, w) of B."""
    return [("float16_values", bin) for bin in sorted(bins(*matrices(weights, x, m), wide))]
