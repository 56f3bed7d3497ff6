# SPDX-License-Identifier: Apache-2.0
"""ONNX operators that move elements; they move bytes, whether the model says floats or not."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from openkpu.arithmetic.integers import ceil_div
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import functions
from openkpu.compiler.form.graph import QUANTISED, Move, Table, Tensor
from openkpu.compiler.onnx.file import RawNode
from openkpu.compiler.onnx.reader import OnnxReader
from openkpu.compiler.onnx.values import Bytes, Clamp, Const, Curve, Pending, Value, Weights


def moved_value(
    r: OnnxReader, value: Value, shape: Sequence[int], label: str, /, **fields: Any
) -> Value:
    """The value with its elements in other places, as a Move of these fields does it."""
    shape = tuple(int(n) for n in shape)
    if isinstance(value, Pending):
        return dataclasses.replace(
            value,
            shape=shape,
            make=_behind(r, value, shape, label, fields),
            biased=None,
            scaled=None,
            floats=_real_behind(r, value, label, fields) if value.floats else None,
        )
    if isinstance(value, (Const, Weights)):
        raise r.refuse("moves a constant, expected a result of the inputs")
    x = value.tensor if isinstance(value, Bytes) else value.source
    y = r.between(x, shape, label)
    r.emit(Move, [x], y, **fields)
    return Bytes(y) if isinstance(value, Bytes) else dataclasses.replace(value, source=y)


def _behind(
    r: OnnxReader, value: Pending, shape: tuple[int, ...], label: str, fields: dict[str, Any]
) -> Callable[[Tensor, Clamp], None]:
    """Numbers that wait are moved when they are bytes."""
    node = r.at

    def make(y: Tensor, clamp: Clamp) -> None:
        middle = r.between(y, value.shape, label)
        value.make(middle, clamp)
        at, r.at = r.at, node
        r.emit(Move, [middle], y, **fields)
        r.at = at

    return make


def _real_behind(
    r: OnnxReader, value: Pending, label: str, fields: dict[str, Any]
) -> Callable[[Tensor], None]:
    """Numbers of the host are moved as they are."""
    node = r.at

    def make(y: Tensor) -> None:
        middle = r.tensor(label, "float32", value.shape)
        r.real(value, middle)
        at, r.at = r.at, node
        r.emit(Move, [middle], y, **fields)
        r.at = at

    return make


def reshaped(r: OnnxReader, node: RawNode, shape: Sequence[int]) -> None:
    """The node's output is its input in that shape."""
    value = r.value(node, 0)
    old = r.shape_of(value)
    if math.prod(old) != math.prod(shape):
        raise r.refuse(f"{old} to {tuple(shape)}, another number of elements")
    if tuple(shape) == old:
        r.put(node, value)
    elif isinstance(value, Weights) and value.scale.size == 1:
        data = value.data.reshape([int(n) for n in shape])
        r.put(node, dataclasses.replace(value, data=data, axis=0))
    else:
        r.put(node, moved_value(r, value, shape, node.outputs[0], how="reshape"))


def reshape(r: OnnxReader, node: RawNode) -> None:
    """Reshape: 0 keeps a size, one -1 is what is left."""
    fields = r.attributes(node, allowzero=0)
    old, asked = r.shape_of(r.value(node, 0)), r.integers(node, 1, "shape")
    old = (old[0] * r.file.batch, *old[1:]) if old else old  # as the file has it
    shape = []
    for i, n in enumerate(asked):
        if n == 0 and not fields["allowzero"]:
            if i >= len(old):
                raise r.refuse(f"shape {asked}: a 0 beyond the input {old}")
            n = old[i]
        shape.append(n)
    rest = math.prod(n for n in shape if n != -1)
    if shape.count(-1) == 1 and rest and math.prod(old) % rest == 0:
        shape[shape.index(-1)] = math.prod(old) // rest
    if any(n < 1 for n in shape):
        raise r.refuse(f"shape {asked} does not fit {old}")
    if r.file.batch > 1:
        if shape[0] != r.file.batch:
            raise apart(r)
        shape[0] = 1
    reshaped(r, node, shape)


