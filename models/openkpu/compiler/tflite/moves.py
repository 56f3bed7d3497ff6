# SPDX-License-Identifier: Apache-2.0
"""TFLite operators that move elements: reshapes, transpositions, joins, parts, padding."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from openkpu.compiler.form import functions
from openkpu.compiler.form.graph import Move, Table, Tensor
from openkpu.compiler.tflite.raw import RawOperator
from openkpu.compiler.tflite.reader import TO_NCHW, Operands, TfliteReader


def reshape(r: TfliteReader, op: RawOperator) -> None:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: the output's shape of the file, which is fixed."""
    x, y = r.input(op, 0), r.output(op)
    old, shape = r.raw(op, 0).shape, r.model.tensors[op.outputs[0]].shape
    if math.prod(x.shape) != math.prod(shape):
        raise r.refuse(f"{old} to {shape}, another number of elements")
    if op.operator != "RESHAPE" and [n for n in old if n > 1] != [n for n in shape if n > 1]:
        raise r.refuse(f"{old} to {shape}, expected the same sizes but for those of 1")
    if op.operator == "RESHAPE" and r.has(op, 1):
        asked, given = r.integers(op, 1, "shape"), list(shape)
        given[:1] = [n * r.model.batch for n in given[:1]]
        fits = len(asked) == len(given) and asked.count(-1) < 2
        if not fits or any(n not in (-1, m) for n, m in zip(asked, given, strict=True)):
            raise r.refuse(f"shape {asked}, the output is {given}")
    r.reshaped(x, y, shape)


def transpose(r: TfliteReader, op: RawOperator) -> None:
    x, axes = r.input(op, 0), r.integers(op, 1, "axes")
    rank = len(x.shape)
    if sorted(axes) != list(range(rank)):
        raise r.refuse(f"axes {axes}, expected each of {rank} once")
    if rank == 4:  # of the graph's axes
        axes = [r.axis(4, axes[a]) for a in TO_NCHW]
    r.node(Move, [x], r.output(op), how="transpose", axes=tuple(axes))


def concatenation(r: TfliteReader, op: RawOperator) -> None:
    y = r.output(op)
    if op.options is None:
        raise r.refuse("its options are not in the file")
    if op.options.FusedActivationFunction():
        raise r.refuse("a fused activation, expected none")
    inputs = [like(r, r.input(op, i), y) for i in range(len(op.inputs))]
    axis = r.axis(len(y.shape), op.options.Axis())
    r.node(Move, inputs, y, how="concat", axis=axis)


def like(r: TfliteReader, x: Tensor, y: Tensor) -> Tensor:
    """``x`` in the numbers of ``y``."""
    if x.same_numbers(y):
        return x
    if not (x.quantised and y.quantised):
        raise r.refuse(f"{x.dtype} and {y.dtype}, expected bytes with a scale")
    made = r.between(y, x.shape, x.name)
    r.node(Table, [x], made, table=functions.requantise(x, y), function="requantise")
    return made


def _slice(
    r: TfliteReader, x: Tensor, y: Tensor, starts: list[int], steps: list[int] | None = None
) -> None:
    """Starts and steps in the model's order."""
    steps = steps or [1] * len(starts)
    if len(starts) == 4:
        starts, steps = ([v[a] for a in TO_NCHW] for v in (starts, steps))
    r.node(Move, [x], y, how="slice", starts=tuple(starts), steps=tuple(steps))


def split(r: TfliteReader, op: RawOperator) -> None:
    axes, x = r.integers(op, 0, "axis"), r.input(op, 1)
    _parts(r, op, x, axes[0])


def split_v(r: TfliteReader, op: RawOperator) -> None:
    axes, x = r.integers(op, 2, "axis"), r.input(op, 0)
    _parts(r, op, x, axes[0])


def _parts(r: TfliteReader, op: RawOperator, x: Tensor, axis: int) -> None:
    """Each output is the next part along ``axis``."""
    rank, at = len(x.shape), 0
    where = r.axis(rank, axis)
    for i in range(len(op.outputs)):
        if 0 in r.model.tensors[op.outputs[i]].shape:  # nothing can read it
            continue
        y = r.output(op, i)
        if len(y.shape) != rank:
            raise r.refuse(f"a part {y.shape} of {x.shape}, expected as many axes")
        starts = [0] * rank
        starts[where] = at
        r.node(Move, [x], y, how="slice", starts=tuple(starts), steps=(1,) * rank)
        at += y.shape[where]
    if at != x.shape[where]:
        raise r.refuse(f"parts of {at} elements, there are {x.shape[where]}")


