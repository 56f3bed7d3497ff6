# SPDX-License-Identifier: Apache-2.0
"""Batch norm and activation that turn sums into bytes as exact arithmetic would (docs/compiler.md).

A channel's output is ``round((acc + bias) * M) + zero``, M an exact fraction, a tie to even,
limited to a clamp.  The device has v = ((acc * mul) >> shift) + add with mul of 23 bits, and reads
the byte off v by one line of 2^F to a step.  Both are staircases of acc, so they are equal when
each of the at most 255 edges lies at the same integer.  ``fit`` computes them exactly and searches,
for each channel, mul and add that meet all of them which sums of the layer can reach; what is not
met is counted, and there the byte is one step off.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.params import ActTable, BatchNorm

MOST_F = 24  # bits of v below one step
MUL = (1 << 23) - 1
LOWEST, HIGHEST = -(1 << 35), (1 << 35) - 1  # of sums as well, 36 bits
V_ROOM = 1 << 34  # v stays below
ADD_ROOM = 1 << 31
NEAR = (0, -1, 1, -2, 2, -3, 3)  # mul is searched around its exact value


class Apart(ValueError):
    """Scales so far apart that the fields of a layer do not hold their ratio."""

    def __init__(self, most: Fraction) -> None:
        super().__init__(f"scales too far apart: terms of up to {float(most):.3g} output steps")


class Beyond(ValueError):
    """Sums that the 36 bits of the device do not hold (docs/kpu.md 1.4)."""

    def __init__(self, most: int) -> None:
        super().__init__(f"sums of up to {most:,}, the device keeps 36 bits: up to {HIGHEST:,}")


@dataclasses.dataclass(frozen=True)
class Fit:
    """Tables of a layer, and what they miss."""

    bn: npt.NDArray[np.uint64]  # (O,)
    act: npt.NDArray[np.uint64]  # (18,)
    missed: int  # edges that lie at another sum, of all channels
    edges: int  # edges that sums reach
    steps: int = 1  # by which a byte is off beside an edge that is missed

    @property
    def exact(self) -> bool:
        return not self.missed


def fit(
    factors: Sequence[Fraction],
    bias: Sequence[int] | Sequence[Fraction],
    zero: int,
    clamp: tuple[int, int],
    reach: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    up: bool = False,
) -> Fit:
    """Tables for channels of ``factors`` M > 0 and ``bias`` (in steps of acc, or fractions).

    ``zero`` and ``clamp`` are bytes as they are stored, 0..255.  ``reach``: least and largest acc
    of each channel, int64 (O,).  ``up``: a tie goes up.  Apart for factors, or biases in steps of
    the output, that no fields hold, Beyond for sums.
    """
    low, high = clamp
    bias = [Fraction(b) for b in bias]
    most = max(max(abs(int(a)), abs(int(b))) for a, b in zip(*reach, strict=True))
    if most > HIGHEST:
        raise Beyond(most)
    bits = _fraction_bits(factors, bias, most)
    act = requant_line(bits, low, high, zero)
    mul, shift, add = [], [], []
    missed = edges = 0
    for o, factor in enumerate(factors):
        ends = int(reach[0][o]), int(reach[1][o])
        found = _channel(factor, bias[o], zero, clamp, ends, bits, up)
        mul.append(found[0])
        shift.append(found[1])
        add.append(found[2])
        missed += found[3]
        edges += found[4]
    return Fit(BatchNorm.make(mul, shift, add).pack(), act.pack(), missed, edges)


def requant_line(bits: int, low: int, high: int, zero: int) -> ActTable:
    """byte = v / 2^bits + low, limited to low..high; of ties those go to even whose distance from
    ``zero`` is even.  v = 0 is the byte ``low``."""
    step, half = 1 << bits, (1 << bits) >> 1
    # (start, mul, add): the segment's result is round((v - start) * mul / step) + add
    rows = [(LOWEST, 0, low)]
    if low == high:
        pass
    elif (low - zero) % 2 == 0:
        rows += [(0, 1, low), ((high - low) * step, 0, high)]
    else:  # from the next byte on, so that the line's own zero is even
        rows += [(half - 1, 0, low + 1)]
        if high > low + 1:
            rows += [(step, 1, low + 1), ((high - low) * step, 0, high)]
    rows += [(HIGHEST, 0, high)] * (16 - len(rows))
    start, mul, add = zip(*rows, strict=True)
    return ActTable.make(start, mul, bits, add)


def _fraction_bits(factors: Sequence[Fraction], bias: Sequence[Fraction], most: int) -> int:
    """The largest F that keeps mul, add and v in their fields."""
    for bits in range(MOST_F, -1, -1):
        step = 1 << bits
        fits = all(
            m * step <= MUL
            and (abs(b) * m + 512) * step < ADD_ROOM
            and (abs(b) + most) * m * step < V_ROOM
            for m, b in zip(factors, bias, strict=True)
        )
        if fits:
            return bits
    raise Apart(max(m * max(1, abs(b), most) for m, b in zip(factors, bias, strict=True)))


def _channel(
    factor: Fraction,
    bias: Fraction,
    zero: int,
    clamp: tuple[int, int],
    reach: tuple[int, int],
    bits: int,
    up: bool,
) -> tuple[int, int, int, int, int]:
    """(mul, shift, add, edges missed, edges reached) of a channel."""
    low, high = clamp
    scaled = factor * (1 << bits)
    shift = 0
    while shift < 15 and scaled * (2 << shift) <= MUL:
        shift += 1
    best = round(scaled * (1 << shift))
    plain = round((bias * factor + zero - low) * (1 << bits))
    acc, need = _edges(factor, bias, zero, low, high, reach, bits, up)
    if not acc.size:
        return best, shift, plain, 0, 0
    kept = None
    for near in NEAR:
        mul = best + near
        if not 0 < mul <= MUL:
            continue
        at = need - ((acc * mul) >> shift)  # add must not be below
        before = need - (((acc - 1) * mul) >> shift) - 1  # ... nor above
        least, most = int(at.max()), int(before.min())
        if least <= most:
            # as near to the true one as it may be: what lies between edges stays as it is
            add = min(max(plain, least), most) if near == 0 else (least + most) // 2
            if abs(add) < ADD_ROOM:
                return mul, shift, add, 0, acc.size
        for add in (plain, (least + most) // 2):
            missed = int(((add < at) | (add > before)).sum())
            if (kept is None or missed < kept[3]) and abs(add) < ADD_ROOM:
                kept = (mul, shift, add, missed)
    return (*(kept or (best, shift, plain, acc.size)), acc.size)


def _edges(
    factor: Fraction,
    bias: Fraction,
    zero: int,
    low: int,
    high: int,
    reach: tuple[int, int],
    bits: int,
    up: bool,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(least acc that gives each byte above ``low``, least v for it) of bytes that are reached."""
    step, half = 1 << bits, (1 << bits) >> 1
    # acc + bias >= (2 n - 1) / (2 M), and more than that where the tie goes down
    over, under = 2 * factor.numerator * bias.denominator, factor.denominator * bias.denominator
    offset = bias.numerator * 2 * factor.numerator
    first = max(low + 1, _byte_of(reach[0], factor, bias) + zero)
    last = min(high, _byte_of(reach[1], factor, bias) + zero + 1)
    count = last - first + 1
    if count < 1:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    n = np.arange(first - zero, last + 1 - zero, dtype=np.int64)
    # ceil(top / over) = q and the rest of each, from those of the first one and of a step
    at, rest = divmod((2 * (first - zero) - 1) * under - offset, over)
    more, apart = divmod(2 * under, over)
    exact = over < 1 << 53 and abs(at) + 256 * more < 1 << 62
    kind = np.int64 if exact else object
    rests = rest + np.arange(count).astype(kind) * apart
    whole, left = rests // over, rests % over
    acc = at + np.arange(count).astype(kind) * more + whole + (left > 0)
    if not up:  # exactly half, and the byte below is even
        acc = acc + ((left == 0) & (n % 2 == 1))
    need = (n + zero - low) * step - half + n % 2
    met = (acc > reach[0]) & (acc <= reach[1])
    return acc[met].astype(np.int64), need[met]


def _byte_of(acc: int, factor: Fraction, bias: Fraction) -> int:
    return round((acc + bias) * factor)
