# SPDX-License-Identifier: Apache-2.0
"""What operations of a program read and write, in main memory and in the AI RAM."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from openkpu.kmodel.program import Download, KpuLayer, Operation, Program, Upload, View
from openkpu.layer.layout import AI_RAM_ROWS, Layout

WRITTEN = ("dst", "main_out")  # fields of what operations write; they read all others
ALL_ROWS = Layout(AI_RAM_ROWS, 1, 64)


def written_view(op: Operation) -> tuple[View, ...]:
    """Tensors of main memory that an operation writes, from its fields."""
    views = (getattr(op, name, None) for name in WRITTEN)
    return tuple(view for view in views if isinstance(view, View))


def read(op: Operation) -> list[View]:
    """What an operation reads, in-place ones too."""
    found: list[View] = []
    for field in dataclasses.fields(op):
        value = getattr(op, field.name)
        values = value if isinstance(value, tuple) else (value,)
        if field.name not in WRITTEN:
            found += [item for item in values if isinstance(item, View)]
    return found


def equal(one: View, other: View) -> bool:
    """The same dense bytes in the same shape."""
    alike = (one.space, one.start, one.shape, one.dtype)
    return (
        alike == (other.space, other.start, other.shape, other.dtype) and one.dense and other.dense
    )


def bytes_overlap(one: View, other: View) -> bool:
    """Do two tensors have bytes in common? Those between strided elements count."""
    return (
        one.space == other.space
        and one.start < other.start + other.size
        and other.start < one.start + one.size
    )


def maker(operations: Sequence[Operation], before: int, view: View) -> int | None:
    """Place of the operation that wrote ``view``, all of it; None when several did, or none."""
    for place in reversed(range(before)):
        op = operations[place]
        if any(bytes_overlap(view, other) for other in written_view(op)):
            return place if all(equal(view, other) for other in written_view(op)) else None
    return None


def touches(op: Operation, view: View) -> bool:
    """Does an operation read or write bytes of a tensor?"""
    return any(bytes_overlap(view, other) for other in op.views)


def read_later(program: Program, operations: Sequence[Operation], view: View, at: int) -> bool:
    """May an operation behind place ``at``, or who reads the outputs, see these bytes?"""
    left = np.ones(view.size, dtype=bool)  # bytes that nobody has written since

    def seen(other: View) -> bool:
        """Bytes between strided elements count."""
        part = _shared(view, other)
        return bool(left[part].any())

    for op in operations[at + 1 :]:
        if any(seen(other) for other in read(op)):
            return True
        for other in written_view(op):
            part = _shared(view, other)
            if part.start < part.stop:
                begin = part.start + view.start - other.start
                left[part] &= ~_bytes(other)[begin : begin + part.stop - part.start]
    return any(seen(tensor.view) for tensor in program.outputs)


def _shared(view: View, other: View) -> slice:
    """Bytes of ``view`` from the first to the last one that lies in another tensor as well."""
    if not bytes_overlap(view, other):
        return slice(0, 0)
    first = other.start - view.start
    return slice(max(0, first), min(view.size, first + other.size))


def _bytes(view: View) -> npt.NDArray[np.bool_]:
    """Which bytes from the first to the last of a tensor are bytes of its elements."""
    if view.dense:
        return np.ones(view.size, dtype=bool)
    found = np.zeros(view.size, dtype=bool)
    strides = [stride * view.item for stride in view.strides or ()]
    np.ndarray((*view.shape, view.item), bool, found.data, 0, (*strides, 1))[...] = True
    return found


# ---- rows of the AI RAM
def rows_written(op: Operation) -> list[Layout]:
    """Maps of the AI RAM that an operation writes, all of it for one that says nothing."""
    if isinstance(op, Upload):
        return op.layout.batches(op.src.shape[0])
    if isinstance(op, KpuLayer):
        return [op.argument(batch).out_layout for batch in range(op.batches)]
    return [] if written_view(op) else [ALL_ROWS]


def rows_read(op: Operation) -> list[Layout]:
    """Maps of the AI RAM that an operation reads, all of it for one that says nothing."""
    if isinstance(op, Upload):
        return []
    if isinstance(op, Download):
        return op.layouts
    if isinstance(op, KpuLayer):
        runs = map(op.argument, range(op.batches))
        return [layout for arg in runs for layout in arg.in_layouts]
    return [] if written_view(op) else [ALL_ROWS]


def share_rows(one: Layout, other: Layout) -> bool:
    """Do two maps have rows in common?"""
    return one.base < other.base + other.rows and other.base < one.base + one.rows


def busy_rows(operations: Sequence[Operation], first: int, last: int) -> npt.NDArray[np.bool_]:
    """Rows that operations ``first`` to ``last`` touch, and those whose content is read later."""
    busy = np.zeros(AI_RAM_ROWS, dtype=bool)
    for op in operations[first : last + 1]:
        for layout in (*rows_read(op), *rows_written(op)):
            busy[layout.base : layout.base + layout.rows] = True
    fresh = busy.copy()  # written since, or busy anyway
    for op in operations[last + 1 :]:
        for layout in rows_read(op):
            part = slice(layout.base, layout.base + layout.rows)
            busy[part] |= ~fresh[part]
        for layout in rows_written(op):
            fresh[layout.base : layout.base + layout.rows] = True
    return busy


def free_place(
    operations: Sequence[Operation],
    first: int,
    last: int,
    rows: int,
    *,
    ram_rows: int,
    without: Collection[int],
    beside: Iterable[Layout] = (),
) -> int | None:
    """First of ``rows`` rows that are free from place ``first`` to ``last``, where the last reader
    is, and not read later; None when there are none.

    Operations at ``without`` do not count: what they write is what needs a place.  ``beside``: maps
    that are not free either.
    """
    kept = [number for number in range(len(operations)) if number not in without]
    begin, end = (sum(number < limit for number in kept) for limit in (first, last + 1))
    busy = busy_rows([operations[number] for number in kept], begin, end - 1)
    for layout in beside:
        busy[layout.base : layout.base + layout.rows] = True
    busy = busy[:ram_rows]
    edges = np.flatnonzero(np.diff(np.concatenate([[True], busy, [True]])))
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        if end - begin >= rows:
            return int(begin)
    return None


def map_readers(operations: Sequence[Operation], at: int, written: Layout) -> list[int] | None:
    """Places of the layers that read the map written at place ``at``; None if other operations
    read bytes of it, or layers that read something else with it."""
    found: list[int] = []
    left = np.ones(written.rows, dtype=bool)  # rows not overwritten since

    def part(layout: Layout) -> npt.NDArray[np.bool_]:
        if not share_rows(written, layout):
            return left[:0]
        start = layout.base - written.base
        return left[max(0, start) : start + layout.rows]

    for number, op in enumerate(operations[at + 1 :], at + 1):
        for layout in rows_read(op):
            if not part(layout).any():
                continue
            plain = isinstance(op, KpuLayer) and op.batches == 1 and not op.arg.two_maps
            if not plain or layout != written or not left.all():
                return None
            found.append(number)
        for layout in rows_written(op):
            part(layout)[...] = False
    return found


def map_intact(operations: Sequence[Operation], layout: Layout, places: range, but: int) -> bool:
    """Does no operation at ``places``, that at ``but`` aside, write rows of the map?"""
    return not any(
        share_rows(layout, one)
        for place in places
        if place != but
        for one in rows_written(operations[place])
    )


# ---- bytes that are in both
def copies_of(
    operations: Sequence[Operation], before: int, view: View
) -> Iterator[tuple[int, Layout]]:
    """(place, map) of operations that left the bytes of ``view``, as they are before place
    ``before``, in the AI RAM: the last one first. The map may have been overwritten since."""
    for place in reversed(range(before)):
        op = operations[place]
        if isinstance(op, Upload) and equal(op.src, view) and view.shape[0] == 1:
            yield place, op.layout
        writes = [other for other in written_view(op) if bytes_overlap(view, other)]
        if not writes:
            continue
        if isinstance(op, Download) and equal(op.dst, view) and view.shape[0] == 1:
            yield place, op.layout
        elif isinstance(op, KpuLayer) and op.batches == 1 and equal(writes[0], view):
            yield place, op.arg.out_layout
        return  # what lies in the AI RAM from before has other bytes


def layer_that_made(operations: Sequence[Operation], place: int) -> int | None:
    """Place of the layer that made the map which the operation at ``place``, a download or the
    layer itself, leaves in main memory; None when it was not one layer."""
    op = operations[place]
    if not isinstance(op, Download):
        return place if isinstance(op, KpuLayer) and op.batches == 1 else None
    for before in reversed(range(place)):
        written = rows_written(operations[before])
        if any(share_rows(op.layout, one) for one in written):
            whole = isinstance(operations[before], KpuLayer) and written == op.layouts
            return before if whole else None
    return None


def drop_unread(program: Program, slots: list[list[Operation]], places: Iterable[int]) -> None:
    """Remove those operations at ``places`` whose results nobody reads any more; layers remain, but
    leave no map in main memory.  ``slots``: the operations that now are at each place."""
    for number in sorted(places, reverse=True):
        behind = [op for slot in slots[number + 1 :] for op in slot]
        kept: list[Operation] = []
        for op in slots[number]:
            if any(read_later(program, behind, view, -1) for view in written_view(op)):
                kept.append(op)
            elif isinstance(op, KpuLayer):
                kept.append(dataclasses.replace(op, main_out=None))
        slots[number] = kept
