# SPDX-License-Identifier: Apache-2.0
"""Maps of several layers that become one without leaving the AI RAM (docs/performance.md 8).

A compiler lets the CPU concatenate maps: they are downloaded, brought to one scale, and uploaded as
one map.  A layer for each of them does the same inside the AI RAM: right after the layer that made
the map it writes its channels to their place in the joined one (``requantize``).  The joined map
uses rows that are free from its first channel to its last reader.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from openkpu.kmodel.operations.moves import Concat
from openkpu.kmodel.operations.operations import Copy, Dequantize, Quantize, TableLookup
from openkpu.kmodel.program import Download, KpuLayer, Operation, Program, Upload, View
from openkpu.kmodel.residence.flow import (
    bytes_overlap,
    drop_unread,
    free_place,
    map_readers,
    read_later,
    written_view,
)
from openkpu.kmodel.residence.requantize import Line, find_line, requantize_layer
from openkpu.layer.layout import Layout

BYTES = 256
SAME = np.arange(BYTES, dtype=np.uint8)  # bytes as they are
ELEMENTWISE = (Quantize, Dequantize, Copy, TableLookup)
REQUANTIZE = "requantize"  # title of the layers


@dataclasses.dataclass(frozen=True, eq=False)
class _Run:
    """Consecutive elements of a tensor that all come from bytes of one map of the KPU, or from the
    CPU's own work."""

    count: int
    leaf: int = -1  # place of the download, or of the layer with a map for main memory; -1: CPU
    at: int = 0  # first byte in that map
    values: npt.NDArray = dataclasses.field(
        default_factory=lambda: SAME
    )  # values of the bytes 0..255 after the chain
    chain: frozenset[int] = frozenset()  # places of the operations in between

    def follows(self, before: _Run) -> bool:
        """Whether it continues another run."""
        alike = self.leaf == before.leaf and (self.leaf < 0 or self.at == before.at + before.count)
        return alike and np.array_equal(self.values, before.values)


@dataclasses.dataclass(frozen=True, eq=False)
class _Piece:
    """Channels of a joined map, from ``first`` on."""

    run: _Run
    first: int
    source: Layout  # their source map
    line: Line

    def layer(self, place: int, joined: Layout, offset: int, eight_bit: bool) -> KpuLayer:
        """The layer that writes them to the map at row ``place``."""
        dst = place + self.first // joined.groups * joined.channel_rows
        ways = {"offset": offset, "eight_bit": eight_bit, "title": REQUANTIZE}
        return requantize_layer(self.line, self.source, dst, **ways)


def join_next(
    program: Program,
    operations: list[Operation],
    at: int,
    *,
    rounding: str,
    ram_rows: int,
) -> list[Operation] | None:
    """The operations with layers in place of the upload at ``at``; None when it must stay.

    The channels that the CPU computes itself, half of the map at most, are still uploaded.
    """
    upload = operations[at]
    if not isinstance(upload, Upload) or upload.implicit or upload.src.shape[0] != 1:
        return None
    src, joined = upload.src, upload.layout
    runs = _merged(_trace(operations, at, src, 0, src.count)) if src.dense else []
    made = [run for run in runs if run.leaf >= 0]
    if 2 * sum(run.count for run in made) < src.count or not made:
        return None
    readers = map_readers(operations, at, joined)
    pieces = _pieces(operations, joined, runs, rounding)
    if not readers or pieces is None:
        return None
    own = sum(piece.source.rows for piece in pieces if piece.run.leaf < 0)
    first = min(run.leaf for run in made)
    place = free_place(
        operations, first, readers[-1], joined.rows + own, ram_rows=ram_rows, without={at}
    )
    if place is None:
        return None
    slots: list[list[Operation]] = [[op] for op in operations]
    slots[at] = []
    for number in readers:
        reader = operations[number]
        assert isinstance(reader, KpuLayer)
        slots[number] = [dataclasses.replace(reader, arg=reader.arg.replace(image_src_addr=place))]
    _uploads(program, operations, at, slots, pieces, place + joined.rows)
    more: dict[int, list[Operation]] = {}
    beside = place + joined.rows
    for piece in pieces:
        leaf = piece.run.leaf
        if leaf < 0:
            piece = dataclasses.replace(
                piece, source=dataclasses.replace(piece.source, base=beside)
            )
            beside += piece.source.rows
        layer = piece.layer(place, joined, upload.offset, program.eight_bit)
        more.setdefault(at if leaf < 0 else leaf, []).append(layer)
    paths = set().union(*(run.chain | {run.leaf} for run in made))
    drop_unread(program, slots, paths)
    return [op for number, slot in enumerate(slots) for op in (*slot, *more.get(number, ()))]


