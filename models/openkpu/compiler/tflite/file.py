# SPDX-License-Identifier: Apache-2.0
"""A TFLite file's parts in plain Python: tensors, constants, operators.

The package ``tflite`` reads the flatbuffer.  A flatbuffer has no checksum, so whatever a damaged
file makes that reader do ends in one CompileError.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu import files
from openkpu.compiler.errors import CompileError, check_ends
from openkpu.compiler.tflite.raw import (
    CONTROL,
    STATE,
    TRANSPOSED_BIAS,
    VARIABLE,
    RawModel,
    RawOperator,
    RawTensor,
)
from openkpu.compiler.tflite.sizes import sized
from openkpu.compiler.tflite.sparse import dense_values
from openkpu.compiler.tflite.spread import without_batches
from openkpu.terminal import printable
from openkpu.words import option

MAGIC = b"TFL3"
VERSION = 3
DAMAGE = (
    *(struct.error, IndexError, ValueError, TypeError, AttributeError, OverflowError),
    *(MemoryError, KeyError, UnicodeDecodeError, ZeroDivisionError),
)
DAMAGED = "a damaged TFLite model, or not all of it: "
NUMPY = {
    "float32": "<f4",
    "float16": "<f2",
    "int32": "<i4",
    "int64": "<i8",
    "int8": "i1",
    "uint8": "u1",
    "bool": "?",
}


class _Options:
    """The options of an operator, all read at once: what is damaged shows here."""

    def __init__(self, lazy: Any) -> None:
        for name, method in vars(type(lazy)).items():
            if callable(method) and method.__code__.co_argcount == 1:  # no vectors
                value = method(lazy)
                setattr(self, name, lambda value=value: value)

    def __getattr__(self, name: str) -> Any:
        raise CompileError(f"its options are those of another operator, without {name}")


class MediaPipeOptions:
    """Options of MediaPipe's transposed convolution with a bias: three numbers of 32 bits."""

    def __init__(self, data: bytes) -> None:
        padding, self._width, self._height = struct.unpack("<3i", data[:12])
        self._padding = padding - 1  # 1 is SAME

    def Padding(self) -> int:
        return self._padding

    def StrideW(self) -> int:
        return self._width

    def StrideH(self) -> int:
        return self._height


def is_tflite(data: bytes) -> bool:
    """Does the file say that it is one?"""
    return data[4:8] == MAGIC


def parse_tflite(
    data: bytes, name: str, shape: Sequence[int] | None = None, ends: Sequence[str] = ()
) -> RawModel:
    """The parts of a file, of one inference, up to the tensors ``ends`` if there are any;
    CompileError for one that is none, damaged, or of another version, and for a ``shape`` that is
    not the input's but for the batch."""
    if not is_tflite(data):
        raise CompileError("no TFLite model: bytes 4 to 7 are not TFL3", where=name)
    try:
        model = _model(data, name)
        model = _ended(model, ends, name) if ends else model
        model = without_batches(sized(model))
        _shaped(model, shape, name)
        return _single(model, name)
    except CompileError:
        raise
    except DAMAGE as error:
        raise CompileError(f"{DAMAGED}{files.said(error)}", where=name) from None


def _ended(model: RawModel, ends: Sequence[str], name: str) -> RawModel:
    """The model with these tensors as its outputs, and the operators and inputs that they need."""
    made = {model.tensors[n].name: n for op in model.operators for n in op.outputs if n >= 0}
    check_ends(ends, made, name)
    outputs = [made[end] for end in ends]
    needed, kept = set(outputs), []
    for op in reversed(model.operators):
        if needed & set(op.outputs):
            kept.append(op)
            needed |= set(op.inputs) - {-1}  # what is left out
    inputs = [n for n in model.inputs if n in needed]
    return dataclasses.replace(model, operators=kept[::-1], inputs=inputs, outputs=outputs)


