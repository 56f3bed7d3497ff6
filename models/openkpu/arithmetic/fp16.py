# SPDX-License-Identifier: Apache-2.0
"""Products of float16 matrices: every element the exact sum of its products, rounded once.

docs/kpu.md 1.12.  Where no operand is infinite or NaN the sum is an integer times 2^-48 and is
worked out as one: a float16 is an integer of 41 bits and a sign times 2^-24, three digits of 14
bits.  Sums of products of digits stay below 2^53 for K up to 2^15, so they run as float64 matrix
products, exact in whatever order BLAS adds.  The rounding, to nearest even, then acts on integers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

K_MOST = 1 << 15  # products that the device's sums, and those of this module, have room for
DIGIT = 14
MASK = (1 << DIGIT) - 1
UNIT = -48  # exponent of the last bit of a product, and so of a sum
LOW = 4 * DIGIT  # bits of the lower part of a sum
NAN16, NAN32 = 0x7E00, 0x7FC00000  # the only NaN that a result can be
HALF, SINGLE = np.dtype("<f2"), np.dtype("<f4")


def out_sizes(h: int, w: int, wide: bool) -> list[tuple[int, int]]:
    """(oh, ow) that the output of a map of h x w bytes may have; ``wide``: float32."""
    if not wide:
        return [(h, w)]
    return [(1, 2 * w)] * (h == 1) + [(2 * h, w)] * (w % 64 == 0)


def multiply(a: npt.NDArray, b: npt.NDArray, wide: bool = True) -> npt.NDArray:
    """A (M, K) by B (K, N), both float16, as float32 (``wide``) or float16."""
    for name, matrix in (("A", a), ("B", b)):
        if matrix.ndim != 2 or matrix.dtype != HALF:
            raise ValueError(f"{name} is {matrix.dtype}{matrix.shape}, expected float16")
    if a.shape[1] != b.shape[0] or not 1 <= a.shape[1] <= K_MOST:
        raise ValueError(f"A is {a.shape}, B is {b.shape}: no product, or K above {K_MOST}")
    finite = bool(np.isfinite(a).all() and np.isfinite(b).all())
    high, low = sums(a, b)
    c = rounded(high, low, wide)
    return c if finite else _specials(a, b, c)


def sums(a: npt.NDArray, b: npt.NDArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(high, low) with high * 2^56 + low = the sum over K in units of 2^-48, 0 <= low < 2^56.

    Operands that are infinite or NaN count as numbers, whose sums mean nothing.
    """
    places: list[npt.NDArray[np.int64]] = [np.int64(0)] * 5  # type: ignore[list-item]
    right = _digits(b)
    for i, left in enumerate(_digits(a)):
        for j, digit in enumerate(right):
            places[i + j] = places[i + j] + (left @ digit).astype(np.int64)
    low, carry = np.zeros_like(places[0]), np.zeros_like(places[0])
    for i, place in enumerate(places[:4]):
        carry = carry + place
        low |= (carry & MASK) << (DIGIT * i)
        carry >>= DIGIT
    return carry + places[4], low


def _digits(x: npt.NDArray) -> list[npt.NDArray[np.float64]]:
    """Three signed digits of 14 bits of x / 2^-24, the lowest first."""
    bits = np.ascontiguousarray(x).view(np.uint16).astype(np.int64)
    exponent, fraction = bits >> 10 & 31, bits & 1023
    value = np.where(exponent, fraction | 1024, fraction) << np.maximum(exponent - 1, 0)
    sign: npt.NDArray[np.float64] = np.where(bits >> 15, -1.0, 1.0)
    return [sign * (value >> (DIGIT * i) & MASK) for i in range(3)]


def rounded(high: npt.NDArray[np.int64], low: npt.NDArray[np.int64], wide: bool) -> npt.NDArray:
    """Sums (see ``sums``) rounded to nearest even, to float32 (``wide``) or float16."""
    negative = high < 0
    low, high = (
        np.where(negative, -low & ((1 << LOW) - 1), low),
        np.where(negative, -high - (low != 0), high),
    )
    bits, least = (24, 0) if wide else (11, -24 - UNIT)
    length = np.where(high > 0, LOW + _length(high), _length(low))
    drop = np.maximum(length - bits, least)  # bits that are rounded away
    in_low = drop <= LOW
    # where the last kept bit lies in the upper part, the lower one only says whether it is zero
    from_high = np.maximum(drop - LOW, 0)
    from_low = np.minimum(drop, LOW)
    kept = np.where(in_low, (high << (LOW - from_low)) | (low >> from_low), high >> from_high)
    one = np.int64(1)
    rest_low = low & ((one << from_low) - 1)
    rest_high = 2 * (high & ((one << from_high) - 1)) + (low != 0)
    half_low, half_high = (one << from_low) >> 1, one << from_high
    tie_low = np.sign(rest_low - half_low)
    rest = np.where(in_low, tie_low, np.sign(rest_high - half_high))
    up = ((rest > 0) | ((rest == 0) & (kept & 1 == 1))) & (drop > 0)
    value = np.ldexp((kept + up).astype(np.float64), (drop + UNIT).astype(np.int32))
    if not wide:
        value = np.where(value > 65504.0, np.inf, value)
    return np.where(negative, -value, value).astype(SINGLE if wide else HALF)


def _length(value: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Bits of numbers from 0 to 2^62."""
    upper = value >> 31
    _, most = np.frexp(upper.astype(np.float64))
    _, least = np.frexp((value & ((1 << 31) - 1)).astype(np.float64))
    return np.where(upper > 0, most + 31, least).astype(np.int64)


def _specials(a: npt.NDArray, b: npt.NDArray, c: npt.NDArray) -> npt.NDArray:
    """``c`` with infinities, and the one NaN, where operands make them."""

    def meets(left: npt.NDArray, right: npt.NDArray) -> npt.NDArray[np.bool_]:
        return left.astype(np.float32) @ right.astype(np.float32) > 0

    bits_a, bits_b = a.view(np.uint16), b.view(np.uint16)
    inf_a, inf_b, zero_a, zero_b = np.isinf(a), np.isinf(b), a == 0, b == 0
    full_a, full_b = ~np.isnan(a) & ~zero_a, ~np.isnan(b) & ~zero_b
    nan = np.isnan(a).any(axis=1, keepdims=True) | np.isnan(b).any(axis=0)
    nan |= meets(inf_a, zero_b) | meets(zero_a, inf_b)
    found = []
    for sign in (0, 1):
        hit = np.zeros(c.shape, dtype=np.bool_)
        for of_a in (0, 1):
            ours, theirs = bits_a >> 15 == of_a, bits_b >> 15 == of_a ^ sign
            hit |= meets(inf_a & ours, full_b & theirs) | meets(full_a & ours, inf_b & theirs)
        found.append(hit)
    c = np.where(found[0], np.inf, np.where(found[1], -np.inf, c)).astype(c.dtype)
    bits = c.view(np.uint32 if c.dtype == SINGLE else np.uint16)
    bits[nan | (found[0] & found[1])] = NAN32 if c.dtype == SINGLE else NAN16
    return c