def slice_(r: TfliteReader, op: RawOperator) -> None:
    x, y = r.input(op, 0), r.output(op)
    starts = r.integers(op, 1, "begin")
    if len(starts) != len(x.shape):
        raise r.refuse(f"begin {starts}, expected {len(x.shape)} numbers")
    _slice(r, x, y, starts)


def ranges_of(r: Operands, op: RawOperator) -> tuple[list[range], list[int]]:
    """STRIDED_SLICE: (the places of each axis of the input, sizes of the axes that stay)."""
    begin, end, steps = (r.integers(op, i, n) for i, n in enumerate(("begin", "end", "steps"), 1))
    shape, o = r.raw(op, 0).shape, op.options
    if o is None:
        raise r.refuse("its options are not in the file")
    for name in ("EllipsisMask", "NewAxisMask"):
        if getattr(o, name)():
            raise r.refuse(f"{name} {getattr(o, name)()}, expected 0")
    if getattr(o, "Offset", bool)():
        raise r.refuse("end as an offset, expected a place")
    if not len(begin) == len(end) == len(steps) == len(shape) or 0 in steps:
        raise r.refuse(f"begin {begin}, end {end}, steps {steps} of {shape}")
    found, kept = [], []
    for i, size in enumerate(shape):
        first = None if o.BeginMask() >> i & 1 else begin[i]
        stop = None if o.EndMask() >> i & 1 else end[i]
        one = o.ShrinkAxisMask() >> i & 1
        if one:
            if not -size <= begin[i] < size:
                raise r.refuse(f"begin {begin[i]} of axis {i}, which has {size}")
            first, stop, steps[i] = begin[i] % size, begin[i] % size + 1, 1
        places = range(size)[slice(first, stop, steps[i])]
        if not places:
            raise r.refuse(f"nothing of axis {i} is left")
        found.append(places)
        kept += [] if one else [len(places)]
    out = r.model.tensors[op.outputs[0]].shape
    if tuple(kept) != out:
        raise r.refuse(f"gives {kept}, the output is {out}")
    return found, kept


def strided_slice(r: TfliteReader, op: RawOperator) -> None:
    x, y = r.input(op, 0), r.output(op)
    ranges, kept = ranges_of(r, op)
    sizes = tuple(len(places) for places in ranges)
    starts, steps = [p.start for p in ranges], [p.step for p in ranges]
    if len(kept) == len(sizes):
        _slice(r, x, y, starts, steps)
        return
    part = r.between(x, sizes if len(sizes) != 4 else tuple(sizes[a] for a in TO_NCHW), y.name)
    _slice(r, x, part, starts, steps)
    r.reshaped(part, y, tuple(kept))


def pad(r: TfliteReader, op: RawOperator) -> None:
    """PAD with real zeros, PADV2 with a number of its own."""
    x, y = r.input(op, 0), r.output(op)
    pads = np.reshape(r.integers(op, 1, "paddings"), (-1, 2)).tolist()
    if len(pads) != len(x.shape):
        raise r.refuse(f"paddings {pads}, expected a pair for each of {len(x.shape)} axes")
    value = x.zero
    if op.operator == "PADV2":
        raw = r.constant(op, 2, "value")
        if raw.dtype != x.dtype or raw.values.size != 1 or raw.scale.tolist() != [x.scale]:
            raise r.refuse("a value in another scale than the input's, expected the same")
        value = int(raw.values.reshape(-1)[0])
    pads = [pads[a] for a in TO_NCHW] if len(pads) == 4 else pads
    before, after = (tuple(p[i] for p in pads) for i in (0, 1))
    r.node(Move, [x], y, how="pad", before=before, after=after, value=value)


def mirror_pad(r: TfliteReader, op: RawOperator) -> None:
    """MIRROR_PAD, with the edge once more (SYMMETRIC) or without it (REFLECT), by places."""
    x, y, shape = r.input(op, 0), r.output(op), r.raw(op, 0).shape
    pads = np.reshape(r.integers(op, 1, "paddings"), (-1, 2)).tolist()
    if len(pads) != len(shape):
        raise r.refuse(f"paddings {pads}, expected a pair for each of {len(shape)} axes")
    if op.options is None:
        raise r.refuse("its options are not in the file")
    code = op.options.Mode()
    if code not in (0, 1):
        raise r.refuse(f"mode {code}, expected REFLECT or SYMMETRIC")
    for edges, size in zip(pads, shape, strict=True):
        if min(edges) < 0 or max(edges) > size - (code == 0):
            raise r.refuse(f"paddings {pads} of {tuple(shape)}: more than can be mirrored")
    sides = zip(shape, pads, strict=True)
    places = [np.pad(np.arange(n), p, mode="symmetric" if code else "reflect") for n, p in sides]
    order = TO_NCHW if len(places) == 4 else range(len(places))
    r.node(Move, [x], y, how="take", places=tuple(tuple(places[a].tolist()) for a in order))


