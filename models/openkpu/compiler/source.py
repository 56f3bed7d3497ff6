# SPDX-License-Identifier: Apache-2.0
"""A model file of any kind that the compiler reads, as a program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from openkpu import files
from openkpu.compiler import okpu
from openkpu.compiler.build import build_program
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

    ``shape`` fixes an open shape of an ONNX model's input.
    """
    data, name = files.read_bytes(path, CompileError), Path(path).name
    kind = Path(path).suffix.lower()
    if is_tflite(data) or kind == ".tflite":
        if shape is not None:
            raise CompileError("a shape fixes the input of an ONNX model, this is none", where=name)
        return tflite.read_tflite(data, name)
    if kind == ".onnx" or is_onnx(data):
        return onnx_reader.read_onnx(data, name, shape, Path(path).parent)
    raise CompileError(f"no model, expected one of {', '.join(KINDS)}", where=name)


def read_program(path: str | Path, config: Config, shape: Sequence[int] | None = None) -> Program:
    """The program of a model, compiled for a configuration, or of a program file.

    CompileError with one line: what no reader reads, a node that nothing computes, a program
    whose maps or weights do not fit the configuration.
    """
    head = files.read_bytes(path, CompileError)
    if okpu.is_program(head) or Path(path).suffix.lower() == ".okpu":
        if shape is not None:
            raise CompileError("SHAPE is of a model's input, this is compiled", where=str(path))
        return okpu.loads_okpu(head, Path(path).name)
    program = build_program(read_graph(path, shape), config)
    program.source = Path(path).name
    return program
