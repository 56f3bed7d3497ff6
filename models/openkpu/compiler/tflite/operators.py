# SPDX-License-Identifier: Apache-2.0
"""What each TFLite operator becomes (docs/compiler.md has the table).

A handler reads every option of its operator: one that it does not implement is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div, largest_divisor
from openkpu.compiler.form import functions
from openkpu.compiler.form.graph import (
    LONGEST,
    Conv,
    Dense,
    Elementwise,
    Host,
    Move,
    Pool,
    Table,
    Tensor,
)
from openkpu.compiler.tflite import moves as tflite_moves
from openkpu.compiler.tflite import rarer
from openkpu.compiler.tflite.raw import RawOperator
from openkpu.compiler.tflite.reader import TO_NCHW, Operands, TfliteReader, integers

Shape = tuple[int, ...]
INF = math.inf
ACTIVATIONS = {0: (-INF, INF), 1: (0.0, INF), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
ACTIVATION_NAMES = {4: "TANH", 5: "SIGN_BIT"}
SAME, VALID = 0, 1
BIAS_OFF = 0.02  # of the output's step: what TFLite tolerates between bias scale and product


def options(r: Operands, op: RawOperator) -> Any:
    """The options' reader; an error when the file has none."""
    if op.options is None:
        raise r.refuse("its options are not in the file")
    return op.options


def clamp_of(r: TfliteReader, code: int, y: Tensor) -> tuple[int, int]:
    """The fused activation as a clamp of the output's integers."""
    if code not in ACTIVATIONS:
        name = ACTIVATION_NAMES.get(code, code)
        raise r.refuse(f"fused activation {name}, expected NONE, RELU, RELU_N1_TO_1 or RELU6")
    return functions.fused(y, *ACTIVATIONS[code])


def same_pads(size: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """(before, after) of SAME."""
    span = (kernel - 1) * dilation + 1
    total = max((ceil_div(size, stride) - 1) * stride + span - size, 0)
    return total // 2, total - total // 2


def pads_of(
    r: Operands,
    code: int,
    size: tuple[int, ...],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilation: tuple[int, int] = (1, 1),
) -> tuple[int, int, int, int]:
    """Top, left, bottom, right."""
    if code not in (SAME, VALID):
        raise r.refuse(f"padding {code}, expected SAME or VALID")
    if min(strides) < 1 or min(dilation) < 1:
        raise r.refuse(f"strides {strides}, dilation {dilation}, expected 1 or more")
    if code == VALID:
        return 0, 0, 0, 0
    ends = [same_pads(*each) for each in zip(size, kernel, strides, dilation, strict=True)]
    return ends[0][0], ends[1][0], ends[0][1], ends[1][1]


# ------------------------------------------------------------------- convolutions
def window_of(
    r: Operands, op: RawOperator, size: tuple[int, ...], kernel: tuple[int, int]
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]]:
    """(strides, dilation, pads) of a convolution."""
    o = options(r, op)
    strides, dilation = (o.StrideH(), o.StrideW()), (o.DilationHFactor(), o.DilationWFactor())
    if op.spread is not None:
        return strides, op.spread.dilation, op.spread.pads
    return strides, dilation, pads_of(r, o.Padding(), size, kernel, strides, dilation)


