# SPDX-License-Identifier: Apache-2.0
"""A model file of any kind that the compiler reads, as a program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from openkpu import files
from openkpu.compiler import okpu
from openkpu.compiler.calibration import calibrate, widening
from openkpu.compiler.calibration.calibrate import Calibrated
from openkpu.compiler.calibration.prepare import is_float
from openkpu.compiler.calibration.samples import Request
from openkpu.compiler.errors import CompileError, FloatModelError
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.onnx import translate as onnx_reader
from openkpu.compiler.onnx.file import is_onnx
from openkpu.compiler.program import Program
from openkpu.compiler.room import fitting_program
from openkpu.compiler.tflite import translate as tflite
from openkpu.compiler.tflite.file import is_tflite
from openkpu.compiler.tflite.floats import float_form
from openkpu.configs import Config
from openkpu.words import option

MODELS = (".tflite", ".onnx")
KINDS = (*MODELS, ".okpu")


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


def read_graph(
    path: str | Path, shape: Sequence[int] | None = None, ends: Sequence[str] = ()
) -> Graph:
    """The graph of a quantised TFLite or ONNX file; CompileError with one line.

    ``shape`` fixes an open shape of an ONNX model's input; of a TFLite model it is the input's own,
    or that with a batch of 1. ``ends``: tensors with which the network ends, in place of the file's
    outputs.
    """
    graph, _ = _graph(path, shape, None, ends)
    return graph


def _graph(
    path: str | Path, shape: Sequence[int] | None, request: Request | None, ends: Sequence[str]
) -> tuple[Graph, Calibrated | None]:
    data, name = files.read_bytes(path, CompileError), Path(path).name
    kind = Path(path).suffix.lower()
    tflite_file = is_tflite(data) or kind == ".tflite"
    if okpu.is_program(data):
        what = f"a compiled program, expected the model: one of {', '.join(MODELS)}"
        raise CompileError(what, where=name)
    if not tflite_file and kind != ".onnx" and not is_onnx(data):
        raise CompileError(f"no model, expected one of {', '.join(MODELS)}", where=name)
    folder = Path(path).parent
    if tflite_file:
        floats = float_form.is_float(data, name, ends)
    else:
        floats = is_float(data, name, folder, ends)
    if floats:
        if request is None:
            raise FloatModelError(calibrate.needed(), where=name)
        found = calibrate.calibrated(data, name, request, shape, folder, ends)
        return found.graph, found
    if request is not None:
        raise CompileError(calibrate.quantised(), where=name)
    if tflite_file:
        graph = tflite.read_tflite(data, name, shape, ends)
    else:
        graph = onnx_reader.read_onnx(data, name, shape, folder, ends)
    if shape is not None and shape[0] == 1:
        graph.batch = 1  # as asked for
    return graph, None


def quantised_model(
    path: str | Path,
    request: Request,
    config: Config,
    shape: Sequence[int] | None = None,
    ends: Sequence[str] = (),
) -> Calibrated:
    """A float TFLite or ONNX model, quantised; CompileError with one line.

    ``config`` is that of a budget of cycles; ``ends`` as in ``read_graph``.
    """
    _, found = _graph(path, shape, request, ends)
    assert found is not None, "a request is met, or refused"
    return _within(found, config)


def _within(found: Calibrated, config: Config, one_list: bool = False) -> Calibrated:
    """With the layers widened that a budget of cycles allows, where the request has one."""
    if not isinstance(found.request.wide, float):
        return found
    return widening.within_budget(found, config, one_list)


def read_model_program(
    path: str | Path,
    config: Config,
    shape: Sequence[int] | None = None,
    request: Request | None = None,
    one_list: bool = False,
    ends: Sequence[str] = (),
) -> tuple[Program, Calibrated | None]:
    """The program of a model, compiled for a configuration, or of a program file; of a float model
    also what it was quantised from.

    ``one_list``: weights of 16 bits start no list of their own (``fitting_program``); ``ends`` as
    in ``read_graph``.  CompileError
    with one line: what no reader reads, a node that nothing computes, a program
    whose maps or weights do not fit the configuration, a float model without a ``request``.
    """
    head = files.read_bytes(path, CompileError)
    if okpu.is_program(head) or Path(path).suffix.lower() == ".okpu":
        for name, given in (("shape", shape), ("ends", ends)):
            if given:
                what = f"{option(name)} is of a model, this is compiled"
                raise CompileError(what, where=str(path))
        if request is not None:
            raise CompileError(calibrate.quantised(), where=str(path))
        return okpu.loads_okpu(head, Path(path).name), None
    graph, found = _graph(path, shape, request, ends)
    if found:
        found = _within(found, config, one_list)
        graph = found.graph
    program = fitting_program(graph, config, one_list)
    program.source = Path(path).name
    return program, found


def read_program(
    path: str | Path,
    config: Config,
    shape: Sequence[int] | None = None,
    request: Request | None = None,
    one_list: bool = False,
    ends: Sequence[str] = (),
) -> Program:
    """As ``read_model_program``, the program alone."""
    program, _ = read_model_program(path, config, shape, request, one_list, ends)
    return program
