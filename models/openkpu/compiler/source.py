# SPDX-License-Identifier: Apache-2.0
"""A model file of any kind that the compiler reads, as a program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from openkpu import files
from openkpu.compiler import okpu
from openkpu.compiler.build import build
from openkpu.compiler.errors import CompileError
from openkpu.compiler.graph import Graph
from openkpu.compiler.onnx import translate as onnx_reader
from openkpu.compiler.onnx.file import is_onnx
from openkpu.compiler.program import Program
from openkpu.compiler.tflite import translate as tflite
from openkpu.compiler.tflite.file import is_tflite
from openkpu.configs import Config

KINDS = (".tflite", ".onnx", ".okpu")


def is_ours(path: str | Path) -> bool:
    """Is a file one for the compiler?  By its name, or else by how it begins.

    False for what cannot be read: whoever reads it says why.
    """
    if Path(path).suffix.lower() in KINDS:
        return True
    try:
        with files.open_file(path, CompileError) as stream:
            head = stream.read(1 << 16)
    except (CompileError, OSError):
        return False
    return okpu.is_program(head) or is_tflite(head)


def read_graph(path: str | Path, shape: Sequence[int] | None = None) -> Graph:
    """The graph of a TFLite or ONNX file; CompileError with one line.

    ``shape`` fixes an open shape of an ONNX model's input; of a TFLite model it is the input's own,
    or that with a batch of 1.
    """
    data, name = files.read_bytes(path, CompileError), Path(path).name
    kind = Path(path).suffix.lower()
    if is_tflite(data) or kind == ".tflite":
        graph = tflite.read(data, name, shape)
    elif kind == ".onnx" or is_onnx(data):
        graph = onnx_reader.read(data, name, shape, Path(path).parent)
    else:
        raise CompileError(f"no model, expected one of {', '.join(KINDS)}", where=name)
    if shape is not None and shape[0] == 1:
        graph.batch = 1  # as asked for
    return graph


def read_program(path: str | Path, config: Config, shape: Sequence[int] | None = None) -> Program:
    """The program of a model, compiled for a configuration, or of a program file.

    CompileError with one line: what no reader reads, a node that nothing computes, a program
    whose maps or weights do not fit the configuration.
    """
    head = files.read_bytes(path, CompileError)
    if okpu.is_program(head) or Path(path).suffix.lower() == ".okpu":
        if shape is not None:
            raise CompileError("SHAPE is of a model's input, this is compiled", where=str(path))
        return okpu.loads(head, Path(path).name)
    program = build(read_graph(path, shape), config)
    program.source = Path(path).name
    return program