def apart(r: OnnxReader) -> CompileError:
    """The refusal of an operator that mixes the inferences of a batch."""
    return r.refuse(
        f"it mixes the {r.file.batch} inferences of a batch, expected one that keeps them apart; a"
        " model with a batch of 1 runs"
    )


def flatten(r: OnnxReader, node: RawNode) -> None:
    axis, old = r.attributes(node, axis=1)["axis"], r.shape_of(r.value(node, 0))
    if not -len(old) <= axis <= len(old):
        raise r.refuse(f"axis {axis}, expected one of {len(old)}")
    axis = axis + len(old) if axis < 0 else axis
    if r.file.batch > 1 and axis == 0:
        raise apart(r)
    reshaped(r, node, [math.prod(old[:axis]), math.prod(old[axis:])])


def _axes(r: OnnxReader, node: RawNode, rank: int) -> list[int] | None:
    """Axes of an attribute (until opset 12) or of input 1."""
    fields = r.attributes(node, axes=None)
    given = fields["axes"]
    axes = r.integers(node, 1, "axes") if r.has(node, 1) else given
    if axes is None:
        return None
    if any(not -rank <= a < rank for a in axes):
        raise r.refuse(f"axes {list(axes)}, expected some of {rank}")
    return sorted({a % rank for a in axes})


def squeeze(r: OnnxReader, node: RawNode) -> None:
    old = r.shape_of(r.value(node, 0))
    axes = _axes(r, node, len(old))
    first = int(r.file.batch > 1)
    axes = [i for i, n in enumerate(old) if n == 1 and i >= first] if axes is None else axes
    if first and 0 in axes:
        raise apart(r)
    if any(old[a] != 1 for a in axes):
        raise r.refuse(f"axes {axes} of {old}, expected sizes of 1")
    reshaped(r, node, [n for i, n in enumerate(old) if i not in axes])


def unsqueeze(r: OnnxReader, node: RawNode) -> None:
    old = list(r.shape_of(r.value(node, 0)))
    count = len(r.integers(node, 1, "axes") if r.has(node, 1) else node.attributes.get("axes", ()))
    axes = _axes(r, node, len(old) + count) or ()
    if r.file.batch > 1 and 0 in axes:
        raise apart(r)
    for axis in axes:
        old.insert(axis, 1)
    reshaped(r, node, old)


def transpose(r: OnnxReader, node: RawNode) -> None:
    value = r.value(node, 0)
    old = r.shape_of(value)
    perm = [int(a) for a in r.attributes(node, perm=None)["perm"] or range(len(old))[::-1]]
    if sorted(perm) != list(range(len(old))):
        raise r.refuse(f"perm {perm} of {old}, expected each axis once")
    if isinstance(value, Weights):
        data, axis = value.data.transpose(perm), value.axis
        axis = perm.index(axis) if axis in perm else axis
        r.put(node, dataclasses.replace(value, data=data, axis=axis))
        return
    shape = [old[a] for a in perm]
    r.put(node, moved_value(r, value, shape, node.outputs[0], how="transpose", axes=tuple(perm)))


def axis_of(r: OnnxReader, axis: int, rank: int) -> int:
    """An axis from 0 on."""
    if not -rank <= axis < rank:
        raise r.refuse(f"axis {axis}, expected one of {rank}")
    return axis % rank


def joined_shape(r: OnnxReader, shapes: list[tuple[int, ...]], axis: int) -> tuple[int, ...]:
    """The shape of tensors along an axis."""
    axis = axis_of(r, axis, len(shapes[0]))
    rest = {(*s[:axis], *s[axis + 1 :]) for s in shapes}
    if len(rest) > 1 or len({len(s) for s in shapes}) > 1:
        raise r.refuse(f"shapes {shapes} do not go together along axis {axis}")
    return tuple(sum(s[i] for s in shapes) if i == axis else n for i, n in enumerate(shapes[0]))


