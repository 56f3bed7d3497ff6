# SPDX-License-Identifier: Apache-2.0
"""An ONNX file in the making, of a float TFLite model: its tensors, constants and nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.tflite.operators import ACTIVATION_NAMES, ACTIVATIONS
from openkpu.compiler.tflite.raw import RawModel, RawOperator, RawTensor
from openkpu.compiler.tflite.reader import TO_NCHW, TO_NHWC, Operands

OPSET = 17
FLOATS = ("float32", "float16")
Handler = Callable[["Writer", RawOperator], None]


class Writer(Operands):
    """A model of ONNX in the making."""

    def __init__(self, model: RawModel, name: str) -> None:
        from onnx import TensorProto

        super().__init__(model, name)
        self.nodes: list[Any] = []
        self.constants: dict[str, npt.NDArray] = {}
        self.names: dict[int, str] = {}  # of tensors, maps (N, C, H, W), by the file's number
        self.known: dict[int, npt.NDArray[np.float32]] = {}  # constants behind DEQUANTIZE
        self.inputs: list[Any] = []
        self.taken: set[str] = set()
        for number in model.inputs:
            raw = model.tensors[number]
            self._possible(raw)
            if raw.dtype != "float32":
                raise self.refuse(f"input {raw.name!r} is {raw.dtype}, expected float32")
            self.names[number] = name = self._fresh(raw.name)
            self.inputs.append(self._value(name, TensorProto.FLOAT, raw.shape))
            if len(raw.shape) == 4:
                self.names[number] = self.emit("Transpose", [name], perm=TO_NCHW)

    def _fresh(self, name: str) -> str:
        made, number = name, 1
        while made in self.taken:
            made, number = f"{name}~{number}", number + 1
        self.taken.add(made)
        return made

    @staticmethod
    def _value(name: str, kind: int, shape: tuple[int, ...] | None) -> Any:
        from onnx import helper

        return helper.make_tensor_value_info(name, kind, shape)

    def _possible(self, raw: RawTensor) -> None:
        if raw.fault:
            raise self.refuse(f"tensor {raw.name!r}: {raw.fault}")
        if raw.dynamic:
            hint = "its shape is dynamic, expected fixed sizes (of the batch alone none)"
            raise self.refuse(f"tensor {raw.name!r}: {hint}")
        if len(raw.shape) == 4 and raw.shape[0] != 1 and raw.data is None:
            raise self.refuse(f"tensor {raw.name!r} has a batch of {raw.shape[0]}, expected 1")

    # ------------------------------------------------------------------------ constants
    def real(self, op: RawOperator, at: int, what: str) -> npt.NDArray[np.float32] | None:
        """Input ``at`` as numbers, in the model's order of axes; None where it is computed."""
        raw, number = self.raw(op, at, what), op.inputs[at]
        if raw.fault:
            raise self.refuse(f"{what} {raw.name!r}: {raw.fault}")
        if number in self.known:
            return self.known[number]
        if raw.data is None:
            return None
        if raw.dtype in FLOATS:
            found = raw.data.astype(np.float32)
        elif raw.dtype in ("int8", "uint8") and raw.scale.size:
            spread = [
                -1 if i == raw.axis and raw.scale.size > 1 else 1 for i in range(raw.data.ndim)
            ]
            steps = raw.data.astype(np.float64) - raw.zero.reshape(spread)
            found = (steps * raw.scale.reshape(spread)).astype(np.float32)
        else:
            raise self.refuse(f"{what} {raw.name!r} of {raw.dtype}, expected float32 or float16")
        if not np.isfinite(found).all():
            raise self.refuse(f"{what} {raw.name!r} has a NaN or an infinity")
        return found

    def weights(self, op: RawOperator, at: int, what: str) -> npt.NDArray[np.float32]:
        """Input ``at``, which must be known."""
        found = self.real(op, at, what)
        if found is None:
            raise self.refuse(f"{what} {self.raw(op, at).name!r} is computed, expected a constant")
        return found

    def const(self, data: npt.NDArray, like: str = "constant") -> str:
        """A new constant by name."""
        name = self._fresh(like)
        self.constants[name] = np.array(data, order="C")
        return name

    def whole(self, *numbers: int) -> str:
        """Whole numbers as a constant."""
        return self.const(np.array(numbers, np.int64), "numbers")

    # ---------------------------------------------------------------------------- nodes
    def input(self, op: RawOperator, at: int, rank: int | None = None) -> str:
        """Input ``at`` by name; a constant with ``rank`` axes."""
        number = op.inputs[at] if self.has(op, at) else -1
        if number in self.names:
            return self.names[number]
        data = self.real(op, at, "input")
        if data is None:
            what = f"reads {self.raw(op, at).name!r}, which no operator before it writes"
            raise self.refuse(what)
        rank = data.ndim if rank is None else rank
        data = data.reshape((1,) * (rank - data.ndim) + data.shape)
        return self.const(data.transpose(TO_NCHW) if rank == 4 else data, self.raw(op, at).name)

    def emit(self, kind: str, inputs: list[str], **fields: Any) -> str:
        """A node of the operator at work; its output's name."""
        from onnx import helper

        label = self._fresh(f"{self.op.name if self.op else 'input'}/{kind}")
        self.nodes.append(helper.make_node(kind, inputs, [label], label, **fields))
        return label

    def shape(self, op: RawOperator, at: int) -> tuple[int, ...]:
        """The shape of input ``at`` in the model's order."""
        return self.raw(op, at).shape

    def out_shape(self, op: RawOperator, at: int = 0) -> tuple[int, ...]:
        """The shape of output ``at`` in the model's order."""
        raw = self.model.tensors[op.outputs[at]]
        self._possible(raw)
        return raw.shape

    def put(self, op: RawOperator, name: str, at: int = 0) -> None:
        """Output ``at`` of an operator."""
        self.out_shape(op, at)
        self.names[op.outputs[at]] = name

    def activated(self, op: RawOperator, name: str, code: int) -> None:
        """Output 0, behind a fused activation."""
        if ACTIVATION_NAMES.get(code) == "TANH":
            self.put(op, self.emit("Tanh", [name]))
            return
        if code not in ACTIVATIONS:
            raise self.refuse(f"fused activation {ACTIVATION_NAMES.get(code, code)}, expected none")
        self.put(op, self.limited(name, *ACTIVATIONS[code]))

    def limited(self, name: str, low: float, high: float) -> str:
        """Numbers limited to low..high."""
        if math.isinf(low):
            return name
        if math.isinf(high):
            return self.emit("Relu", [name])
        ends = [self.const(np.array(v, np.float32), "limit") for v in (low, high)]
        return self.emit("Clip", [name, *ends])

    def model_order(self, name: str, rank: int) -> str:
        """A map with its axes as the model has them."""
        return self.emit("Transpose", [name], perm=TO_NHWC) if rank == 4 else name

    def reshaped(self, name: str, rank: int, shape: tuple[int, ...]) -> str:
        """Elements in the model's order in another shape of the model's."""
        flat = self.emit("Reshape", [self.model_order(name, rank), self.whole(*shape)])
        return self.emit("Transpose", [flat], perm=TO_NCHW) if len(shape) == 4 else flat

    def finish(self) -> bytes:
        """The file."""
        from onnx import TensorProto, helper, numpy_helper

        self.op, outputs = None, []
        for number in self.model.outputs:
            raw = self.model.tensors[number]
            if number not in self.names:
                raise self.refuse(f"output {raw.name!r} is not computed")
            name, kind = self._fresh(raw.name), "Identity"
            fields: dict[str, Any] = {}
            if len(raw.shape) == 4:
                kind, fields = "Transpose", {"perm": TO_NHWC}
            self.nodes.append(helper.make_node(kind, [self.names[number]], [name], name, **fields))
            known = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}
            outputs.append(self._value(name, known.get(raw.dtype, TensorProto.INT64), None))
        data = [numpy_helper.from_array(v, k) for k, v in self.constants.items()]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, outputs, data)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        return model.SerializeToString()


def operand(w: Writer, op: RawOperator, at: int, rank: int) -> str:
    """An operand with as many axes as the result."""
    shape, name = w.shape(op, at), w.input(op, at, rank)
    if len(shape) == rank or op.inputs[at] not in w.names:
        return name
    return w.reshaped(name, len(shape), (1,) * (rank - len(shape)) + shape)
