# SPDX-License-Identifier: Apache-2.0
"""A TFLite model as a graph in the making: its tensors, and what its operators ask of them.

Maps of rank 4 become (N, C, H, W); where the order of elements matters the transposition is a node.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.check import check_graph
from openkpu.compiler.form.graph import QUANTISED, Graph, Move, Node, Tensor
from openkpu.compiler.passes import batch
from openkpu.compiler.tflite.raw import RawModel, RawOperator, RawTensor

TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
PLAIN = ("float32", "int32", "int64", "bool")


class Operands:
    """A model, the operator at work, and what its inputs are."""

    def __init__(self, model: RawModel, name: str) -> None:
        self.model, self.name = model, name
        self.op: RawOperator | None = None

    def refuse(self, text: str) -> CompileError:
        """The error about the operator at work."""
        node, operator = (self.op.name, self.op.operator) if self.op else ("", "")
        return CompileError(text, node=node, operator=operator, where=self.name)

    def raw(self, op: RawOperator, at: int, what: str = "input") -> RawTensor:
        """Input ``at`` of an operator."""
        if at >= len(op.inputs) or op.inputs[at] < 0:
            raise self.refuse(f"{what} {at} is not there")
        return self.model.tensors[op.inputs[at]]

    def has(self, op: RawOperator, at: int) -> bool:
        """Is there an input ``at``?"""
        return at < len(op.inputs) and op.inputs[at] >= 0

    def constant(self, op: RawOperator, at: int, what: str) -> RawTensor:
        """Input ``at``, which must be a constant; the fault of one that cannot be used."""
        raw = self.raw(op, at, what)
        if raw.fault:
            raise self.refuse(f"{what} {raw.name!r}: {raw.fault}")
        if raw.data is None:
            raise self.refuse(f"{what} {raw.name!r} is computed or an input, expected a constant")
        return raw

    def integers(self, op: RawOperator, at: int, what: str) -> list[int]:
        """A constant of int32 or int64 as numbers."""
        raw = self.constant(op, at, what)
        if raw.dtype not in ("int32", "int64"):
            raise self.refuse(f"{what} of {raw.dtype}, expected int32 or int64")
        return [int(v) for v in raw.values.reshape(-1)]

    def axis(self, rank: int, axis: int) -> int:
        """An axis of the model as one of the graph's tensor."""
        if not -rank <= axis < rank:
            raise self.refuse(f"axis {axis}, expected one of {rank}")
        axis %= rank
        return TO_NHWC[axis] if rank == 4 else axis