def join(r: OnnxReader, tensors: list[Tensor], axis: int, y: Tensor) -> None:
    """Tensors of bytes along an axis, each requantised where its scale is another."""
    parts = []
    for x in tensors:
        if not x.same_numbers(y):
            other = r.between(y, x.shape, x.name)
            table = functions.requantise(x, y)
            r.emit(Table, [x], other, table=table, function="requantise")
            x = other
        parts.append(x)
    r.emit(Move, parts, y, how="concat", axis=axis % len(y.shape))


def _empty(value: Value | None) -> bool:
    """A constant without elements, which adds nothing."""
    return isinstance(value, Const) and not value.data.size


def concat(r: OnnxReader, node: RawNode) -> None:
    axis = r.attributes(node, axis=0)["axis"]
    inputs = [n for n in node.inputs if not _empty(r.values.get(n))]
    node = dataclasses.replace(node, inputs=inputs)
    values = [r.value(node, i) for i in range(len(node.inputs))]
    as_bytes = all(isinstance(v, Bytes) for v in values)
    if as_bytes:
        tensors = [v.tensor for v in values if isinstance(v, Bytes)]
    elif any(isinstance(v, Pending) or (isinstance(v, Curve) and not v.steps()) for v in values):
        r.put(node, _real_concat(r, node, values, axis))
        return
    else:
        tensors = [r.operand(node, i) for i in range(len(node.inputs))]
    first, shape = tensors[0], joined_shape(r, [t.shape for t in tensors], axis)
    if first.scale is not None and all(t.same_numbers(first) for t in tensors):
        y = r.between(first, shape, node.outputs[0])
        join(r, tensors, axis, y)
        r.put(node, Bytes(y) if as_bytes else Curve(y))
        return
    if as_bytes:
        raise r.refuse("bytes of different scales, expected the same of all")

    def make(y: Tensor, clamp: Clamp) -> None:
        at, r.at = r.at, node
        if clamp == y.limits:
            join(r, tensors, axis, y)
        else:
            middle = r.between(y, shape, y.name)
            join(r, tensors, axis, middle)
            table = np.clip(np.arange(y.limits[0], y.limits[1] + 1), *clamp)
            r.emit(Table, [middle], y, table=table, function="clamp")
        r.at = at

    floats = all(isinstance(v, Curve) for v in values)
    real = _real_concat(r, node, values, axis).floats if floats else None
    r.put(node, Pending(shape, make, floats=real))


def _real_concat(r: OnnxReader, node: RawNode, values: list[Value], axis: int) -> Pending:
    """Numbers of the host behind each other, as they are behind the last quantisation."""
    parts: list[Curve | Pending] = []
    for i, value in enumerate(values):
        if not isinstance(value, (Curve, Pending)) or (
            isinstance(value, Pending) and not value.floats
        ):
            r.operand(node, i)  # says what is expected
            raise r.refuse(f"its input {node.inputs[i]!r} is a constant, expected a float result")
        parts.append(value)
    shape = joined_shape(r, [v.shape for v in parts], axis)

    def make(_y: Tensor, _clamp: Clamp) -> None:
        at, r.at = r.at, node
        error = r.refuse("of results that are float, expected QuantizeLinear behind each")
        r.at = at
        raise error

    def real(y: Tensor) -> None:
        at, r.at = r.at, node
        made = [r.tensor(f"{node.outputs[0]}/part", "float32", v.shape) for v in parts]
        for value, part in zip(parts, made, strict=True):
            r.real(value, part)
        r.emit(Move, made, y, how="concat", axis=axis % len(shape))
        r.at = at

    return Pending(shape, make, floats=real)