def _shaped(model: RawModel, shape: Sequence[int] | None, name: str) -> None:
    """CompileError for a shape that no input has; of a batch one inference may be asked for."""
    if shape is None:
        return
    inputs = [model.tensors[n].shape for n in model.inputs]
    if any(t[1:] == tuple(shape[1:]) and shape[0] in (1, *t[:1]) for t in inputs):
        return
    asked, words = "x".join(map(str, shape)), ", ".join("x".join(map(str, t)) for t in inputs)
    what = (
        f"{option('shape', asked)}, the model's input is {words}: sizes of a TFLite model are fixed"
    )
    raise CompileError(f"{what}, only its batch may become 1", where=name)


def _single(model: RawModel, name: str) -> RawModel:
    """The model of one inference instead of a batch: all that operators compute begins with it."""
    made = {n for op in model.operators for n in op.outputs if n >= 0}
    shapes = [model.tensors[n].shape for n in model.inputs]
    batch = max((shape[0] for shape in shapes if len(shape) == 4), default=1)
    if batch < 2:
        return model
    tensors = list(model.tensors)
    for number in sorted({*model.inputs, *made}):
        raw = tensors[number]
        if not raw.shape or raw.shape[0] != batch:
            what = f"tensor {raw.name!r} is {raw.shape}, the input has a batch of {batch}"
            raise CompileError(f"{what}: expected as many of each", where=name)
        tensors[number] = dataclasses.replace(raw, shape=(1, *raw.shape[1:]))
    return dataclasses.replace(model, tensors=tensors, batch=batch)


def _model(data: bytes, name: str) -> RawModel:
    import tflite

    model = tflite.Model.GetRootAs(data, 0)
    if model.Version() != VERSION:
        raise CompileError(f"schema version {model.Version()}, expected {VERSION}", where=name)
    if not model.SubgraphsLength() or model.Subgraphs(0) is None:
        raise CompileError("no graph in the model, or not all of the file", where=name)
    main = _graph(data, model, 0)
    if all(op.operator != "WHILE" for op in main.operators):
        return main
    if model.SubgraphsLength() > len(data):
        raise ValueError(f"{model.SubgraphsLength()} graphs in {len(data)} bytes")
    graphs = [_graph(data, model, i) for i in range(1, model.SubgraphsLength())]
    return dataclasses.replace(main, graphs=[main, *graphs])


def _graph(data: bytes, model: Any, number: int) -> RawModel:
    """One of the graphs; 0 is the main one."""
    import tflite

    graph = model.Subgraphs(number)
    counts = (graph.TensorsLength(), graph.OperatorsLength(), model.BuffersLength())
    if max(counts) > len(data):
        raise ValueError(f"{max(counts)} parts in {len(data)} bytes")
    names = {v: k for k, v in vars(tflite.TensorType).items() if isinstance(v, int)}
    tensors = [_tensor(data, model, graph.Tensors(i), names, i) for i in range(counts[0])]
    operators = [_operator(model, graph, tensors, i) for i in range(counts[1])]
    ends = [graph.Inputs(i) for i in range(graph.InputsLength())]
    outputs = [graph.Outputs(i) for i in range(graph.OutputsLength())]
    used = [n for op in operators for n in op.inputs]
    made = [n for op in operators for n in op.outputs]
    if any(not -1 <= n < len(tensors) for n in used) or any(
        not 0 <= n < len(tensors) for n in (*ends, *made, *outputs)
    ):
        raise ValueError("a tensor that is not there")
    plain = [op for op in operators if op.operator not in (*CONTROL, *STATE)]
    if without := [op.operator for op in plain if not op.outputs]:
        raise ValueError(f"{without[0]} without an output")
    return RawModel(tensors, operators, ends, outputs)


