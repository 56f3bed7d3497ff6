# SPDX-License-Identifier: Apache-2.0
"""Dilated convolutions that a compiler split into small ones (docs/kpu.md 1.16).

A K210 has no dilation: nncase pads a map, deals its pixels out to d * d small maps (transposes of
a map in main memory), has the KPU convolve them as a batch, and collects the results.  The moves
are followed with the number of each pixel in its place, so whatever they are, one layer replaces
them only where every window of every result consists of the pixels of the dilated window.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from openkpu.kmodel.operations.moves import Pad, StridedSlice, Transpose
from openkpu.kmodel.operations.operations import Copy
from openkpu.kmodel.program import Download, KpuLayer, Memory, Operation, Program, Upload, View
from openkpu.kmodel.residence.flow import (
    busy_rows,
    bytes_overlap,
    read_later,
    rows_read,
    rows_written,
    share_rows,
    touches,
    written_view,
)
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import AI_RAM_ROWS, Layout

MOVES = (Pad, Transpose, StridedSlice, Copy)
MOST_MOVES = 8  # on either side of the layer
OUTSIDE = -1  # number of a pixel of padding; less the value it has
UNKNOWN = -1000


@dataclasses.dataclass(frozen=True)
class _Split:
    """Where a split convolution is in a list of operations."""

    source: int  # place of the layer or download that gives the map; -1: the CPU made it
    view: View  # the map in main memory
    before: tuple[int, ...]  # places of the moves, in order
    upload: int
    layer: int
    after: tuple[int, ...]  # download, moves
    result: View  # the joined map
    layout: Layout  # of the map, at row 0
    dilation: int
    pad: int


def dilate_next(
    program: Program, operations: list[Operation], at: int, *, most: int, ram_rows: int
) -> list[Operation] | None:
    """The operations with one dilated layer in place of the batch at ``at`` and its moves; None
    when it is no split convolution, or must stay.  ``most``: largest dilation of the device."""
    layer = operations[at]
    if not isinstance(layer, KpuLayer) or layer.batches < 4:
        return None
    split = _find(operations, at, layer)
    if split is None or split.dilation > most or _needed_apart(program, operations, split):
        return None
    gone = {split.upload, at}
    others = [op for place, op in enumerate(operations) if place not in gone]
    behind = at - 1
    busy = busy_rows(others, behind, behind - 1)[:ram_rows]
    result = dataclasses.replace(split.layout, channels=layer.arg.o_ch_num)
    source = _resident(operations, split)
    if source is None:  # the whole map is uploaded instead
        source = _reserve(busy, split.layout)
    else:
        busy[source.base : source.base + source.rows] = True
    target = None if source is None else _reserve(busy, result)
    if source is None or target is None:
        return None
    arg = _argument(layer.arg, split, source, target)
    whole = View(split.result.space, split.result.start, (1, *arg.out_shape))
    joined = dataclasses.replace(layer, arg=arg, batches=1, main_out=whole)
    found: list[list[Operation]] = [[op] for op in operations]
    found[at] = [joined]
    for place in split.after:
        found[place] = []
    upload = operations[split.upload]
    assert isinstance(upload, Upload)
    kept = [] if split.source >= 0 and source == _map_of(operations[split.source]) else [upload]
    first = View(split.view.space, split.view.start, (1, *arg.in_shape))
    found[split.upload] = [dataclasses.replace(op, src=first, base=source.base) for op in kept]
    for place in sorted({*split.before, split.source} - {-1}, reverse=True):
        later = [op for slot in found[place + 1 :] for op in slot]
        op = operations[place]
        if not any(read_later(program, later, view, -1) for view in written_view(op)):
            kept_map = isinstance(op, KpuLayer)
            found[place] = [dataclasses.replace(op, main_out=None)] if kept_map else []
    return [op for slot in found for op in slot]


def _argument(arg: LayerArg, split: _Split, source: Layout, target: Layout) -> LayerArg:
    """The argument of the dilated layer: tables and numbers are those of the small ones."""
    _, h, w = arg.i_ch_num, source.height, source.width
    return arg.replace(
        i_col_high=h,
        i_row_wid=w,
        o_col_high=h,
        o_row_wid=w,
        dilation=split.dilation,
        pad_value=split.pad,
        image_src_addr=source.base,
        image_dst_addr=target.base,
        row_switch_addr=source.row_len,
        channel_switch_addr=source.channel_rows,
        coef_group=source.groups,
        wb_row_switch_addr=target.row_len,
        wb_channel_switch_addr=target.channel_rows,
        wb_group=target.groups,
        channel_byte_num=min(h * w, 1 << 16),
        dma_total_byte=arg.o_ch_num * h * w,
    )


# ---- recognition
def _find(operations: Sequence[Operation], at: int, layer: KpuLayer) -> _Split | None:
    """The split convolution whose small layers are at ``at``."""
    arg, d = layer.arg, math.isqrt(layer.batches)
    plain = (
        arg.kernel_type == 1 and arg.pool_type == 0 and arg.dilation == 1 and not arg.elementwise
    )
    up = _uploaded(operations, at, layer)
    if not plain or d * d != layer.batches or up is None:
        return None
    upload = operations[up]
    assert isinstance(upload, Upload)
    view, before = upload.src, []
    for _ in range(MOST_MOVES):
        place = _maker(operations, before[0] if before else up, view)
        op = operations[place] if place is not None else None
        if place is None or not isinstance(op, MOVES):
            break
        before.insert(0, place)
        view = op.src
    sizes = view.shape[-3:]
    if not before or len(view.shape) != 4 or view.shape[0] != 1 or sizes[0] != arg.i_ch_num:
        return None
    layout, source = Layout(*sizes), -1
    place = _maker(operations, before[0], view)
    if place is not None and isinstance(operations[place], (Download, KpuLayer)):
        one = operations[place]
        maps = one.layouts if isinstance(one, Download) else rows_written(one)
        if len(maps) == 1 and dataclasses.replace(maps[0], base=0) == layout:
            source = place
    small = _numbers(operations, before, view, upload.src)
    if small is None:
        return None
    for after, result in _results(operations, at, layer):
        if result.count != arg.o_ch_num * layout.height * layout.width:
            continue
        begin = _first_view(operations, at, layer, after)
        chosen = _numbers(operations, after, begin, result)
        if chosen is None:
            continue
        pad = _same_windows(arg, small, chosen, layout, d, layer.batches)
        if pad is not None:
            return _Split(source, view, tuple(before), up, at, tuple(after), result, layout, d, pad)
    return None


def _uploaded(operations: Sequence[Operation], at: int, layer: KpuLayer) -> int | None:
    """Place of the upload of exactly the maps that the layer reads; None when there is none."""
    maps = rows_read(layer)
    for place in reversed(range(at)):
        written = rows_written(operations[place])
        if any(share_rows(one, other) for one in written for other in maps):
            op = operations[place]
            return place if isinstance(op, Upload) and not op.implicit and written == maps else None
    return None


def _results(
    operations: Sequence[Operation], at: int, layer: KpuLayer
) -> list[tuple[list[int], View]]:
    """(places of the operations, tensor) of what follows from the small results, step by step."""
    after: list[int] = []
    view = layer.main_out
    if view is None:
        maps = rows_written(layer)
        place = next((n for n in range(at + 1, len(operations)) if _reads(operations[n], maps)), -1)
        op = operations[place]
        if place < 0 or not isinstance(op, Download) or op.layouts != maps:
            return []
        after, view = [place], op.dst
    found: list[tuple[list[int], View]] = []
    for _ in range(MOST_MOVES):
        begin = after[-1] if after else at
        place = next(
            (n for n in range(begin + 1, len(operations)) if touches(operations[n], view)), -1
        )
        op = operations[place]
        if place < 0 or not isinstance(op, MOVES) or not _alike(op.src, view):
            break
        after, view = [*after, place], op.dst
        found.append((after, view))
    return found


def _reads(op: Operation, maps: Sequence[Layout]) -> bool:
    return any(share_rows(one, other) for one in rows_read(op) for other in maps)


def _first_view(
    operations: Sequence[Operation], at: int, layer: KpuLayer, after: Sequence[int]
) -> View:
    """The small results in main memory."""
    op = operations[after[0]]
    view = op.dst if isinstance(op, Download) else layer.main_out
    assert view is not None
    return view


def _alike(one: View, other: View) -> bool:
    """The same dense bytes, in whatever shape."""
    same = (one.space, one.start, one.size, one.dtype) == (
        other.space, other.start, other.size, other.dtype,
    )  # fmt: skip
    return same and one.dense and other.dense


def _maker(operations: Sequence[Operation], before: int, view: View) -> int | None:
    """Place of the operation that wrote exactly the bytes of ``view``; None if there is none."""
    for place in reversed(range(before)):
        views = written_view(operations[place])
        if any(bytes_overlap(view, other) for other in views):
            return place if all(_alike(view, other) for other in views) else None
    return None


def _numbers(
    operations: Sequence[Operation], places: Sequence[int], first: View, last: View
) -> npt.NDArray[np.int32] | None:
    """The content of ``last`` after the moves at ``places``, when ``first`` holds the number of
    each of its bytes; OUTSIDE - value for padding of that value."""
    memory: Memory = {}

    def numbered(view: View) -> View:
        """The same tensor with 32-bit elements in ``memory``."""
        end = 4 * (view.start + view.size)
        old = memory.get(view.space, np.zeros(0, np.uint8))
        if len(old) < end:
            new = np.full(end // 4, UNKNOWN, np.int32).view(np.uint8)
            new[: len(old)] = old
            memory[view.space] = new
        return dataclasses.replace(view, start=4 * view.start, dtype="i4")

    if first.dtype != "u1" or not first.dense:
        return None
    numbered(first).of(memory)[...] = np.arange(first.count, dtype=np.int32).reshape(first.shape)
    for place in places:
        op = operations[place]
        if isinstance(op, Download):
            continue
        if not isinstance(op, MOVES) or op.src.dtype != "u1" or op.dst.dtype != "u1":
            return None
        changes: dict[str, View | float] = {"src": numbered(op.src), "dst": numbered(op.dst)}
        if isinstance(op, Pad):
            if op.mode != "constant":
                return None
            changes["value"] = OUTSIDE - int(op.value)
        dataclasses.replace(op, **changes).run(memory)
    return numbered(last).of(memory).copy()


def _same_windows(
    arg: LayerArg,
    small: npt.NDArray[np.int32],
    chosen: npt.NDArray[np.int32],
    layout: Layout,
    d: int,
    batches: int,
) -> int | None:
    """The value of pixels outside the map, if each result comes from the window of a dilated
    layer; None if one does not.

    ``small`` (N, C, h, w): numbers of the map's pixels in the small maps; ``chosen``, O * H * W
    elements: numbers of the small results.
    """
    c, height, width = layout.channels, layout.height, layout.width
    outputs, (h, w) = arg.o_ch_num, small.shape[2:]
    if small.shape != (batches, c, *arg.in_shape[1:]) or small.min() <= UNKNOWN:
        return None
    # the same in each channel
    planes = np.where(small < 0, small, small - np.arange(c)[:, None, None] * (height * width))
    results = chosen.reshape(outputs, height, width)
    image, rest = np.divmod(results, outputs * h * w)
    channel, place = np.divmod(rest, h * w)
    alike = (channel == np.arange(outputs)[:, None, None]).all() and results.min() >= 0
    alike = alike and (image == image[0]).all() and (place == place[0]).all()
    if not alike or (planes != planes[:, :1]).any():
        return None
    y, x = np.divmod(place[0], w)
    padded = np.full((batches, h + 2, w + 2), OUTSIDE - arg.pad_value)
    padded[:, 1:-1, 1:-1] = planes[:, 0]
    grid = np.pad(np.arange(height * width).reshape(height, width), d, constant_values=OUTSIDE)
    outside: set[int] = set()
    for ky in range(3):
        for kx in range(3):
            have = padded[image[0], y + ky, x + kx]
            want = grid[ky * d : ky * d + height, kx * d : kx * d + width]
            outside |= set(np.unique(have[want < 0]).tolist())
            if (have[want >= 0] != want[want >= 0]).any():
                return None
    value = OUTSIDE - min(outside, default=OUTSIDE)
    return value if len(outside) == 1 and 0 <= value < 256 else None


# ---- what else uses the bytes and rows
def _needed_apart(program: Program, operations: Sequence[Operation], split: _Split) -> bool:
    """Does another operation use the small maps, or bytes of the result before they were there?"""
    layer = operations[split.layer]
    assert isinstance(layer, KpuLayer)
    removed = {split.upload, split.layer, *split.after}
    others = [op for n, op in enumerate(operations) if n > split.upload and n not in removed]
    between = [
        op
        for n, op in enumerate(operations)
        if split.layer < n < split.after[-1] and n not in removed
    ]
    if any(touches(op, split.result) for op in between):
        return True
    views = [view for n in (split.layer, *split.after[:-1]) for view in written_view(operations[n])]
    behind = [op for n, op in enumerate(operations) if n > split.layer and n not in removed]
    marked = dataclasses.replace(layer, main_out=split.result, batches=1)
    if any(read_later(program, [marked, *behind], view, -1) for view in views):
        return True
    left = np.zeros(AI_RAM_ROWS, dtype=bool)
    for layout in (*rows_read(layer), *rows_written(layer)):
        left[layout.base : layout.base + layout.rows] = True
    for op in others:
        if any(left[one.base : one.base + one.rows].any() for one in rows_read(op)):
            # the source itself, where an upload of small maps would have overwritten it
            return True
        for one in rows_written(op):
            left[one.base : one.base + one.rows] = False
    return False


def _map_of(op: Operation) -> Layout:
    return op.layout if isinstance(op, Download) else rows_written(op)[0]


def _resident(operations: Sequence[Operation], split: _Split) -> Layout | None:
    """The map in the AI RAM, if it is still there when the layer runs."""
    if split.source < 0:
        return None
    found = _map_of(operations[split.source])
    for place in range(split.source + 1, split.layer):
        written = rows_written(operations[place]) if place != split.upload else []
        if any(share_rows(found, one) for one in written):
            return None
    return found


def _reserve(busy: npt.NDArray[np.bool_], layout: Layout) -> Layout | None:
    """The map at free rows, which are busy then; None when there are not enough."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], busy, [True]])))
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        if end - begin >= layout.rows:
            busy[begin : begin + layout.rows] = True
            return dataclasses.replace(layout, base=int(begin))
    return None
