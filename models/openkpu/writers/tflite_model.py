# SPDX-License-Identifier: Apache-2.0
"""Quantised TFLite models: ``Writer`` (see the package) over the container of ``flat``.

Values are (N, H, W, C) in the file. A padding that TFLite's two kinds cannot say becomes a PAD of
its own, as the converter of TensorFlow does it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tflite

from openkpu.writers import Pads, Pair, Quant, Value, Weights, explicit_pads, window_shape
from openkpu.writers.flat import FlatGraph, FlatTensor, Operator, write_tflite

ACTS = {None: "NONE", "relu": "RELU", "relu6": "RELU6", "relu_n1_to_1": "RELU_N1_TO_1"}
TO_FILE = (0, 2, 3, 1)  # (N, C, H, W) -> (N, H, W, C)
AXES = {0: 0, 1: 3, 2: 1, 3: 2}
BINARY = {  # kind: operator, options
    "add": ("ADD", "AddOptions"),
    "sub": ("SUB", "SubOptions"),
    "mul": ("MUL", "MulOptions"),
    "max": ("MAXIMUM", "MaximumMinimumOptions"),
    "min": ("MINIMUM", "MaximumMinimumOptions"),
}
UNARY = {
    "leaky_relu": ("LEAKY_RELU", "LeakyReluOptions"),
    "logistic": ("LOGISTIC", ""),
    "tanh": ("TANH", ""),
    "hard_swish": ("HARD_SWISH", "HardSwishOptions"),
    "relu": ("RELU", ""),
    "relu6": ("RELU6", ""),
    "requantise": ("QUANTIZE", "QuantizeOptions"),
    "abs": ("ABS", "AbsOptions"),
}


def _act(name: str | None) -> int:
    return getattr(tflite.ActivationFunctionType, ACTS[name])


class TfliteModel:
    """A model under construction; activations of one type, int8 or uint8."""

    def __init__(self, dtype: npt.DTypeLike = np.int8) -> None:
        self.dtype = np.dtype(dtype)
        self.tensors: list[FlatTensor] = []
        self.operators: list[Operator] = []
        self.inputs: list[int] = []
        self._index: dict[str, int] = {}

    def add_tensor(self, tensor: FlatTensor) -> int:
        """Put a tensor into the file; its index."""
        self._index[tensor.name] = len(self.tensors)
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def value(
        self,
        shape: Sequence[int],
        quant: Quant,
        dtype: npt.DTypeLike | None = None,
        data: npt.NDArray | None = None,
    ) -> Value:
        """A new tensor; ``data`` (N, C, H, W) makes it a constant."""
        name, shape = f"t{len(self.tensors)}", tuple(int(n) for n in shape)
        inside = tuple(shape[i] for i in TO_FILE) if len(shape) == 4 else shape
        if data is not None and data.ndim == 4:
            data = data.transpose(TO_FILE)
        self.add_tensor(
            FlatTensor(
                name,
                inside,
                self.dtype if dtype is None else np.dtype(dtype),
                data,
                [quant.scale],
                [quant.zero_point],
            )
        )
        return Value(name, shape, quant)

    def integers(self, values: npt.ArrayLike, dtype: type = np.int32) -> int:
        """A constant without parameters; its index."""
        data = np.asarray(values, dtype)
        return self.add_tensor(FlatTensor(f"c{len(self.tensors)}", data.shape, data.dtype, data))

    def op(
        self,
        name: str,
        inputs: Sequence[Value | int],
        outputs: Sequence[Value],
        options: str = "",
        custom: str = "",
        **fields: int | float | bool,
    ) -> None:
        """An operator; an input that is a number is a tensor's index, -1 none."""
        found = [i if isinstance(i, int) else self._index[i.name] for i in inputs]
        results = [self._index[v.name] for v in outputs]
        self.operators.append(Operator(name, found, results, options, fields, custom))

    def input(self, shape: Sequence[int], quant: Quant) -> Value:
        """An input of the model."""
        value = self.value(shape, quant)
        self.inputs.append(self._index[value.name])
        return value

    def constant(self, data: npt.NDArray, quant: Quant) -> Value:
        """A constant operand (N, C, H, W) in the activations' type."""
        return self.value(data.shape, quant, data=data)

    def _weights(self, weights: Weights, x: Value, data: npt.NDArray, axis: int) -> list[int]:
        scales = np.atleast_1d(np.asarray(weights.scale, np.float64))
        zeros = [weights.zero_point] * len(scales)
        data = np.ascontiguousarray(data)
        if weights.bias is None and data.ndim == 4:  # LiteRT's convolutions ask for one
            bias = np.zeros(len(weights.data), np.int32)
            weights = dataclasses.replace(weights, bias=bias)
        kind = FlatTensor(
            f"w{len(self.tensors)}", data.shape, data.dtype, data, scales.tolist(), zeros, axis
        )
        found = [self.add_tensor(kind)]
        if weights.bias is not None:
            bias = np.asarray(weights.bias, np.int32)
            steps = (np.float32(x.quant.scale) * scales.astype(np.float32)).tolist()
            name = f"b{len(self.tensors)}"
            kind = FlatTensor(name, bias.shape, bias.dtype, bias, steps, [0] * len(steps))
            found.append(self.add_tensor(kind))
        return found

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
        """CONV_2D, or DEPTHWISE_CONV_2D where there are as many groups as channels."""
        count, _, *kernel = weights.data.shape
        kernel = kernel[0], kernel[1]
        if not isinstance(pads, str):
            size = x.shape[2], x.shape[3]
            said = {w: explicit_pads(size, kernel, stride, w, dilation) for w in ("valid", "same")}
            x = x if pads in said.values() else self.pad(x, pads)
            pads = next((w for w, found in said.items() if found == pads), "valid")
        size = window_shape((x.shape[2], x.shape[3]), kernel, stride, pads, dilation)
        y = self.value((x.shape[0], count, *size), out)
        depthwise = groups > 1 and groups == x.shape[1]
        fields: dict[str, Any] = {
            "padding": getattr(tflite.Padding, pads.upper()),
            "strideH": stride[0],
            "strideW": stride[1],
            "dilationHFactor": dilation[0],
            "dilationWFactor": dilation[1],
            "fusedActivationFunction": _act(act),
        }
        if depthwise:
            fields["depthMultiplier"] = count // groups
            data = weights.data.transpose(1, 2, 3, 0)
            name, options = "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions"
        else:
            data = weights.data.transpose(0, 2, 3, 1)
            name, options = "CONV_2D", "Conv2DOptions"
        extra = self._weights(weights, x, data, 3 if depthwise else 0)
        self.op(name, [x, *extra], [y], options, **fields)
        return y

    def fully(self, x: Value, weights: Weights, out: Quant, act: str | None = None) -> Value:
        """FULLY_CONNECTED of (N, C)."""
        y = self.value((x.shape[0], weights.data.shape[0]), out)
        extra = self._weights(weights, x, weights.data, 0)
        options = "FullyConnectedOptions"
        self.op("FULLY_CONNECTED", [x, *extra], [y], options, fusedActivationFunction=_act(act))
        return y

    def pool(self, kind: str, x: Value, kernel: Pair, stride: Pair, pads: Pads = "valid") -> Value:
        """AVERAGE_POOL_2D ("average") or MAX_POOL_2D ("max"); padding counts for nothing."""
        assert isinstance(pads, str), "TFLite has no other pads for a pool"
        size = window_shape((x.shape[2], x.shape[3]), kernel, stride, pads)
        y = self.value((*x.shape[:2], *size), x.quant)
        self.op(
            f"{kind.upper()}_POOL_2D",
            [x],
            [y],
            "Pool2DOptions",
            padding=getattr(tflite.Padding, pads.upper()),
            strideH=stride[0],
            strideW=stride[1],
            filterHeight=kernel[0],
            filterWidth=kernel[1],
        )
        return y

    def binary(self, kind: str, a: Value, b: Value, out: Quant, act: str | None = None) -> Value:
        """ADD, SUB, MUL, MAXIMUM or MINIMUM, with broadcasting."""
        y = self.value(np.broadcast_shapes(a.shape, b.shape), out)
        name, options = BINARY[kind]
        fields: dict[str, Any] = (
            {"fusedActivationFunction": _act(act)} if kind in ("add", "sub", "mul") else {}
        )
        self.op(name, [a, b], [y], options, **fields)
        return y

    def unary(self, kind: str, x: Value, out: Quant, alpha: float = 0.0) -> Value:
        """A function of one value; see UNARY. ``alpha`` is LEAKY_RELU's slope."""
        y = self.value(x.shape, out)
        name, options = UNARY[kind]
        fields: dict[str, Any] = {"alpha": alpha} if kind == "leaky_relu" else {}
        self.op(name, [x], [y], options, **fields)
        return y

    def concat(self, values: Sequence[Value], out: Quant, axis: int = 1) -> Value:
        """CONCATENATION."""
        shape = list(values[0].shape)
        shape[axis] = sum(v.shape[axis] for v in values)
        y = self.value(shape, out)
        inside = AXES[axis] if len(shape) == 4 else axis
        self.op("CONCATENATION", list(values), [y], "ConcatenationOptions", axis=inside)
        return y

    def split(self, x: Value, parts: int, axis: int = 1) -> list[Value]:
        """SPLIT into equal parts."""
        shape = list(x.shape)
        shape[axis] //= parts
        found = [self.value(shape, x.quant) for _ in range(parts)]
        place = self.integers(AXES[axis])
        self.op("SPLIT", [place, x], found, "SplitOptions", numSplits=parts)
        return found

    def slice(self, x: Value, begin: Sequence[int], size: Sequence[int]) -> Value:
        """SLICE of ``size`` from ``begin`` on."""
        y = self.value(size, x.quant)
        words = [self.integers([w[i] for i in TO_FILE]) for w in (begin, size)]
        self.op("SLICE", [x, *words], [y], "SliceOptions")
        return y

    def pad(self, x: Value, pads: tuple[int, int, int, int]) -> Value:
        """PAD with the value 0."""
        n, c, high, wide = x.shape
        top, left, bottom, right = pads
        y = self.value((n, c, high + top + bottom, wide + left + right), x.quant)
        words = self.integers([[0, 0], [top, bottom], [left, right], [0, 0]])
        self.op("PAD", [x, words], [y], "PadOptions")
        return y

    def mean(self, x: Value, out: Quant, keep: bool = True) -> Value:
        """MEAN over the whole map."""
        y = self.value((*x.shape[:2], 1, 1) if keep else x.shape[:2], out)
        self.op("MEAN", [x, self.integers([1, 2])], [y], "ReducerOptions", keepDims=keep)
        return y

    def resize(self, x: Value, factor: int) -> Value:
        """RESIZE_NEAREST_NEIGHBOR by a whole factor."""
        size = x.shape[2] * factor, x.shape[3] * factor
        y = self.value((*x.shape[:2], *size), x.quant)
        kind = "RESIZE_NEAREST_NEIGHBOR"
        self.op(kind, [x, self.integers(size)], [y], "ResizeNearestNeighborOptions")
        return y

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """RESHAPE; a flattened map is in the file's order, channels innermost."""
        y = self.value(shape, x.quant)
        inside = self.tensors[self._index[y.name]].shape
        self.op("RESHAPE", [x, self.integers(inside)], [y], "ReshapeOptions")
        return y

    def softmax(self, x: Value) -> Value:
        """SOFTMAX over the last axis, with the parameters that TFLite asks for."""
        y = self.value(x.shape, Quant(1 / 256, -128 if self.dtype == np.int8 else 0))
        self.op("SOFTMAX", [x], [y], "SoftmaxOptions", beta=1.0)
        return y

    def argmax(self, x: Value) -> Value:
        """ARG_MAX over channels, int32."""
        shape = (x.shape[0], *x.shape[2:])
        y = self.value(shape, Quant(1.0), np.int32)
        self.tensors[-1].scales = self.tensors[-1].zero_points = ()
        place = self.integers(3 if len(x.shape) == 4 else 1)
        kind = tflite.TensorType.INT32
        self.op("ARG_MAX", [x, place], [y], "ArgMaxOptions", outputType=kind)
        return y

    def graph(self, outputs: Sequence[Value]) -> FlatGraph:
        """The graph as it is now."""
        found = [self._index[v.name] for v in outputs]
        return FlatGraph(self.tensors, self.operators, self.inputs, found)

    def finish(self, outputs: Sequence[Value], *loops: FlatGraph) -> bytes:
        """The file, with the graphs of its loops, which count from 1."""
        return write_tflite(self.graph(outputs), *loops)
