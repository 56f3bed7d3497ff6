# SPDX-License-Identifier: Apache-2.0
"""Sizes that a TFLite file leaves open, and what it computes from sizes (docs/compiler.md 2).

Keras exports models for any batch: the shape of a reshape or of a transposed convolution is then
computed in the model, from SHAPE of a map, and a tensor whose size depends on the batch has a 1 in
the file, whatever it will be. ``sized`` computes these operators for one inference, in the file's
order, and removes them; sizes that are open follow from those of the inputs.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div
from openkpu.compiler.tflite.loops import Lists, live_operators, next_step
from openkpu.compiler.tflite.raw import RawModel, RawOperator, RawTensor

Ints = npt.NDArray[np.integer[Any]]
Shape = tuple[int, ...]
MOST = 4096  # elements of what is computed here
MOST_FILLED = 1 << 20  # elements of one value
INTEGERS = ("int32", "int64", "bool")
SAME = 0  # of padding


def sized(model: RawModel) -> RawModel:
    """The model with shapes and integers that follow from the file in place of their operators,
    and with the steps of its loops."""
    tensors, operators, work = list(model.tensors), [], deque(model.operators)
    same: dict[int, int] = {}  # the tensor that another one is
    lists, step = Lists(tensors), 0
    while work:
        op = work.popleft()
        if same:
            op = dataclasses.replace(op, inputs=[same.get(n, n) for n in op.inputs])
        if op.operator == "WHILE":
            made = next_step(op, model, tensors, _evaluate, step)
            if made is not None:
                work.extendleft(reversed(made[0]))
                same.update(zip(op.outputs, made[1], strict=True))
                step += 1
                continue
        if not {*op.outputs} & {*model.outputs} and _evaluate(op, tensors):
            continue
        simple = lists.simplified(op) if step else None
        if isinstance(simple, int):
            same[op.outputs[0]] = simple
            continue
        op = simple or op
        operators.append(op)
        if op.operator in SHAPES and len(op.outputs) == 1 and tensors[op.outputs[0]].open:
            raw = tensors[op.outputs[0]]
            shape = SHAPES[op.operator](op, tensors)
            if len(shape) == len(raw.shape):
                sizes = zip(shape, raw.shape, raw.open, strict=True)
                shape = tuple(n if any_ == -1 else own for n, own, any_ in sizes)
                tensors[op.outputs[0]] = _closed(dataclasses.replace(raw, shape=shape))
    outputs = [same.get(n, n) for n in model.outputs]
    for own, found in reversed(list(zip(model.outputs, outputs, strict=True))):
        if own != found and found not in (*model.inputs, *model.outputs):  # keeps its name
            tensors[found] = dataclasses.replace(tensors[found], name=tensors[own].name)
    operators = live_operators(operators, outputs) if step else operators
    return dataclasses.replace(model, tensors=tensors, operators=operators, outputs=outputs)


def _evaluate(op: RawOperator, tensors: list[RawTensor]) -> bool:
    """Are the results of an operator known? They are constants then."""
    found = _values(op, tensors)
    if found is None:
        return False
    for number, value in zip(op.outputs, found, strict=True):
        made = np.asarray(value, dtype=tensors[number].dtype)
        raw = dataclasses.replace(tensors[number], data=made, shape=made.shape)
        tensors[number] = _closed(raw)
    return True


def _closed(raw: RawTensor) -> RawTensor:
    return dataclasses.replace(raw, open=(), dynamic=False)


# -------------------------------------------------------------------------------- values
def _values(op: RawOperator, tensors: list[RawTensor]) -> list[Ints] | None:
    """What an operator computes from known integers; None where it is none of those, or its result
    is no list of a few integers."""
    if op.operator == "FILL":
        return _filled_state(op, tensors)
    if op.operator not in VALUES or any(tensors[n].dtype not in INTEGERS for n in op.outputs):
        return None
    raws = [tensors[n] for n in op.inputs if n >= 0]
    if op.operator == "SHAPE":
        return [np.array(raws[0].shape)] if raws and not raws[0].dynamic else None
    if not raws or any(raw.data is None or raw.fault or raw.dtype not in INTEGERS for raw in raws):
        return None
    inputs = [raw.values for raw in raws]
    if sum(value.size for value in inputs) > MOST or _more(op.options):
        return None
    found = VALUES[op.operator](op.options, inputs)
    found = found if isinstance(found, list) else [found]
    if len(found) != len(op.outputs) or sum(np.size(value) for value in found) > MOST:
        return None
    return found


def _filled_state(op: RawOperator, tensors: list[RawTensor]) -> list[Any] | None:
    """FILL: integers, or the state in which a recurrent layer begins."""
    shape = _known(op, tensors, 0)
    value = tensors[op.inputs[1]] if len(op.inputs) == 2 and op.inputs[1] >= 0 else None
    if shape is None or value is None or value.data is None or value.fault:
        return None
    if value.values.size != 1:
        return None
    if min(shape, default=1) < 0 or math.prod(shape) > MOST_FILLED:
        raise ValueError(f"{shape} numbers of one value")
    return [np.full(shape, value.values.reshape(()))]


def _more(o: Any) -> bool:
    """Do the options ask for more than what is computed here?"""
    fields = ("FusedActivationFunction", "BatchDims", "Offset")
    return any(name in vars(o) and getattr(o, name)() for name in fields) if o else False


def _slice(o: Any, inputs: list[Ints]) -> Ints:
    """STRIDED_SLICE, as numpy has it."""
    x, *ends = inputs[0], *([int(n) for n in v.reshape(-1)] for v in inputs[1:4])
    index: list[Any] = []
    for i, (first, last, step) in enumerate(zip(*ends, strict=True)):
        if o.EllipsisMask() >> i & 1:
            index.append(...)
        elif o.NewAxisMask() >> i & 1:
            index.append(None)
        elif o.ShrinkAxisMask() >> i & 1:
            index.append(first)
        else:
            begin, end = o.BeginMask() >> i & 1, o.EndMask() >> i & 1
            index.append(slice(None if begin else first, None if end else last, step))
    return np.asarray(x[tuple(index)])


def _part(_o: Any, inputs: list[Ints]) -> Ints:
    x, begin, size = inputs[0], inputs[1].reshape(-1), inputs[2].reshape(-1)
    ends = [n if s == -1 else b + s for n, b, s in zip(x.shape, begin, size, strict=True)]
    return x[tuple(slice(int(b), int(e)) for b, e in zip(begin, ends, strict=True))]


def _reduced(function: Callable[..., Any]) -> Callable[[Any, list[Ints]], Ints]:
    def value(o: Any, inputs: list[Ints]) -> Ints:
        axes = tuple(int(a) for a in inputs[1].reshape(-1))
        return function(inputs[0], axis=axes, keepdims=bool(o.KeepDims()))

    return value


def _unpacked(o: Any, inputs: list[Ints]) -> list[Ints]:
    return list(np.moveaxis(inputs[0], o.Axis(), 0))


def _divided(function: Callable[[Ints, Ints], Any]) -> Callable[[Any, list[Ints]], Any]:
    def value(_o: Any, inputs: list[Ints]) -> Any:
        if not inputs[1].all():
            raise ValueError("a division by 0")
        return function(inputs[0], inputs[1])

    return value


def _of_two(function: Callable[[Ints, Ints], Any]) -> Callable[[Any, list[Ints]], Any]:
    return lambda _o, inputs: function(inputs[0], inputs[1])


VALUES: dict[str, Callable[[Any, list[Ints]], Any]] = {
    "SHAPE": lambda _o, inputs: inputs[0],
    "STRIDED_SLICE": _slice,
    "SLICE": _part,
    "PACK": lambda o, inputs: np.stack([v.reshape(inputs[0].shape) for v in inputs], o.Axis()),
    "UNPACK": _unpacked,
    "GATHER": lambda o, inputs: np.take(inputs[0], inputs[1], axis=o.Axis()),
    "CONCATENATION": lambda o, inputs: np.concatenate(inputs, axis=o.Axis()),
    "REDUCE_PROD": _reduced(np.prod),
    "SUM": _reduced(np.sum),
    "REDUCE_MAX": _reduced(np.max),
    "REDUCE_MIN": _reduced(np.min),
    "CAST": lambda _o, inputs: inputs[0],
    "RESHAPE": lambda _o, inputs: inputs[0].reshape([int(n) for n in inputs[1].reshape(-1)]),
    "EXPAND_DIMS": lambda _o, inputs: np.expand_dims(inputs[0], int(inputs[1].reshape(()))),
    "ADD": _of_two(np.add),
    "SUB": _of_two(np.subtract),
    "MUL": _of_two(np.multiply),
    "FLOOR_DIV": _divided(np.floor_divide),
    "FLOOR_MOD": _divided(np.mod),
    "MAXIMUM": _of_two(np.maximum),
    "MINIMUM": _of_two(np.minimum),
    "LESS": _of_two(np.less),
    "LESS_EQUAL": _of_two(np.less_equal),
    "GREATER": _of_two(np.greater),
    "GREATER_EQUAL": _of_two(np.greater_equal),
    "EQUAL": _of_two(np.equal),
    "NOT_EQUAL": _of_two(np.not_equal),
    "LOGICAL_AND": _of_two(np.logical_and),
    "LOGICAL_OR": _of_two(np.logical_or),
    "LOGICAL_NOT": lambda _o, inputs: np.logical_not(inputs[0]),
}


# -------------------------------------------------------------------------------- shapes
def _shape(op: RawOperator, tensors: list[RawTensor], at: int = 0) -> Shape:
    return tensors[op.inputs[at]].shape


def _known(op: RawOperator, tensors: list[RawTensor], at: int) -> list[int] | None:
    """Input ``at`` as integers, if it is known."""
    if at >= len(op.inputs) or op.inputs[at] < 0:
        return None
    raw = tensors[op.inputs[at]]
    if raw.data is None or raw.fault or raw.dtype not in INTEGERS:
        return None
    return [int(n) for n in raw.values.reshape(-1)]


def _same(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    return _shape(op, tensors)


def _broadcast(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    return tuple(np.broadcast_shapes(*(_shape(op, tensors, i) for i in range(len(op.inputs)))))


def _reshaped(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    asked, count = _known(op, tensors, 1), math.prod(_shape(op, tensors))
    if asked is None:
        return ()
    rest = math.prod(n for n in asked if n != -1)
    return tuple(count // max(rest, 1) if n == -1 else n for n in asked)


def _expanded(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    shape, axis = list(_shape(op, tensors)), _known(op, tensors, 1)
    if not axis:
        return ()
    shape.insert(axis[0] % (len(shape) + 1), 1)
    return tuple(shape)


def _window(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    """Of a convolution or pool; its channels are in the file."""
    shape, own, o = _shape(op, tensors), tensors[op.outputs[0]].shape, op.options
    if o is None or len(shape) != 4 or len(own) != 4:
        return ()
    if op.operator.endswith("POOL_2D"):
        kernel, dilation = (o.FilterHeight(), o.FilterWidth()), (1, 1)
    else:
        kernel, dilation = _shape(op, tensors, 1)[1:3], (o.DilationHFactor(), o.DilationWFactor())
    steps, ends = (o.StrideH(), o.StrideW()), []
    for n, k, s, d in zip(shape[1:3], kernel, steps, dilation, strict=True):
        reach = 0 if o.Padding() == SAME else (k - 1) * d
        ends.append(ceil_div(n - reach, max(s, 1)))
    return (shape[0], *ends, own[3])


def _padded(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    shape, pads = _shape(op, tensors), _known(op, tensors, 1)
    if pads is None or len(pads) != 2 * len(shape):
        return ()
    return tuple(n + a + b for n, a, b in zip(shape, pads[::2], pads[1::2], strict=True))


def _resized(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    shape, size = _shape(op, tensors), _known(op, tensors, 1)
    return (shape[0], *size, shape[-1]) if size and len(shape) == 4 else ()


def _blocks(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    shape, b = _shape(op, tensors), op.options.BlockSize() if op.options is not None else 0
    if b < 1 or len(shape) != 4:
        return ()
    n, h, w, c = shape
    apart = op.operator == "SPACE_TO_DEPTH"
    return (n, h // b, w // b, c * b * b) if apart else (n, h * b, w * b, c // (b * b))


def _tiled(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    shape, times = _shape(op, tensors), _known(op, tensors, 1)
    if times is None or len(times) != len(shape):
        return ()
    return tuple(n * m for n, m in zip(shape, times, strict=True))


def _asked(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    """TRANSPOSE_CONV: input 0."""
    return tuple(_known(op, tensors, 0) or ())


def _dense(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    shape, (units, k) = _shape(op, tensors), _shape(op, tensors, 1)
    if op.options is not None and op.options.KeepNumDims():
        return (*shape[:-1], units)
    return (math.prod(shape) // max(k, 1), units)


def _apart(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    """SPACE_TO_BATCH_ND: as many images more as a block has pixels."""
    shape, block = _shape(op, tensors), _known(op, tensors, 1)
    if not block:
        return ()
    return (shape[0] * math.prod(block), *tensors[op.outputs[0]].shape[1:])


def _together(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    shape, block = _shape(op, tensors), _known(op, tensors, 1)
    if not block:
        return ()
    return (shape[0] // max(math.prod(block), 1), *tensors[op.outputs[0]].shape[1:])


def _transposed(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    shape, axes = _shape(op, tensors), _known(op, tensors, 1)
    return tuple(shape[a] for a in axes) if axes and len(axes) == len(shape) else ()


def _concatenated(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    shapes = [_shape(op, tensors, i) for i in range(len(op.inputs))]
    if op.options is None:
        return ()
    found, axis = list(shapes[0]), op.options.Axis()
    found[axis] = sum(shape[axis] for shape in shapes)
    return tuple(found)


def _packed(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    shape = _shape(op, tensors)
    if op.options is None:
        return ()
    axis = op.options.Axis() % (len(shape) + 1)
    return (*shape[:axis], len(op.inputs), *shape[axis:])


def _gathered(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    shape, places = _shape(op, tensors), _shape(op, tensors, 1)
    if op.options is None or not shape:
        return ()
    axis = op.options.Axis() % len(shape)
    return (*shape[:axis], *places, *shape[axis + 1 :])


def _product(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    o, (a, b) = op.options, (_shape(op, tensors, i) for i in (0, 1))
    if o is None or min(len(a), len(b)) < 2:
        return ()
    ends = a[-1 if o.AdjX() else -2], b[-2 if o.AdjY() else -1]
    return (*np.broadcast_shapes(a[:-2], b[:-2]), *ends)


def _reduced_shape(op: RawOperator, tensors: list[RawTensor]) -> Shape:
    shape, axes = _shape(op, tensors), _known(op, tensors, 1)
    if axes is None or op.options is None:
        return ()
    gone = {a % len(shape) for a in axes}
    if op.options.KeepDims():
        return tuple(1 if i in gone else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in gone)


# fmt: off
UNARY = [
    "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "LEAKY_RELU", "LOGISTIC", "TANH", "HARD_SWISH",
    "ELU", "EXP", "GELU", "ABS", "NEG", "SQUARE", "SQRT", "RSQRT", "LOG", "QUANTIZE", "DEQUANTIZE",
    "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "PRELU", "CAST",
]
OF_TWO = ["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "POW"]
WINDOWS = ["CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D"]
# fmt: on
SHAPES: dict[str, Callable[[RawOperator, list[RawTensor]], Shape]] = {
    **dict.fromkeys(UNARY, _same),
    **dict.fromkeys(OF_TWO, _broadcast),
    **dict.fromkeys(WINDOWS, _window),
    **dict.fromkeys(["PAD", "PADV2", "MIRROR_PAD"], _padded),
    **dict.fromkeys(["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"], _resized),
    **dict.fromkeys(["DEPTH_TO_SPACE", "SPACE_TO_DEPTH"], _blocks),
    "TILE": _tiled,
    "RESHAPE": _reshaped,
    "TRANSPOSE_CONV": _asked,
    "EXPAND_DIMS": _expanded,
    "FULLY_CONNECTED": _dense,
    "SPACE_TO_BATCH_ND": _apart,
    "BATCH_TO_SPACE_ND": _together,
    "TRANSPOSE": _transposed,
    "CONCATENATION": _concatenated,
    "PACK": _packed,
    "GATHER": _gathered,
    "BATCH_MATMUL": _product,
    "MEAN": _reduced_shape,
    "SUM": _reduced_shape,
    "REDUCE_MAX": _reduced_shape,
}
