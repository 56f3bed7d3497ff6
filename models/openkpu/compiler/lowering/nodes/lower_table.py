# SPDX-License-Identifier: Apache-2.0
"""Functions of one byte: the rule is a depthwise 1x1 layer whose activation is the table.

Where 16 segments do not give every byte of the table (``segments``), two layers do: the first one
writes the values of one end of the inputs, moved so that none is below 2, and 0 for the others;
the second one, an element-wise maximum of the input and 128 times that, sees either a number of at
least 256, which it turns into the value, or the input itself, for which it has its own segments.
Decreasing ends are read from the top.  What neither way gives is the host's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.params import ActTable, BatchNorm
from openkpu.compiler.form.graph import Node, Table
from openkpu.compiler.lowering import requant, segments
from openkpu.compiler.lowering.device import Held, Place
from openkpu.compiler.lowering.lower import State, Unable, offset

STEP = segments.STEP
FAR = 128  # weight of the first layer's result in the second one


def lower_table_node(state: State, node: Table) -> None:
    """One layer, or two."""
    (x,), (y,) = state.graph.of(node.inputs), state.graph.of(node.outputs)
    held = state.held(x.name)
    values = np.asarray(node.table, dtype=np.int64) + offset(y)
    bytes_of(state, node, held, values, y.name)
    low, high = held.span
    reached = values[low : high + 1]
    zero = y.zero + offset(y)
    put = state.tensors[y.name]
    state.put(y.name, Held(put.place, held.where, zero, (int(reached.min()), int(reached.max()))))


def bytes_of(
    state: State, node: Node, held: Held, values: npt.NDArray[np.int64], name: str
) -> None:
    """Layers that turn a stored byte u of ``held`` into ``values[u]``; the tensor ``name``."""
    src, (low, high) = held.place, held.span
    found = _one(values, low, high)
    if found is not None:
        dst = state.room(name, src.shape)
        _layer(state, node, src, dst, *found)
    else:
        two = _two(values, low, high)
        if two is None:
            raise Unable("16 segments, and twice as many in two layers, do not give this table")
        middle, dst = state.new(src.shape), state.room(name, src.shape)
        _layer(state, node, src, middle, *two[0])
        _maximum(state, node, src, middle, dst, two[1])
    state.put(name, Held(dst, held.where, 0))


def _one(values: npt.NDArray[np.int64], low: int, high: int) -> tuple[bool, ActTable] | None:
    """(read from the top?, segments) of a single layer for the inputs low..high."""
    for down in (False, True):
        part = values[low : high + 1]
        found = segments.fit(part[::-1] if down else part, 255 - high if down else low)
        if found is not None:
            return down, found
    return None


def _two(
    values: npt.NDArray[np.int64], low: int, high: int
) -> tuple[tuple[bool, ActTable], ActTable] | None:
    """The first layer's segments, and the second one's."""
    for split in _splits(low, high):
        for below in (True, False):  # which end the first layer writes
            ends = slice(low, split) if below else slice(split, high + 1)
            rest = (split, high) if below else (low, split - 1)
            least = int(values[ends].min())
            if int(values[ends].max()) - least > 253:
                continue
            first = np.zeros(256, dtype=np.int64)
            first[ends] = values[ends] - least + 2
            one = _one(first, low, high)
            if one is None:
                continue
            second = segments.fit(values[rest[0] : rest[1] + 1], rest[0])
            if second is None:
                continue
            joined = _joined(second, least)
            if joined is not None:
                return one, joined
    return None


def _splits(low: int, high: int) -> list[int]:
    """Where the inputs may be cut, the middle first."""
    middle = (low + high) // 2
    return sorted(range(low + 1, high, 4), key=lambda s: abs(s - middle))


def _joined(table: ActTable, least: int) -> ActTable | None:
    """``table`` for v up to 255, and above v / FAR - 2 + least."""
    used = int((table.start < segments.HIGHEST).sum())
    if used >= segments.SEGMENTS:
        return None
    start, mul, shift, add = (np.array(v) for v in (table.start, table.mul, table.shift, table.add))
    # just in front of 2 * FAR, the least of the first layer's values
    start[used], mul[used], add[used] = 2 * FAR * STEP - 1, 1, least
    shift[used] = FAR.bit_length() - 1 + segments.STEP_BITS
    return ActTable(start, mul, shift, add)


def _layer(state: State, node: Node, src: Place, dst: Place, down: bool, act: ActTable) -> None:
    """v = STEP * byte, or STEP * (255 - byte)."""
    c = src.shape[0]
    norm = BatchNorm.make(np.full(c, -STEP if down else STEP), 0, 255 * STEP if down else 0)
    fit = requant.Fit(norm.pack(), act.pack(), 0, 0)
    state.layer(node, src, dst, weights=np.ones(c, dtype=np.int64), fit=fit, depthwise=True)


def _maximum(state: State, node: Node, src: Place, other: Place, dst: Place, act: ActTable) -> None:
    """v = STEP * the larger of byte and FAR * other byte."""
    c = src.shape[0]
    weights = np.zeros((c, 9), dtype=np.int64)
    weights[:, 4], weights[:, 8] = 1, FAR
    fit = requant.Fit(BatchNorm.make(np.full(c, STEP), 0, 0).pack(), act.pack(), 0, 0)
    fields: dict[str, Any] = {"kernel": 3, "depthwise": True, "elementwise": 1, "ew_op": 2}
    state.layer(node, src, dst, weights=weights, fit=fit, src2=other, **fields)
