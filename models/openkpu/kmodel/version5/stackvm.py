# SPDX-License-Identifier: Apache-2.0
"""Following the CPU byte code of a v5 model: calls, shapes and copies become operations.

The code is straight-line in every model that the compiler emits: it pushes addresses and
constants, stores shapes into registers and invokes tensor functions.  It is executed once, when
the file is read, with addresses as (space, offset); what depends on tensor contents cannot be
followed and is an error that names the instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from openkpu.kmodel.errors import KmodelError, Unsupported
from openkpu.kmodel.program import ELEMENTS_MAX, Operation, View
from openkpu.kmodel.version5.bytecode import Code, Dialect, Instruction, decode_function
from openkpu.kmodel.version5.container5 import DTYPES, Function, Model5, Range
from openkpu.kmodel.version5.k210 import function_operations

Name = TypeVar("Name", bound=str)
STEPS_MAX = 1_000_000
OPERATIONS_MAX = 50_000
DEPTH_MAX = 8
STACK_MAX = 4096
DOUBTS_MAX = 1000


class Address(NamedTuple):
    """A place in a memory space."""

    space: str
    offset: int


class Trace:
    """What following a model yields: operations and temporary memory.

    ``doubts``: what a compiler would not have written, though it can be followed; a sign that the
    numbering is another one. ``tensor``: what does each tensor function, by its name.
    """

    def __init__(
        self, model: Model5, dialect: Dialect, tensor: Mapping[str, Callable[..., None]]
    ) -> None:
        self.model, self.dialect, self.tensor = model, dialect, tensor
        self.operations: list[Operation] = []
        self.temporary = 0  # bytes of the space "temp"
        self.steps = 0
        self.doubts: list[str] = []
        self.decoded: dict[int, Code] = {}  # by the function's place in the file

    def add(self, op: Operation) -> None:
        dst = getattr(op, "dst", None)
        if isinstance(dst, View) and dst.space.startswith(("rdata", "input")):
            raise self.model.blob.error(op.offset, f"{op.name}: writes to {dst}")
        self.operations.append(op)
        if len(self.operations) > OPERATIONS_MAX:
            raise self.model.blob.error(op.offset, f"more than {OPERATIONS_MAX} operations")

    def code(self, function: Function) -> Code:
        """A function's instructions."""
        if function.offset not in self.decoded:
            self.decoded[function.offset] = decode_function(self.model.text(function), self.dialect)
        return self.decoded[function.offset]

    def doubt(self, offset: int, text: str) -> None:
        if len(self.doubts) < DOUBTS_MAX:
            self.doubts.append(f"offset 0x{offset:x}: {text}")

    def run(
        self, function: Function, inputs: list[View], outputs: list[View], depth: int = 0
    ) -> None:
        """Follow one function whose parameters are these dense tensors."""
        kind = self.model.modules[function.module].kind
        if kind == "k210":
            for op in function_operations(self.model, function, inputs, outputs):
                self.add(op)
        elif kind == "stackvm":
            if depth > DEPTH_MAX:
                raise self.model.blob.error(function.offset, "functions call each other too deeply")
            Machine(self, function, inputs, outputs, depth).run()
        else:
            raise self.model.blob.error(function.offset, f"module {kind!r} is not supported")


