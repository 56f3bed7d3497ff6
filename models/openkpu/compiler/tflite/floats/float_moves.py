# SPDX-License-Identifier: Apache-2.0
"""TFLite operators of a float model that move elements, as ONNX has them."""

from __future__ import annotations

import math

import numpy as np

from openkpu.compiler.tflite.floats.float_writer import Handler, Writer, operand
from openkpu.compiler.tflite.moves import places_of, ranges_of
from openkpu.compiler.tflite.raw import RawOperator
from openkpu.compiler.tflite.reader import TO_NCHW


def reshape(w: Writer, op: RawOperator) -> None:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: the output's shape of the file, which is fixed."""
    shape, out = w.shape(op, 0), w.out_shape(op)
    if math.prod(shape) != math.prod(out):
        raise w.refuse(f"{shape} to {out}, another number of elements")
    w.put(op, w.reshaped(w.input(op, 0), len(shape), out))


def transpose(w: Writer, op: RawOperator) -> None:
    axes, rank = w.integers(op, 1, "axes"), len(w.shape(op, 0))
    if sorted(axes) != list(range(rank)):
        raise w.refuse(f"axes {axes}, expected each of {rank} once")
    if rank == 4:  # of the axes of (N, C, H, W)
        axes = [w.axis(4, axes[a]) for a in TO_NCHW]
    w.put(op, w.emit("Transpose", [w.input(op, 0)], perm=axes))


def concatenation(w: Writer, op: RawOperator) -> None:
    if op.options is None:
        raise w.refuse("its options are not in the file")
    rank = len(w.out_shape(op))
    parts = [operand(w, op, i, rank) for i in range(len(op.inputs))]
    made = w.emit("Concat", parts, axis=w.axis(rank, op.options.Axis()))
    w.activated(op, made, op.options.FusedActivationFunction())


def pack(w: Writer, op: RawOperator) -> None:
    """Several tensors along a new axis."""
    if op.options is None:
        raise w.refuse("its options are not in the file")
    shape = w.out_shape(op)
    axis = op.options.Axis() % len(shape)
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    ranks = [len(w.shape(op, i)) for i in range(len(op.inputs))]
    parts = [w.reshaped(w.input(op, i), rank, one) for i, rank in enumerate(ranks)]
    w.put(op, w.emit("Concat", parts, axis=w.axis(len(shape), axis)))


def unpack_axis(w: Writer, op: RawOperator) -> None:
    """The parts along an axis, each without it."""
    if op.options is None:
        raise w.refuse("its options are not in the file")
    shape, x = w.shape(op, 0), w.input(op, 0)
    where, axis = w.axis(len(shape), op.options.Axis()), op.options.Axis() % len(shape)
    if len(op.outputs) != shape[axis]:
        raise w.refuse(f"{len(op.outputs)} outputs, axis {axis} of {shape} has {shape[axis]}")
    for i in range(shape[axis]):
        part = w.emit("Slice", [x, *(w.whole(n) for n in (i, i + 1, where))])
        w.put(op, w.reshaped(part, len(shape), shape[:axis] + shape[axis + 1 :]), i)


def gather(w: Writer, op: RawOperator) -> None:
    """GATHER of known places."""
    shape, out = w.shape(op, 0), w.out_shape(op)
    axis = op.options.Axis() % len(shape) if op.options is not None else 0
    places = places_of(w, op, shape[axis])
    found = w.emit("Gather", [w.input(op, 0), w.whole(*places)], axis=w.axis(len(shape), axis))
    w.put(op, found if len(w.raw(op, 1).shape) == 1 else w.reshaped(found, len(shape), out))


def reverse(w: Writer, op: RawOperator) -> None:
    """Elements in the reverse order along some axes."""
    x, shape = w.input(op, 0), w.shape(op, 0)
    for axis in w.integers(op, 1, "axes"):
        places = w.whole(*range(shape[axis])[::-1])
        x = w.emit("Gather", [x, places], axis=w.axis(len(shape), axis))
    w.put(op, x)


def split(w: Writer, op: RawOperator) -> None:
    """SPLIT has its axis in front, SPLIT_V behind the sizes."""
    at, axes = (1, 0) if op.operator == "SPLIT" else (0, 2)
    rank, first = len(w.shape(op, at)), 0
    axis, x = w.integers(op, axes, "axis")[0], w.input(op, at)
    where = w.axis(rank, axis)
    for i in range(len(op.outputs)):
        size = w.out_shape(op, i)[axis]
        if not size:  # nothing can read it
            continue
        ends = [w.whole(n) for n in (first, first + size, where)]
        w.put(op, w.emit("Slice", [x, *ends]), i)
        first += size


def slice_(w: Writer, op: RawOperator) -> None:
    starts, out = w.integers(op, 1, "begin"), w.out_shape(op)
    if len(starts) != len(w.shape(op, 0)):
        raise w.refuse(f"begin {starts}, expected {len(w.shape(op, 0))} numbers")
    ends = [a + n for a, n in zip(starts, out, strict=True)]
    w.put(op, _cut(w, w.input(op, 0), starts, ends, [1] * len(starts)))


