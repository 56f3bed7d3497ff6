# SPDX-License-Identifier: Apache-2.0
"""What ONNX's float operators between DequantizeLinear and QuantizeLinear become: the QDQ form.

Also the table of all operators, ``HANDLERS``: by domain and name.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from openkpu.compiler.form import functions
from openkpu.compiler.form.graph import INTEGERS, QUANTISED, Host, Tensor
from openkpu.compiler.onnx import axes, places, rarer
from openkpu.compiler.onnx import element as onnx_element
from openkpu.compiler.onnx import linear as onnx_linear
from openkpu.compiler.onnx import moves as onnx_moves
from openkpu.compiler.onnx.file import RawNode, type_name
from openkpu.compiler.onnx.reader import FLOAT_MODEL, Handler, OnnxReader
from openkpu.compiler.onnx.shared import Convolution, PendingPool, PendingProduct, waiting
from openkpu.compiler.onnx.values import Bytes, Clamp, Const, Curve, Number, Pending, Weights

INF = math.inf


# ------------------------------------------------------------- convolutions and products
def weights_at(r: OnnxReader, node: RawNode, at: int) -> Weights:
    """Weights behind their DequantizeLinear."""
    value = r.value(node, at)
    if isinstance(value, Weights):
        return value
    name = node.inputs[at]
    if isinstance(value, Const):
        what = f"weights {name!r} of {value.data.dtype}"
        raise r.refuse(f"{what}: {FLOAT_MODEL}" if value.data.dtype.kind == "f" else what)
    how = "an input of the model" if name in r.inputs else "computed"
    raise r.refuse(f"weights {name!r} are {how}, expected a constant")


def bias_at(r: OnnxReader, node: RawNode, at: int) -> Weights | npt.NDArray | None:
    """A bias, as integers or as floats."""
    if not r.has(node, at):
        return None
    value = r.value(node, at)
    return value if isinstance(value, Weights) else r.constant(node, at, "bias")


def conv(r: OnnxReader, node: RawNode) -> None:
    made = Convolution(r, node, r.operand(node, 0), weights_at(r, node, 1))
    r.put(node, waiting(r, made, bias_at(r, node, 2), 1))


def conv_transpose(r: OnnxReader, node: RawNode) -> None:
    made = rarer.Transposed(r, node, r.operand(node, 0), weights_at(r, node, 1))
    r.put(node, waiting(r, made, bias_at(r, node, 2), 1))


def gemm(r: OnnxReader, node: RawNode) -> None:
    """alpha and transB become part of the weights, beta of the bias."""
    fields = r.attributes(node, alpha=1.0, beta=1.0, transA=0, transB=0)
    x = onnx_linear.first_operand(r, r.operand(node, 0), bool(fields["transA"]))
    made = PendingProduct(r, x, weights_at(r, node, 1), bool(fields["transB"]))
    bias = bias_at(r, node, 2)
    alpha, beta = (onnx_linear.finite(r, fields, name) for name in ("alpha", "beta"))
    if bias is not None and beta != 1.0:
        bias = np.asarray(bias.real() if isinstance(bias, Weights) else bias, np.float64) * beta
    if alpha != 1.0:
        made = made.scaled(np.full(made.shape[-1], alpha))
    r.put(node, waiting(r, made, bias, -1))


def matmul(r: OnnxReader, node: RawNode) -> None:
    r.attributes(node)
    if not isinstance(r.value(node, 1), (Const, Weights)):
        rarer.onnx_product(r, node)
        return
    made = PendingProduct(r, r.operand(node, 0), weights_at(r, node, 1), turned=False)
    r.put(node, waiting(r, made, None, -1))


# ------------------------------------------------------------------------------- pools
def pool(how: str) -> Handler:
    def handler(r: OnnxReader, node: RawNode) -> None:
        if any(node.outputs[1:2]):
            raise r.refuse("the places are an output, expected the values only")
        value, raw = r.value(node, 0), False
        if isinstance(value, Bytes) and value.tensor.dtype in QUANTISED:
            x, raw = value.tensor, True
        else:
            x = r.operand(node, 0)
        if raw and how != "max":
            raise r.refuse(f"its input {node.inputs[0]!r} is {x.dtype}, expected float")
        made = PendingPool(r, node, x.shape, how)
        if how == "max":  # bytes of the input
            y = r.between(x, made.shape, node.outputs[0])
            made.emit(x, y, y.limits)
            r.put(node, Bytes(y) if raw else Curve(y))
            return
        r.put(node, Pending(made.shape, _at(r, node, lambda y, c: made.emit(x, y, c))))

    return handler


def _at(r: OnnxReader, node: RawNode, make: Callable[[Tensor, Clamp], None]) -> Callable:
    """``make`` under the name of its own node."""

    def later(y: Tensor, clamp: Clamp) -> None:
        at, r.at = r.at, node
        make(y, clamp)
        r.at = at

    return later


def limit(low: float, high: float) -> Handler:
    """Relu and what else limits numbers to low..high."""

    def handler(r: OnnxReader, node: RawNode) -> None:
        r.attributes(node)
        _limit(r, node, low, high)

    return handler


def clip(r: OnnxReader, node: RawNode) -> None:
    fields = r.attributes(node, min=-INF, max=INF)
    value = r.value(node, 0)
    if isinstance(value, Bytes) and value.tensor.dtype in QUANTISED:
        onnx_linear.clip(r, node, value.tensor)
        return
    low = r.number(node, 1, "min", fields["min"])
    high = r.number(node, 2, "max", fields["max"])
    if low > high:
        raise r.refuse(f"from {low} to {high}, expected the lower end first")
    _limit(r, node, low, high)


def _limit(r: OnnxReader, node: RawNode, low: float, high: float) -> None:
    value = r.value(node, 0)
    if isinstance(value, Bytes) and value.tensor.dtype in QUANTISED:
        onnx_linear.clip(r, node, value.tensor)
    elif isinstance(value, Pending):
        r.put(node, value.limited(low, high))
    elif isinstance(value, Curve):
        words = "relu" if (low, high) == (0, INF) else f"clamp {low:g}..{high:g}"
        r.put(node, value.then(functions.between(low, high), words))
    else:
        r.operand(node, 0)  # says what is wrong


def unary(
    function: Callable[..., Callable], jumps: bool = False, **defaults: float | int | str
) -> Handler:
    """A function of one number, made from the attributes; one that ``jumps`` has steps."""

    def handler(r: OnnxReader, node: RawNode) -> None:
        fields = r.attributes(node, **defaults)  # pyright: ignore
        value = r.value(node, 0)
        if not isinstance(value, Curve):
            value = Curve(r.operand(node, 0))
        r.put(node, value.then(function(**fields), node.operator, jumps))

    return handler


def plain(function: Callable, jumps: bool = False) -> Handler:
    """A function without attributes."""
    return unary(lambda: function, jumps)


def prelu(r: OnnxReader, node: RawNode) -> None:
    """PRelu; with one slope for all channels it is a function of one number."""
    value, slope = r.value(node, 0), onnx_element.single(r.value(node, 1))
    if slope is None:
        rarer.onnx_prelu(r, node)
        return
    if not isinstance(value, Curve):
        value = Curve(r.operand(node, 0))
    r.put(node, value.then(lambda v: v if v >= 0 else slope * v, node.operator))


def _celu(alpha: float) -> Callable[[Number], Number]:
    return lambda v: v if v >= 0 else alpha * math.expm1(float(v) / alpha)


def _shrink(bias: float, lambd: float) -> Callable[[Number], Number]:
    return lambda v: v + bias if v < -lambd else v - bias if v > lambd else 0


def _thresholded(alpha: float) -> Callable[[Number], Number]:
    return lambda v: v if v > alpha else 0


def _gelu(approximate: str) -> Callable[[Number], Number]:
    return functions.gelu if approximate == "none" else functions.gelu_tanh


def _selu(alpha: float, gamma: float) -> Callable[[Number], Number]:
    return lambda v: gamma * (float(v) if v >= 0 else alpha * math.expm1(float(v)))


def _mish(v: Number) -> float:
    return float(v) * math.tanh(functions.softplus(Fraction(v)))


def cast(r: OnnxReader, node: RawNode) -> None:
    """Bytes to float as they are; float to float32; the integers that the processor computes."""
    fields = r.attributes(node, to=0, saturate=1, round_mode="up")
    value, kind = r.value(node, 0), type_name(fields["to"])
    kind = "float32" if kind == "float" else kind
    if isinstance(value, Bytes) and value.tensor.dtype in INTEGERS:
        if kind not in ("float32", *INTEGERS):
            raise r.refuse(f"{value.tensor.dtype} to {kind}, expected float, int32 or int64")
        if kind != value.tensor.dtype:
            y = r.tensor(node.outputs[0], kind, value.shape)
            r.emit(Host, [value.tensor], y, how="cast")
            value = Bytes(y)
    elif kind != "float32":
        raise r.refuse(f"to {kind}, expected float")
    elif isinstance(value, Bytes) and value.tensor.dtype in QUANTISED:
        value = Curve(r.carried(value.tensor, 1.0, 0))
    r.put(node, value)


# ---------------------------------------------------------------------- on the processor
def softmax(how: str, r: OnnxReader, node: RawNode) -> None:
    axis = r.attributes(node, axis=-1 if r.opset >= 13 else 1)["axis"]
    x = r.operand(node, 0)
    axis = onnx_linear.softmax_axis(r, x.shape, axis, r.opset)
    emit = functools.partial(r.emit, Host, [x], how=how, axis=axis)

    def make(y: Tensor, clamp: Clamp) -> None:
        if clamp != y.limits:
            raise r.refuse("an activation behind it, expected none")
        emit(y)

    r.put(node, Pending(x.shape, _at(r, node, make), floats=emit))


def argument(how: str) -> Handler:
    def handler(r: OnnxReader, node: RawNode) -> None:
        fields = r.attributes(node, axis=0, keepdims=1, select_last_index=0)
        value = r.value(node, 0)
        if isinstance(value, Bytes) and value.tensor.dtype in QUANTISED:
            x = value.tensor
        else:
            x = r.operand(node, 0)
        rank = len(x.shape)
        if not -rank <= fields["axis"] < rank:
            raise r.refuse(f"axis {fields['axis']}, expected one of {rank}")
        axis, keep = fields["axis"] % rank, bool(fields["keepdims"])
        shape = [1 if i == axis else n for i, n in enumerate(x.shape) if keep or i != axis]
        y = r.tensor(node.outputs[0], "int64", shape)
        last = bool(fields["select_last_index"])
        r.emit(Host, [x], y, how=how, axis=axis, keep=keep, last=last)
        r.put(node, Bytes(y))

    return handler


def refused(text: str) -> Handler:
    """An operator that is known, and why it is not read."""

    def handler(r: OnnxReader, node: RawNode) -> None:
        raise r.refuse(text)

    return handler


DYNAMIC = (
    "scales that are computed while the model runs, as quantize_dynamic writes them; expected"
    " static quantisation: onnxruntime's quantize_static writes it from the float model"
)
FLOAT: dict[str, Handler] = {
    "QuantizeLinear": OnnxReader.quantise,
    "DequantizeLinear": OnnxReader.dequantise,
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "Gemm": gemm,
    "MatMul": matmul,
    "MaxPool": pool("max"),
    "AveragePool": pool("average"),
    "GlobalMaxPool": pool("max"),
    "GlobalAveragePool": pool("average"),
    "Relu": limit(0, INF),
    "Clip": clip,
    "PRelu": prelu,
    "LeakyRelu": unary(functions.leaky, alpha=0.01),
    "HardSigmoid": unary(functions.hard_sigmoid, alpha=0.2, beta=0.5),
    "Elu": unary(functions.elu, alpha=1.0),
    "Celu": unary(_celu, alpha=1.0),
    "Atan": plain(math.atan),
    "Ceil": plain(math.ceil, jumps=True),
    "Cos": plain(math.cos),
    "Floor": plain(math.floor, jumps=True),
    "Round": plain(round, jumps=True),
    "Sign": plain(lambda v: (v > 0) - (v < 0), jumps=True),
    "Shrink": unary(_shrink, jumps=True, bias=0.0, lambd=0.5),
    "ThresholdedRelu": unary(_thresholded, jumps=True, alpha=1.0),
    "Sin": plain(math.sin),
    "Softsign": plain(lambda v: v / (1 + abs(v))),
    "Selu": unary(_selu, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875),
    "Gelu": unary(_gelu, approximate="none"),
    "HardSwish": plain(functions.hard_swish),
    "Sigmoid": plain(functions.sigmoid),
    "Tanh": plain(functions.tanh),
    "Softplus": plain(functions.softplus),
    "Mish": plain(_mish),
    "Exp": plain(functions.exp),
    "Log": plain(lambda v: math.log(v) if v else -INF),
    "Sqrt": plain(math.sqrt),
    "Erf": plain(math.erf),
    "Abs": plain(abs),
    "Neg": plain(lambda v: -v),
    "Reciprocal": plain(lambda v: onnx_element.quotient(1, v)),
    "Cast": cast,
    "Softmax": functools.partial(softmax, "softmax"),
    "LogSoftmax": functools.partial(softmax, "logsoftmax"),
    "ArgMax": argument("argmax"),
    "ArgMin": argument("argmin"),
    "ConvInteger": refused(DYNAMIC),
    "MatMulInteger": refused(DYNAMIC),
    "DynamicQuantizeLinear": refused(DYNAMIC),
    **onnx_element.HANDLERS,
    **onnx_moves.HANDLERS,
    **axes.HANDLERS,
    **places.HANDLERS,
    **rarer.HANDLERS,
}
HANDLERS: dict[tuple[str, str], Handler] = {
    **{("", name): handler for name, handler in FLOAT.items()},
    **onnx_linear.HANDLERS,
}
