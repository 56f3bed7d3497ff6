# SPDX-License-Identifier: Apache-2.0
"""Quantised ONNX models: ``Writer`` (see the package) by the package ``onnx``, in two forms.

*QDQ*: float operators between DequantizeLinear and QuantizeLinear. *QOperator*: QLinearConv and
its like, those of ONNX Runtime's domain included; an operator that has none is written as in QDQ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from openkpu.writers import Pads, Pair, Quant, Value, Weights, explicit_pads, window_shape

RUNTIME = "com.microsoft"
IR_VERSION = 8
Fields = dict[str, Any]  # attributes of a node
ELEMENTS = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "float32": TensorProto.FLOAT}
BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "max": "Max", "min": "Min"}
UNARY = {
    "leaky_relu": "LeakyRelu",
    "logistic": "Sigmoid",
    "tanh": "Tanh",
    "hard_swish": "HardSwish",
    "relu": "Relu",
    "relu6": "Clip",
    "requantise": "",
    "abs": "Abs",
}
BOUNDS = {"relu": (0.0, None), "relu6": (0.0, 6.0), "relu_n1_to_1": (-1.0, 1.0)}
QLINEAR = {"add": "QLinearAdd", "mul": "QLinearMul"}
QLINEAR_UNARY = {"leaky_relu": "QLinearLeakyRelu", "logistic": "QLinearSigmoid"}


class OnnxModel:
    """A model under construction; activations of one type, int8 or uint8.

    ``float_io``: the model's inputs and outputs are float, quantised inside. ``auto_pad``: SAME
    stays a word. ``reduce_mean``: ReduceMean instead of GlobalAveragePool.
    """

    def __init__(
        self,
        form: str = "qdq",
        dtype: npt.DTypeLike = np.int8,
        opset: int = 13,
        float_io: bool = False,
        auto_pad: bool = False,
        reduce_mean: bool = False,
    ) -> None:
        self.operators, self.dtype, self.opset = form == "qoperator", np.dtype(dtype), opset
        self.float_io, self.auto_pad, self.reduce_mean = float_io, auto_pad, reduce_mean
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        self.inputs: list[onnx.ValueInfoProto] = []
        self._count = 0
        self._types: dict[str, int] = {}

    def name(self, stem: str = "t") -> str:
        """A name that is not in use."""
        self._count += 1
        return f"{stem}{self._count}"

    def array(self, data: npt.ArrayLike, dtype: npt.DTypeLike, stem: str = "c") -> str:
        """An initializer; its name."""
        name = self.name(stem)
        self.initializers[name] = numpy_helper.from_array(np.asarray(data, dtype), name)
        return name

    def node(
        self, kind: str, inputs: Sequence[str], count: int = 1, domain: str = "", **fields: Any
    ) -> list[str]:
        """A node with ``count`` results; their names."""
        outputs = [self.name() for _ in range(count)]
        name = self.name(f"{kind}_")
        kept = {k: v for k, v in fields.items() if v is not None}
        self.nodes.append(
            helper.make_node(kind, list(inputs), outputs, name=name, domain=domain, **kept)
        )
        return outputs

    def _parameters(self, quant: Quant) -> list[str]:
        scale = self.array(quant.scale, np.float32, "scale")
        return [scale, self.array(quant.zero_point, self.dtype, "zero")]

    def _triple(self, value: Value) -> list[str]:
        return [value.name, *self._parameters(value.quant)]

    def dequantised(self, value: Value) -> str:
        """The value as float."""
        return self.node("DequantizeLinear", self._triple(value))[0]

    def quantised(self, name: str, shape: Sequence[int], quant: Quant) -> Value:
        """A float tensor as bytes."""
        (out,) = self.node("QuantizeLinear", [name, *self._parameters(quant)])
        return Value(out, tuple(int(n) for n in shape), quant)

    def _moved(self, kind: str, x: Value, shape: Sequence[int], *more: str, **fields: Any):
        """An operator that moves bytes: on them as they are, or on floats in the QDQ form."""
        if self.operators:
            (out,) = self.node(kind, [x.name, *more], **fields)
            return Value(out, tuple(int(n) for n in shape), x.quant)
        (out,) = self.node(kind, [self.dequantised(x), *more], **fields)
        return self.quantised(out, shape, x.quant)

    def _clipped(self, name: str, act: str | None) -> str:
        """The fused activation on floats."""
        if act is None:
            return name
        if act == "relu":
            return self.node("Relu", [name])[0]
        bounds = [self.array(v, np.float32) for v in BOUNDS[act] if v is not None]
        return self.node("Clip", [name, *bounds])[0]

    def _clamped(self, value: Value, act: str | None) -> Value:
        """The fused activation on bytes."""
        if act is None:
            return value
        limits = np.iinfo(self.dtype.name)
        words = []
        for bound, default in zip(BOUNDS[act], (limits.min, limits.max), strict=True):
            step = (
                default
                if bound is None
                else round(bound / value.quant.scale) + value.quant.zero_point
            )
            words.append(self.array(np.clip(step, limits.min, limits.max), self.dtype))
        (out,) = self.node("Clip", [value.name, *words])
        return Value(out, value.shape, value.quant)

    def input(self, shape: Sequence[int], quant: Quant) -> Value:
        """An input of the model."""
        name = self.name("x")
        kind = "float32" if self.float_io else self.dtype.name
        self.inputs.append(helper.make_tensor_value_info(name, ELEMENTS[kind], list(shape)))
        if self.float_io:
            return self.quantised(name, shape, quant)
        return Value(name, tuple(shape), quant)

    def constant(self, data: npt.NDArray, quant: Quant) -> Value:
        """A constant operand in the activations' type."""
        return Value(self.array(data, self.dtype), data.shape, quant)

    def _weights(self, weights: Weights, x: Value, data: npt.NDArray, axis: int) -> list[str]:
        """[weights, scale, zero point, bias or ""] as initializers."""
        scale = np.asarray(weights.scale, np.float32)
        zero = np.full(scale.shape, weights.zero_point, data.dtype)
        found = [self.array(data, data.dtype, "w"), self.array(scale, np.float32, "scale")]
        found.append(self.array(zero, data.dtype, "zero"))
        if weights.bias is None:
            found.append("")
        else:
            found.append(self.array(weights.bias, np.int32, "b"))
        if self.operators:
            return found
        where: Fields = {"axis": axis} if scale.ndim else {}
        result = self.node("DequantizeLinear", found[:3], **where)
        if weights.bias is not None:
            steps = np.float32(x.quant.scale) * scale
            words = [found[3], self.array(steps, np.float32, "scale")]
            words.append(self.array(np.zeros(steps.shape), np.int32, "zero"))
            where = {"axis": 0} if steps.ndim else {}
            result += self.node("DequantizeLinear", words, **where)
        return result

    def _window(
        self, x: Value, kernel: Pair, stride: Pair, pads: Pads, dilation: Pair = (1, 1)
    ) -> tuple[Pair, Fields]:
        size = x.shape[2], x.shape[3]
        fields: Fields = {"kernel_shape": list(kernel), "strides": list(stride)}
        if pads == "same" and self.auto_pad and dilation == (1, 1):
            fields["auto_pad"] = "SAME_UPPER"
        else:
            fields["pads"] = list(explicit_pads(size, kernel, stride, pads, dilation))
        return window_shape(size, kernel, stride, pads, dilation), fields

    def conv(
        self,
        x: Value,
        weights: Weights,
        out: Quant,
        stride: Pair = (1, 1),
        pads: Pads = "same",
        dilation: Pair = (1, 1),
        groups: int = 1,
        act: str | None = None,
    ) -> Value:
        """Conv or QLinearConv."""
        count, _, *kernel = weights.data.shape
        size, fields = self._window(x, (kernel[0], kernel[1]), stride, pads, dilation)
        fields |= {"dilations": list(dilation), "group": groups}
        words = self._weights(weights, x, weights.data, 0)
        shape = (x.shape[0], count, *size)
        if self.operators:
            every = [*self._triple(x), *words[:3], *self._parameters(out), *filter(None, words[3:])]
            (y,) = self.node("QLinearConv", every, **fields)
            return self._clamped(Value(y, shape, out), act)
        (y,) = self.node("Conv", [self.dequantised(x), *words], **fields)
        return self.quantised(self._clipped(y, act), shape, out)

    def fully(self, x: Value, weights: Weights, out: Quant, act: str | None = None) -> Value:
        """Gemm; QGemm, or QLinearMatMul where there is no bias."""
        shape = x.shape[0], weights.data.shape[0]
        if not self.operators:
            words = self._weights(weights, x, weights.data, 0)
            (y,) = self.node("Gemm", [self.dequantised(x), *words], transB=1)
            return self.quantised(self._clipped(y, act), shape, out)
        words = self._weights(weights, x, weights.data.T, 1)
        if words[3]:
            every = [*self._triple(x), *words, *self._parameters(out)]
            (y,) = self.node("QGemm", every, domain=RUNTIME)
        else:
            every = [*self._triple(x), *words[:3], *self._parameters(out)]
            (y,) = self.node("QLinearMatMul", every)
        return self._clamped(Value(y, shape, out), act)

    def pool(self, kind: str, x: Value, kernel: Pair, stride: Pair, pads: Pads = "valid") -> Value:
        """MaxPool ("max"), AveragePool or QLinearAveragePool ("average")."""
        size, fields = self._window(x, kernel, stride, pads)
        shape = (*x.shape[:2], *size)
        if kind == "max":
            return self._moved("MaxPool", x, shape, **fields)
        if not self.operators:
            return self._moved("AveragePool", x, shape, **fields)
        every = [*self._triple(x), *self._parameters(x.quant)]
        (y,) = self.node("QLinearAveragePool", every, domain=RUNTIME, **fields)
        return Value(y, shape, x.quant)

    def binary(self, kind: str, a: Value, b: Value, out: Quant, act: str | None = None) -> Value:
        """Add, Sub, Mul, Max or Min, with broadcasting."""
        shape = np.broadcast_shapes(a.shape, b.shape)
        if self.operators and kind in QLINEAR:
            every = [*self._triple(a), *self._triple(b), *self._parameters(out)]
            (y,) = self.node(QLINEAR[kind], every, domain=RUNTIME)
            return self._clamped(Value(y, shape, out), act)
        (y,) = self.node(BINARY[kind], [self.dequantised(a), self.dequantised(b)])
        return self.quantised(self._clipped(y, act), shape, out)

    def unary(self, kind: str, x: Value, out: Quant, alpha: float = 0.0) -> Value:
        """A function of one value; see UNARY. ``alpha`` is LeakyRelu's slope."""
        fields: Fields = {"alpha": alpha} if kind == "leaky_relu" else {}
        if self.operators and kind in QLINEAR_UNARY:
            every = [*self._triple(x), *self._parameters(out)]
            (y,) = self.node(QLINEAR_UNARY[kind], every, domain=RUNTIME, **fields)
            return Value(y, x.shape, out)
        y = self.dequantised(x)
        if kind in BOUNDS:
            y = self._clipped(y, kind)
        elif UNARY[kind]:
            (y,) = self.node(UNARY[kind], [y], **fields)
        return self.quantised(y, x.shape, out)

    def concat(self, values: Sequence[Value], out: Quant, axis: int = 1) -> Value:
        """Concat, or QLinearConcat."""
        shape = list(values[0].shape)
        shape[axis] = sum(v.shape[axis] for v in values)
        if self.operators:
            every = self._parameters(out) + [word for v in values for word in self._triple(v)]
            (y,) = self.node("QLinearConcat", every, domain=RUNTIME, axis=axis)
            return Value(y, tuple(shape), out)
        (y,) = self.node("Concat", [self.dequantised(v) for v in values], axis=axis)
        return self.quantised(y, shape, out)

    def split(self, x: Value, parts: int, axis: int = 1) -> list[Value]:
        """Split into equal parts."""
        shape = list(x.shape)
        shape[axis] //= parts
        name = x.name if self.operators else self.dequantised(x)
        words = [name]
        if self.opset >= 13:
            words.append(self.array([shape[axis]] * parts, np.int64))
        found = self.node("Split", words, parts, axis=axis)
        if self.operators:
            return [Value(y, tuple(shape), x.quant) for y in found]
        return [self.quantised(y, shape, x.quant) for y in found]

    def slice(self, x: Value, begin: Sequence[int], size: Sequence[int]) -> Value:
        """Slice of ``size`` from ``begin`` on."""
        starts = self.array(begin, np.int64)
        ends = self.array(np.add(begin, size), np.int64)
        return self._moved("Slice", x, size, starts, ends, self.array(range(len(size)), np.int64))

    def pad(self, x: Value, pads: tuple[int, int, int, int]) -> Value:
        """Pad with the value 0."""
        n, c, high, wide = x.shape
        top, left, bottom, right = pads
        words = [self.array([0, 0, top, left, 0, 0, bottom, right], np.int64)]
        if self.operators:
            words.append(self.array(x.quant.zero_point, self.dtype))
        shape = n, c, high + top + bottom, wide + left + right
        return self._moved("Pad", x, shape, *words)

    def mean(self, x: Value, out: Quant, keep: bool = True) -> Value:
        """GlobalAveragePool or ReduceMean over the whole map; QLinearGlobalAveragePool."""
        shape = (*x.shape[:2], 1, 1)
        if self.operators:
            every = [*self._triple(x), *self._parameters(out)]
            (y,) = self.node("QLinearGlobalAveragePool", every, domain=RUNTIME, channels_last=0)
            value = Value(y, shape, out)
        elif self.reduce_mean:
            axes = [self.array([2, 3], np.int64)] if self.opset >= 18 else []
            fields: Fields = {} if axes else {"axes": [2, 3]}
            (y,) = self.node("ReduceMean", [self.dequantised(x), *axes], keepdims=1, **fields)
            value = self.quantised(y, shape, out)
        else:
            (y,) = self.node("GlobalAveragePool", [self.dequantised(x)])
            value = self.quantised(y, shape, out)
        return value if keep else self._moved("Flatten", value, shape[:2])

    def resize(self, x: Value, factor: int) -> Value:
        """Resize, nearest, by a whole factor."""
        size = x.shape[2] * factor, x.shape[3] * factor
        words = ["", self.array([1, 1, factor, factor], np.float32)]
        if self.opset < 13:
            words[0] = self.array([], np.float32)
        fields: Fields = {"mode": "nearest", "nearest_mode": "floor"}
        how = "asymmetric"
        shape = (*x.shape[:2], *size)
        return self._moved("Resize", x, shape, *words, coordinate_transformation_mode=how, **fields)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """Reshape; a flattened map has its columns innermost."""
        return self._moved("Reshape", x, shape, self.array(shape, np.int64))

    def softmax(self, x: Value) -> Value:
        """Softmax over the channels, or QLinearSoftmax."""
        out = Quant(1 / 256, int(np.iinfo(self.dtype.name).min))
        if self.operators:
            every = [*self._triple(x), *self._parameters(out)]
            (y,) = self.node("QLinearSoftmax", every, domain=RUNTIME, axis=1, opset=self.opset)
            return Value(y, x.shape, out)
        (y,) = self.node("Softmax", [self.dequantised(x)], axis=1)
        return self.quantised(y, x.shape, out)

    def argmax(self, x: Value) -> Value:
        """ArgMax over channels, int64."""
        name = x.name if self.operators else self.dequantised(x)
        (y,) = self.node("ArgMax", [name], axis=1, keepdims=0)
        self._types[y] = TensorProto.INT64
        return Value(y, (x.shape[0], *x.shape[2:]), Quant(1.0))

    def finish(self, outputs: Sequence[Value]) -> bytes:
        """The file; it passes onnx's own checker."""
        last = []
        for value in outputs:
            kind = self._types.get(value.name, ELEMENTS[self.dtype.name])
            name = value.name
            if self.float_io and value.name not in self._types:
                name, kind = self.dequantised(value), TensorProto.FLOAT
            last.append(helper.make_tensor_value_info(name, kind, list(value.shape)))
        graph = helper.make_graph(
            self.nodes, "main", self.inputs, last, list(self.initializers.values())
        )
        sets = [helper.make_opsetid("", self.opset)]
        if any(node.domain == RUNTIME for node in self.nodes):
            sets.append(helper.make_opsetid(RUNTIME, 1))
        producer = "openkpu.writers"
        model = helper.make_model(graph, opset_imports=sets, producer_name=producer)
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model, full_check=not self.operators)
        return model.SerializeToString()