def _cut(w: Writer, x: str, starts: list[int], ends: list[int], steps: list[int]) -> str:
    """Numbers in the model's order of axes."""
    rank = len(starts)
    axes = [w.axis(rank, a) for a in range(rank)]
    return w.emit("Slice", [x, *(w.whole(*v) for v in (starts, ends, axes, steps))])


def strided_slice(w: Writer, op: RawOperator) -> None:
    ranges, kept = ranges_of(w, op)
    starts, steps = [p.start for p in ranges], [p.step for p in ranges]
    ends = [p[-1] + (1 if p.step > 0 else -1) for p in ranges]
    ends = [last if last >= 0 else -(1 << 31) for last in ends]
    part = _cut(w, w.input(op, 0), starts, ends, steps)
    rank = len(ranges)
    w.put(op, part if len(kept) == rank else w.reshaped(part, rank, tuple(kept)))


def pad(w: Writer, op: RawOperator) -> None:
    """PAD with zeros, PADV2 with a number of its own."""
    rank = len(w.shape(op, 0))
    pads = np.reshape(w.integers(op, 1, "paddings"), (-1, 2)).tolist()
    if len(pads) != rank:
        raise w.refuse(f"paddings {pads}, expected a pair for each of {rank} axes")
    value = np.zeros(1, np.float32)
    if op.operator == "PADV2":
        value = w.weights(op, 2, "value").reshape(-1)
    pads = [pads[a] for a in TO_NCHW] if rank == 4 else pads
    edges = w.whole(*(p[0] for p in pads), *(p[1] for p in pads))
    number = w.const(value.reshape(()).astype(np.float32), "value")
    w.put(op, w.emit("Pad", [w.input(op, 0), edges, number]))


def mirror_pad(w: Writer, op: RawOperator) -> None:
    """MIRROR_PAD without the edge once more; ONNX has no mode for SYMMETRIC."""
    rank = len(w.shape(op, 0))
    pads = np.reshape(w.integers(op, 1, "paddings"), (-1, 2)).tolist()
    if op.options is None or op.options.Mode() != 0:
        raise w.refuse("mode SYMMETRIC of a float model, expected REFLECT")
    if len(pads) != rank:
        raise w.refuse(f"paddings {pads}, expected a pair for each of {rank} axes")
    pads = [pads[a] for a in TO_NCHW] if rank == 4 else pads
    edges = w.whole(*(p[0] for p in pads), *(p[1] for p in pads))
    w.put(op, w.emit("Pad", [w.input(op, 0), edges], mode="reflect"))


def blocks(kind: str) -> Handler:
    """DEPTH_TO_SPACE, SPACE_TO_DEPTH: ONNX has the same order of channels."""

    def handler(w: Writer, op: RawOperator) -> None:
        if op.options is None:
            raise w.refuse("its options are not in the file")
        shape, size = w.shape(op, 0), int(op.options.BlockSize())
        if len(shape) != 4 or size < 1:
            raise w.refuse(f"block of {size}, input {shape}, expected rank 4")
        w.put(op, w.emit(kind, [w.input(op, 0)], blocksize=size))

    return handler


def resize(w: Writer, op: RawOperator) -> None:
    """RESIZE_NEAREST_NEIGHBOR, RESIZE_BILINEAR: which pixel is nearest, or which ones an output
    lies between, is said as ONNX says it."""
    o, shape, out = op.options, w.shape(op, 0), w.out_shape(op)
    if o is None or len(shape) != 4 or tuple(w.integers(op, 1, "size")) != out[1:3]:
        raise w.refuse(f"input {shape}, output {out}, expected its options and the output's size")
    how, rounding = "asymmetric", "floor"
    if o.AlignCorners() or o.HalfPixelCenters():
        how = "align_corners" if o.AlignCorners() else "half_pixel"
        rounding = "round_prefer_ceil"
    fields = {"coordinate_transformation_mode": how, "nearest_mode": rounding, "mode": "nearest"}
    if op.operator == "RESIZE_BILINEAR":
        how = "half_pixel" if o.HalfPixelCenters() else how
        fields = {"coordinate_transformation_mode": how, "mode": "linear"}
    sizes = w.whole(*(out[a] for a in TO_NCHW))
    w.put(op, w.emit("Resize", [w.input(op, 0), "", "", sizes], **fields))


def tile(w: Writer, op: RawOperator) -> None:
    times, rank = w.integers(op, 1, "multiples"), len(w.shape(op, 0))
    if len(times) != rank or min(times, default=1) < 1:
        raise w.refuse(f"multiples {times}, expected {rank} of 1 or more")
    times = [times[a] for a in TO_NCHW] if rank == 4 else times
    w.put(op, w.emit("Tile", [w.input(op, 0), w.whole(*times)]))


HANDLERS: dict[str, Handler] = {
    "DEPTH_TO_SPACE": blocks("DepthToSpace"),
    "SPACE_TO_DEPTH": blocks("SpaceToDepth"),
    "RESIZE_NEAREST_NEIGHBOR": resize,
    "RESIZE_BILINEAR": resize,
    "TILE": tile,
    "RESHAPE": reshape,
    "SQUEEZE": reshape,
    "EXPAND_DIMS": reshape,
    "TRANSPOSE": transpose,
    "CONCATENATION": concatenation,
    "SPLIT": split,
    "SPLIT_V": split,
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