class Machine:
    """The stack machine in one function."""

    def __init__(
        self, trace: Trace, function: Function, inputs: list[View], outputs: list[View], depth: int
    ) -> None:
        self.trace, self.model, self.dialect = trace, trace.model, trace.dialect
        self.function, self.inputs, self.outputs, self.depth = function, inputs, outputs, depth
        self.stack: list[int | float | Address] = []
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.pads: dict[int, tuple[tuple[int, int], ...]] = {}
        self.unread: dict[tuple[str, int], int] = {}  # registers: where they were set
        self.at = Instruction(function.offset, "start", ())

    def fail(self, text: str) -> KmodelError:
        return self.model.blob.error(self.at.offset, f"{self.at.name.lower()}: {text}")

    def run(self) -> None:
        """Execute to the end of the code or a return."""
        whole = self.trace.code(self.function)
        code = whole.instructions
        index = {item.offset: i for i, item in enumerate(code)}
        position = 0
        while position < len(code):
            self.at = code[position]
            position += 1
            if self.trace.steps >= STEPS_MAX:
                raise self.fail(f"more than {STEPS_MAX} steps")
            if self.at.name == "RET":
                self.trace.steps += 1
                break
            if self.at.name.startswith("BR"):
                if self._branch():
                    # targets count from the end of the instruction
                    after = code[position].offset if position < len(code) else self.at.offset + 5
                    target = after + self.at.operands[0]
                    if target not in index:
                        raise self.fail(f"target 0x{target:x} is no instruction")
                    position = index[target]
            else:
                self._step()
            self.trace.steps += 1
            if len(self.stack) > STACK_MAX:
                raise self.fail(f"more than {STACK_MAX} values on the stack")
        if whole.problem is not None:
            raise whole.problem
        if self.stack:
            raise self.fail(f"{len(self.stack)} values are left on the stack")
        for register in self.unread:
            self._doubt_unread(*register)

    def _store(self, kind: str, register: int) -> None:
        """A register is set."""
        if (kind, register) in self.unread:
            self._doubt_unread(kind, register)
        self.unread[kind, register] = self.at.offset

    def _doubt_unread(self, kind: str, register: int) -> None:
        at = self.unread[kind, register]
        self.trace.doubt(at, f"nothing reads {kind} register {register}")

    def doubt(self, text: str) -> None:
        self.trace.doubt(self.at.offset, f"{self.at.name.lower()}: {text}")

    # -------------------------------------------------------------------- plain instructions
    def _branch(self) -> bool:
        if self.at.name == "BR":
            return True
        if self.at.name == "BREAK":
            raise self.fail("is not supported")
        taken = bool(self.integer())
        return taken == (self.at.name == "BR_TRUE")

    def _step(self) -> None:
        name, operands = self.at.name, self.at.operands
        if name.startswith("TENSOR."):
            handler = self.trace.tensor.get(name[7:])
            if handler is None:
                raise Unsupported.of(self.model.blob.name, self.at.offset, name[7:].lower())
            handler(self, *operands)
            if self.stack:
                self.doubt(f"leaves {len(self.stack)} values on the stack")
        elif name in ("LDC_I4", "LDC_R4"):
            self.stack.append(operands[0])
        elif name in ("LDC_I4_0", "LDC_I4_1", "LDNULL"):
            self.stack.append(int(name == "LDC_I4_1"))
        elif name == "LEA_BUFFER":
            self._lea_buffer(*operands)
        elif name == "STSHAPE":
            register, rank = operands
            if rank > 8:
                raise self.fail(f"rank {rank}")
            self._store("shape", register)
            self.shapes[register] = tuple(reversed([self.integer() for _ in range(rank)]))
        elif name == "STPADDINGS":
            register, rank = operands
            if rank > 8:
                raise self.fail(f"rank {rank}")
            self._store("padding", register)
            self.pads[register] = tuple(reversed([self.padding() for _ in range(rank)]))
        elif name == "DUP":
            value = self.pop()
            self.stack += [value, value]
        elif name == "POP":
            self.pop()
        elif name in ARITHMETIC:
            b, a = self.integer(), self.integer()
            try:
                self.stack.append(_signed(ARITHMETIC[name](a, b) & 0xFFFFFFFF))
            except (ZeroDivisionError, ValueError, OverflowError):
                raise self.fail(f"of {a} and {b}") from None
        elif name == "NOP":
            self.doubt("stands for nothing")
        elif name not in ("CONV_I4", "CONV_I", "CONV_U4", "CONV_U"):
            raise self.fail("is not supported")

    def _lea_buffer(self, location: int, _: int, offset: int) -> None:
        place = Range(location, 4, offset, 0)
        views, parameters = {
            0: (self.inputs, self.function.inputs),
            1: (self.outputs, self.function.outputs),
        }.get(location, ((), ()))
        for view, parameter in zip(views, parameters, strict=True):
            if parameter.range.start == offset:  # parameters of no bytes too
                self.stack.append(Address(view.space, view.start))
                return
        view = self.model.locate(self.function, place, self.inputs, self.outputs)
        if view is None or view.space == "kpu":
            raise self.fail(f"{place} does not exist")
        self.stack.append(Address(view.space, view.start))

    # -------------------------------------------------------------------------------- values
    def pop(self) -> int | float | Address:
        if not self.stack:
            raise self.fail("the stack is empty")
        return self.stack.pop()

    def integer(self) -> int:
        value = self.pop()
        if not isinstance(value, int):
            raise self.fail(f"an integer is expected on the stack, found {value}")
        return value

    def number(self) -> float:
        value = self.pop()
        if isinstance(value, Address):
            raise self.fail(f"a number is expected on the stack, found {value}")
        return float(value)

    def address(self) -> Address:
        value = self.pop()
        if not isinstance(value, Address):
            raise self.fail(f"an address is expected on the stack, found {value}")
        return value

    def padding(self) -> tuple[int, int]:
        """Before and after, as pushed; newer compilers push an interior padding too."""
        if self.dialect.interior and (interior := self.integer()):
            raise self.fail(f"interior padding {interior} is not supported")
        after, before = self.integer(), self.integer()
        return before, after

    def shape(self, register: int) -> tuple[int, ...]:
        """A shape register."""
        if register not in self.shapes:
            raise self.fail(f"shape register {register} is not set")
        self.unread.pop(("shape", register), None)
        return self.shapes[register]

    def paddings(self, register: int) -> tuple[tuple[int, int], ...]:
        """A padding register."""
        if register not in self.pads:
            raise self.fail(f"padding register {register} is not set")
        self.unread.pop(("padding", register), None)
        return self.pads[register]

    def clamp(self, low: float, high: float) -> tuple[float, float]:
        """A fused activation."""
        if not low <= high:
            raise self.fail(f"fused activation {low:g} .. {high:g}")
        return low, high

    def flag(self, value: int) -> bool:
        """A byte that is 0 or 1."""
        if value > 1:
            self.doubt(f"{value} where 0 or 1 is expected")
        return bool(value)

    def choice(self, names: tuple[Name, ...], value: int, what: str) -> Name:
        if value >= len(names):
            raise self.fail(f"{what} {value} is not supported")
        return names[value]

    def view(self, place: Address, dtype: int, shape: tuple[int, ...], strides: int) -> View:
        """A tensor with the strides of a register."""
        if dtype not in DTYPES:
            raise self.fail(f"data type {dtype} is not supported")
        steps = self.shape(strides)
        if len(steps) != len(shape):
            raise self.fail(f"strides {list(steps)} for shape {list(shape)}")
        # an axis of one element has any stride
        steps = tuple(0 if n == 1 else s for n, s in zip(shape, steps, strict=True))
        view = View(place.space, place.offset, shape, DTYPES[dtype], steps)
        if any(n < 0 for n in shape) or view.count > ELEMENTS_MAX:
            raise self.fail(f"shape {list(shape)}")
        return view.flat(*shape) if view.dense else view

    def result(self, place: Address, dtype: int, shape: tuple[int, ...], strides: int) -> View:
        """The same for a tensor that is written."""
        view = self.view(place, dtype, shape, strides)
        reach = 1  # elements up to the end of the axes so far
        for step, extent in sorted(zip(view.strides or (), shape, strict=bool(view.strides))):
            if extent > 1:
                if step < reach:
                    self.doubt(f"elements of {view} lie over each other")
                    break
                reach = step * extent
        return view


def _signed(value: int) -> int:
    return value - (1 << 32) if value & 0x80000000 else value


ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "ADD": lambda a, b: a + b,
    "SUB": lambda a, b: a - b,
    "MUL": lambda a, b: a * b,
    "DIV": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "AND": lambda a, b: a & b,
    "OR": lambda a, b: a | b,
    "XOR": lambda a, b: a ^ b,
    "SHL": lambda a, b: a << (b & 31),
    "SHR": lambda a, b: a >> (b & 31),
    "CLT": lambda a, b: a < b,
    "CLE": lambda a, b: a <= b,
    "CEQ": lambda a, b: a == b,
    "CGE": lambda a, b: a >= b,
    "CGT": lambda a, b: a > b,
    "CNE": lambda a, b: a != b,
}
