# SPDX-License-Identifier: Apache-2.0
"""ONNX's QOperator form: operators of bytes with the scales of their inputs and outputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from openkpu.compiler.form import functions
from openkpu.compiler.form.graph import QUANTISED, Elementwise, Host, Move, Table, Tensor
from openkpu.compiler.onnx import rarer
from openkpu.compiler.onnx.file import RawNode
from openkpu.compiler.onnx.moves import join, joined_shape
from openkpu.compiler.onnx.reader import OnnxReader
from openkpu.compiler.onnx.shared import Convolution, PendingPool, PendingProduct
from openkpu.compiler.onnx.values import Bytes, Const, Weights

RUNTIME = "com.microsoft"


def bytes_at(r: OnnxReader, node: RawNode, at: int) -> Tensor:
    """The operand of inputs ``at`` (bytes), ``at`` + 1 (scale) and ``at`` + 2 (zero point)."""
    value = r.value(node, at)
    if isinstance(value, Const):
        dtype, scale, zero = r.one_quant(node, at + 1, at + 2, value.data.dtype.name)
        if value.data.dtype.name not in QUANTISED:
            raise r.refuse(f"constant of {value.data.dtype}, expected int8 or uint8")
        tensor = r.quantised(node.inputs[at], (dtype, scale, zero), value.data.shape)
        tensor.data = value.data.astype(np.int64)
        return tensor
    if not isinstance(value, Bytes):
        raise r.refuse(f"its input {node.inputs[at]!r} is float, expected int8 or uint8")
    _, scale, zero = r.one_quant(node, at + 1, at + 2, value.tensor.dtype)
    return r.carried(value.tensor, scale, zero)


def weights_at(r: OnnxReader, node: RawNode, at: int, axis: int) -> Weights:
    """Weights of inputs ``at``, ``at`` + 1 and ``at`` + 2, their scales along ``axis``."""
    data = r.constant(node, at, "weights")
    kind = data.dtype.name
    if kind not in QUANTISED:
        raise r.refuse(f"weights {node.inputs[at]!r} of {kind}, expected int8 or uint8")
    _, scale, zero = r.quant(node, at + 1, at + 2, kind)
    if scale.size > 1 and (data.ndim <= axis or data.shape[axis] != scale.size):
        raise r.refuse(f"{scale.size} scales for weights {data.shape}")
    return Weights(data.astype(np.int64), kind, scale, zero, axis)


def bias_at(r: OnnxReader, node: RawNode, at: int, steps: np.ndarray) -> Weights | None:
    """An int32 bias in these steps."""
    if not r.has(node, at):
        return None
    data = r.constant(node, at, "bias")
    if data.dtype != np.int32 or data.size != steps.size or math.prod(data.shape[:-1]) > 1:
        found = f"{data.dtype}, shape {data.shape}"
        raise r.refuse(f"bias {node.inputs[at]!r} of {found}, expected int32, {steps.size}")
    zeros = np.zeros(steps.size, np.int64)
    return Weights(data.astype(np.int64).reshape(-1), "int32", steps, zeros, 0)


def result(r: OnnxReader, node: RawNode, shape: tuple[int, ...], at: int, like: Tensor) -> Tensor:
    """The output, with the scale of input ``at`` and the zero point behind it."""
    y = r.quantised(node.outputs[0], r.one_quant(node, at, at + 1, like.dtype), shape)
    r.put(node, Bytes(y))
    return y


def conv(r: OnnxReader, node: RawNode) -> None:
    x = bytes_at(r, node, 0)
    made = Convolution(r, node, x, weights_at(r, node, 3, 0))
    y = result(r, node, made.shape, 6, x)
    made.emit(bias_at(r, node, 8, made.steps), y, y.limits)


def matmul(r: OnnxReader, node: RawNode) -> None:
    r.attributes(node)
    x = bytes_at(r, node, 0)
    if not isinstance(r.value(node, 3), Const):
        b = bytes_at(r, node, 3)
        y = result(r, node, rarer.product_shape(r, x, b), 6, x)
        rarer.emit_product(r, x, b, y, y.limits)
        return
    made = PendingProduct(r, x, weights_at(r, node, 3, 1), turned=False)
    y = result(r, node, made.shape, 6, x)
    made.emit(None, y, y.limits)


def finite(r: OnnxReader, fields: dict[str, Any], name: str) -> float:
    """A factor among the attributes of a product."""
    if not math.isfinite(fields[name]):
        raise r.refuse(f"{name} {fields[name]}, expected a finite number")
    return float(fields[name])


def first_operand(r: OnnxReader, x: Tensor, turned: bool) -> Tensor:
    """The first operand (M, K) of a product, which ``turned`` has as (K, M)."""
    if len(x.shape) != 2:
        raise r.refuse(f"input {x.shape}, expected two axes")
    if not turned:
        return x
    y = r.between(x, x.shape[::-1], x.name)
    r.emit(Move, [x], y, how="transpose", axes=(1, 0))
    return y


def gemm(r: OnnxReader, node: RawNode) -> None:
    """ONNX Runtime's QGemm, alpha * (A * B + C); without an output scale it gives floats, which are
    refused."""
    fields = r.attributes(node, transA=0, transB=0, alpha=1.0)
    if not r.has(node, 7):
        raise r.refuse("its output is float, expected an output scale")
    x, turned = (
        first_operand(r, bytes_at(r, node, 0), bool(fields["transA"])),
        bool(fields["transB"]),
    )
    made = PendingProduct(r, x, weights_at(r, node, 3, 0 if turned else 1), turned)
    bias, alpha = bias_at(r, node, 6, made.steps), finite(r, fields, "alpha")
    if alpha != 1.0:
        made = made.scaled(np.full(made.shape[-1], alpha))
        bias = None if bias is None else bias.real() * alpha
    y = result(r, node, made.shape, 7, x)
    made.emit(bias, y, y.limits)


def elementwise(how: str) -> Callable[[OnnxReader, RawNode], None]:
    def handler(r: OnnxReader, node: RawNode) -> None:
        r.attributes(node)
        a, b = bytes_at(r, node, 0), bytes_at(r, node, 3)
        y = result(r, node, broadcast(r, a.shape, b.shape), 6, a)
        r.emit(Elementwise, [a, b], y, how=how, clamp=y.limits)

    return handler


def broadcast(r: OnnxReader, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Two shapes together."""
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise r.refuse(f"shapes {a} and {b} do not go together") from None


