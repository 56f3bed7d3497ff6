# SPDX-License-Identifier: Apache-2.0
"""Bytes that are uploaded although the AI RAM still has them (docs/performance.md 8).

A compiler uploads a map anew for each part of the model that reads it, each time to other rows.
While an earlier copy is whole, the layers read that one instead.
"""

from __future__ import annotations

import dataclasses

from openkpu.kmodel.program import KpuLayer, Operation, Program, Upload
from openkpu.kmodel.residence.flow import copies_of, drop_unread, map_intact, map_readers
from openkpu.layer.argument import LayerError
from openkpu.layer.layout import Layout


def copy_instead(
    program: Program, operations: list[Operation], at: int, *, ram_rows: int
) -> list[Operation] | None:
    """The operations without the upload at ``at``, its readers at a copy; None when it must stay.

    A copy is what an earlier upload, a layer with a map for main memory, or a download has left.
    """
    upload = operations[at]
    if not isinstance(upload, Upload) or upload.implicit:
        return None
    readers = map_readers(operations, at, upload.layout)
    for place, layout in copies_of(operations, at, upload.src):
        last = at
        moved: list[KpuLayer] | None = []
        if layout != upload.layout:
            if not readers:
                continue  # something else reads the rows
            last = readers[-1]
            moved = _readers_at(operations, readers, layout, ram_rows)
        if moved is None or not map_intact(operations, layout, range(place + 1, last), at):
            continue
        slots: list[list[Operation]] = [[op] for op in operations]
        slots[at] = []
        for number, layer in zip(readers or [], moved, strict=False):
            slots[number] = [layer]
        if not isinstance(operations[place], Upload):
            drop_unread(program, slots, [place])
        return [op for slot in slots for op in slot]
    return None


def _readers_at(
    operations: list[Operation], readers: list[int], layout: Layout, ram_rows: int
) -> list[KpuLayer] | None:
    """The layers at ``readers`` with their input at ``layout``; None if the device refuses one,
    whose output would overwrite it."""
    found: list[KpuLayer] = []
    for number in readers:
        layer = operations[number]
        assert isinstance(layer, KpuLayer)
        arg = layer.arg.replace(image_src_addr=layout.base)
        try:
            arg.validate(strict=False, ram_rows=ram_rows)
        except LayerError:
            return None
        found.append(dataclasses.replace(layer, arg=arg))
    return found