def split(r: OnnxReader, node: RawNode) -> None:
    fields = r.attributes(node, axis=0, split=None, num_outputs=0)
    value = r.value(node, 0)
    old = r.shape_of(value)
    axis, count = axis_of(r, fields["axis"], len(old)), len(node.outputs)
    sizes = r.integers(node, 1, "split") if r.has(node, 1) else fields["split"]
    if sizes is None:
        each = ceil_div(old[axis], count)
        sizes = [min(each, old[axis] - i * each) for i in range(count)]
    if len(sizes) != count or sum(sizes) != old[axis] or min(sizes) < 1:
        raise r.refuse(f"parts {list(sizes)} of {old[axis]} along axis {axis}")
    start = 0
    for i, n in enumerate(sizes):
        if node.outputs[i]:
            starts, shape = [0] * len(old), list(old)
            starts[axis], shape[axis] = start, int(n)
            r.put(node, sliced(r, node, value, shape, starts, [1] * len(old), i), i)
        start += int(n)


def sliced(
    r: OnnxReader,
    node: RawNode,
    value: Value,
    shape: Sequence[int],
    starts: Sequence[int],
    steps: Sequence[int],
    output: int = 0,
) -> Value:
    """A part of a value."""
    fields = {"how": "slice", "starts": tuple(starts), "steps": tuple(steps)}
    return moved_value(r, value, shape, node.outputs[output], **fields)


def slice_(r: OnnxReader, node: RawNode) -> None:
    r.attributes(node)
    value = r.value(node, 0)
    old = r.shape_of(value)
    begins, ends = r.integers(node, 1, "starts"), r.integers(node, 2, "ends")
    axes = r.integers(node, 3, "axes") if r.has(node, 3) else list(range(len(begins)))
    jumps = r.integers(node, 4, "steps") if r.has(node, 4) else [1] * len(begins)
    if not len(begins) == len(ends) == len(axes) == len(jumps) or 0 in jumps:
        raise r.refuse(f"starts {begins}, ends {ends}, axes {axes}, steps {jumps}")
    starts, steps, shape = [0] * len(old), [1] * len(old), list(old)
    for begin, end, axis, step in zip(begins, ends, axes, jumps, strict=True):
        axis = axis_of(r, axis, len(old))
        if axis == 0 and r.file.batch > 1:
            raise apart(r)
        found = range(old[axis])[slice(begin, end if end > -(1 << 62) else None, step)]
        if not len(found):
            raise r.refuse(f"nothing of axis {axis}: from {begin} to {end} step {step}")
        starts[axis], steps[axis], shape[axis] = found[0], step, len(found)
    r.put(node, sliced(r, node, value, shape, starts, steps))


PAD_MODES = ("reflect", "edge", "wrap")  # elements of the input once more