def pool(r: OnnxReader, node: RawNode) -> None:
    x = bytes_at(r, node, 0)
    made = PendingPool(r, node, x.shape, "average")
    y = result(r, node, made.shape, 3, x)
    made.emit(x, y, y.limits)


def concat(r: OnnxReader, node: RawNode) -> None:
    axis = r.attributes(node, axis=0)["axis"]
    count = len(node.inputs) - 2
    if count < 3 or count % 3:
        raise r.refuse(f"{len(node.inputs)} inputs, expected two and three for each part")
    tensors = [bytes_at(r, node, at) for at in range(2, len(node.inputs), 3)]
    y = result(r, node, joined_shape(r, [t.shape for t in tensors], axis), 0, tensors[0])
    join(r, tensors, axis, y)


def unary(words: str, function: Callable[[RawNode], functions.Real]) -> Callable:
    def handler(r: OnnxReader, node: RawNode) -> None:
        r.attributes(node, **({"alpha": 0.01} if "leaky" in words else {}))  # pyright: ignore
        x = bytes_at(r, node, 0)
        y = result(r, node, x.shape, 3, x)
        table = functions.table_of(function(node), x, y)
        r.emit(Table, [x], y, table=table, function=words)

    return handler


def softmax(r: OnnxReader, node: RawNode) -> None:
    """QLinearSoftmax; before opset 13 over all axes from ``axis`` on."""
    fields = r.attributes(node, axis=-1, opset=13)
    x = bytes_at(r, node, 0)
    y = result(r, node, x.shape, 3, x)
    r.emit(Host, [x], y, how="softmax", axis=softmax_axis(r, x.shape, **fields))


def softmax_axis(r: OnnxReader, shape: tuple[int, ...], axis: int, opset: int) -> int:
    """The one axis of a softmax."""
    if not -len(shape) <= axis < len(shape):
        raise r.refuse(f"axis {axis}, expected one of {len(shape)}")
    axis %= len(shape)
    if opset < 13 and any(n > 1 for i, n in enumerate(shape) if i > axis):
        raise r.refuse(f"softmax over several axes of {shape}, expected one")
    return axis


def clip(r: OnnxReader, node: RawNode, x: Tensor) -> None:
    """Clip and Relu of bytes: limits are bytes as well, whatever the scale."""
    low, high = x.limits
    low = int(r.number(node, 1, "min", low)) if node.operator == "Clip" else max(0, low)
    high = int(r.number(node, 2, "max", high)) if node.operator == "Clip" else high
    y = r.between(x, x.shape, node.outputs[0])
    table = np.clip(np.arange(x.limits[0], x.limits[1] + 1), low, high)
    r.emit(Table, [x], y, table=np.clip(table, *y.limits), function=f"clamp {low}..{high}")
    r.put(node, Bytes(y))


HANDLERS: dict[tuple[str, str], Callable[[OnnxReader, RawNode], None]] = {
    ("", "QLinearConv"): conv,
    ("", "QLinearMatMul"): matmul,
    (RUNTIME, "QGemm"): gemm,
    (RUNTIME, "QLinearAdd"): elementwise("add"),
    (RUNTIME, "QLinearMul"): elementwise("mul"),
    (RUNTIME, "QLinearAveragePool"): pool,
    (RUNTIME, "QLinearGlobalAveragePool"): pool,
    (RUNTIME, "QLinearConcat"): concat,
    (RUNTIME, "QLinearSigmoid"): unary("sigmoid", lambda node: functions.sigmoid),
    (RUNTIME, "QLinearLeakyRelu"): unary(
        "leaky relu", lambda node: functions.leaky(node.attributes.get("alpha", 0.01))
    ),
    (RUNTIME, "QLinearSoftmax"): softmax,
}
