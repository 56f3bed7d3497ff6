# SPDX-License-Identifier: Apache-2.0
"""Pairs of bytes into bytes as an element-wise layer of the KPU (docs/performance.md 8).

What a compiler has the CPU do with two quantised maps is a table of 256 x 256 bytes.  An
element-wise layer (docs/kpu.md 1.9) gives the same where the table rises along a combination of the
two bytes, by a line that was rounded and clamped.  Both sides are rounded in most tables before
they are added; then there is no such combination, and ``sum_weights`` finds that out from the edges
of the table.  What it proposes is run on all pairs by the golden model before it is used.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.params import weights_to_bytes
from openkpu.kmodel.operations.operations import QuantAdd, QuantBinary
from openkpu.kmodel.program import KpuLayer, View
from openkpu.kmodel.residence.requantize import MOST, Line, find_line
from openkpu.layer import elementwise as ew
from openkpu.layer.argument import LayerArg, LayerError
from openkpu.layer.golden import run_layer
from openkpu.layer.layout import AI_RAM_ROWS, Layout

BYTES = MOST + 1
TITLE = "element-wise"  # of the layers
TRIES = 24  # combinations of weights that are tried
LARGEST = 1 << 11  # weight that is tried
Table = npt.NDArray[np.uint8]


@dataclasses.dataclass(frozen=True)
class PairWeights:
    """s = pad_value * w[1] + a * w[4] + b * w[8], or as ``ew_op`` says; sx times ``arg_x``."""

    ew_op: int
    one: int = 0  # w[1]; pad_value is 1 then
    a: int = 0
    b: int = 0
    arg_x: int = 0

    @property
    def pad(self) -> int:
        """pad_value"""
        return int(self.one > 0)

    @property
    def legal(self) -> bool:
        """Do the weights fit 8 bits?"""
        return all(0 <= w <= MOST for w in (self.one, self.a, self.b))

    def sums(self) -> npt.NDArray[np.int64]:
        """alu of the layer for all pairs (256, 256)."""
        a, b = np.arange(BYTES)[:, None], np.arange(BYTES)[None, :]
        left, right = self.pad * self.one + a * self.a, b * self.b
        twice = 2 if self.ew_op == ew.MULTIPLY else 1
        s = {
            ew.ADD: left + right,
            ew.MULTIPLY: left + right + a * b,
            ew.MAXIMUM: np.maximum(left, right),
            ew.MINIMUM: np.minimum(left, right),
        }[self.ew_op]
        return s + self.arg_x * (self.pad + a + twice * b)


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Weights, and the line from the sums to the bytes."""

    weights: PairWeights
    line: Line

    def layer(
        self, maps: tuple[Layout, Layout], dst: int, *, offset: int, eight_bit: bool
    ) -> KpuLayer:
        """The layer on two maps of one shape, to a map at row ``dst``; its tables have no place in
        storage yet.  LayerError when the rows do not allow it."""
        first, second = maps
        w = self.weights
        arg = LayerArg.make(
            *(first.channels, first.height, first.width),
            **{"kernel": 3, "depthwise": True, "eight_bit": eight_bit},
            **{"elementwise": 1, "ew_op": w.ew_op, "arg_x": w.arg_x, "pad_value": w.pad},
            **{"src": first.base, "image_src2_addr": second.base, "dst": dst},
            ram_rows=AI_RAM_ROWS,
        )
        kernel = np.zeros((first.channels, ew.WEIGHTS), np.int64)
        kernel[:, [ew.PAD, ew.A, ew.B]] = w.one, w.a, w.b
        norm, act = self.line.tables(first.channels)
        return KpuLayer(
            offset=offset,
            arg=arg,
            weights=weights_to_bytes(kernel, eight_bit),
            bn=norm.pack(),
            act=act.pack(),
            eight_bit=eight_bit,
            title=TITLE,
        )

    def gives(self, table: Table, rounding: str, eight_bit: bool) -> bool:
        """Does the golden model's layer give the byte of every pair?"""
        shape = 1, BYTES, BYTES
        first = Layout(*shape)
        second = dataclasses.replace(first, base=first.rows)
        try:
            layer = self.layer((first, second), 2 * first.rows, offset=0, eight_bit=eight_bit)
        except LayerError:
            return False
        a, b = (np.broadcast_to(x, shape) for x in _bytes())
        tables = layer.weights, layer.bn, layer.act
        ways = {"eight_bit": eight_bit, "rounding": rounding}
        y = run_layer(layer.arg, a, *tables, x2=b, **ways).y
        return bool((y[0] == table).all())


def find_pairs(op: QuantAdd | QuantBinary, rounding: str, eight_bit: bool) -> Pairs | None:
    """The layer's setting that gives exactly the bytes of the operation for all 65,536 pairs; None
    when none was found."""
    table = table_of(op)
    candidates = (weights for weights in _candidates(op, table) if weights.legal)
    for weights in itertools.islice(candidates, TRIES):
        line = _line(weights.sums(), table, rounding)
        if line is not None:
            found = Pairs(weights, line)
            if found.gives(table, rounding, eight_bit):
                return found
    return None


