# SPDX-License-Identifier: Apache-2.0
"""ONNX models, quantised to int8 or uint8, as graphs of the intermediate form.

``read_onnx`` walks the nodes in the file's order and gives every name a value (``onnx_values``).
Both forms are read, also in one file: QDQ, float operators between DequantizeLinear and
QuantizeLinear, and QOperator, QLinearConv and its like. What is known when the model is read is
computed by the package ``onnx`` (shapes that exporters compute, weights that a training quantises).
What operators become is in ``onnx_float``, ``onnx_linear`` and ``onnx_moves``; every attribute that
is not implemented is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import functions
from openkpu.compiler.form.check import check_graph
from openkpu.compiler.form.graph import (
    OF_WEIGHTS,
    QUANTISED,
    Graph,
    Host,
    Move,
    Node,
    Table,
    Tensor,
)
from openkpu.compiler.onnx.file import RawFile, RawNode, type_name
from openkpu.compiler.onnx.layout import rename, with_layouts
from openkpu.compiler.onnx.values import Bytes, Const, Curve, Pending, Value, Weights
from openkpu.compiler.passes import batch

Handler = Callable[["OnnxReader", RawNode], None]
NEAR = 1e-6  # scales of float32 that are meant to be equal
# what a damaged file makes numpy, or a handler's arithmetic, do
DAMAGE = (ValueError, TypeError, IndexError, KeyError, AttributeError, ArithmeticError, MemoryError)
LIMITS = ("min", "max", "fill")  # constants that may be infinite
NOT_FINITE = "it has a NaN or an infinity, expected finite numbers"
FLOAT_MODEL = (
    "a float model, expected one that is quantised to int8 or uint8: openkpu quantise does it,"
    " with samples of its inputs"
)


def finite(data: npt.NDArray) -> bool:
    """No NaN and no infinity in it."""
    return data.dtype.kind != "f" or bool(np.isfinite(data).all())


class OnnxReader:
    """A graph in the making."""

    def __init__(self, file: RawFile, name: str) -> None:
        self.file, self.name, self.opset = file, name, file.opset
        self.graph = Graph(name)
        self.at: RawNode | None = None
        self.values: dict[str, Value] = {k: Const(v) for k, v in file.constants.items()}
        self.labels: set[str] = set()
        self.rest: npt.NDArray[np.float64] | None = None  # of the next node's bias, see Graph.rests
        self.families: dict[str, list[Tensor]] = {}  # of bytes that have no scale yet
        self.inputs = {value.name for value in file.inputs}
        quantised = [n for n in file.nodes if "Linear" in n.operator or n.operator == "QGemm"]
        floats = [
            v for v in file.inputs if v.dtype in ("float32", "float16", "bfloat16", "float64")
        ]
        if not quantised and floats:
            raise CompileError(FLOAT_MODEL, where=name)
        for value in file.inputs:
            if value.dtype not in (*QUANTISED, "float32"):
                what = f"input {value.name!r} is {value.dtype}, expected float32, int8 or uint8"
                raise CompileError(what, where=name)
            layout = "NCHW" if len(value.shape) == 4 else ""
            tensor = Tensor(value.name, value.dtype, value.shape, layout=layout)
            self.graph.inputs.append(self.graph.add_tensor(tensor).name)
            self.values[value.name] = Bytes(tensor)

    def refuse(self, text: str) -> CompileError:
        """The error about the node at work."""
        node, operator = (self.at.name, self.at.operator) if self.at else ("", "")
        return CompileError(text, node=node, operator=operator, where=self.name)

    # ---------------------------------------------------------------------- constants
    def array(self, name: str, what: str) -> npt.NDArray:
        """A known array by name."""
        value = self.values.get(name)
        if not isinstance(value, Const):
            how = "is an input of the model" if name in self.inputs else "is computed"
            raise self.refuse(f"{what} {name!r} {how}, expected a constant")
        if name in self.file.faults:
            raise self.refuse(f"{what} {name!r}: {self.file.faults[name]}")
        if what not in LIMITS and not finite(value.data):
            raise self.refuse(f"{what} {name!r}: {NOT_FINITE}")
        return value.data

    def has(self, node: RawNode, at: int) -> bool:
        """Is there an input ``at``?"""
        return at < len(node.inputs) and node.inputs[at] != ""

    def constant(self, node: RawNode, at: int, what: str) -> npt.NDArray:
        """Input ``at``, which must be known."""
        if not self.has(node, at):
            raise self.refuse(f"{what}: input {at} is not there")
        return self.array(node.inputs[at], what)

    def integers(self, node: RawNode, at: int, what: str) -> list[int]:
        """Input ``at`` as whole numbers."""
        found = self.constant(node, at, what)
        if found.dtype.kind not in "iu":
            raise self.refuse(f"{what} of {found.dtype}, expected int64")
        return [int(v) for v in found.reshape(-1)]

    def number(self, node: RawNode, at: int, what: str, default: float) -> float:
        """Input ``at`` as one number; the default where it is left out."""
        if not self.has(node, at):
            return default
        known = self.values.get(node.inputs[at])
        found = known.real() if isinstance(known, Weights) else self.constant(node, at, what)
        if found.size != 1 or np.isnan(found).any():
            raise self.refuse(f"{what} of {found.size} values, expected one number")
        return float(found.reshape(-1)[0])

    def attributes(self, node: RawNode, **defaults: object) -> dict[str, Any]:
        """All attributes; one that has no default here is refused."""
        for name in node.attributes:
            if name not in defaults:
                raise self.refuse(f"attribute {name} is not implemented")
        found: dict[str, Any] = {**defaults, **node.attributes}
        return {k: v.decode() if isinstance(v, bytes) else v for k, v in found.items()}

    # -------------------------------------------------------------------------- values
    def value(self, node: RawNode, at: int) -> Value:
        """Input ``at``."""
        if not self.has(node, at):
            raise self.refuse(f"input {at} is not there")
        name = node.inputs[at]
        if name not in self.values:
            raise self.refuse(f"reads {name!r}, which no node before it writes")
        if name in self.file.faults:
            raise self.refuse(f"input {name!r}: {self.file.faults[name]}")
        value = self.values[name]
        if isinstance(value, Const) and not finite(value.data):
            raise self.refuse(f"input {name!r}: {NOT_FINITE}")
        return value

    def shape_of(self, value: Value) -> tuple[int, ...]:
        """The shape of a value."""
        return value.data.shape if isinstance(value, (Const, Weights)) else value.shape

    def put(self, node: RawNode, value: Value, at: int = 0) -> None:
        """The node's output ``at``."""
        self.values[node.outputs[at]] = value

    def quant(
        self, node: RawNode, scale_at: int, zero_at: int, dtype: str = ""
    ) -> tuple[str, npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """(type, scales (n,), zero points (n,)) of the inputs at these places."""
        scale = np.atleast_1d(self.constant(node, scale_at, "scale"))
        if scale.dtype != np.float32:
            raise self.refuse(f"scale of {scale.dtype}, expected float32")
        wrong = [float(s) for s in scale.reshape(-1) if not (math.isfinite(s) and s > 0)]
        if wrong or scale.ndim != 1 or not scale.size:
            found = f"{wrong[0]:g}" if wrong else f"shape {scale.shape}"
            raise self.refuse(f"scale {found}, expected finite numbers above 0")
        zero = np.zeros(scale.size, np.int64)
        if self.has(node, zero_at):
            given = np.atleast_1d(self.constant(node, zero_at, "zero point"))
            dtype = given.dtype.name
            if given.size not in (1, scale.size):
                raise self.refuse(f"{given.size} zero points for {scale.size} scales")
            zero = np.broadcast_to(given.astype(np.int64).reshape(-1), scale.size).copy()
        return dtype or "uint8", scale.astype(np.float64), zero

    def one_quant(
        self, node: RawNode, scale_at: int, zero_at: int, dtype: str = ""
    ) -> tuple[str, float, int]:
        """The same of an activation: one scale, int8 or uint8."""
        dtype, scale, zero = self.quant(node, scale_at, zero_at, dtype)
        if dtype not in QUANTISED:
            raise self.refuse(f"quantised to {dtype}, expected int8 or uint8")
        if scale.size != 1:
            raise self.refuse(f"{scale.size} scales of an activation, expected one")
        return dtype, float(scale[0]), int(zero[0])

    def carried(self, tensor: Tensor, scale: float, zero: int) -> Tensor:
        """A tensor of bytes whose consumer says what they stand for."""
        if tensor.dtype not in QUANTISED:
            raise self.refuse(f"input of {tensor.dtype}, expected int8 or uint8")
        if tensor.scale is None:
            for one in self.families.get(tensor.name, [tensor]):
                one.scale, one.zero = scale, zero
        if (tensor.scale, tensor.zero) == (scale, zero):
            return tensor
        other = self.between(tensor, tensor.shape, tensor.name)
        other.scale, other.zero = scale, zero
        low, high = tensor.limits
        same = np.arange(low, high + 1, dtype=np.int64)
        self.emit(Table, [tensor], other, table=same, function="the same bytes")
        return other

    def operand(self, node: RawNode, at: int) -> Tensor:
        """Input ``at`` of a float operator as a tensor of bytes: what DequantizeLinear gave, or a
        function of it that has the same steps."""
        value = self.value(node, at)
        if isinstance(value, Curve):
            return self.grid(value, node.inputs[at])
        if isinstance(value, Weights) and value.dtype in QUANTISED and value.scale.size == 1:
            tensor = self.tensor(node.inputs[at], value.dtype, value.data.shape)
            tensor.scale, tensor.zero = float(value.scale[0]), int(value.zero[0])
            tensor.data = value.data
            return tensor
        raise self.refuse(
            f"its input {node.inputs[at]!r} is float, expected one behind QuantizeLinear and"
            " DequantizeLinear"
        )

    def grid(self, curve: Curve, name: str) -> Tensor:
        """The numbers of a curve as bytes of the same scale; refused where they are no such."""
        if curve.values is None:
            return curve.source
        x, found = curve.source, curve.steps()
        if found is None:
            raise self.refuse(
                f"its input {name!r} is {curve.words} in float, expected QuantizeLinear and"
                " DequantizeLinear behind that"
            )
        y = self.between(x, x.shape, name)
        table = np.array(found, dtype=np.int64)
        self.emit(Table, [x], y, table=table, function=curve.words)
        return y

    # ------------------------------------------------------------------ tensors, nodes
    def tensor(self, name: str, dtype: str, shape: Sequence[int]) -> Tensor:
        """A new tensor, by this name or one like it."""
        if any(n < 1 for n in shape):
            raise self.refuse(f"a result of shape {tuple(shape)}, expected sizes of 1 or more")
        layout = "NCHW" if len(shape) == 4 else ""
        made = Tensor(self.graph.fresh_or(name), dtype, tuple(int(n) for n in shape), layout=layout)
        return self.graph.add_tensor(made)

    def between(self, like: Tensor, shape: Sequence[int], label: str) -> Tensor:
        """A tensor with the type, scale and zero point of another."""
        made = self.tensor(label, like.dtype, shape)
        made.scale, made.zero = like.scale, like.zero
        if like.scale is None:
            family = self.families.setdefault(like.name, [like])
            family.append(made)
            self.families[made.name] = family
        return made

    def quantised(self, name: str, quant: tuple[str, float, int], shape: Sequence[int]) -> Tensor:
        """A new tensor of (type, scale, zero point)."""
        made = self.tensor(name, quant[0], shape)
        made.scale, made.zero = quant[1:]
        return made

    def emit(self, kind: type[Node], inputs: list[Tensor], output: Tensor, **fields: Any) -> None:
        """Append a node of the ONNX node at work."""
        assert self.at is not None
        label, number = self.at.name, 1
        while label in self.labels:
            number += 1
            label = f"{self.at.name}.{number}"
        self.labels.add(label)
        names = tuple(t.name for t in inputs)
        self.graph.nodes.append(kind(label, self.at.operator, names, (output.name,), **fields))
        if "bias" in fields and self.rest is not None:
            self.graph.rests[label], self.rest = self.rest, None

    # -------------------------------------------------------------- quantise, dequantise
    def quantise(self, node: RawNode) -> None:
        """QuantizeLinear."""
        self.attributes(node, axis=1, saturate=1, block_size=0, output_dtype=0, precision=0)
        self._plain(node)
        value, asked = self.value(node, 0), self._asked(node)
        if isinstance(value, (Const, Weights)):
            self._quantise_constant(node, value, asked)
            return
        quant = self.one_quant(node, 1, 2, asked)
        if isinstance(value, Curve) and value.values is None:
            x = value.source
            if (x.dtype, x.scale, x.zero) == quant:
                self.put(node, Bytes(x))
                return
        y = self.quantised(node.outputs[0], quant, self.shape_of(value))
        self.put(node, Bytes(y))
        if isinstance(value, Pending):
            self.graph.ends[y.name] = value.low, value.high
            value.make(y, value.clamp(y))
        elif isinstance(value, Curve):
            reals = value.reals()
            if any(isinstance(v, float) and math.isnan(v) for v in reals):
                raise self.refuse(f"{value.words} has no value for some bytes")
            left = iter(reals)  # in the table's order
            table = functions.table_of(lambda _: next(left), value.source, y)
            words = value.words or "requantise"
            self.emit(Table, [value.source], y, table=table, function=words)
        elif value.tensor.dtype == "float32":
            self.emit(Host, [value.tensor], y, how="quantize")
        else:
            raise self.refuse(f"input of {value.tensor.dtype}, expected float32")

    def _plain(self, node: RawNode) -> None:
        if node.attributes.get("block_size", 0):
            raise self.refuse("scales of blocks, expected one scale, or one a channel")

    def _asked(self, node: RawNode) -> str:
        """The type of a QuantizeLinear that ``output_dtype`` names, "" where it does not; a zero
        point of another type is refused."""
        kind = node.attributes.get("output_dtype", 0)
        dtype = type_name(kind) if kind else ""
        if dtype and self.has(node, 2):
            given = self.constant(node, 2, "zero point").dtype.name
            if given != dtype:
                raise self.refuse(f"output_dtype {dtype}, its zero point is {given}")
        return dtype

    def _quantise_constant(self, node: RawNode, value: Const | Weights, asked: str) -> None:
        """Weights that the model has as floats; the rounding is ONNX's, to even."""
        dtype, scale, zero = self.quant(node, 1, 2, asked)
        if dtype not in (*OF_WEIGHTS, "int32"):
            raise self.refuse(f"quantised to {dtype}, expected int8, uint8, int16 or uint16")
        data = value.real() if isinstance(value, Weights) else value.data.astype(np.float64)
        spread = self._spread(node, data.ndim, data.shape, scale.size)
        limits = np.iinfo(dtype)
        steps = np.rint(data.astype(np.float32) / scale.astype(np.float32).reshape(spread))
        found = np.clip(steps + zero.reshape(spread), limits.min, limits.max)
        self.put(node, Const(found.astype(dtype)))

    def _spread(self, node: RawNode, rank: int, shape: tuple[int, ...], count: int) -> list[int]:
        """The shape in which ``count`` scales go with an array."""
        axis, spread = node.attributes.get("axis", 1), [1] * rank
        if count == 1:
            return spread
        if not -rank <= axis < rank or shape[axis] != count:
            raise self.refuse(f"{count} scales along axis {axis} of {shape}")
        spread[axis] = count
        return spread

    def dequantise(self, node: RawNode) -> None:
        """DequantizeLinear."""
        self.attributes(node, axis=1, block_size=0, output_dtype=0)
        self._plain(node)
        kind = node.attributes.get("output_dtype", 0)
        if kind and type_name(kind) != "float":
            raise self.refuse(f"output_dtype {type_name(kind)}, expected float")
        value = self.value(node, 0)
        if isinstance(value, Const):
            kind = value.data.dtype.name
            if kind not in (*OF_WEIGHTS, "int32"):
                what = f"constant {node.inputs[0]!r} is {kind}"
                raise self.refuse(f"{what}, expected int8, uint8, int16 or uint16")
            _, scale, zero = self.quant(node, 1, 2, kind)
            self._spread(node, value.data.ndim, value.data.shape, scale.size)
            axis = node.attributes.get("axis", 1)
            axis = axis % value.data.ndim if value.data.ndim else 0
            weights = Weights(value.data.astype(np.int64), kind, scale, zero, axis)
            self.put(node, weights)
            return
        if not isinstance(value, Bytes):
            raise self.refuse(f"its input {node.inputs[0]!r} is float, expected int8 or uint8")
        _, scale, zero = self.one_quant(node, 1, 2, value.tensor.dtype)
        self.put(node, Curve(self.carried(value.tensor, scale, zero)))

    # ------------------------------------------------------------------------- outputs
    def finish(self) -> Graph:
        """The graph with its outputs, checked."""
        for name in self.file.outputs:
            self.at, value = None, self.values.get(name)
            if value is None or isinstance(value, (Const, Weights)):
                how = "is not computed" if value is None else "is a constant"
                raise self.refuse(f"output {name!r} {how}, expected a result of the inputs")
            self.graph.outputs.append(self._result(name, value).name)
        self.at = None
        for tensor in self.graph.tensors.values():
            if tensor.dtype in QUANTISED and tensor.scale is None:
                tensor.scale = 1.0  # the model says nothing of it, and no node asks
        return batch.check_batch(check_graph(with_layouts(self.graph)), self.file.batch)

    def _maker(self, name: str) -> RawNode | None:
        return next((node for node in self.file.nodes if name in node.outputs), None)

    def _named(self, tensor: Tensor, name: str) -> Tensor:
        """The tensor by the name that the model's output has."""
        graph = self.graph
        if tensor.name == name:
            return tensor
        taken = (*graph.inputs, *graph.outputs)
        if name not in graph.tensors and tensor.name not in taken and tensor.data is None:
            rename(graph, tensor, name)
            return tensor
        self.at = self._maker(name)
        copy = self.between(tensor, tensor.shape, name)
        self.emit(Move, [tensor], copy, how="reshape")
        return copy

    def _result(self, name: str, value: Bytes | Curve | Pending) -> Tensor:
        """An output of the model as a tensor."""
        if isinstance(value, Bytes):
            return self._named(value.tensor, name)
        self.at = self._maker(name)
        if name in self.graph.tensors:  # bytes that move where the model moves floats
            rename(self.graph, self.graph.tensors[name], self.graph.fresh(name))
        if isinstance(value, Pending) and not value.floats:
            raise self.refuse(f"output {name!r} is float, expected QuantizeLinear behind it")
        made = self.tensor(name, "float32", value.shape)
        self.real(value, made)
        return made

    def real(self, value: Curve | Pending, made: Tensor) -> None:
        """``made`` as the numbers themselves, in float32: a node of the host."""
        if isinstance(value, Pending):
            assert value.floats is not None, "the caller asks"
            value.floats(made)
        elif value.values is None:
            self.emit(Host, [value.source], made, how="dequantize")
        else:  # a function of the last bytes
            reals = np.array([float(v) for v in value.reals()], np.float32)
            if np.isnan(reals).any():
                raise self.refuse(f"{value.words} has no value for some bytes")
            self.emit(Host, [value.source], made, how="table", table=reals)
