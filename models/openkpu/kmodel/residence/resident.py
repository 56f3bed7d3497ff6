# SPDX-License-Identifier: Apache-2.0
"""Maps that stay in the AI RAM: what a driver need not do on the CPU (docs/performance.md 8).

A compiler has the CPU take every second pixel of a map: the KPU's map is downloaded, sliced and
uploaded again.  A pooling task with a window of one pixel does the same inside the AI RAM, and the
layers before and behind it become one run.  Maps that the CPU concatenates are joined likewise
(``joins``), sums of two maps are element-wise layers (``sums``), and dilated convolutions that were
split are one layer (``dilated``).  Bytes that the AI RAM still has are not uploaded (``copies``),
and padding that nobody depends on is not made (``padded``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from openkpu.configs import Config
from openkpu.kmodel.operations.moves import StridedSlice
from openkpu.kmodel.program import Download, KpuLayer, Operation, Program, Upload
from openkpu.kmodel.residence.copies import copy_instead
from openkpu.kmodel.residence.dilated import dilate_next
from openkpu.kmodel.residence.flow import (
    equal,
    maker,
    read_later,
    rows_written,
    share_rows,
    touches,
)
from openkpu.kmodel.residence.joins import REQUANTIZE, join_next
from openkpu.kmodel.residence.padded import pad_next
from openkpu.kmodel.residence.pairs import TITLE
from openkpu.kmodel.residence.sums import add_next
from openkpu.layer.argument import LayerArg, LayerError
from openkpu.layer.layout import AI_RAM_ROWS
from openkpu.layer.pool_layer import pool_layer
from openkpu.layer.pool_tasks import MAXIMUM

OWN_TABLES = (REQUANTIZE, TITLE)  # titles of layers whose tables are not in the file
LINE = 64  # tables of layers begin at a multiple of so many bytes


def keep_all(
    programs: Sequence[Program], size: int, config: Config, rounding: str = "nncase"
) -> tuple[list[Program], bytes]:
    """``keep_maps`` of the programs of a file of ``size`` bytes on a device, and what lies behind
    the file."""
    ways = {"pools": config.pool_lanes > 0, "dilation": config.dilation, "rounding": rounding}
    found: list[Program] = []
    for program in programs:
        found.append(keep_maps(program, size, ram_rows=config.ai_ram_rows, **ways))
        size += len(found[-1].tail)
    return found, b"".join(program.tail for program in found)


def keep_maps(
    program: Program,
    size: int = 0,
    *,
    pools: bool = True,
    dilation: int = 1,
    rounding: str = "nncase",
    ram_rows: int = AI_RAM_ROWS,
) -> Program:
    """The program with layers in place of CPU operations on maps in main memory: pooling tasks
    for slices (if the device has ``pools``), depthwise layers for maps that were concatenated,
    element-wise layers for their sums, dilated layers (as far as the device has ``dilation``) for
    the ones that were split; without uploads of what the AI RAM has, and without useless padding.

    Layers are numbered anew: these count.  What cannot be shown to be the same stays as it is.
    ``rounding``: of the device's activation.  The tables of the new layers are ``tail`` of the
    program: they lie behind the ``size`` bytes of its file.
    """
    operations = list(program.operations)
    at = 0
    while at < len(operations):
        whole = dilate_next(program, operations, at, most=dilation, ram_rows=ram_rows)
        operations, at = (operations, at + 1) if whole is None else (whole, 0)
    at = 0
    while at < len(operations):
        fewer = copy_instead(program, operations, at, ram_rows=ram_rows)
        if fewer is None:
            fewer = pad_next(program, operations, at, ram_rows=ram_rows)
        if fewer is None:
            fewer = add_next(program, operations, at, rounding=rounding, ram_rows=ram_rows)
        if fewer is not None:
            operations, at = fewer, 0
            continue
        joined = join_next(program, operations, at, rounding=rounding, ram_rows=ram_rows)
        if joined is not None:
            operations, at = joined, 0
            continue
        found = _slice_before(program, operations, at) if pools else None
        if found is not None:
            first, second, task = found
            operations[at] = task
            download = operations[first]
            assert isinstance(download, Download)
            del operations[second]
            if not read_later(program, operations, download.dst, first):
                del operations[first]
            at = first
        at += 1
    operations, tail = _with_tables(operations, size)
    return dataclasses.replace(program, operations=operations, tail=tail)


def _with_tables(operations: list[Operation], size: int) -> tuple[list[Operation], bytes]:
    """New layers get places for their tables behind a file of ``size`` bytes; what lies there."""
    tail = bytearray()
    places: dict[bytes, int] = {}

    def place(table: npt.NDArray) -> int:
        data = table.tobytes()
        if data not in places:
            tail.extend(bytes(-(size + len(tail)) % LINE))
            places[data] = size + len(tail)
            tail.extend(data)
        return places[data]

    found: list[Operation] = []
    for op in operations:
        if isinstance(op, KpuLayer) and op.title in OWN_TABLES:
            arg = op.arg.replace(
                para_start_addr=place(op.weights),
                bwsx_base_addr=place(op.bn.astype("<u8")),
                active_addr=place(op.act.astype("<u8")),
            )
            op = dataclasses.replace(op, arg=arg)
        found.append(op)
    return found, bytes(tail)


def _slice_before(
    program: Program, operations: list[Operation], at: int
) -> tuple[int, int, KpuLayer] | None:
    """(place of the download, place of the slice, task) for an upload of a slice; None."""
    upload = operations[at]
    if not isinstance(upload, Upload) or upload.implicit:
        return None
    cut = maker(operations, at, upload.src)
    if cut is None or not isinstance(piece := operations[cut], StridedSlice):
        return None
    source = maker(operations, cut, piece.src)
    if source is None or not isinstance(download := operations[source], Download):
        return None
    arg = _task(piece, download, upload)
    if arg is None or read_later(program, operations, upload.src, at):
        return None
    rows = download.layout
    for between in operations[source + 1 : at]:
        if any(share_rows(rows, target) for target in rows_written(between)):
            return None
    # the slice is read by nobody else, and its place by nobody before the upload
    if any(touches(op, upload.src) for op in operations[cut + 1 : at]):
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
    same = equal(piece.src, download.dst) and equal(piece.dst, upload.src)
    whole = all(end >= size for end, size in zip(piece.end, shape, strict=True))
    if not same or not whole or len(shape) != 4 or shape[0] != 1 or any(piece.begin):
        return None
    *others, sy, sx = strides
    if others != [1, 1] or not (1 <= sy <= 16 and 1 <= sx <= 16):
        return None
    _, c, h, w = shape
    try:
        return pool_layer((c, h, w), MAXIMUM, (1, 1), (sy, sx), src=download.base, dst=upload.base)
    except LayerError:  # the maps share rows
        return None
