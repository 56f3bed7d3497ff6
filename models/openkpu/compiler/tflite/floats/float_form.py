# SPDX-License-Identifier: Apache-2.0
"""A float TFLite model as a float ONNX model, which is then quantised like any other.

Maps of rank 4 are (N, C, H, W) inside; inputs and outputs stay as the model has them, behind and in
front of a Transpose, which the ONNX reader recognises. Weights of float16 behind DEQUANTIZE, and
weights of int8 in a model whose maps are float, become float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu import files
from openkpu.compiler.errors import CompileError
from openkpu.compiler.tflite.file import DAMAGE, DAMAGED, parse_tflite
from openkpu.compiler.tflite.floats import float_moves, float_recurrent
from openkpu.compiler.tflite.floats.float_writer import Handler, Writer, operand
from openkpu.compiler.tflite.normal import NORMALISATION, with_normalisations
from openkpu.compiler.tflite.operators import options, pads_of, reduced_axes, window_of
from openkpu.compiler.tflite.raw import (
    TRANSPOSED_BIAS,
    Normal,
    RawModel,
    RawOperator,
    unknown_operator,
)
from openkpu.compiler.tflite.reader import TO_NCHW


def is_float(data: bytes, name: str, ends: Sequence[str] = ()) -> bool:
    """Is it a float model: an input of float32, and nothing computed that is of bytes?"""
    model = parse_tflite(data, name, ends=ends)
    made = [model.tensors[n] for op in model.operators for n in op.outputs if n >= 0]
    given = [model.tensors[n] for n in model.inputs]
    return any(t.dtype == "float32" for t in given) and not any(
        t.dtype in ("int8", "uint8", "int16") for t in (*made, *given)
    )


def converted(data: bytes, name: str, ends: Sequence[str] = ()) -> bytes:
    """The ONNX file, up to the tensors ``ends`` if there are any; CompileError with one line for
    what cannot be read."""
    return write_float_onnx(parse_tflite(data, name, ends=ends), name)


def write_float_onnx(model: RawModel, name: str) -> bytes:
    """The same of a file's parts."""
    writer = Writer(with_normalisations(model), name)
    for op in writer.model.operators:
        writer.op = op
        handler = HANDLERS.get(op.operator)
        if handler is None:
            raise writer.refuse(unknown_operator(writer.model, op))
        try:
            handler(writer, op)
        except CompileError as error:
            raise (error if error.node else writer.refuse(error.reason)) from None
        except DAMAGE as error:
            raise writer.refuse(f"{DAMAGED}{files.said(error)}") from None
    return writer.finish()


# ------------------------------------------------------------------------- operators
def _convolution(w: Writer, op: RawOperator, weights: npt.NDArray, groups: int) -> None:
    """``weights``: (O, C / groups, kh, kw)."""
    o, shape = options(w, op), w.shape(op, 0)
    if len(shape) != 4 or weights.shape[1] * groups != shape[3]:
        raise w.refuse(f"weights {weights.shape} do not fit the input {shape}")
    kernel = (weights.shape[2], weights.shape[3])
    strides, dilation, pads = window_of(w, op, shape[1:3], kernel)
    inputs = [w.input(op, 0), w.const(weights, w.raw(op, 1).name)]
    if w.has(op, 2):
        inputs.append(w.const(w.weights(op, 2, "bias").reshape(-1), w.raw(op, 2).name))
    fields = {"strides": strides, "pads": pads, "dilations": dilation, "group": groups}
    made = w.emit("Conv", inputs, kernel_shape=kernel, **fields)
    w.activated(op, made, o.FusedActivationFunction())