def weights_of(
    r: TfliteReader, op: RawOperator, axis: int, outputs: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """(weights, scales (O,), zero points (O,)) of input 1."""
    raw = r.constant(op, 1, "weights")
    if raw.dtype not in ("int8", "uint8"):
        raise r.refuse(f"weights {raw.name!r} of {raw.dtype}, expected int8 or uint8")
    if raw.scale.size not in (1, outputs) or (raw.scale.size > 1 and raw.axis != axis):
        raise r.refuse(
            f"weights {raw.name!r} have {raw.scale.size} scales along axis {raw.axis},"
            f" expected 1, or {outputs} along axis {axis}"
        )
    if not (np.isfinite(raw.scale).all() and (raw.scale > 0).all()):
        raise r.refuse(f"weights {raw.name!r}: a scale that is no finite number above 0")
    scale = np.broadcast_to(raw.scale, outputs).copy()
    zero = np.broadcast_to(raw.zero, outputs).copy()
    return integers(raw.values), scale, zero


def bias_of(
    r: TfliteReader, op: RawOperator, scale: npt.NDArray[np.float64], y: Tensor, at: int = 2
) -> npt.NDArray[np.int64]:
    """Biases (O,) of input ``at`` in steps of ``scale``, the input's times the weights'."""
    if not r.has(op, at):
        return np.zeros(scale.size, dtype=np.int64)
    raw = r.constant(op, at, "bias")
    if raw.dtype != "int32":
        raise r.refuse(f"bias {raw.name!r} of {raw.dtype}, expected int32")
    if raw.values.size != scale.size:
        raise r.refuse(f"bias {raw.name!r} of {raw.values.size} values, expected {scale.size}")
    if raw.zero.any():
        raise r.refuse(f"bias {raw.name!r} with a zero point, expected none")
    if raw.scale.size and (np.abs(raw.scale - scale) / (y.scale or 1) > BIAS_OFF).any():
        raise r.refuse(f"bias {raw.name!r}: its scale is not input's times weights'")
    return integers(raw.values).reshape(-1)


def conv_2d(r: TfliteReader, op: RawOperator) -> None:
    x, y, o = r.quantised(op, 0), r.quantised_output(op), options(r, op)
    shape = r.constant(op, 1, "weights").shape
    if len(shape) != 4 or len(x.shape) != 4:
        raise r.refuse(f"weights {shape} and input {x.shape}, expected rank 4")
    weights, scale, zero = weights_of(r, op, 0, shape[0])
    if x.shape[1] % shape[3]:
        raise r.refuse(f"weights of {shape[3]} channels, the input has {x.shape[1]}")
    strides, dilation, pads = window_of(r, op, x.shape[2:], shape[1:3])
    r.node(
        Conv,
        *([x], y),
        weights=np.ascontiguousarray(weights.transpose(TO_NCHW)),
        w_scale=scale,
        w_zero=zero,
        bias=bias_of(r, op, scale * x.step, y),
        clamp=clamp_of(r, o.FusedActivationFunction(), y),
        strides=strides,
        pads=pads,
        dilation=dilation,
        groups=x.shape[1] // shape[3],
    )


def depthwise_conv_2d(r: TfliteReader, op: RawOperator) -> None:
    x, y, o = r.quantised(op, 0), r.quantised_output(op), options(r, op)
    shape = r.constant(op, 1, "weights").shape
    if len(shape) != 4 or len(x.shape) != 4 or shape[0] != 1 or shape[3] % x.shape[1]:
        raise r.refuse(f"weights {shape} do not fit the input {x.shape}")
    weights, scale, zero = weights_of(r, op, 3, shape[3])
    strides, dilation, pads = window_of(r, op, x.shape[2:], shape[1:3])
    r.node(
        Conv,
        *([x], y),
        weights=np.ascontiguousarray(weights.transpose(3, 0, 1, 2)),
        w_scale=scale,
        w_zero=zero,
        bias=bias_of(r, op, scale * x.step, y),
        clamp=clamp_of(r, o.FusedActivationFunction(), y),
        strides=strides,
        pads=pads,
        dilation=dilation,
        groups=x.shape[1],
    )


def fully_connected(r: TfliteReader, op: RawOperator) -> None:
    x, o = r.quantised(op, 0), options(r, op)
    raw = r.constant(op, 1, "weights")
    if len(raw.shape) != 2:
        raise r.refuse(f"weights {raw.shape}, expected (O, K)")
    if o.WeightsFormat():
        raise r.refuse("shuffled weights, expected the default format")
    outputs, k = raw.shape
    weights, scale, zero = weights_of(r, op, 0, outputs)
    whole = r.raw(op, 0).shape
    count = math.prod(whole)
    if count % k:
        raise r.refuse(f"weights {raw.shape} do not fit the input {whole}")
    kept = o.KeepNumDims() and whole[-1] == k and len(whole) != 4  # of rank 4 a tensor is a map
    lead = whole[:-1] if kept else (count // k,)
    x = r.model_order(x)
    if x.shape != (*lead, k):
        flat = r.between(x, (*lead, k), x.name)
        r.node(Move, [x], flat, how="reshape")
        x = flat
    y = r.quantised_output(op)
    inner = y
    if y.shape != (*lead, outputs):
        inner = r.between(y, (*lead, outputs), y.name)
    fields: dict[str, object] = {"bias": bias_of(r, op, scale * x.step, y)}
    fields["clamp"] = clamp_of(r, o.FusedActivationFunction(), y)
    r.node(Dense, [x], inner, weights=weights, w_scale=scale, w_zero=zero, **fields)
    if inner is not y:
        r.reshaped(inner, y, r.model.tensors[op.outputs[0]].shape)


# -------------------------------------------------------------------------- pools
def pool(how: str) -> Callable[[TfliteReader, RawOperator], None]:
    def handler(r: TfliteReader, op: RawOperator) -> None:
        x, y, o = r.quantised(op, 0), r.quantised_output(op), options(r, op)
        if len(x.shape) != 4:
            raise r.refuse(f"input {x.shape}, expected rank 4")
        kernel, strides = (o.FilterHeight(), o.FilterWidth()), (o.StrideH(), o.StrideW())
        r.node(
            Pool,
            *([x], y),
            how=how,
            kernel=kernel,
            strides=strides,
            pads=pads_of(r, o.Padding(), x.shape[2:], kernel, strides),
            clamp=clamp_of(r, o.FusedActivationFunction(), y),
        )

    return handler


def reduced_axes(r: Operands, shape: Shape, axes: list[int]) -> tuple[list[int], bool]:
    """(the axes of ``shape`` that a mean, maximum or sum leaves out, whether they are lines or
    columns of a map)."""
    rank = len(shape)
    if not axes or not all(-rank <= a < rank for a in axes):
        raise r.refuse(f"over axes {axes} of {shape}, expected some of {rank}")
    if min(shape) < 1:
        raise r.refuse(f"input {shape}, expected sizes of 1 or more")
    gone = sorted({a % rank for a in axes})
    return gone, rank == 4 and {a for a in gone if shape[a] > 1} <= {1, 2}


def reduction(how: str) -> Callable[[TfliteReader, RawOperator], None]:
    """MEAN, REDUCE_MAX and SUM: a pool of some axes as a whole, or a layer whose weights are 1.
    Of other axes, what is kept becomes channels."""

    def handler(r: TfliteReader, op: RawOperator) -> None:
        x, own, y = r.quantised(op, 0), r.raw(op, 0).shape, r.quantised_output(op)
        gone, of_map = reduced_axes(r, own, r.integers(op, 1, "axes"))
        kernel = tuple(own[a] if a in gone else 1 for a in (1, 2)) if of_map else (1, 1)
        if not of_map:
            x = r.model_order(x)
            order = [*(i for i in range(len(own)) if i not in gone), *gone]
            if order != list(range(len(own))):
                turned = r.between(x, tuple(own[a] for a in order), x.name)
                r.transposed(x, tuple(order), turned)
                x = turned
            length = math.prod(own[a] for a in gone)
            wide = largest_divisor(length, LONGEST)
            kernel = (length // wide, wide)
            lines = r.between(x, (1, math.prod(own) // length, *kernel), x.name)
            r.node(Move, [x], lines, how="reshape")
            x = lines
        ends = tuple(n // k for n, k in zip(x.size, kernel, strict=True))
        whole = y
        if (1, x.shape[1], *ends) != y.shape or not of_map:
            whole = r.between(y, (1, x.shape[1], *ends), y.name)
        if how == "sum":
            fields = ones(x.shape[1], (kernel[0], kernel[1]))
            r.node(Conv, [x], whole, **fields, strides=kernel, clamp=y.limits)
        else:
            r.node(Pool, [x], whole, how=how, kernel=kernel, strides=kernel, clamp=y.limits)
        if whole is not y:
            out = r.model.tensors[op.outputs[0]].shape
            if not of_map and len(out) == 4:  # in the model's order; its pixels are channels
                middle = r.between(y, out, y.name)
                r.node(Move, [whole], middle, how="reshape")
                r.transposed(middle, TO_NCHW, y)
            elif not of_map:
                r.node(Move, [whole], y, how="reshape")
            else:
                r.reshaped(whole, y, out)

    return handler


def ones(channels: int, kernel: tuple[int, int]) -> dict[str, Any]:
    """Fields of a depthwise convolution that sums."""
    none = np.zeros(channels, np.int64)
    return {
        "weights": np.ones((channels, 1, *kernel), np.int64),
        "w_scale": np.ones(channels),
        "w_zero": none,
        "bias": none,
        "groups": channels,
    }


# --------------------------------------------------------------- element by element
def elementwise(how: str, fused: bool) -> Callable[[TfliteReader, RawOperator], None]:
    def handler(r: TfliteReader, op: RawOperator) -> None:
        inputs, y = [r.quantised(op, 0), r.quantised(op, 1)], r.quantised_output(op)
        clamp = y.limits
        if fused and op.options is not None:
            clamp = clamp_of(r, op.options.FusedActivationFunction(), y)
        if len(y.shape) == 4:
            inputs = [as_map(r, t, r.raw(op, i).shape) for i, t in enumerate(inputs)]
        r.node(Elementwise, inputs, y, how=how, clamp=clamp)

    return handler


def squared_difference(r: TfliteReader, op: RawOperator) -> None:
    """SQUARED_DIFFERENCE: on the processor, for a difference of bytes has nine bits."""
    inputs, y = [r.quantised(op, 0), r.quantised(op, 1)], r.quantised_output(op)
    if len(y.shape) == 4:
        inputs = [as_map(r, t, r.raw(op, i).shape) for i, t in enumerate(inputs)]
    r.node(Host, inputs, y, how="sqdiff")


def as_map(r: TfliteReader, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """An operand of rank 4, whatever it was: sizes of 1 in front, as numpy broadcasts."""
    if len(shape) == 4:
        return x
    full = (1,) * (4 - len(shape)) + tuple(shape)
    wide = tuple(full[a] for a in TO_NCHW)
    y = r.between(x, wide, x.name)
    if x.data is not None:
        y.data = np.ascontiguousarray(x.data.reshape(full).transpose(TO_NCHW))
        return y
    r.reshaped(x, y, full)
    return y


def unary(name: str, function: Callable[[RawOperator], functions.Real]) -> Any:
    def handler(r: TfliteReader, op: RawOperator) -> None:
        x, y = r.quantised(op, 0), r.quantised_output(op)
        try:
            table = functions.table_of(function(op), x, y)
        except (ValueError, ZeroDivisionError, OverflowError) as error:
            raise r.refuse(f"{name} is not defined for all inputs: {error}") from None
        r.node(Table, [x], y, table=table, function=name)

    return handler


def relu(low: float, high: float) -> Any:
    def handler(r: TfliteReader, op: RawOperator) -> None:
        x, y = r.quantised(op, 0), r.quantised_output(op)
        table = functions.clamp_table(x, y, functions.fused(y, low, high))
        r.node(Table, [x], y, table=table, function=f"clamp {low:g}..{high:g}")

    return handler


def quantize(r: TfliteReader, op: RawOperator) -> None:
    if r.raw(op, 0).dtype == "float32":
        r.node(Host, [r.input(op, 0)], r.output(op), how="quantize")
        return
    x, y = r.quantised(op, 0), r.output(op)
    if not y.quantised:
        raise r.refuse(f"{x.dtype} to {y.dtype}, expected int8 or uint8")
    r.node(Table, [x], y, table=functions.requantise(x, y), function="requantise")


def dequantize(r: TfliteReader, op: RawOperator) -> None:
    x, y = r.quantised(op, 0), r.output(op)
    r.node(Host, [x], y, how="dequantize")


def softmax(r: TfliteReader, op: RawOperator) -> None:
    x, y = r.input(op, 0), r.output(op)
    axis = r.axis(len(x.shape), -1)
    r.node(Host, [x], y, how="softmax", axis=axis, beta=float(options(r, op).Beta()))


def arg(how: str) -> Callable[[TfliteReader, RawOperator], None]:
    def handler(r: TfliteReader, op: RawOperator) -> None:
        x, axes = r.model_order(r.input(op, 0)), r.integers(op, 1, "axis")
        rank = len(x.shape)
        if len(axes) != 1 or not -rank <= axes[0] < rank:
            raise r.refuse(f"axis {axes}, expected one of {rank}")
        r.node(Host, [x], r.output(op), how=how, axis=axes[0] % rank)

    return handler


def leaky_relu(r: TfliteReader, op: RawOperator) -> None:
    alpha = float(options(r, op).Alpha())
    if not math.isfinite(alpha):
        raise r.refuse(f"alpha {alpha}, expected a finite number")
    unary("leaky relu", lambda op: functions.leaky(alpha))(r, op)


def _gelu(op: RawOperator) -> functions.Real:
    """Exact, or with a tanh."""
    near = op.options is not None and op.options.Approximate()
    return functions.gelu_tanh if near else functions.gelu


HANDLERS: dict[str, Callable[[TfliteReader, RawOperator], None]] = {
    "CONV_2D": conv_2d,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d,
    "FULLY_CONNECTED": fully_connected,
    "AVERAGE_POOL_2D": pool("average"),
    "MAX_POOL_2D": pool("max"),
    "MEAN": reduction("average"),
    "REDUCE_MAX": reduction("max"),
    "SUM": reduction("sum"),
    "ADD": elementwise("add", True),
    "SUB": elementwise("sub", True),
    "MUL": elementwise("mul", True),
    "SQUARED_DIFFERENCE": squared_difference,
    "MAXIMUM": elementwise("max", False),
    "MINIMUM": elementwise("min", False),
    "RELU": relu(0, INF),
    "RELU6": relu(0, 6),
    "RELU_N1_TO_1": relu(-1, 1),
    "RELU_0_TO_1": relu(0, 1),
    "LEAKY_RELU": leaky_relu,
    "LOGISTIC": unary("sigmoid", lambda op: functions.sigmoid),
    "TANH": unary("tanh", lambda op: functions.tanh),
    "HARD_SWISH": unary("hard-swish", lambda op: functions.hard_swish),
    "ELU": unary("elu", lambda op: functions.elu()),
    "EXP": unary("exp", lambda op: functions.exp),
    "GELU": unary("gelu", _gelu),
    "ABS": unary("absolute value", lambda op: abs),
    "NEG": unary("negative", lambda op: lambda r: -r),
    "SQUARE": unary("square", lambda op: lambda r: r * r),
    "LOG": unary("logarithm", lambda op: functions.log),
    "SQRT": unary("square root", lambda op: functions.sqrt),
    "RSQRT": unary("reciprocal square root", lambda op: functions.rsqrt),
    "QUANTIZE": quantize,
    "DEQUANTIZE": dequantize,
    "SOFTMAX": softmax,
    "ARG_MAX": arg("argmax"),
    "ARG_MIN": arg("argmin"),
    "TRANSPOSE_CONV": rarer.transpose_conv(weights_of, bias_of, clamp_of),
    **tflite_moves.HANDLERS,
    **rarer.HANDLERS,
}