def table_of(op: QuantAdd | QuantBinary) -> Table:
    """The bytes (256, 256) that the CPU gives for the pairs (a, b)."""
    memory = {name: np.zeros(BYTES**2, np.uint8) for name in "abd"}
    a, b, dst = (View(name, 0, (BYTES, BYTES)) for name in "abd")
    a.of(memory)[...], b.of(memory)[...] = _bytes()
    dataclasses.replace(op, a=a, b=b, dst=dst).run(memory)
    return dst.of(memory).copy()


def _bytes() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    x = np.arange(BYTES, dtype=np.uint8)
    return x[:, None], x[None, :]


def _line(sums: npt.NDArray[np.int64], table: Table, rounding: str) -> Line | None:
    """The line from sums to bytes, when the sums of a byte lie between those of its neighbours."""
    x, y = [], []
    for byte in np.unique(table):
        some = sums[table == byte]
        x += [int(some.min()), int(some.max())]
        y += [byte, byte]
    return find_line(np.array(y, np.uint8), rounding, np.array(x))


def _candidates(op: QuantAdd | QuantBinary, table: Table) -> Iterator[PairWeights]:
    """Weights that may do what the operation does."""
    kind = op.op if isinstance(op, QuantBinary) else "add"
    if kind in ("add", "sub"):
        yield from sum_weights(table)
    elif kind == "mul":
        zeros = -op.a_param[0], -op.b_param[0]
        yield from _products(*zeros)
    elif kind in ("max", "min"):
        yield from _extremes(op, ew.MAXIMUM if kind == "max" else ew.MINIMUM)


def sum_weights(table: Table) -> Iterator[PairWeights]:
    """Weights of a and b, of either sign, whose sum rises wherever the table does; nothing when
    there are none, which the edges of the table show.

    With a weight of 1 for a and r for b, a pair of a byte k or more, (a1, b1), and one of less,
    (a2, b2), demand a1 - a2 + r * (b1 - b2) > 0: a bound for r.
    """
    signs = [1 if (t[-1] >= t[0]).all() else -1 for t in (table, table.T)]
    rising = table[:: signs[0], :: signs[1]].astype(np.int64)
    if (np.diff(rising, axis=0) < 0).any() or (np.diff(rising, axis=1) < 0).any():
        return
    low, high = 0.0, np.inf
    b = np.arange(BYTES)
    for k in np.unique(rising)[1:]:
        edge = (rising < k).sum(axis=0)  # for each b the least a whose byte is k or more
        apart = b[edge < BYTES][:, None] - b[edge > 0]  # b1 - b2
        bound = edge[edge > 0] - 1 - edge[edge < BYTES][:, None]  # r * apart is more than that
        with np.errstate(divide="ignore", invalid="ignore"):
            low = max(low, np.where(apart > 0, bound / apart, 0).max(initial=0))
            high = min(high, np.where(apart < 0, bound / apart, np.inf).min(initial=np.inf))
        if low >= high:
            return
    middle = (low + min(high, low + 1)) / 2
    found: list[tuple[float, int, PairWeights]] = []
    for a in range(1, LARGEST):
        for b_weight in {round(a * middle), round(a * middle) + 1}:
            if b_weight >= 1 and low < b_weight / a < high:
                one, other = a * signs[0], b_weight * signs[1]
                least = min(0, one, other) if max(one, other) <= MOST else min(one, other)
                weights = PairWeights(ew.ADD, a=one - least, b=other - least, arg_x=least)
                found.append((abs(b_weight / a - middle), a, weights))
    found.sort(key=lambda item: item[:2])
    yield from (weights for *_, weights in found)


def _products(za: int, zb: int) -> Iterator[PairWeights]:
    """(a - za) * (b - zb), as docs/kpu.md 1.9 has it for zb <= za."""
    n = max(zb, (za + 1) // 2)
    yield PairWeights(ew.MULTIPLY, a=n - zb, b=2 * n - za, arg_x=-n)


def _extremes(op: QuantAdd | QuantBinary, kind: int) -> Iterator[PairWeights]:
    """The sides' scales as weights; the difference of their offsets is what w[1] adds to the first
    side, so that one has the larger."""
    (offset_a, ma, sa), (offset_b, mb, sb) = op.a_param, op.b_param
    if ma <= 0 or mb <= 0:
        return
    ratio = (mb / 2.0**sb) / (ma / 2.0**sa)
    for a in range(1, BYTES):
        b = round(a * ratio)
        one = offset_a * a - offset_b * b
        if b >= 1 and one >= 0 and abs(b / a - ratio) < 1 / (BYTES * a):
            yield PairWeights(kind, one=one, a=a, b=b)
