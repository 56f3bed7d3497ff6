# SPDX-License-Identifier: Apache-2.0
"""Two maps that the CPU adds, subtracts, multiplies or compares become one without leaving the AI
RAM (docs/performance.md 8).

A compiler for the K210 has such work done in main memory: both maps are stored, the result is
uploaded.  An element-wise layer in place of the upload does it, where ``pairs`` finds a setting
that is exact.  A map that would be overwritten before that gets other rows.
"""

from __future__ import annotations

import dataclasses

from openkpu.kmodel.operations.operations import QuantAdd, QuantBinary
from openkpu.kmodel.program import KpuLayer, Operation, Program, Upload, View
from openkpu.kmodel.residence.flow import (
    copies_of,
    drop_unread,
    free_place,
    layer_that_made,
    maker,
    map_intact,
    map_readers,
    read_later,
    rows_read,
)
from openkpu.kmodel.residence.pairs import Pairs, find_pairs
from openkpu.layer.argument import LayerError
from openkpu.layer.layout import Layout


@dataclasses.dataclass(frozen=True)
class _Operand:
    """A map that the layer reads."""

    left: int  # place of the operation that leaves it in main memory
    layout: Layout  # where it is when the layer runs
    moved: int | None = None  # place of the layer that has to write it there instead


def add_next(
    program: Program, operations: list[Operation], at: int, *, rounding: str, ram_rows: int
) -> list[Operation] | None:
    """The operations with an element-wise layer in place of the upload at ``at``, and without the
    CPU's work on the two maps; None when they must stay."""
    upload = operations[at]
    if not isinstance(upload, Upload) or upload.implicit or upload.src.shape[0] != 1:
        return None
    made = maker(operations, at, upload.src)
    op = operations[made] if made is not None else None
    if made is None or not isinstance(op, (QuantAdd, QuantBinary)):
        return None
    if any(view.shape != upload.src.shape or not view.dense for view in (op.a, op.b)):
        return None
    others = [one for number, one in enumerate(operations) if number != at]
    if read_later(program, others, upload.src, made):
        return None
    operands: list[_Operand] = []
    for view in (op.a, op.b):
        found = _operand(operations, view, made, at, [one.layout for one in operands], ram_rows)
        if found is None:
            return None
        operands.append(found)
    pairs = find_pairs(op, rounding, program.eight_bit)
    layer = None if pairs is None else _layer(pairs, operands, upload, program, ram_rows)
    if layer is None:
        return None
    slots: list[list[Operation]] = [[one] for one in operations]
    slots[at], slots[made] = [layer], []
    for one in operands:
        if one.moved is not None:
            slots[one.moved] = [_at(operations[one.moved], one.layout)]
    drop_unread(program, slots, {one.left for one in operands})
    return [one for slot in slots for one in slot]


def _operand(
    operations: list[Operation],
    view: View,
    made: int,
    at: int,
    beside: list[Layout],
    ram_rows: int,
) -> _Operand | None:
    """Where the map of ``view``, as it is before place ``made``, is in the AI RAM at place ``at``,
    or can be; None."""
    left = None
    for place, layout in copies_of(operations, made, view):
        if not layout.stride and map_intact(operations, layout, range(place + 1, at), at):
            return _Operand(place, layout)
        left = place, layout
    layer = layer_that_made(operations, left[0]) if left else None
    if left is None or layer is None:
        return None
    # other rows from the beginning: whoever reads these ones would not find it
    others = [op for number, op in enumerate(operations) if number != left[0] or number == layer]
    if map_readers(others, layer, left[1]) != []:
        return None
    place = free_place(
        *(operations, layer, at, left[1].rows),
        ram_rows=ram_rows,
        without={at, layer},
        beside=[*rows_read(operations[layer]), *beside],
    )
    if place is None:
        return None
    return _Operand(left[0], dataclasses.replace(left[1], base=place), layer)


def _at(op: Operation, layout: Layout) -> KpuLayer:
    """The layer with its output map at ``layout``."""
    assert isinstance(op, KpuLayer)
    return dataclasses.replace(op, arg=op.arg.replace(image_dst_addr=layout.base))


def _layer(
    pairs: Pairs, operands: list[_Operand], upload: Upload, program: Program, ram_rows: int
) -> KpuLayer | None:
    """The element-wise layer; None if the device refuses it, whose output would overwrite a map."""
    first, second = (one.layout for one in operands)
    ways = {"offset": upload.offset, "eight_bit": program.eight_bit}
    try:
        layer = pairs.layer((first, second), upload.base, **ways)
        layer.arg.validate(strict=False, ram_rows=ram_rows)
    except LayerError:
        return None
    return layer
