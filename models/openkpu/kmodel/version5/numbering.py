# SPDX-License-Identifier: Apache-2.0
"""Which release's numbering the byte code of a v5 model has: nothing in the file says so.

The code is read by every numbering.  One that fits follows the whole program: every instruction is
known, registers are set, shapes and types agree, tensors lie in their buffers, every output is
written.  Of several that fit and give different programs the one wins that leaves the fewest
doubts (registers that nothing reads, values left on the stack, elements written twice, nops), of
equals the newest.
"""

from __future__ import annotations

import dataclasses

from openkpu.kmodel.errors import KmodelError, Unsupported
from openkpu.kmodel.program import KpuLayer, Operation, Program
from openkpu.kmodel.version5.bytecode import DIALECTS, Code, Dialect, decode_function
from openkpu.kmodel.version5.container5 import Function, Model5

CODE_MAX = 4 << 20  # bytes of code that are compared
_PADDED = ("STPADDINGS", "TENSOR.CONV2D", "TENSOR.REDUCE_WINDOW2D")


@dataclasses.dataclass(frozen=True)
class Attempt:
    """What following the code by some numberings, which read it alike, came to."""

    dialects: tuple[Dialect, ...]
    program: Program | None
    error: KmodelError | None
    file: str
    steps: int  # instructions that were followed
    doubts: list[str]

    @property
    def reach(self) -> tuple[int, int, bool]:
        """How far the code was followed, how well, and whether it is right up to there: what comes
        is an operation, if one that cannot be followed."""
        return self.steps, -len(self.doubts), isinstance(self.error, Unsupported)

    @property
    def releases(self) -> str:
        """Newest first: "1.5.0, 1.4.0 or 1.3.0"."""
        names = [name for dialect in self.dialects for name in dialect.releases][::-1]
        *most, last = names
        return f"{', '.join(most)} or {last}" if most else last


def alternatives(model: Model5) -> list[tuple[Dialect, ...]]:
    """All numberings; the ones that decode this model's code into the same are one group."""
    functions = [
        function
        for module in model.modules
        if module.kind == "stackvm"
        for function in module.functions
    ]
    if sum(function.size for function in functions) > CODE_MAX:
        return [(dialect,) for dialect in DIALECTS]
    groups: dict[tuple, list[Dialect]] = {}
    for dialect in DIALECTS:
        code = [_decoded(model, function, dialect) for function in functions]
        groups.setdefault(_meaning(code, dialect), []).append(dialect)
    return [tuple(group) for group in groups.values()]


def _decoded(model: Model5, function: Function, dialect: Dialect) -> Code:
    try:
        return decode_function(model.text(function), dialect)
    except KmodelError as err:  # it lies nowhere; an error if it is called
        return Code((), err)


def _meaning(code: list[Code], dialect: Dialect) -> tuple:
    """Equal for numberings by which the code is the same."""
    names = {instruction.name for part in code for instruction in part.instructions}
    ends = tuple((part.instructions, part.problem and str(part.problem)) for part in code)
    interior = dialect.interior if names.intersection(_PADDED) else None
    unary = dialect.unary if "TENSOR.UNARY" in names else None
    return ends, interior, unary


def choose_numbering(attempts: list[Attempt]) -> Program:
    """The program of the numbering that fits best, with ``detail`` set.

    ``attempts``: oldest first.  KmodelError when none fits: what is wrong by the one that followed
    most of the code.
    """
    fitting = _merged([attempt for attempt in attempts if attempt.program is not None])
    if not fitting:
        raise _nearest(attempts)
    best = min(reversed(fitting), key=lambda attempt: len(attempt.doubts))
    program = best.program
    assert program is not None
    detail = f"byte code of nncase {best.releases}"
    if others := [attempt.releases for attempt in fitting if attempt is not best]:
        detail += f" (by {', '.join(others)} it would be another program; NUMBERING decides)"
    if best.doubts:
        detail += f" (doubtful: {best.doubts[0]})"
    program.detail = detail
    return program


def _merged(fitting: list[Attempt]) -> list[Attempt]:
    """Attempts that came to the same program are one."""
    found: list[Attempt] = []
    for attempt in fitting:
        for index, other in enumerate(found):
            if _alike(other.program, attempt.program):
                doubts = min(other.doubts, attempt.doubts, key=len)
                found[index] = dataclasses.replace(
                    other, dialects=(*other.dialects, *attempt.dialects), doubts=doubts
                )
                break
        else:
            found.append(attempt)
    return found


def _alike(a: Program | None, b: Program | None) -> bool:
    assert a is not None and b is not None
    return len(a.operations) == len(b.operations) and all(
        type(x) is type(y) and _facts(x) == _facts(y)
        for x, y in zip(a.operations, b.operations, strict=True)
    )


def _facts(op: Operation) -> tuple:
    """What an operation does, for comparing."""
    if isinstance(op, KpuLayer):  # its tables are arrays, but their offsets are in the argument
        return op.offset, op.arg, op.main_out, op.batches
    return tuple(getattr(op, field.name) for field in dataclasses.fields(op))


def _nearest(attempts: list[Attempt]) -> KmodelError:
    """The error of the attempt that got furthest, the newest of equals; what others of them say."""
    reach = max(attempt.reach for attempt in attempts)
    best, *others = [attempt for attempt in reversed(attempts) if attempt.reach == reach]
    assert best.error is not None
    if len(attempts) == 1:
        return best.error
    if {str(attempt.error) for attempt in attempts} == {str(best.error)}:
        return KmodelError(f"{best.error} (byte code of any numbering)", best.error.offset)
    text = f"{best.error} (byte code of nncase {best.releases}, the nearest numbering"
    for other in others:
        if str(other.error) != str(best.error):
            what = str(other.error).removeprefix(f"{best.file}: ")
            text += f"; as near, {other.releases}: {what}"
    return KmodelError(f"{text})", best.error.offset)
