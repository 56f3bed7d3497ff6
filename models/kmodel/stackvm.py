# SPDX-License-Identifier: Apache-2.0
"""Following the CPU byte code of a v5 model: calls, shapes and copies become operations.

The code is straight-line in every model that the compiler emits: it pushes addresses and
constants, stores shapes into registers and invokes tensor functions.  It is executed once, when
the file is read, with addresses as (space, offset); what depends on tensor contents cannot be
followed and is an error that names the instruction.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

from . import operations as ops
from .bytecode import Dialect, Instruction, decode
from .container5 import DTYPES, Function, Model5, Range
from .errors import KmodelError
from .k210 import function_operations
from .names import BINARY_V5, PAD_MODES, REDUCE, RESIZE_MODES
from .products import Conv2d, MatMul
from .program import ELEMENTS_MAX, Operation, View

STEPS_MAX = 1_000_000
OPERATIONS_MAX = 50_000
DEPTH_MAX = 8
STACK_MAX = 4096


class Address(NamedTuple):
    """A place in a memory space."""

    space: str
    offset: int


class Trace:
    """What following a model yields: operations and temporary memory."""

    def __init__(self, model: Model5, dialect: Dialect) -> None:
        self.model, self.dialect = model, dialect
        self.operations: list[Operation] = []
        self.temporary = 0  # bytes of the space "temp"
        self.steps = 0

    def add(self, op: Operation) -> None:
        self.operations.append(op)
        if len(self.operations) > OPERATIONS_MAX:
            raise self.model.blob.error(op.offset, f"more than {OPERATIONS_MAX} operations")

    def run(
        self, function: Function, inputs: list[View], outputs: list[View], depth: int = 0
    ) -> None:
        """Follow one function whose parameters are these dense tensors."""
        kind = self.model.modules[function.module].kind
        if kind == "k210":
            for op in function_operations(self.model, function, inputs, outputs):
                self.add(op)
        elif kind == "stackvm":
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
        self.at = Instruction(function.offset, "start", ())

    def fail(self, text: str) -> KmodelError:
        return self.model.blob.error(self.at.offset, f"{self.at.name.lower()}: {text}")

    def run(self) -> None:
        """Execute to the end of the code or a return."""
        code = decode(self.model.text(self.function), self.dialect)
        index = {item.offset: i for i, item in enumerate(code)}
        position = 0
        while position < len(code):
            self.at = code[position]
            position += 1
            self.trace.steps += 1
            if self.trace.steps > STEPS_MAX:
                raise self.fail(f"more than {STEPS_MAX} steps")
            if self.at.name == "RET":
                break
            if self.at.name.startswith("BR"):
                if self._branch():
                    # targets count from the end of the instruction
                    after = code[position].offset if position < len(code) else self.at.offset + 5
                    target = after + self.at.operands[0]
                    if target not in index:
                        raise self.fail(f"target 0x{target:x} is no instruction")
                    position = index[target]
                continue
            self._step()
            if len(self.stack) > STACK_MAX:
                raise self.fail(f"more than {STACK_MAX} values on the stack")
        if self.stack:
            raise self.fail(f"{len(self.stack)} values are left on the stack")

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
            handler = TENSOR.get(name[7:])
            if handler is None:
                raise self.fail("is not supported")
            handler(self, *operands)
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
            self.shapes[register] = tuple(reversed([self.integer() for _ in range(rank)]))
        elif name == "STPADDINGS":
            register, rank = operands
            if rank > 8:
                raise self.fail(f"rank {rank}")
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
        elif name not in ("NOP", "CONV_I4", "CONV_I", "CONV_U4", "CONV_U"):
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
        return self.shapes[register]

    def choice(self, names: tuple[str, ...], value: int, what: str) -> str:
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

    # ---------------------------------------------------------------------- tensor functions
    def unary_like(self, make: Callable[..., Operation], dtype: int, *registers: int) -> None:
        """Output address on top, input below; the same shape."""
        shape, in_strides, out_strides = registers
        out, src = self.address(), self.address()
        extent = self.shape(shape)
        self.trace.add(
            make(
                offset=self.at.offset,
                src=self.view(src, dtype, extent, in_strides),
                dst=self.view(out, dtype, extent, out_strides),
            )
        )

    def binary(self, dtype: int, *operands: float) -> None:
        if self.dialect.binary_shape:
            operands = operands[:4] + operands[5:]  # the result's shape follows from the others
        a_shape, a_strides, b_shape, b_strides, out_strides, op, low, high = operands
        out, b, a = self.address(), self.address(), self.address()
        va = self.view(a, dtype, self.shape(a_shape), a_strides)
        vb = self.view(b, dtype, self.shape(b_shape), b_strides)
        try:
            result = ops.np.broadcast_shapes(va.shape, vb.shape)
        except ValueError:
            raise self.fail(f"{va} and {vb} do not broadcast") from None
        self.trace.add(
            ops.Binary(
                offset=self.at.offset,
                op=self.choice(BINARY_V5, op, "binary operator"),
                a=va,
                b=vb,
                dst=self.view(out, dtype, result, out_strides),
                clamp=(low, high),
            )
        )

    def broadcast(self, dtype: int, shape: int, strides: int, out_shape: int, out: int) -> None:
        dst, src = self.address(), self.address()
        view = self.view(src, dtype, self.shape(shape), strides)
        result = self.shape(out_shape)
        grown = (1,) * max(0, len(result) - len(view.shape)) + view.shape
        steps = view.strides or _dense(view.shape)
        steps = (0,) * (len(grown) - len(view.shape)) + steps
        for n, r in zip(grown, result, strict=False):
            if len(grown) != len(result) or n not in (1, r):
                raise self.fail(f"{list(view.shape)} to {list(result)}")
        steps = tuple(0 if n == 1 else s for n, s in zip(grown, steps, strict=True))
        wide = dataclasses.replace(view, shape=result, strides=steps)
        self.trace.add(
            ops.Copy(offset=self.at.offset, src=wide, dst=self.view(dst, dtype, result, out))
        )

    def call(self, function: int, module: int, sources: int, results: int) -> None:
        def tensor() -> View:
            strides, shape, dtype = self.integer(), self.integer(), self.integer()
            return self.view(self.address(), dtype, self.shape(shape), strides)

        outputs = [tensor() for _ in range(results)][::-1]
        inputs = [tensor() for _ in range(sources)][::-1]
        callee = self.model.function(module, function, self.at.offset)
        for what, views, parameters in (
            ("inputs", inputs, callee.inputs),
            ("outputs", outputs, callee.outputs),
        ):
            if len(views) != len(parameters):
                raise self.fail(f"{len(views)} {what}, function takes {len(parameters)}")
            for view, parameter in zip(views, parameters, strict=True):
                if view.count * view.item != parameter.range.size:
                    raise self.fail(f"{view} for a parameter of {parameter.range.size} bytes")
        if self.depth >= DEPTH_MAX:
            raise self.fail("functions call each other too deeply")
        staged = [self._dense(view) for view in (*inputs, *outputs)]
        for view, dense in zip(inputs, staged, strict=False):
            if view is not dense:
                self.trace.add(ops.Copy(offset=self.at.offset, src=view, dst=dense))
        self.trace.run(callee, staged[:sources], staged[sources:], self.depth + 1)
        for view, dense in zip(outputs, staged[sources:], strict=True):
            if view is not dense:
                self.trace.add(ops.Copy(offset=self.at.offset, src=dense, dst=view))

    def _dense(self, view: View) -> View:
        """The tensor itself, or a temporary place for it when it has gaps."""
        if view.dense:
            return view
        start = -(-self.trace.temporary // 8) * 8
        self.trace.temporary = start + view.count * view.item
        return View("temp", start, view.shape, view.dtype)

    def conv2d(self, dtype: int, *operands: float) -> None:
        shape, strides, kernel, kernel_strides, bias_strides, out_strides = operands[:6]
        groups, sh, sw, dh, dw, low, high = operands[6:]
        pad_w, pad_h = self.padding(), self.padding()
        out, bias, weights, src = (self.address() for _ in range(4))
        source = self.view(src, dtype, self.shape(shape), strides)
        w = self.view(weights, dtype, self.shape(kernel), kernel_strides)
        if len(w.shape) != 4 or len(source.shape) != 4:
            raise self.fail(f"{source} by {w}")
        window = w.shape[2:]
        result = self._window(source, window, (sh, sw), (dh, dw), (pad_h, pad_w))
        self.trace.add(
            Conv2d(
                offset=self.at.offset,
                src=source,
                dst=self.view(out, dtype, (source.shape[0], w.shape[0], *result), out_strides),
                weights=w,
                bias=self.view(bias, dtype, (w.shape[0],), bias_strides),
                groups=groups,
                stride=(sh, sw),
                dilation=(dh, dw),
                pads=(pad_h, pad_w),
                clamp=(low, high),
            )
        )

    def _window(
        self,
        source: View,
        window: tuple[int, int],
        stride: tuple[int, int],
        dilation: tuple[int, int],
        pads: tuple,
    ) -> list[int]:
        if len(source.shape) != 4 or min(*window, *stride, *dilation) < 1:
            raise self.fail(f"window {window}, stride {stride}, dilation {dilation} of {source}")
        return [
            max(0, ops.k.out_size(*args))
            for args in zip(source.shape[2:], window, stride, dilation, pads, strict=True)
        ]

    def convert(self, dtype: int, result: int, shape: int, strides: int, out: int) -> None:
        dst, src = self.address(), self.address()
        extent = self.shape(shape)
        self.trace.add(
            ops.Copy(
                offset=self.at.offset,
                src=self.view(src, dtype, extent, strides),
                dst=self.view(dst, result, extent, out),
            )
        )

    def scaled(self, kind: str, dtype: int, result: int, *registers: int) -> None:
        """quantize and dequantize: bias and scale on top, then output and input."""
        shape, strides, out_strides = registers
        bias, scale = self.number(), self.number()
        out, src = self.address(), self.address()
        extent = self.shape(shape)
        views = {
            "src": self.view(src, dtype, extent, strides),
            "dst": self.view(out, result, extent, out_strides),
        }
        if kind == "quantize":
            if views["dst"].item != 1:
                raise self.fail(f"to {views['dst'].dtype} is not supported")
            self.trace.add(
                ops.Quantize(offset=self.at.offset, scale=scale, bias=bias, half_even=True, **views)
            )
        else:
            self.trace.add(ops.Dequantize(offset=self.at.offset, scale=scale, bias=bias, **views))

    def gather(self, dtype: int, *registers: int) -> None:
        shape, out_shape, strides, out_strides, indices_shape, axis = registers
        indices, out, src = self.address(), self.address(), self.address()
        extent = self.shape(indices_shape)
        self.trace.add(
            ops.Gather(
                offset=self.at.offset,
                src=self.view(src, dtype, self.shape(shape), strides),
                indices=View(indices.space, indices.offset, extent, "<i4"),
                dst=self.view(out, dtype, self.shape(out_shape), out_strides),
                axis=axis,
            )
        )

    def lut1d(self, dtype: int, shape: int, strides: int, out_strides: int, length: int) -> None:
        self.number(), self.number()
        out, table, src = self.address(), self.address(), self.address()
        if DTYPES.get(dtype) != "u1":
            raise self.fail(f"data type {dtype} is not supported")
        extent = self.shape(shape)
        self.trace.add(
            ops.TableLookup(
                offset=self.at.offset,
                src=self.view(src, dtype, extent, strides),
                dst=self.view(out, dtype, extent, out_strides),
                table=View(table.space, table.offset, (length,)),
            )
        )

    def matmul(self, *operands: float) -> None:
        a_shape, a_strides, b_shape, b_strides, _, out_strides, low, high = operands
        out, bias, b, a = (self.address() for _ in range(4))
        va = self.view(a, 9, self.shape(a_shape), a_strides)
        vb = self.view(b, 9, self.shape(b_shape), b_strides)
        if len(va.shape) != 2 or len(vb.shape) != 2:
            raise self.fail(f"{va} by {vb}")
        result = va.shape[0], vb.shape[1]
        self.trace.add(
            MatMul(
                offset=self.at.offset,
                a=va,
                b=vb,
                bias=View(bias.space, bias.offset, (result[1],), "<f4"),
                dst=self.view(out, 9, result, out_strides),
                clamp=(low, high),
            )
        )

    def pad(self, dtype: int, *registers: int) -> None:
        shape, strides, out_strides, paddings, mode = registers
        value = self.number()
        out, src = self.address(), self.address()
        source = self.view(src, dtype, self.shape(shape), strides)
        pads = self.pads.get(paddings)
        if pads is None or len(pads) != len(source.shape):
            raise self.fail(f"padding register {paddings} for {source}")
        result = tuple(n + sum(p) for n, p in zip(source.shape, pads, strict=True))
        self.trace.add(
            ops.Pad(
                offset=self.at.offset,
                src=source,
                dst=self.view(out, dtype, result, out_strides),
                pads=pads,
                value=value if source.dtype[-2] == "f" else int(value) & 0xFF,
                mode=self.choice(PAD_MODES, mode, "pad mode"),
            )
        )

    def reduce(self, dtype: int, *registers: int) -> None:
        shape, strides, out_strides, op, axes, keep = registers
        initial = self.number()
        out, src = self.address(), self.address()
        source = self.view(src, dtype, self.shape(shape), strides)
        rank = len(source.shape)
        over = tuple(a + rank if a < 0 else a for a in self.shape(axes))
        result = [1 if i in over else n for i, n in enumerate(source.shape)]
        if not keep:
            result = [n for i, n in enumerate(source.shape) if i not in over]
        self.trace.add(
            ops.Reduce(
                offset=self.at.offset,
                op=self.choice(REDUCE, op, "reduce operator"),
                src=source,
                dst=self.view(out, dtype, tuple(result), out_strides),
                axes=over,
                keep=bool(keep),
                initial=initial,
            )
        )

    def reduce_window(self, dtype: int, op: int, *operands: float) -> None:
        shape, strides, out_strides, kh, kw, sh, sw, dh, dw, low, high = operands
        pad_w, pad_h = self.padding(), self.padding()
        out, initial, src = self.address(), self.number(), self.address()
        source = self.view(src, dtype, self.shape(shape), strides)
        size = self._window(source, (kh, kw), (sh, sw), (dh, dw), (pad_h, pad_w))
        self.trace.add(
            ops.ReduceWindow(
                offset=self.at.offset,
                op=self.choice(REDUCE, op, "reduce operator"),
                src=source,
                dst=self.view(out, dtype, (*source.shape[:2], *size), out_strides),
                window=(kh, kw),
                stride=(sh, sw),
                dilation=(dh, dw),
                pads=(pad_h, pad_w),
                initial=initial,
                clamp=(low, high),
            )
        )

    def resize(self, dtype: int, *registers: int) -> None:
        shape, strides, out_strides, align, half, mode = registers
        out, src = self.address(), self.address()
        width, height = self.integer(), self.integer()
        source = self.view(src, dtype, self.shape(shape), strides)
        if len(source.shape) != 4:
            raise self.fail(f"{source}")
        result = *source.shape[:2], height, width
        self.trace.add(
            ops.Resize(
                offset=self.at.offset,
                src=source,
                dst=self.view(out, dtype, result, out_strides),
                mode=self.choice(RESIZE_MODES, mode, "resize mode"),
                align=bool(align),
                half=bool(half),
                rounding=True,
            )
        )

    def slice(self, dtype: int, *registers: int) -> None:
        shape, strides, out_strides, begins, ends, steps = registers
        out, src = self.address(), self.address()
        source = self.view(src, dtype, self.shape(shape), strides)
        begin, end, step = self.shape(begins), self.shape(ends), self.shape(steps)
        if {len(begin), len(end), len(step)} != {len(source.shape)} or 0 in step:
            raise self.fail(f"{list(begin)} to {list(end)} by {list(step)} of {source}")
        parts = map(ops.k.slice_axis, begin, end, step)
        result = tuple(len(range(n)[part]) for n, part in zip(source.shape, parts, strict=True))
        self.trace.add(
            ops.StridedSlice(
                offset=self.at.offset,
                src=source,
                dst=self.view(out, dtype, result, out_strides),
                begin=begin,
                end=end,
                stride=step,
            )
        )

    def softmax(self, dtype: int, *operands: float) -> None:
        shape, strides, out_strides, axis, beta = operands
        rank = len(self.shape(shape))

        def make(**views: View) -> Operation:
            return ops.Softmax(axis=axis + rank if axis < 0 else axis, beta=beta, **views)

        self.unary_like(make, dtype, shape, strides, out_strides)

    def transpose(self, dtype: int, *registers: int) -> None:
        shape, strides, out_strides, order = registers
        out, src = self.address(), self.address()
        source = self.view(src, dtype, self.shape(shape), strides)
        perm = self.shape(order)
        if sorted(perm) != list(range(len(source.shape))):
            raise self.fail(f"permutation {list(perm)} of {source}")
        result = tuple(source.shape[p] for p in perm)
        self.trace.add(
            ops.Transpose(
                offset=self.at.offset,
                src=source,
                dst=self.view(out, dtype, result, out_strides),
                perm=perm,
            )
        )

    def unary(self, dtype: int, shape: int, strides: int, out_strides: int, op: int) -> None:
        name = self.choice(self.dialect.unary, op, "unary operator")
        if name == "bitwise_not":
            raise self.fail("bitwise_not is not supported")

        def make(**views: View) -> Operation:
            return ops.Unary(op=name, **views)

        self.unary_like(make, dtype, shape, strides, out_strides)


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """C-order strides."""
    steps, step = [], 1
    for extent in reversed(shape):
        steps.append(step)
        step *= extent
    return tuple(reversed(steps))


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
TENSOR: dict[str, Callable[..., None]] = {
    "BINARY": Machine.binary,
    "BROADCAST": Machine.broadcast,
    "CALL": Machine.call,
    "CONV2D": Machine.conv2d,
    "CONVERT": Machine.convert,
    "COPY": lambda m, *o: m.unary_like(ops.Copy, *o),
    "DEQUANTIZE": lambda m, *o: m.scaled("dequantize", *o),
    "GATHER": Machine.gather,
    "LUT1D": Machine.lut1d,
    "MATMUL": Machine.matmul,
    "PAD": Machine.pad,
    "QUANTIZE": lambda m, *o: m.scaled("quantize", *o),
    "REDUCE": Machine.reduce,
    "REDUCE_WINDOW2D": Machine.reduce_window,
    "RESIZE_IMAGE": Machine.resize,
    "SIGMOID": lambda m, *o: m.unary_like(lambda **v: ops.Unary(op="sigmoid", **v), *o),
    "SLICE": Machine.slice,
    "SOFTMAX": Machine.softmax,
    "TRANSPOSE": Machine.transpose,
    "UNARY": Machine.unary,
}