def pad(r: OnnxReader, node: RawNode) -> None:
    """Pad with a constant; with elements of the input, by their places."""
    mode = r.attributes(node, mode="constant")["mode"]
    if mode != "constant" and mode not in PAD_MODES:
        raise r.refuse(f"mode {mode}, expected constant, {', '.join(PAD_MODES)}")
    value = r.value(node, 0)
    old, pads = r.shape_of(value), r.integers(node, 1, "pads")
    axes = r.integers(node, 3, "axes") if r.has(node, 3) else list(range(len(old)))
    if len(pads) != 2 * len(axes):
        raise r.refuse(f"pads {pads}, expected {2 * len(axes)} numbers")
    before, after = [0] * len(old), [0] * len(old)
    for i, axis in enumerate(axes):
        axis = axis_of(r, axis, len(old))
        before[axis], after[axis] = pads[i], pads[i + len(axes)]
    if min(pads, default=0) < 0:  # a part of the input
        ends = zip(before, old, after, strict=True)
        part = [n + min(b, 0) + min(a, 0) for b, n, a in ends]
        if min(part) < 1:
            raise r.refuse(f"pads {pads} leave nothing of {old}")
        value = sliced(r, node, value, part, [max(-b, 0) for b in before], [1] * len(old))
        before, after, old = [max(b, 0) for b in before], [max(a, 0) for a in after], tuple(part)
        if not any((*before, *after)):
            r.put(node, value)
            return
    shape = [b + n + a for b, n, a in zip(before, old, after, strict=True)]
    if mode != "constant":
        places = []
        for edges in zip(before, old, after, strict=True):
            if mode == "reflect" and max(edges[0], edges[2]) >= edges[1]:
                raise r.refuse(f"mode reflect with pads {pads}, expected fewer than {old}")
            ends = np.pad(np.arange(edges[1]), (edges[0], edges[2]), mode=mode)
            places.append(tuple(ends.tolist()))
        how = {"how": "take", "places": tuple(places)}
        r.put(node, moved_value(r, value, shape, node.outputs[0], **how))
        return
    fill = r.number(node, 2, "fill", 0.0)
    fields = {"how": "pad", "before": tuple(before), "after": tuple(after)}
    if isinstance(value, Curve):
        r.put(node, _padded_curve(r, node, value, fill, shape, fields))
        return
    if not isinstance(value, Bytes):
        raise r.refuse(f"its input {node.inputs[0]!r} is float, expected it behind QuantizeLinear")
    x, steps = value.tensor, value.tensor.dtype in QUANTISED
    if math.isinf(fill) or (steps and not x.limits[0] <= round(fill) <= x.limits[1]):
        raise r.refuse(f"pads with {fill:g}, which is no number of {x.dtype}")
    if fill != round(fill):
        raise r.refuse(f"pads with {fill:g}, expected a whole number")
    r.put(node, moved_value(r, value, shape, node.outputs[0], **fields, value=round(fill)))


def _padded_curve(
    r: OnnxReader,
    node: RawNode,
    value: Curve,
    fill: float,
    shape: Sequence[int],
    fields: dict[str, Any],
) -> Value:
    """Bytes of the input's scale, where ``fill`` is a step of it; else those of the output's."""
    x = value.source
    if value.values is None and not math.isinf(fill):
        step = fill / (x.scale or 1) + x.zero
        if abs(step - round(step)) <= 1e-3 and x.limits[0] <= round(step) <= x.limits[1]:
            return moved_value(r, value, shape, node.outputs[0], **fields, value=round(step))

    def make(y: Tensor, clamp: Clamp) -> None:
        at, r.at = r.at, node
        left = iter(value.reals())
        table = np.clip(functions.table_of(lambda _: next(left), x, y), *clamp)
        if y.same_numbers(x) and np.array_equal(table, np.arange(x.limits[0], x.limits[1] + 1)):
            middle = x
        else:
            middle = r.between(y, value.shape, y.name)
            words = value.words or "requantise"
            r.emit(Table, [x], middle, table=table, function=words)
        ends = (clamp[0] if fill < 0 else clamp[1]) if math.isinf(fill) else None
        number = round(Fraction(fill) / y.exact) + y.zero if ends is None else ends
        r.emit(Move, [middle], y, **fields, value=min(max(number, clamp[0]), clamp[1]))
        r.at = at

    return Pending(tuple(shape), make)


def same(r: OnnxReader, node: RawNode) -> None:
    """Identity, and Dropout, which does nothing when a network runs."""
    if node.operator == "Dropout" and len(node.outputs) > 1 and node.outputs[1]:
        raise r.refuse("the mask is an output, expected the values only")
    r.put(node, r.value(node, 0))


def shape_(r: OnnxReader, node: RawNode) -> None:
    """Shape: known when the model is read."""
    fields = r.attributes(node, start=0, end=None)
    found = np.array(r.shape_of(r.value(node, 0)), np.int64)
    found[:1] *= r.file.batch
    r.put(node, Const(found[fields["start"] : fields["end"]]))


HANDLERS: dict[str, Callable[[OnnxReader, RawNode], None]] = {
    "Reshape": reshape,
    "Flatten": flatten,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Transpose": transpose,
    "Concat": concat,
    "Split": split,
    "Slice": slice_,
    "Pad": pad,
    "Identity": same,
    "Dropout": same,
    "Shape": shape_,
}