def _uploads(
    program: Program,
    operations: Sequence[Operation],
    at: int,
    slots: list[list[Operation]],
    pieces: Sequence[_Piece],
    beside: int,
) -> None:
    """Restrict the operation that makes the uploaded map, and the upload, to the CPU's channels."""
    upload = operations[at]
    assert isinstance(upload, Upload)
    src, plane = upload.src, upload.layout.height * upload.layout.width
    parts = [piece for piece in pieces if piece.run.leaf < 0]
    ranges = [(piece.first * plane, piece.source.channels) for piece in parts]
    for piece, (first, channels) in zip(parts, ranges, strict=True):
        view = _part(src, first, (1, channels, *src.shape[2:]))
        slots[at].append(dataclasses.replace(upload, src=view, base=beside))
        beside += piece.source.rows
    maker = next(
        n
        for n in reversed(range(at))
        if any(bytes_overlap(src, v) for v in written_view(operations[n]))
    )
    op = operations[maker]
    if not isinstance(op, ELEMENTWISE) or not op.src.dense or not op.dst.dense:
        return
    if (op.dst.start, op.dst.count) != (src.start, src.count):
        return
    behind = [op for slot in slots[maker + 1 :] for op in slot if op not in slots[at]]
    if read_later(program, behind, src, -1):
        return
    slots[maker] = [
        dataclasses.replace(
            op,
            src=_part(op.src, first, (channels * plane,)),
            dst=_part(op.dst, first, (channels * plane,)),
        )
        for first, channels in ranges
    ]


def _part(view: View, first: int, shape: tuple[int, ...]) -> View:
    """Elements of a dense tensor from ``first`` on, in the given shape."""
    start = view.start + first * view.item
    return dataclasses.replace(view, start=start, shape=shape, strides=None)


# ---- where bytes come from
def _trace(
    operations: Sequence[Operation], before: int, view: View, first: int, count: int
) -> list[_Run]:
    """Runs of ``count`` elements of a dense tensor, with its contents before place ``before``."""
    if not count:
        return []
    wanted = _part(view, first, (count,))
    for place in reversed(range(before)):
        op = operations[place]
        if isinstance(op, Concat):
            op = _elements(op, view.dtype)
        for made in written_view(op):
            if not bytes_overlap(made, wanted):
                continue
            if not made.dense or made.dtype != view.dtype or (made.start - view.start) % view.item:
                return [_Run(count)]
            at = (made.start - view.start) // view.item  # of its first element in the tensor
            low, high = max(first, at), min(first + count, at + made.count)
            return [
                *_trace(operations, place, view, first, low - first),
                *_through(operations, place, op, low - at, high - low),
                *_trace(operations, place, view, high, first + count - high),
            ]
    return [_Run(count)]