class TfliteReader(Operands):
    """A graph in the making."""

    def __init__(self, model: RawModel, name: str) -> None:
        super().__init__(model, name)
        self.graph = Graph(name)
        self.names: dict[int, str] = {}  # of the graph's tensors, by the file's number
        for number in model.inputs:
            self._input(number)

    # ------------------------------------------------------------------ tensors
    def _make(self, raw: RawTensor, shape: tuple[int, ...], name: str) -> Tensor:
        """A tensor of the graph like one of the file; the error of a type that is not possible."""
        if raw.fault:
            raise self.refuse(f"tensor {raw.name!r}: {raw.fault}")
        if raw.dynamic:
            hint = "its shape is dynamic, expected fixed sizes (of the batch alone none)"
            raise self.refuse(f"tensor {raw.name!r}: {hint}")
        if raw.dtype not in (*QUANTISED, *PLAIN):
            raise self.refuse(f"tensor {raw.name!r} is {raw.dtype}, expected int8 or uint8")
        scale, zero = None, 0
        if raw.dtype in QUANTISED:
            if raw.scale.size != 1:
                what = f"{raw.scale.size} scales" if raw.scale.size else "no scale"
                raise self.refuse(f"tensor {raw.name!r} has {what}, expected one")
            scale, zero = float(raw.scale[0]), int(raw.zero[0])
            if not math.isfinite(scale) or scale <= 0:
                raise self.refuse(f"tensor {raw.name!r}: scale {scale}, expected one above 0")
        layout = "NHWC" if len(raw.shape) == 4 else ""
        return Tensor(name, raw.dtype, shape, scale, zero, layout)

    def _input(self, number: int) -> None:
        raw = self.model.tensors[number]
        tensor = self._make(raw, nchw(raw.shape), self.graph.fresh_or(raw.name))
        self.graph.add_tensor(tensor)
        self.graph.inputs.append(tensor.name)
        self.names[number] = tensor.name

    def input(self, op: RawOperator, at: int) -> Tensor:
        """Input ``at`` as a tensor of the graph, constants included."""
        raw, number = self.raw(op, at), op.inputs[at]
        if number not in self.names:
            if raw.data is None:
                raise self.refuse(f"reads {raw.name!r}, which no operator before it writes")
            if raw.dtype == "float32" and not np.isfinite(raw.data).all():
                raise self.refuse(f"tensor {raw.name!r} has a NaN or an infinity")
            tensor = self._make(raw, nchw(raw.shape), self.graph.fresh_or(raw.name))
            data = raw.data.transpose(TO_NCHW) if raw.data.ndim == 4 else raw.data
            tensor.data = np.array(data, order="C")  # of rank 0 as well
            self.names[number] = self.graph.add_tensor(tensor).name
        return self.graph.tensors[self.names[number]]

    def quantised(self, op: RawOperator, at: int) -> Tensor:
        """Input ``at``, of bytes with a scale; a float model is refused here."""
        raw = self.raw(op, at)
        if raw.dtype in ("float32", "float16", "bfloat16", "float64"):
            raise self.refuse(
                f"{raw.name!r} is {raw.dtype}: a float model or a part of one;"
                " expected a model quantised to int8 or uint8 throughout"
            )
        if raw.dtype not in QUANTISED:
            raise self.refuse(f"{raw.name!r} is {raw.dtype}, expected int8 or uint8")
        return self.input(op, at)

    def output(self, op: RawOperator, at: int = 0, shape: tuple[int, ...] | None = None) -> Tensor:
        """Output ``at`` as a new tensor; ``shape`` in the model's order, where the file's does not
        count."""
        if at >= len(op.outputs):
            raise self.refuse(f"output {at} is not there")
        raw = self.model.tensors[op.outputs[at]]
        tensor = self._make(raw, nchw(shape or raw.shape), self.graph.fresh_or(raw.name))
        self.names[op.outputs[at]] = self.graph.add_tensor(tensor).name
        return tensor

    def quantised_output(self, op: RawOperator) -> Tensor:
        """Output 0, which must be of bytes with a scale."""
        y = self.output(op)
        if not y.quantised:
            raise self.refuse(f"output {y.name!r} is {y.dtype}, expected int8 or uint8")
        return y

    def between(self, like: Tensor, shape: tuple[int, ...], label: str) -> Tensor:
        """A tensor that the model does not have, with the numbers of another."""
        name = self.graph.fresh(label)
        made = Tensor(name, like.dtype, tuple(shape), like.scale, like.zero)
        return self.graph.add_tensor(made)

    # -------------------------------------------------------------------- nodes
    def node(
        self, kind: type[Node], inputs: list[Tensor], output: Tensor, **fields: object
    ) -> None:
        """Append a node of the operator at work."""
        op, names = self.op, tuple(t.name for t in inputs)
        assert op is not None, "a node outside an operator"
        known = {n.name for n in self.graph.nodes}
        label, number = op.name, 1
        while label in known:
            number += 1
            label = f"{op.name}.{number}"
        made = kind(label, op.operator, names, (output.name,), **fields)
        self.graph.nodes.append(made)

    def model_order(self, x: Tensor) -> Tensor:
        """A map of rank 4 with its axes as the model has them; others as they are."""
        if len(x.shape) != 4:
            return x
        return self.transposed(x, TO_NHWC)

    def transposed(self, x: Tensor, axes: tuple[int, ...], into: Tensor | None = None) -> Tensor:
        """``x`` with its axes in another order, as a new tensor or ``into``."""
        shape = tuple(x.shape[a] for a in axes)
        y = into or self.between(x, shape, x.name)
        self.node(Move, [x], y, how="transpose", axes=axes)
        return y

    def reshaped(self, x: Tensor, into: Tensor, shape: tuple[int, ...]) -> None:
        """Elements in the model's order, in another shape (the model's order as well)."""
        x = self.model_order(x)
        if len(shape) != 4:
            self.node(Move, [x], into, how="reshape")
            return
        middle = self.between(x, shape, into.name)
        self.node(Move, [x], middle, how="reshape")
        self.transposed(middle, TO_NCHW, into)

    def finish(self) -> Graph:
        """The graph with its outputs, checked."""
        self.op = None
        for number in self.model.outputs:
            if number not in self.names:
                raise self.refuse(f"output {self.model.tensors[number].name!r} is not computed")
            self.graph.outputs.append(self.names[number])
        return batch.check_batch(check_graph(self.graph), self.model.batch)


def nchw(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape of the model as one of the graph."""
    return tuple(shape[a] for a in TO_NCHW) if len(shape) == 4 else tuple(shape)


def integers(values: npt.NDArray) -> npt.NDArray[np.int64]:
    """As int64."""
    return np.asarray(values).astype(np.int64)
