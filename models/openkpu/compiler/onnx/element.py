# SPDX-License-Identifier: Apache-2.0
"""ONNX's float operators of two operands, and of numbers for each channel.

Rules, the first one that fits: a function of one byte and one number, or of the same byte twice, is
a curve; a constant behind a convolution or product is its bias; floats for each channel become
weights (``affine``); everything else is an element-wise node of two tensors of bytes.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from openkpu.compiler.form.functions import Number
from openkpu.compiler.form.graph import Elementwise, Host, Table, Tensor
from openkpu.compiler.onnx import linear as onnx_linear
from openkpu.compiler.onnx import moves as onnx_moves
from openkpu.compiler.onnx.file import RawNode
from openkpu.compiler.onnx.reader import Handler, OnnxReader
from openkpu.compiler.onnx.shared import Convolution, waiting
from openkpu.compiler.onnx.values import (
    Bytes,
    Clamp,
    Const,
    Curve,
    Floats,
    Pending,
    Value,
    Weights,
)

FLOAT_HOSTS = {"add": "plus", "sub": "minus", "mul": "times", "div": "over"}
MOST_WEIGHT = 127  # of a layer that is one number for each channel: its bias has fine steps


def _power(a: Number, b: Number) -> Number:
    if b == int(b) and 0 <= b <= 8:
        return a ** int(b)
    return math.inf if not a and b < 0 else math.pow(a, b)


def quotient(a: Number, b: Number) -> Number:
    """As floats have it: an infinity where b is 0, but for 0 / 0."""
    if b or not a:
        return a / b
    return math.inf if a > 0 else -math.inf


RULES: dict[str, Callable[[Number, Number], Number]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": quotient,
    "max": max,
    "min": min,
    "pow": _power,
}


def binary(how: str) -> Handler:
    """An operator of two operands; of maximum and minimum one or more."""
    rule = RULES[how]

    def handler(r: OnnxReader, node: RawNode) -> None:
        r.attributes(node)
        if len(node.inputs) == 1 and how in ("max", "min", "add"):
            r.put(node, r.value(node, 0))
            return
        if _of_floats(r, node, how):
            return
        if len(node.inputs) != 2:
            if how not in ("max", "min"):
                raise r.refuse(f"{len(node.inputs)} inputs, expected two")
            _elementwise(r, node, how)
            return
        a, b = r.value(node, 0), r.value(node, 1)
        numbers = [single(v) for v in (a, b)]
        if isinstance(a, Curve) and numbers[1] is not None:
            other = numbers[1]
            r.put(node, _ranked(r, node, a.then(lambda v: rule(v, other), how), b))
        elif isinstance(b, Curve) and numbers[0] is not None:
            other = numbers[0]
            r.put(node, _ranked(r, node, b.then(lambda v: rule(other, v), how), a))
        elif isinstance(a, Curve) and isinstance(b, Curve) and a.source is b.source:
            words = ", ".join(dict.fromkeys(filter(None, (a.words, b.words, how))))
            r.put(node, a.beside(b, rule, words))
        elif how == "add" and (waits := _bias_of(a, b) or _bias_of(b, a)):
            r.put(node, waits)
        elif (made := _each(r, node, how, a, b)) is not None:
            r.put(node, made)
        elif how == "div" and not any(isinstance(v, (Const, Weights)) for v in (a, b)):
            _quotient(r, node)
        elif how in ("div", "pow"):
            raise r.refuse(
                "two results of the inputs, or a constant of several numbers, expected one number"
                " or one for each channel as the second"
            )
        else:
            _elementwise(r, node, how)

    return handler


def _of_floats(r: OnnxReader, node: RawNode, how: str) -> bool:
    """Floats of an input and a constant, in front of QuantizeLinear: on the processor."""
    values = [r.value(node, at) for at in range(len(node.inputs))]
    if how not in FLOAT_HOSTS or len(values) != 2:
        return False
    x = next((v for v in values if isinstance(v, Bytes) and v.tensor.dtype == "float32"), None)
    other = next((v for v in values if isinstance(v, (Const, Weights))), None)
    data = None if other is None else reals(other)
    if x is None or data is None or (how in ("sub", "div") and values[0] is not x):
        return False
    try:
        same = np.broadcast_shapes(x.shape, data.shape) == x.shape
    except ValueError:
        same = False
    if not same or not np.isfinite(data).all():
        return False
    y = r.tensor(node.outputs[0], "float32", x.shape)
    r.emit(Host, [x.tensor], y, how=FLOAT_HOSTS[how], gain=np.float32(data).astype(np.float64))
    r.put(node, Bytes(y))
    return True


def _quotient(r: OnnxReader, node: RawNode) -> None:
    """Of two computed tensors, on the processor."""
    operands = [r.operand(node, i) for i in (0, 1)]
    try:
        shape = np.broadcast_shapes(*(t.shape for t in operands))
    except ValueError:
        shapes = [t.shape for t in operands]
        raise r.refuse(f"shapes {shapes[0]} and {shapes[1]} do not go together") from None

    def make(y: Tensor, clamp: Clamp) -> None:
        at, r.at = r.at, node
        middle = y if clamp == y.limits else r.between(y, shape, y.name)
        r.emit(Host, operands, middle, how="quotient")
        if middle is not y:
            table = np.clip(np.arange(y.limits[0], y.limits[1] + 1), *clamp)
            r.emit(Table, [middle], y, table=table, function="clamp")
        r.at = at

    r.put(node, Pending(shape, make))


def _of_one(r: OnnxReader, node: RawNode, rule: Callable[..., Number]) -> tuple[Curve, Curve]:
    """An operator whose operands are all functions of one tensor of bytes, or one number: a curve
    of that, and the result; refused where they are not."""
    values = [r.value(node, i) for i in range(len(node.inputs))]
    curves = [v for v in values if isinstance(v, Curve)]
    numbers = [v if isinstance(v, Curve) else single(v) for v in values]
    if not curves or any(c.source is not curves[0].source for c in curves[1:]):
        raise r.refuse("of several results, expected functions of one quantised tensor")
    if any(n is None for n in numbers):
        raise r.refuse("a constant of several numbers, expected one")
    exact = [n.reals() if isinstance(n, Curve) else (n,) * 256 for n in numbers]
    single_ones = [n.singles() if isinstance(n, Curve) else (n,) * 256 for n in numbers]
    found = [
        tuple(rule(*each) for each in zip(*all_, strict=True)) for all_ in (exact, single_ones)
    ]
    return curves[0], Curve(curves[0].source, found[0], "", found[1])


def compared(rule: Callable[..., bool]) -> Handler:
    """A comparison, or what joins some: 1 where it is true, 0 elsewhere; its result chooses in a
    Where.  It jumps: numbers are compared in float32."""

    def handler(r: OnnxReader, node: RawNode) -> None:
        r.attributes(node)
        curve, found = _of_one(r, node, lambda *each: Fraction(int(rule(*each))))
        r.put(node, Curve(curve.source, found.floats, curve.words, found.floats))

    return handler


def where(r: OnnxReader, node: RawNode) -> None:
    """One of two functions of the same bytes by a third one."""
    r.attributes(node)
    _, found = _of_one(r, node, lambda condition, a, b: a if condition else b)
    values = [r.value(node, i) for i in (1, 2)]
    words = [v.words for v in values if isinstance(v, Curve) and v.words]
    words = ", ".join([*dict.fromkeys(words), "choice"])
    r.put(node, dataclasses.replace(found, words=words))


def _ranked(r: OnnxReader, node: RawNode, value: Curve, number: Value) -> Value:
    """The value with the axes that a number of more axes than it gives it."""
    rank = len(r.shape_of(number))
    if rank <= len(value.shape):
        return value
    shape = (1,) * (rank - len(value.shape)) + value.shape
    return onnx_moves.moved_value(r, value, shape, node.outputs[0], how="reshape")


def single(value: Value) -> Fraction | None:
    """A constant of one number."""
    if isinstance(value, Const) and value.data.size == 1 and value.data.dtype.kind in "fiu":
        return Fraction(float(value.data.reshape(-1)[0]))
    if isinstance(value, Weights) and value.data.size == 1:
        step = int(value.data.reshape(-1)[0]) - int(value.zero[0])
        return step * Fraction(float(value.scale[0]))
    return None


def reals(value: Value) -> Floats | None:
    """The numbers of a constant."""
    if isinstance(value, Weights):
        return value.real()
    if isinstance(value, Const) and value.data.dtype.kind == "f":
        return value.data.astype(np.float64)
    return None


def _channels(data: Floats, shape: tuple[int, ...], axis: int) -> Floats | None:
    """Numbers for each channel of a value of ``shape``; None of a constant that is no such."""
    full = (1,) * (len(shape) - data.ndim) + data.shape
    if len(full) != len(shape) or full[axis] not in (1, shape[axis]):
        return None
    if any(n != 1 for i, n in enumerate(full) if i != axis % len(shape)):
        return None
    return np.broadcast_to(data.reshape(-1), shape[axis])


def _bias_of(a: Value, b: Value) -> Pending | None:
    """``b`` as the bias of a product or convolution ``a``."""
    data = reals(b)
    if not isinstance(a, Pending) or a.biased is None or data is None:
        return None
    found = _channels(data, a.shape, a.channels)
    return None if found is None else a.biased(found)


def _each(r: OnnxReader, node: RawNode, how: str, a: Value, b: Value) -> Value | None:
    """A constant of floats, a number for each channel, beside bytes or what waits for a scale."""
    which = 1 if isinstance(a, (Curve, Pending)) else 0
    value, constant = (a, b) if which else (b, a)
    waits = isinstance(value, Pending) and value.scaled is not None
    # bytes and a constant of bytes are an element-wise node, where there is one
    floats = (Const, Weights) if how == "div" else Const
    if not waits and not (isinstance(value, Curve) and isinstance(constant, floats)):
        return None
    assert isinstance(value, (Curve, Pending))
    data = reals(constant)
    axis = value.channels if isinstance(value, Pending) else 1
    if data is None or len(value.shape) <= axis or (how == "div" and not which):
        return None
    numbers = _channels(data, value.shape, axis)
    if numbers is None or how not in ("add", "sub", "mul", "div"):
        return None
    if how == "div" and not numbers.all():
        raise r.refuse("divides by 0, expected other numbers")
    one, none = np.ones(numbers.size), np.zeros(numbers.size)
    factor, shift = {
        "add": (one, numbers),
        "sub": (one, -numbers) if which else (-one, numbers),
        "mul": (numbers, none),
        "div": (1 / numbers if how == "div" else one, none),
    }[how]
    return affine(r, node, value, factor, shift)


def affine(r: OnnxReader, node: RawNode, value: Value, factor: Floats, shift: Floats) -> Value:
    """value * factor + shift, a number of each for every channel (C,).

    Of a convolution or product that waits for its scale these go into weights and bias; of bytes
    they are a depthwise convolution of one weight.
    """
    if isinstance(value, Pending):
        if value.scaled is None:
            raise r.refuse(
                f"its input {node.inputs[0]!r} is float, expected QuantizeLinear and"
                " DequantizeLinear between an activation and this"
            )
        return value.scaled(factor, shift)
    x = r.operand(node, 0 if value is r.value(node, 0) else 1)
    if len(x.shape) < 2 or x.shape[0] != 1 or x.shape[1] != factor.size:
        raise r.refuse(f"{factor.size} channels of an input {x.shape}, expected as many")
    shape = (1, x.shape[1], 1, math.prod(x.shape[2:]))
    source, mapped = x, len(x.shape) == 4
    if not mapped:
        flat = onnx_moves.moved_value(r, Bytes(x), shape, x.name, how="reshape")
        assert isinstance(flat, Bytes)
        source = flat.tensor
    weights = (np.sign(factor) * MOST_WEIGHT).astype(np.int64).reshape(-1, 1, 1, 1)
    scale = np.where(factor == 0, 1.0, np.abs(factor)) / MOST_WEIGHT
    each = Weights(weights, "int8", scale, np.zeros(factor.size, np.int64), 0)
    conv = dataclasses.replace(node, attributes={"group": factor.size})
    found = waiting(r, Convolution(r, conv, source, each), shift, 1)
    if mapped:
        return found
    return onnx_moves.moved_value(r, found, x.shape, node.outputs[0], how="reshape")


def batch_normalization(r: OnnxReader, node: RawNode) -> None:
    """Scale, shift, mean and variance of each channel: weights and bias."""
    fields = r.attributes(node, epsilon=1e-5, momentum=0.9, training_mode=0, spatial=1)
    if fields["training_mode"] or any(node.outputs[1:]) or not fields["spatial"]:
        raise r.refuse("a batch norm in training, expected one with fixed mean and variance")
    numbers = []
    for at, what in enumerate(("scale", "shift", "mean", "variance"), 1):
        found = reals(r.value(node, at))
        if found is None:
            raise r.refuse(f"{what} {node.inputs[at]!r} is computed, expected a constant")
        numbers.append(found.reshape(-1))
    value = r.value(node, 0)
    axis = value.channels if isinstance(value, Pending) else 1
    shape = r.shape_of(value)
    count = shape[axis] if len(shape) > axis else 0
    if any(n.size != count for n in numbers):
        raise r.refuse(f"{[n.size for n in numbers]} numbers, expected {count}, one a channel")
    scale, shift, mean, variance = numbers
    if (variance + fields["epsilon"] <= 0).any():
        raise r.refuse("a variance below 0, expected 0 or more")
    factor = scale / np.sqrt(variance + fields["epsilon"])
    r.put(node, affine(r, node, value, factor, shift - mean * factor))


def _elementwise(r: OnnxReader, node: RawNode, how: str) -> None:
    """Two tensors of bytes; of maxima and minima one after the other, which rounds once as well
    because rounding keeps an order."""
    operands = [r.operand(node, i) for i in range(len(node.inputs))]
    shapes = [operands[0].shape]
    for other in operands[1:]:
        shapes.append(onnx_linear.broadcast(r, shapes[-1], other.shape))
    node_at = r.at

    def make(y: Tensor, clamp: Clamp) -> None:
        at, r.at = r.at, node_at
        x = operands[0]
        for i, other in enumerate(operands[1:], 1):
            last = i == len(operands) - 1
            into = y if last else r.between(y, shapes[i], y.name)
            limits = clamp if last else y.limits
            r.emit(Elementwise, [x, other], into, how=how, clamp=limits)
            x = into
        r.at = at

    r.put(node, Pending(shapes[-1], make))


HANDLERS: dict[str, Handler] = {
    "Add": binary("add"),
    "Sum": binary("add"),
    "Sub": binary("sub"),
    "Mul": binary("mul"),
    "Div": binary("div"),
    "Pow": binary("pow"),
    "Max": binary("max"),
    "Min": binary("min"),
    "Greater": compared(operator.gt),
    "GreaterOrEqual": compared(operator.ge),
    "Less": compared(operator.lt),
    "LessOrEqual": compared(operator.le),
    "Equal": compared(operator.eq),
    "And": compared(lambda a, b: bool(a and b)),
    "Or": compared(lambda a, b: bool(a or b)),
    "Xor": compared(lambda a, b: bool(a) != bool(b)),
    "Not": compared(lambda a: not a),
    "Where": where,
    "BatchNormalization": batch_normalization,
}