def _elements(op: Concat, dtype: str) -> Concat:
    """A concatenation of bytes as one of elements of another type, where all parts are whole."""
    item, views = np.dtype(dtype).itemsize, (op.dst, *op.sources)
    whole = all(v.dense and v.dtype == "u1" and v.shape[-1] % item == 0 for v in views)
    if not whole or len({len(v.shape) for v in views}) != 1 or len(op.dst.shape) != 2:
        return op
    dst, *sources = (
        dataclasses.replace(v, dtype=dtype, shape=(v.shape[0], v.shape[1] // item), strides=None)
        for v in views
    )
    return dataclasses.replace(op, dst=dst, sources=tuple(sources))


def _through(
    operations: Sequence[Operation], place: int, op: Operation, at: int, count: int
) -> list[_Run]:
    """Runs of the output of the operation at ``place``, which is ``op``, from element ``at`` on."""
    batches = op.dst.shape[0] if isinstance(op, Download) else getattr(op, "batches", 0)
    if batches == 1:  # a map of the KPU
        return [_Run(count, place, at)]
    if isinstance(op, Concat):
        inner = _sources(operations, place, op, at, count)
    elif isinstance(op, ELEMENTWISE) and op.src.dense and not _unknown_table(op):
        inner = _trace(operations, place, op.src, at, count)
        inner = [
            dataclasses.replace(run, values=_apply(op, run.values)) if run.leaf >= 0 else run
            for run in inner
        ]
    else:
        inner = [_Run(count)]
    return [
        dataclasses.replace(run, chain=run.chain | {place}) if run.leaf >= 0 else run
        for run in inner
    ]


def _unknown_table(op: Operation) -> bool:
    """A table that is not in the file itself."""
    return isinstance(op, TableLookup) and isinstance(op.table, View)


def _sources(
    operations: Sequence[Operation], place: int, op: Concat, at: int, count: int
) -> list[_Run]:
    """Runs of a concatenation."""
    found: list[_Run] = []
    begins = 0
    for source in op.sources:
        low, high = max(at, begins), min(at + count, begins + source.count)
        if low < high and source.dense and op.dst.shape[0] == 1:
            found += _trace(operations, place, source, low - begins, high - low)
        elif low < high:
            found.append(_Run(high - low))
        begins += source.count
    return found


def _apply(op: Operation, values: npt.NDArray) -> npt.NDArray:
    """Apply an element-wise operation to the values of the 256 bytes."""
    assert isinstance(op, ELEMENTWISE)
    src = View("from", 0, (BYTES,), op.src.dtype)
    dst = View("to", 0, (BYTES,), op.dst.dtype)
    memory = {
        "from": np.ascontiguousarray(values).view(np.uint8).copy(),
        "to": np.zeros(dst.size, dtype=np.uint8),
    }
    dataclasses.replace(op, src=src, dst=dst).run(memory)
    return dst.of(memory).copy()


def _merged(runs: list[_Run]) -> list[_Run]:
    """Merge each run that continues the previous one."""
    found: list[_Run] = []
    for run in runs:
        if found and run.follows(found[-1]):
            last = found.pop()
            run = dataclasses.replace(
                last, count=last.count + run.count, chain=last.chain | run.chain
            )
        found.append(run)
    return found


# ---- where maps lie
def _pieces(
    operations: Sequence[Operation], joined: Layout, runs: list[_Run], rounding: str
) -> list[_Piece] | None:
    """The pieces of a joined map, the CPU's own at row 0; None unless each has whole channels that
    begin at a row, and a linear function of its bytes."""
    plane, first = joined.height * joined.width, 0
    found: list[_Piece] = []
    for run in runs:
        channel, channels = run.at // plane, run.count // plane
        if run.at % plane or run.count % plane or first % joined.groups:
            return None
        own = dataclasses.replace(joined, base=0)
        layout = own if run.leaf < 0 else _map_of(operations[run.leaf])
        same = (layout.height, layout.width) == (joined.height, joined.width)
        line = find_line(run.values, rounding) if same and run.values.dtype == np.uint8 else None
        if line is None or channel % layout.groups:
            return None
        base = layout.base + channel // layout.groups * layout.channel_rows
        source = dataclasses.replace(layout, channels=channels, base=base)
        found.append(_Piece(run, first, source, line))
        first += channels
    return found


def _map_of(op: Operation) -> Layout:
    """The layout of the map that a download or a layer copies to main memory."""
    assert isinstance(op, (Download, KpuLayer))
    return op.layout if isinstance(op, Download) else op.arg.out_layout
