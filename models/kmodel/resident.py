# SPDX-License-Identifier: Apache-2.0
"""Maps that stay in the AI RAM: what a driver need not do on the CPU (docs/performance.md 8).

A compiler has the CPU take every second pixel of a map: the KPU's map is downloaded, sliced and
uploaded again.  A pooling task with a window of one pixel does the same inside the AI RAM, and the
layers before and behind it become one run.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from ..generate_pools import pool_layer
from ..layer import LayerArg, LayerError
from ..layout import AI_RAM_ROWS, Layout
from ..pool_tasks import MAXIMUM
from .operations import StridedSlice
from .program import Download, KpuLayer, Operation, Program, Upload, View

WRITTEN = ("dst", "main_out")  # fields of what operations write; they read all others


def keep_maps(program: Program) -> Program:
    """The program with pooling tasks in the place of slices that went through main memory.

    Layers are numbered anew: the tasks count.  What cannot be shown to be the same stays as it is.
    """
    operations = list(program.operations)
    at = 0
    while at < len(operations):
        found = _slice_before(program, operations, at)
        if found is not None:
            first, second, task = found
            operations[at] = task
            download = operations[first]
            del operations[second]
            if not _read_later(program, operations, download.dst, first):
                del operations[first]
            at = first
        at += 1
    return dataclasses.replace(program, operations=operations)


def _slice_before(
    program: Program, operations: list[Operation], at: int
) -> tuple[int, int, KpuLayer] | None:
    """(place of the download, place of the slice, task) for an upload of a slice; None."""
    upload = operations[at]
    if not isinstance(upload, Upload) or upload.implicit:
        return None
    cut = _maker(operations, at, upload.src)
    if cut is None or not isinstance(operations[cut], StridedSlice):
        return None
    piece = operations[cut]
    source = _maker(operations, cut, piece.src)
    if source is None or not isinstance(operations[source], Download):
        return None
    download = operations[source]
    arg = _task(piece, download, upload)
    if arg is None or _read_later(program, operations, upload.src, at):
        return None
    rows = download.layout
    for between in operations[source + 1 : at]:
        if any(_share_rows(rows, written) for written in _rows_written(between)):
            return None
    # the slice is read by nobody else, and its place by nobody before the upload
    if any(_touches(op, upload.src) for op in operations[cut + 1 : at]):
        return None
    none = np.zeros(0, dtype=np.uint64)
    task = KpuLayer(
        offset=piece.offset,
        arg=arg,
        weights=np.zeros(0, dtype=np.uint8),
        bn=none,
        act=none,
        eight_bit=program.eight_bit,
        title="slice",
    )
    return source, cut, task


def _task(piece: StridedSlice, download: Download, upload: Upload) -> LayerArg | None:
    """The pooling task that takes every n-th line and column; None when there is none."""
    shape, strides = piece.src.shape, piece.stride
    same = _equal(piece.src, download.dst) and _equal(piece.dst, upload.src)
    whole = all(end >= size for end, size in zip(piece.end, shape, strict=True))
    if not same or not whole or len(shape) != 4 or shape[0] != 1 or any(piece.begin):
        return None
    if strides[:2] != (1, 1) or not all(1 <= n <= 16 for n in strides[2:]):
        return None
    try:
        return pool_layer(
            *(shape[1:], MAXIMUM, (1, 1), strides[2:]), src=download.base, dst=upload.base
        )
    except LayerError:  # the maps share rows
        return None


def _maker(operations: list[Operation], before: int, view: View) -> int | None:
    """Place of the operation that wrote ``view``, all of it; None when several did, or none."""
    for place in reversed(range(before)):
        op = operations[place]
        if any(_overlap(view, other) for other in _written(op)):
            return place if all(_equal(view, other) for other in _written(op)) else None
    return None


def _read_later(program: Program, operations: list[Operation], view: View, at: int) -> bool:
    """May an operation behind place ``at``, or who reads the outputs, see these bytes?"""
    left = np.ones(view.size, dtype=bool)  # bytes that nobody has written since

    def part(other: View) -> npt.NDArray[np.bool_]:
        if not _overlap(view, other):
            return left[:0]
        start = other.start - view.start
        return left[max(0, start) : start + other.size]

    for op in operations[at + 1 :]:
        if any(part(other).any() for other in _read(op)):
            return True
        for other in _written(op):
            if other.dense:
                part(other)[...] = False
    return any(part(tensor.view).any() for tensor in program.outputs)


def _written(op: Operation) -> tuple[View, ...]:
    """What an operation writes in main memory, as far as its fields tell."""
    views = (getattr(op, name, None) for name in WRITTEN)
    return tuple(view for view in views if isinstance(view, View))


def _read(op: Operation) -> list[View]:
    """What an operation reads, in-place ones too."""
    read: list[View] = []
    for field in dataclasses.fields(op):
        value = getattr(op, field.name)
        values = value if isinstance(value, tuple) else (value,)
        if field.name not in WRITTEN:
            read += [item for item in values if isinstance(item, View)]
    return read


def _rows_written(op: Operation) -> list[Layout]:
    """Maps of the AI RAM that an operation writes, all of it for one that says nothing."""
    if isinstance(op, Upload):
        first = op.layout
        bases = range(op.base, op.base + op.src.shape[0] * first.rows, first.rows)
        return [dataclasses.replace(first, base=base) for base in bases]
    if isinstance(op, KpuLayer):
        return [op.argument(batch).out_layout for batch in range(op.batches)]
    return [] if _written(op) else [Layout(AI_RAM_ROWS, 1, 64)]


def _share_rows(one: Layout, other: Layout) -> bool:
    return one.base < other.base + other.rows and other.base < one.base + one.rows


def _touches(op: Operation, view: View) -> bool:
    return any(_overlap(view, other) for other in op.views)


def _equal(one: View, other: View) -> bool:
    """The same dense bytes in the same shape."""
    alike = (one.space, one.start, one.shape, one.dtype)
    return (
        alike == (other.space, other.start, other.shape, other.dtype) and one.dense and other.dense
    )


def _overlap(one: View, other: View) -> bool:
    """Do two tensors have bytes in common? Those between strided elements count."""
    return (
        one.space == other.space
        and one.start < other.start + other.size
        and other.start < one.start + one.size
    )