def conv_2d(w: Writer, op: RawOperator) -> None:
    weights, channels = w.weights(op, 1, "weights"), w.shape(op, 0)[-1]
    if weights.ndim != 4 or channels % weights.shape[3]:
        raise w.refuse(f"weights {weights.shape} do not fit the input {w.shape(op, 0)}")
    _convolution(w, op, weights.transpose(TO_NCHW), channels // weights.shape[3])


def depthwise_conv_2d(w: Writer, op: RawOperator) -> None:
    weights = w.weights(op, 1, "weights")
    if weights.ndim != 4 or weights.shape[0] != 1:
        raise w.refuse(f"weights {weights.shape} do not fit the input {w.shape(op, 0)}")
    _convolution(w, op, weights.transpose(3, 0, 1, 2), w.shape(op, 0)[-1])


def transpose_conv(w: Writer, op: RawOperator) -> None:
    """Input 0 is the output's shape, 1 the weights (O, kh, kw, C), 2 the map, 3 a bias."""
    out = w.out_shape(op)
    if tuple(w.integers(op, 0, "output shape")) != out:
        raise w.refuse(f"an output shape that is not the output's, {out}")
    _transposed(w, op, 2, 3)


def transpose_conv_bias(w: Writer, op: RawOperator) -> None:
    """MediaPipe's: the map, the weights, the bias."""
    _transposed(w, op, 0, 2)


def _transposed(w: Writer, op: RawOperator, at: int, bias: int) -> None:
    weights, o, shape, out = (
        w.weights(op, 1, "weights"),
        options(w, op),
        w.shape(op, at),
        w.out_shape(op),
    )
    strides = o.StrideH(), o.StrideW()
    if weights.ndim != 4 or len(shape) != 4 or len(out) != 4 or shape[3] != weights.shape[3]:
        raise w.refuse(f"weights {weights.shape} do not fit the input {shape}")
    if min(strides) < 1:
        raise w.refuse(f"strides {strides}, expected 1 or more")
    ends = zip(shape[1:3], weights.shape[1:3], strides, out[1:3], strict=True)
    over = [(n - 1) * s + k - size for n, k, s, size in ends]
    before = [max(n, 0) // 2 for n in over]
    pads = (*before, *(max(n, 0) - b for n, b in zip(over, before, strict=True)))
    inputs = [w.input(op, at), w.const(weights.transpose(3, 0, 1, 2), w.raw(op, 1).name)]
    if w.has(op, bias):
        inputs.append(w.const(w.weights(op, bias, "bias").reshape(-1), w.raw(op, bias).name))
    more = [max(-n, 0) for n in over]
    fields = {"kernel_shape": weights.shape[1:3], "strides": strides, "pads": pads}
    made = w.emit("ConvTranspose", inputs, output_padding=more, **fields)
    w.activated(op, made, getattr(o, "FusedActivationFunction", int)())


def batch_matmul(w: Writer, op: RawOperator) -> None:
    """Matrices of the last two axes as the model has them."""
    o, parts = options(w, op), []
    for at, turned in enumerate((o.AdjX(), o.AdjY())):
        rank = len(w.shape(op, at))
        if rank < 2:
            raise w.refuse(f"input {w.shape(op, at)}, expected matrices")
        x = w.model_order(w.input(op, at), rank)
        perm = [*range(rank - 2), rank - 1, rank - 2]
        parts.append(w.emit("Transpose", [x], perm=perm) if turned else x)
    made = w.emit("MatMul", parts)
    w.put(op, w.emit("Transpose", [made], perm=TO_NCHW) if len(w.out_shape(op)) == 4 else made)


def fully_connected(w: Writer, op: RawOperator) -> None:
    weights, o, shape = w.weights(op, 1, "weights"), options(w, op), w.shape(op, 0)
    if weights.ndim != 2 or math.prod(shape) % weights.shape[1]:
        raise w.refuse(f"weights {weights.shape} do not fit the input {shape}")
    if o.WeightsFormat():
        raise w.refuse("shuffled weights, expected the default format")
    rows, x = (math.prod(shape) // weights.shape[1], weights.shape[1]), w.input(op, 0)
    if shape != rows:
        x = w.reshaped(x, len(shape), rows)
    inputs = [x, w.const(weights, w.raw(op, 1).name)]
    if w.has(op, 2):
        inputs.append(w.const(w.weights(op, 2, "bias").reshape(-1), w.raw(op, 2).name))
    made = w.emit("Gemm", inputs, transB=1)
    w.activated(op, made, o.FusedActivationFunction())
    if (out := w.out_shape(op)) != (rows[0], len(weights)):
        w.put(op, w.reshaped(w.names[op.outputs[0]], 2, out))


def pool(kind: str) -> Handler:
    def handler(w: Writer, op: RawOperator) -> None:
        o, shape = options(w, op), w.shape(op, 0)
        kernel, strides = (o.FilterHeight(), o.FilterWidth()), (o.StrideH(), o.StrideW())
        if len(shape) != 4:
            raise w.refuse(f"input {shape}, expected rank 4")
        pads = pads_of(w, o.Padding(), shape[1:3], kernel, strides)
        fields = {"kernel_shape": kernel, "strides": strides, "pads": pads}
        w.activated(op, w.emit(kind, [w.input(op, 0)], **fields), o.FusedActivationFunction())

    return handler


def reduction(kind: str) -> Handler:
    """``kind``: Mean, Max or Sum."""

    def handler(w: Writer, op: RawOperator) -> None:
        own, x, out = w.shape(op, 0), w.input(op, 0), w.out_shape(op)
        rank = len(own)
        gone, of_map = reduced_axes(w, own, w.integers(op, 1, "axes"))
        places = [w.axis(rank, a) for a in gone]
        if kind == "Mean" and of_map and gone == [1, 2]:
            made = w.emit("GlobalAveragePool", [x])
        elif kind == "Sum":
            made = w.emit("ReduceSum", [x, w.whole(*places)], keepdims=1)
        else:
            made = w.emit(f"Reduce{kind}", [x], axes=places, keepdims=1)
        kept = tuple(1 if i in gone else n for i, n in enumerate(own))
        w.put(op, made if out == kept else w.reshaped(made, rank, out))

    return handler


def elementwise(kind: str) -> Handler:
    def handler(w: Writer, op: RawOperator) -> None:
        rank = len(w.out_shape(op))
        made = w.emit(kind, [operand(w, op, i, rank) for i in (0, 1)])
        plain = op.options is None or kind in ("Max", "Min", "Pow")
        w.activated(op, made, 0 if plain else options(w, op).FusedActivationFunction())

    return handler


def unary(kind: str, **fields: Any) -> Handler:
    def handler(w: Writer, op: RawOperator) -> None:
        w.put(op, w.emit(kind, [w.input(op, 0)], **fields))

    return handler


def relu(low: float, high: float) -> Handler:
    return lambda w, op: w.put(op, w.limited(w.input(op, 0), low, high))


def leaky_relu(w: Writer, op: RawOperator) -> None:
    alpha = float(options(w, op).Alpha())
    if not math.isfinite(alpha):
        raise w.refuse(f"alpha {alpha}, expected a finite number")
    w.put(op, w.emit("LeakyRelu", [w.input(op, 0)], alpha=alpha))


def prelu(w: Writer, op: RawOperator) -> None:
    """Slopes (1, 1, C), or (C,): one a channel."""
    slopes, rank = w.weights(op, 1, "slopes").reshape(-1), len(w.shape(op, 0))
    channels = w.shape(op, 0)[-1]
    if slopes.size not in (1, channels):
        raise w.refuse(f"{slopes.size} slopes, expected 1, or {channels}, one a channel")
    if slopes.size > 1 and (slopes == slopes[0]).all():
        slopes = slopes[:1]
    spread = (slopes.size, 1, 1) if rank == 4 else (slopes.size,)
    w.put(op, w.emit("PRelu", [w.input(op, 0), w.const(slopes.reshape(spread), "slopes")]))


def _gelu(w: Writer, op: RawOperator) -> None:
    """As the product that ONNX had before it had a Gelu, or with a tanh."""
    x = w.input(op, 0)
    if options(w, op).Approximate():
        share, part, one, half = (
            w.const(np.array(v, np.float32)) for v in (math.sqrt(2 / math.pi), 0.044715, 1, 0.5)
        )
        cube = w.emit("Mul", [w.emit("Mul", [w.emit("Mul", [x, x]), x]), part])
        inner = w.emit("Tanh", [w.emit("Mul", [w.emit("Add", [x, cube]), share])])
        w.put(op, w.emit("Mul", [w.emit("Mul", [x, w.emit("Add", [inner, one])]), half]))
        return
    root, one, half = (w.const(np.array(v, np.float32)) for v in (math.sqrt(2), 1, 0.5))
    inner = w.emit("Add", [w.emit("Erf", [w.emit("Div", [x, root])]), one])
    w.put(op, w.emit("Mul", [w.emit("Mul", [x, inner]), half]))


def compared(kind: str) -> Handler:
    """A comparison; its result chooses in a SELECT."""

    def handler(w: Writer, op: RawOperator) -> None:
        rank = len(w.out_shape(op))
        w.put(op, w.emit(kind, [operand(w, op, i, rank) for i in (0, 1)]))

    return handler


def select(w: Writer, op: RawOperator) -> None:
    rank = len(w.out_shape(op))
    w.put(op, w.emit("Where", [operand(w, op, i, rank) for i in (0, 1, 2)]))


def squared_difference(w: Writer, op: RawOperator) -> None:
    rank = len(w.out_shape(op))
    apart = w.emit("Sub", [operand(w, op, i, rank) for i in (0, 1)])
    w.put(op, w.emit("Mul", [apart, apart]))


def zeros_like(w: Writer, op: RawOperator) -> None:
    w.put(op, w.emit("Mul", [w.input(op, 0), w.const(np.array(0, np.float32))]))


def rsqrt(w: Writer, op: RawOperator) -> None:
    w.put(op, w.emit("Reciprocal", [w.emit("Sqrt", [w.input(op, 0)])]))


def square(w: Writer, op: RawOperator) -> None:
    x = w.input(op, 0)
    w.put(op, w.emit("Mul", [x, x]))


def log_softmax(w: Writer, op: RawOperator) -> None:
    w.put(op, w.emit("LogSoftmax", [w.input(op, 0)], axis=w.axis(len(w.shape(op, 0)), -1)))


def l2_normalization(w: Writer, op: RawOperator) -> None:
    axis = w.axis(len(w.shape(op, 0)), -1)
    made = w.emit("LpNormalization", [w.input(op, 0)], axis=axis, p=2)
    w.activated(op, made, options(w, op).FusedActivationFunction())


def normalization(w: Writer, op: RawOperator) -> None:
    """What ``normal`` found; over channels, which are the last axis there, or over groups."""
    shape, normal = w.shape(op, 0), op.normal
    assert normal is not None, "a file has no such operator"
    rank = len(shape)
    x = w.model_order(w.input(op, 0), rank)
    gain, offset = w.const(normal.gain, "gain"), w.const(normal.offset, "offset")
    if normal.groups:
        made = _of_groups(w, x, shape, normal)
    else:
        made = w.emit("LayerNormalization", [x, gain, offset], axis=-1, epsilon=normal.epsilon)
    made = w.emit("Transpose", [made], perm=TO_NCHW) if rank == 4 else made
    w.activated(op, made, options(w, op).FusedActivationFunction())


def _of_groups(w: Writer, x: str, shape: tuple[int, ...], normal: Normal) -> str:
    """Normalised groups of (1, pixels, groups, channels of a group), as PyTorch exports them."""
    rank, count = len(shape), len(normal.gain)
    order = [0, rank - 2, rank - 1, *range(1, rank - 2)]
    x = w.emit("Transpose", [x], perm=order)
    ends = [w.const(np.full(normal.groups, v, np.float32)) for v in (1, 0)]
    inputs = [w.emit("Reshape", [x, w.whole(1, normal.groups, -1)]), *ends]
    made = w.emit("InstanceNormalization", inputs, epsilon=normal.epsilon)
    made = w.emit("Reshape", [made, w.whole(1, count, *shape[1:-2])])
    for kind, data, none in (("Mul", normal.gain, 1), ("Add", normal.offset, 0)):
        if (data != none).any():
            numbers = w.const(data.reshape(count, *[1] * (rank - 3)), kind.lower())
            made = w.emit(kind, [made, numbers])
    made = w.emit("Reshape", [made, w.whole(*(shape[a] for a in order))])
    return w.emit("Transpose", [made], perm=[order.index(a) for a in range(rank)])


def softmax(w: Writer, op: RawOperator) -> None:
    x, beta = w.input(op, 0), float(options(w, op).Beta())
    if beta != 1.0:
        x = w.emit("Mul", [x, w.const(np.array(beta, np.float32))])
    w.put(op, w.emit("Softmax", [x], axis=w.axis(len(w.shape(op, 0)), -1)))


def arg(kind: str) -> Handler:
    def handler(w: Writer, op: RawOperator) -> None:
        rank, axes = len(w.shape(op, 0)), w.integers(op, 1, "axis")
        if len(axes) != 1 or not -rank <= axes[0] < rank:
            raise w.refuse(f"axis {axes}, expected one of {rank}")
        x = w.model_order(w.input(op, 0), rank)
        w.put(op, w.emit(kind, [x], axis=axes[0] % rank, keepdims=0))

    return handler


def dequantize(w: Writer, op: RawOperator) -> None:
    """Of constants, float16, int8 or sparse; of nothing else in a float model."""
    w.known[op.outputs[0]] = w.weights(op, 0, "input")


HANDLERS: dict[str, Handler] = {
    "CONV_2D": conv_2d,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d,
    "TRANSPOSE_CONV": transpose_conv,
    TRANSPOSED_BIAS: transpose_conv_bias,
    "BATCH_MATMUL": batch_matmul,
    "FULLY_CONNECTED": fully_connected,
    "AVERAGE_POOL_2D": pool("AveragePool"),
    "MAX_POOL_2D": pool("MaxPool"),
    "MEAN": reduction("Mean"),
    "REDUCE_MAX": reduction("Max"),
    "SUM": reduction("Sum"),
    "ADD": elementwise("Add"),
    "DIV": elementwise("Div"),
    "POW": elementwise("Pow"),
    "SUB": elementwise("Sub"),
    "MUL": elementwise("Mul"),
    "MAXIMUM": elementwise("Max"),
    "MINIMUM": elementwise("Min"),
    "RELU": relu(0.0, math.inf),
    "RELU6": relu(0.0, 6.0),
    "RELU_N1_TO_1": relu(-1.0, 1.0),
    "RELU_0_TO_1": relu(0.0, 1.0),
    "LEAKY_RELU": leaky_relu,
    "PRELU": prelu,
    "LOGISTIC": unary("Sigmoid"),
    "TANH": unary("Tanh"),
    "HARD_SWISH": unary("HardSwish"),
    "ELU": unary("Elu"),
    "GELU": _gelu,
    "EXP": unary("Exp"),
    "ABS": unary("Abs"),
    "NEG": unary("Neg"),
    "GREATER": compared("Greater"),
    "GREATER_EQUAL": compared("GreaterOrEqual"),
    "LESS": compared("Less"),
    "LESS_EQUAL": compared("LessOrEqual"),
    "SELECT": select,
    "SELECT_V2": select,
    "ZEROS_LIKE": zeros_like,
    "SQUARED_DIFFERENCE": squared_difference,
    "LOG": unary("Log"),
    "SQRT": unary("Sqrt"),
    "RSQRT": rsqrt,
    "SQUARE": square,
    "SOFTMAX": softmax,
    NORMALISATION: normalization,
    "LOG_SOFTMAX": log_softmax,
    "L2_NORMALIZATION": l2_normalization,
    "ARG_MAX": arg("ArgMax"),
    "ARG_MIN": arg("ArgMin"),
    "DENSIFY": dequantize,
    "DEQUANTIZE": dequantize,
    **float_moves.HANDLERS,
    **float_recurrent.HANDLERS,
}