def places_of(r: Operands, op: RawOperator, size: int) -> tuple[int, ...]:
    """The known places of a GATHER along an axis of ``size``."""
    o = op.options
    if o is None or getattr(o, "BatchDims", int)():
        raise r.refuse("batch dimensions, or no options in the file, expected places for all")
    found = r.integers(op, 1, "places")
    if not found or min(found) < -size or max(found) >= size:
        raise r.refuse(f"places {found}, the axis has {size}")
    return tuple(n % size for n in found)


def gather(r: TfliteReader, op: RawOperator) -> None:
    """GATHER of known places."""
    x, y, shape = r.input(op, 0), r.output(op), r.raw(op, 0).shape
    axis = r.axis(len(shape), op.options.Axis() if op.options is not None else 0)
    places = places_of(r, op, x.shape[axis])
    along = tuple(places if i == axis else tuple(range(n)) for i, n in enumerate(x.shape))
    sizes = tuple(len(each) for each in along)
    into, part = r.model.tensors[op.outputs[0]].shape, y
    if len(r.raw(op, 1).shape) != 1:
        part = r.between(x, sizes, y.name)
    r.node(Move, [x], part, how="take", places=along)
    if part is not y:
        r.reshaped(part, y, into)


def reverse(r: TfliteReader, op: RawOperator) -> None:
    """Elements in the reverse order along some axes."""
    x, y = r.input(op, 0), r.output(op)
    gone = {r.axis(len(x.shape), axis) for axis in r.integers(op, 1, "axes")}
    ends = [(range(n)[::-1] if i in gone else range(n)) for i, n in enumerate(x.shape)]
    r.node(Move, [x], y, how="take", places=tuple(tuple(each) for each in ends))


def pack(r: TfliteReader, op: RawOperator) -> None:
    """Several tensors along a new axis."""
    y, shape = r.output(op), r.model.tensors[op.outputs[0]].shape
    if op.options is None:
        raise r.refuse("its options are not in the file")
    axis = op.options.Axis() % len(shape)
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    parts = []
    for i in range(len(op.inputs)):
        x = r.input(op, i)
        wide = r.between(x, one if len(one) != 4 else tuple(one[a] for a in TO_NCHW), x.name)
        r.reshaped(x, wide, one)
        parts.append(wide)
    r.node(Move, parts, y, how="concat", axis=r.axis(len(shape), axis))


def unpack_axis(r: TfliteReader, op: RawOperator) -> None:
    """The parts along an axis, each without it."""
    x, shape = r.input(op, 0), r.raw(op, 0).shape
    if op.options is None:
        raise r.refuse("its options are not in the file")
    where, axis = r.axis(len(shape), op.options.Axis()), op.options.Axis() % len(shape)
    if len(op.outputs) != shape[axis]:
        raise r.refuse(f"{len(op.outputs)} outputs, axis {axis} of {shape} has {shape[axis]}")
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    for i in range(shape[axis]):
        y = r.output(op, i)
        part = r.between(x, one if len(one) != 4 else tuple(one[a] for a in TO_NCHW), y.name)
        starts = [i if a == where else 0 for a in range(len(shape))]
        r.node(Move, [x], part, how="slice", starts=tuple(starts), steps=(1,) * len(shape))
        kept = shape[:axis] + shape[axis + 1 :]
        if r.model.tensors[op.outputs[i]].shape != kept:
            raise r.refuse(f"output {i} is {y.shape}, expected {kept}")
        r.reshaped(part, y, kept)


HANDLERS: dict[str, Callable[[TfliteReader, RawOperator], None]] = {
    "RESHAPE": reshape,
    "SQUEEZE": reshape,
    "EXPAND_DIMS": reshape,
    "TRANSPOSE": transpose,
    "CONCATENATION": concatenation,
    "SPLIT": split,
    "SPLIT_V": split_v,
    "SLICE": slice_,
    "STRIDED_SLICE": strided_slice,
    "PAD": pad,
    "PADV2": pad,
    "MIRROR_PAD": mirror_pad,
    "GATHER": gather,
    "REVERSE_V2": reverse,
    "PACK": pack,
    "UNPACK": unpack_axis,
}