def _tensor(data: bytes, model: Any, tensor: Any, names: dict[int, str], number: int) -> RawTensor:
    kind = names.get(tensor.Type(), f"type {tensor.Type()}").lower()
    shape = tuple(tensor.Shape(i) for i in range(tensor.ShapeLength()))
    open_ = [tensor.ShapeSignature(i) for i in range(tensor.ShapeSignatureLength())]
    scale, zero, axis, fault = np.zeros(0), np.zeros(0, np.int64), 0, ""
    q = tensor.Quantization()
    if q is not None and q.ScaleLength():
        if max(q.ScaleLength(), q.ZeroPointLength()) > len(data):
            raise ValueError(f"tensor {number}: more scales than the file has bytes")
        scale = np.array([q.Scale(i) for i in range(q.ScaleLength())], dtype=np.float64)
        zeros = [q.ZeroPoint(i) for i in range(q.ZeroPointLength())] or [0]
        zero = np.broadcast_to(np.array(zeros, dtype=np.int64), scale.shape)
        axis = q.QuantizedDimension()
    if q is not None and q.DetailsType():
        fault = "a quantisation of its own kind (details), expected scale and zero point"
    if tensor.IsVariable():
        fault = VARIABLE
    raw = _buffer(data, model, tensor.Buffer())
    constant = None
    if raw is not None and kind in NUMPY and not fault:
        dtype, sparse = np.dtype(NUMPY[kind]), tensor.Sparsity()
        if sparse is not None:
            values = np.frombuffer(raw.tobytes(), dtype=dtype)
            raw = np.frombuffer(dense_values(sparse, shape, values).tobytes(), np.uint8)
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if size != raw.size:
            raise ValueError(f"tensor {number}: {raw.size} bytes, its shape takes {size}")
        constant = np.frombuffer(raw.tobytes(), dtype=dtype).reshape(shape)
    elif raw is not None:
        constant = raw
    label = (tensor.Name() or b"").decode(errors="replace") or f"tensor{number}"
    dynamic = any(n == -1 for n in open_[1:])
    sizes = tuple(open_) if -1 in open_ and len(open_) == len(shape) else ()
    return RawTensor(label, kind, shape, dynamic, scale, zero, axis, constant, fault, sizes)


def _buffer(data: bytes, model: Any, number: int) -> npt.NDArray[np.uint8] | None:
    """The bytes of a constant; None of a tensor that is none."""
    if number >= model.BuffersLength():
        raise ValueError(f"buffer {number}, there are {model.BuffersLength()}")
    buffer = model.Buffers(number)
    if buffer.Offset() > 1:  # behind the flatbuffer, in files above 2 GiB
        start, size = buffer.Offset(), buffer.Size()
        if start + size > len(data):
            raise ValueError(f"buffer {number} ends at byte {start + size} of {len(data)}")
        return np.frombuffer(data, np.uint8, size, start)
    if not buffer.DataLength():
        return None
    found = buffer.DataAsNumpy()
    if found.size != buffer.DataLength():
        raise ValueError(f"buffer {number}: {buffer.DataLength()} bytes, {found.size} are there")
    return found


def _operator(model: Any, graph: Any, tensors: list[RawTensor], number: int) -> RawOperator:
    import tflite

    op = graph.Operators(number)
    code = model.OperatorCodes(op.OpcodeIndex())
    which = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    names = {v: k for k, v in vars(tflite.BuiltinOperator).items() if isinstance(v, int)}
    operator = names.get(which, f"operator {which}")
    if operator == "CUSTOM":
        operator = f"CUSTOM {(code.CustomCode() or b'').decode(errors='replace')}"
    inputs = [op.Inputs(i) for i in range(op.InputsLength())]
    outputs = [op.Outputs(i) for i in range(op.OutputsLength())]
    label = f"{operator}{number}"
    if outputs and 0 <= outputs[0] < len(tensors):
        label = tensors[outputs[0]].name.split(";")[0]
    table = op.BuiltinOptions()
    options = None
    if table is not None:
        kinds = {v: k for k, v in vars(tflite.BuiltinOptions).items() if isinstance(v, int)}
        reader = getattr(tflite, kinds.get(op.BuiltinOptionsType(), ""), None)
        if isinstance(reader, type):
            lazy = reader()
            lazy.Init(table.Bytes, table.Pos)
            options = _Options(lazy)
    if operator == TRANSPOSED_BIAS:
        options = MediaPipeOptions(
            bytes(op.CustomOptions(i) for i in range(op.CustomOptionsLength()))
        )
    return RawOperator(
        printable(label), printable(operator), code.Version(), inputs, outputs, options
    )
