# SPDX-License-Identifier: Apache-2.0
"""Maps that the CPU pads below or to the right, for nobody (docs/performance.md 8).

A pool needs whole windows, so a compiler has the CPU add a line or column that no result depends
on: a pool of every second pixel picks others.  The layer that makes the map writes it right where
the padded one is to lie, its channel groups apart by the lines of that one (docs/kpu.md 1.15); the
bytes of the padding stay what they are.
"""

from __future__ import annotations

import dataclasses

from openkpu.kmodel.operations.moves import Pad
from openkpu.kmodel.program import KpuLayer, Operation, Program, Upload
from openkpu.kmodel.residence.flow import (
    copies_of,
    free_place,
    layer_that_made,
    maker,
    map_readers,
    read_later,
    rows_read,
)
from openkpu.layer.argument import LayerArg, LayerError
from openkpu.layer.layout import Layout
from openkpu.layer.pixels import used_layouts


def pad_next(
    program: Program, operations: list[Operation], at: int, *, ram_rows: int
) -> list[Operation] | None:
    """The operations without the upload at ``at`` of a map that was padded, and without the
    padding; None when they must stay."""
    upload = operations[at]
    if not isinstance(upload, Upload) or upload.implicit or upload.src.shape[0] != 1:
        return None
    pad_at = maker(operations, at, upload.src)
    pad = operations[pad_at] if pad_at is not None else None
    if pad_at is None or not isinstance(pad, Pad) or not _below_or_right(pad):
        return None
    left = next(copies_of(operations, pad_at, pad.src), (-1, upload.layout))[0]
    made = layer_that_made(operations, left) if left >= 0 else None
    readers = map_readers(operations, at, upload.layout)
    if made is None or not readers or not _unused(operations, readers, pad):
        return None
    layer = operations[made]
    assert isinstance(layer, KpuLayer)
    gone = {pad_at, at, *({left} - {made})}
    if _needed(program, operations, made, pad_at, pad, at, gone):
        return None
    if not all(
        isinstance(operations[n], KpuLayer) for n in range(made, readers[0]) if n not in gone
    ):
        return None  # a list of layers cannot end with a map whose rows lie apart
    place = free_place(
        *(operations, made, readers[-1], upload.layout.rows),
        ram_rows=ram_rows,
        without={at, made},
        beside=rows_read(layer),
    )
    arg = None if place is None else _argument(layer.arg, upload.layout, place, ram_rows)
    if place is None or arg is None:
        return None
    found = list(operations)
    found[made] = dataclasses.replace(layer, arg=arg, main_out=None)
    for number in readers:
        reader = operations[number]
        assert isinstance(reader, KpuLayer)
        found[number] = dataclasses.replace(reader, arg=reader.arg.replace(image_src_addr=place))
    return [op for number, op in enumerate(found) if number not in gone]


def _below_or_right(pad: Pad) -> bool:
    """Lines behind the last one, columns behind the last one, and nothing else?"""
    if len(pad.pads) != 4 or pad.src.shape[0] != 1:
        return False
    (*before, lines, columns) = pad.pads
    return not any(map(any, before)) and all(a == 0 <= b for a, b in (lines, columns))


def _unused(operations: list[Operation], readers: list[int], pad: Pad) -> bool:
    """Does no layer depend on the padding?  If so, a line has the same rows with it and without:
    of a map whose columns need more rows, ``used_layouts`` gives them all."""
    _, _, height, width = pad.src.shape
    for number in readers:
        reader = operations[number]
        assert isinstance(reader, KpuLayer)
        if any(one.height > height or one.width > width for one in used_layouts(reader.arg)):
            return False
    return True


def _needed(
    program: Program,
    operations: list[Operation],
    made: int,
    pad_at: int,
    pad: Pad,
    at: int,
    gone: set[int],
) -> bool:
    """Does something else read the map, in main memory or in the AI RAM, or the padded bytes?"""
    layer = operations[made]
    assert isinstance(layer, KpuLayer)
    # the upload writes rows still, and reads bytes no more
    kept = [n for n in range(len(operations)) if n not in gone - {at}]
    if map_readers([operations[n] for n in kept], kept.index(made), layer.arg.out_layout) != []:
        return True
    kept.remove(at)
    others, here = [operations[n] for n in kept], kept.index(made)
    behind = sum(n < pad_at for n in kept) - 1
    return any(
        read_later(program, others, view, first)
        for view, first in ((pad.src, here), (pad.dst, behind))
    )


def _argument(arg: LayerArg, padded: Layout, place: int, ram_rows: int) -> LayerArg | None:
    """The layer writes its map to the first lines of the padded one at row ``place``; None when the
    device refuses it."""
    apart = int(padded.channel_rows != arg.out_layout.own_rows)
    found = arg.replace(
        image_dst_addr=place,
        out_strided=apart,
        wb_channel_switch_addr=padded.channel_rows,
        send_data_out=0,
    )
    try:
        found.validate(strict=False, ram_rows=ram_rows)
    except LayerError:
        return None
    return found
