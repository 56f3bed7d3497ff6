# SPDX-License-Identifier: Apache-2.0
"""The container of a TFLite file: tensors, buffers and operators, with the builders of the
package ``tflite``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import flatbuffers
import numpy as np
import numpy.typing as npt
import tflite

TYPES = {
    np.dtype(np.float32): tflite.TensorType.FLOAT32,
    np.dtype(np.float16): tflite.TensorType.FLOAT16,
    np.dtype(np.int32): tflite.TensorType.INT32,
    np.dtype(np.int64): tflite.TensorType.INT64,
    np.dtype(np.uint8): tflite.TensorType.UINT8,
    np.dtype(np.int8): tflite.TensorType.INT8,
    np.dtype(np.int16): tflite.TensorType.INT16,
    np.dtype(np.bool_): tflite.TensorType.BOOL,
}


@dataclasses.dataclass
class FlatTensor:
    """One tensor of the file, in the file's order of axes."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    data: npt.NDArray | None = None
    scales: Sequence[float] = ()
    zero_points: Sequence[int] = ()
    axis: int = 0
    open: tuple[int, ...] = ()  # the shape with -1 for sizes that are open, where there are any
    variable: bool = False  # a state


@dataclasses.dataclass
class Operator:
    """One operator; options are fields of the table ``options``, as flatbuffers names them."""

    name: str
    inputs: list[int]
    outputs: list[int]
    options: str
    fields: dict[str, int | float | bool]
    custom: str = ""


@dataclasses.dataclass
class FlatGraph:
    """A graph of the file; inputs and outputs are numbers of its tensors."""

    tensors: Sequence[FlatTensor]
    operators: Sequence[Operator]
    inputs: Sequence[int]
    outputs: Sequence[int]


def _table(builder: flatbuffers.Builder, kind: str, **fields: object) -> int:
    """A table whose fields are numbers or offsets of what is written already."""
    getattr(tflite, f"{kind}Start")(builder)
    for name, value in fields.items():
        if value is not None:
            getattr(tflite, f"{kind}Add{name[0].upper()}{name[1:]}")(builder, value)
    return getattr(tflite, f"{kind}End")(builder)


def _offsets(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _numbers(builder: flatbuffers.Builder, values: Sequence[int | float], dtype: type) -> int:
    return builder.CreateNumpyVector(np.asarray(values, dtype))


def _tensor(builder: flatbuffers.Builder, tensor: FlatTensor, buffer: int) -> int:
    name = builder.CreateString(tensor.name)
    shape = _numbers(builder, tensor.shape, np.int32)
    signature = _numbers(builder, tensor.open, np.int32) if tensor.open else None
    quantization = None
    if len(tensor.scales):
        scale = _numbers(builder, tensor.scales, np.float32)
        zero = _numbers(builder, tensor.zero_points, np.int64)
        quantization = _table(
            builder,
            "QuantizationParameters",
            scale=scale,
            zeroPoint=zero,
            quantizedDimension=tensor.axis,
        )
    return _table(
        builder,
        "Tensor",
        shape=shape,
        type=TYPES[tensor.dtype],
        buffer=buffer,
        name=name,
        quantization=quantization,
        shapeSignature=signature,
        isVariable=tensor.variable,
    )


def _operator(builder: flatbuffers.Builder, operator: Operator, code: int) -> int:
    inputs = _numbers(builder, operator.inputs, np.int32)
    outputs = _numbers(builder, operator.outputs, np.int32)
    options, kind = None, 0
    if operator.options:
        options = _table(builder, operator.options, **operator.fields)
        kind = getattr(tflite.BuiltinOptions, operator.options)
    return _table(
        builder,
        "Operator",
        opcodeIndex=code,
        inputs=inputs,
        outputs=outputs,
        builtinOptionsType=kind,
        builtinOptions=options,
    )


def _buffers(builder: flatbuffers.Builder, graph: FlatGraph, buffers: list[int]) -> list[int]:
    """The number of each tensor's buffer; ``buffers`` grows by those of the constants."""
    places = []
    for tensor in graph.tensors:
        places.append(0)
        if tensor.data is not None:
            data = np.ascontiguousarray(tensor.data, tensor.dtype)
            builder.Prep(16, data.nbytes)  # runtimes want buffers at multiples of 16
            vector = builder.CreateNumpyVector(data.view(np.uint8).reshape(-1))
            places[-1] = len(buffers)
            buffers.append(_table(builder, "Buffer", data=vector))
    return places


def _graph(
    builder: flatbuffers.Builder,
    graph: FlatGraph,
    name: str,
    places: Sequence[int],
    kinds: Sequence[tuple[str, str]],
) -> int:
    """A graph; ``places``: of _buffers, ``kinds``: the operators of the file."""
    table = [_tensor(builder, t, place) for t, place in zip(graph.tensors, places, strict=True)]
    listed = [_operator(builder, o, kinds.index((o.name, o.custom))) for o in graph.operators]
    return _table(
        builder,
        "SubGraph",
        tensors=_offsets(builder, table),
        inputs=_numbers(builder, graph.inputs, np.int32),
        outputs=_numbers(builder, graph.outputs, np.int32),
        operators=_offsets(builder, listed),
        name=builder.CreateString(name),
    )


def write_tflite(*graphs: FlatGraph) -> bytes:
    """The file; the first graph is the main one, the others are those of its loops. Buffer 0 is the
    empty one that the format asks for."""
    builder = flatbuffers.Builder(1024)
    kinds = list(dict.fromkeys((o.name, o.custom) for g in graphs for o in g.operators))
    buffers = [_table(builder, "Buffer")]
    places = [_buffers(builder, graph, buffers) for graph in graphs]
    codes = []
    for name, custom in kinds:
        number = getattr(tflite.BuiltinOperator, name)
        text = builder.CreateString(custom) if custom else None
        codes.append(
            _table(
                builder,
                "OperatorCode",
                deprecatedBuiltinCode=min(number, 127),
                builtinCode=number,
                customCode=text,
                version=VERSIONS.get(name, 1),
            )
        )
    names = ["main", *(f"graph{i}" for i in range(1, len(graphs)))]
    parts = zip(graphs, names, places, strict=True)
    made = [_graph(builder, graph, name, found, kinds) for graph, name, found in parts]
    model = _table(
        builder,
        "Model",
        version=3,
        operatorCodes=_offsets(builder, codes),
        subgraphs=_offsets(builder, made),
        description=builder.CreateString("written by openkpu.writers"),
        buffers=_offsets(builder, buffers),
    )
    builder.Finish(model, b"TFL3")
    return bytes(builder.Output())


# the first version of each operator that has int8
VERSIONS = {
    "ADD": 2,
    "ARG_MAX": 2,
    "AVERAGE_POOL_2D": 2,
    "CONCATENATION": 2,
    "CONV_2D": 3,
    "DEPTHWISE_CONV_2D": 3,
    "FULLY_CONNECTED": 4,
    "LEAKY_RELU": 2,
    "LOGISTIC": 2,
    "MAXIMUM": 2,
    "MAX_POOL_2D": 2,
    "MEAN": 2,
    "MINIMUM": 2,
    "MUL": 2,
    "PAD": 2,
    "QUANTIZE": 2,
    "DEQUANTIZE": 2,
    "RESIZE_NEAREST_NEIGHBOR": 2,
    "SLICE": 2,
    "SOFTMAX": 2,
    "SPLIT": 2,
    "SUB": 2,
    "TANH": 2,
}
