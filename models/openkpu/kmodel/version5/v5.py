# SPDX-License-Identifier: Apache-2.0
"""kmodel v5 (nncase 1.x): the whole program, or its KPU functions one by one."""

from __future__ import annotations

from openkpu.kmodel.errors import KmodelError
from openkpu.kmodel.program import RAM_BYTES, ModelTensor, Program, View
from openkpu.kmodel.readers.binary import Blob
from openkpu.kmodel.version5.bytecode import DIALECTS, Dialect, dialect_of
from openkpu.kmodel.version5.container5 import Function, Model5, parameter_view, read_container
from openkpu.kmodel.version5.numbering import Attempt, alternatives, choose_numbering
from openkpu.kmodel.version5.stackvm import Trace
from openkpu.kmodel.version5.tensor5 import TENSOR


def read_v5(blob: Blob, numbering: str | None = None) -> Program:
    """The model from its entry function on; KmodelError names what cannot be followed.

    ``numbering``: the release whose numbering the CPU's code has; None: ``choose_numbering`` finds
    out, and ``detail`` of the program says which it is.
    """
    wanted = None if numbering is None else dialect_of(numbering)
    model = read_container(blob)
    function = model.function(*model.entry, 24)
    if model.modules[function.module].kind != "stackvm":
        if numbering is not None:
            raise KmodelError(f"{blob.name}: no byte code for the CPU, expected no numbering")
        return _program(model, function, Trace(model, DIALECTS[-1], TENSOR))
    if wanted is not None:
        attempt = _attempt(model, function, wanted)
        if attempt.program is None:
            assert attempt.error is not None
            text = f"{attempt.error} (byte code of nncase {numbering}, as asked)"
            raise KmodelError(text, attempt.error.offset)
        attempt.program.detail = f"byte code of nncase {numbering} (as asked)"
        return attempt.program
    attempts = [_attempt(model, function, *group) for group in alternatives(model)]
    return choose_numbering(attempts)


def read_functions(blob: Blob) -> list[Program]:
    """Every function of the k210 modules as a program of its own.

    These run even when the CPU part of the model cannot be followed.
    """
    model = read_container(blob)
    return [
        _program(model, function, Trace(model, DIALECTS[-1], TENSOR))
        for module in model.modules
        if module.kind == "k210"
        for function in module.functions
    ]


def _attempt(model: Model5, function: Function, *dialects: Dialect) -> Attempt:
    """The program as these numberings read it, which is the same for all of them."""
    trace = Trace(model, dialects[0], TENSOR)
    program, error = None, None
    try:
        program = _program(model, function, trace)
        _check_outputs(program)
    except KmodelError as err:
        program, error = None, err
    return Attempt(dialects, program, error, model.blob.name, trace.steps, trace.doubts)


def _program(model: Model5, function: Function, trace: Trace) -> Program:
    sizes, constants = model.spaces()
    tensors: list[list[ModelTensor]] = []
    for kind, parameters in (("input", function.inputs), ("output", function.outputs)):
        tensors.append([])
        for index, parameter in enumerate(parameters):
            view = parameter_view(model.blob, function, parameter, f"{kind}{index}")
            sizes[view.space] = view.size
            tensors[-1].append(ModelTensor(view.space, view))
    inputs, outputs = ([t.view for t in group] for group in tensors)
    trace.run(function, inputs, outputs)
    sizes |= {"kpu": RAM_BYTES, "temp": trace.temporary}
    program = Program(
        file=model.blob.name,
        version=5,
        eight_bit=True,
        sizes=sizes,
        inputs=tensors[0],
        outputs=tensors[1],
        operations=trace.operations,
        constants=constants,
    )
    return program.check()


def _check_outputs(program: Program) -> None:
    """Every output is written by something: a wrong numbering would show here."""
    written = set()
    for op in program.operations:
        for name in ("dst", "main_out"):
            view = getattr(op, name, None)
            if isinstance(view, View):
                written.add(view.space)
    for tensor in program.outputs:
        if tensor.view.count and tensor.view.space not in written:
            raise KmodelError(f"{program.file}: nothing writes {tensor.name}")
