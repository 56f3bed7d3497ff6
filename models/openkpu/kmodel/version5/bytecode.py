# SPDX-License-Identifier: Apache-2.0
"""Decoding the CPU byte code of kmodel v5: plain instructions and tensor functions.

The numbers of the tensor functions and some operands changed between releases of the compiler, and
nothing in the file names the release.  ``DIALECTS`` has them all; ``numbering`` chooses.
"""

from __future__ import annotations

import dataclasses
import struct

from openkpu.kmodel.errors import KmodelError, Unsupported, bad
from openkpu.kmodel.readers.binary import Cursor
from openkpu.kmodel.readers.names import split_names

INSTRUCTIONS_MAX = 200_000  # of a function: forty times what a large model has

# name: struct format of the operands, by opcode
_PLAIN = """
NOP LDNULL LDC_I4:i LDC_I4_0 LDC_I4_1 LDC_R4:f
LDIND_I1 LDIND_I2 LDIND_I4 LDIND_I LDIND_U1 LDIND_U2 LDIND_U4 LDIND_U LDIND_BR2 LDIND_R4
STIND_I1 STIND_I2 STIND_I4 STIND_I STIND_BR2 STIND_R4 LEA_GP:Bi LEA_BUFFER:BBI
LDELEM_I1 LDELEM_I2 LDELEM_I4 LDELEM_I LDELEM_U1 LDELEM_U2 LDELEM_U4 LDELEM_U LDELEM_BR2 LDELEM_R4
STELEM_I1 STELEM_I2 STELEM_I4 STELEM_I STELEM_BR2 STELEM_R4
LDARG:I LDARG_0 LDARG_1 LDARG_2 LDARG_3 LDARG_4 LDARG_5 DUP POP STSHAPE:BB STPADDINGS:BB
NEG ADD SUB MUL DIV DIV_U REM REM_U AND OR XOR NOT SHL SHR SHR_U
CLT CLT_U CLE CLE_U CEQ CGE CGE_U CGT CGT_U CNE
CONV_I1 CONV_I2 CONV_I4 CONV_I CONV_U1 CONV_U2 CONV_U4 CONV_U CONV_BR2 CONV_R4
BR:i BR_TRUE:i BR_FALSE:i RET CALL:Bi ECALL:B THROW BREAK
"""
PLAIN = [tuple(word.partition(":")[::2]) for word in _PLAIN.split()]
TENSOR = len(PLAIN)  # 0x5E

# operands behind the number, datatype bytes and register bytes alike; see the readers in tensor5
_FORMATS = {
    "BATCH_TO_SPACE": "6B",
    "BROADCAST": "5B",
    "CALL": "IHBB",
    "CONV2D": "7B5H2f",
    "CONVERT": "5B",
    "COPY": "4B",
    "DEQUANTIZE": "5B",
    "GATHER": "7B",
    "GATHER_ND": "7B",
    "LUT1D": "4BH",
    "MATMUL": "6B2f",
    "ONEHOT": "6B",
    "PAD": "6B",
    "QUANTIZE": "5B",
    "REDUCE": "7B",
    "REDUCE_WINDOW2D": "5B6H2f",
    "RESIZE_IMAGE": "7B",
    "SIGMOID": "4B",
    "SLICE": "7B",
    "SOFTMAX": "4Bif",
    "SPACE_TO_BATCH": "6B",
    "TRANSPOSE": "5B",
    "UNARY": "5B",
}
_UNARY_DEV = split_names(
    "abs ceil cos exp floor log neg round rsqrt sin sqrt square tanh bitwise_not logical_not"
)
_UNARY_1_0 = split_names(  # seen in what the compiler 1.0.0 writes: it has no sign
    "abs acos asin ceil cos exp floor log neg round rsqrt sin sqrt square tanh bitwise_not "
    "logical_not"
)
_UNARY = split_names(
    "abs acos asin ceil cos exp floor log neg round rsqrt sign sin sqrt square tanh bitwise_not "
    "logical_not erf"
)


@dataclasses.dataclass(frozen=True)
class Dialect:
    """The numbering of one or more releases."""

    releases: tuple[str, ...]  # oldest first
    functions: tuple[str, ...]  # by number
    formats: dict[str, str]
    unary: tuple[str, ...]
    interior: bool  # a padding is before, after, interior (otherwise before, after)

    @property
    def name(self) -> str:
        """Its first release."""
        return self.releases[0]

    @property
    def binary_shape(self) -> bool:
        """Binary also names the register of the result's shape."""
        return self.formats["BINARY"] == "8B2f"


def _behind(functions: tuple[str, ...], **more: str) -> tuple[str, ...]:
    """The list with further names behind some of it."""
    found: list[str] = []
    for name in functions:
        found += [name, *split_names(more.get(name, ""))]
    return tuple(found)


_DEV = split_names(
    "BATCH_TO_SPACE BINARY BROADCAST CALL CLAMP CONV2D CONV2D_TRANSPOSE CONVERT COPY DEQUANTIZE "
    "GATHER GATHER_ND LOGISTIC LUT1D MATMUL ONEHOT PAD QUANTIZE REDUCE REDUCE_WINDOW2D "
    "RESIZE_IMAGE SLICE SOFTMAX SPACE_TO_BATCH TAKE TRANSPOSE UNARY"
)
_1_0 = _behind(_DEV, COPY="CUMSUM", GATHER_ND="HARDMAX", REDUCE="REDUCE_ARG")
_1_1 = _behind(
    _1_0, QUANTIZE="RANDOM_NORMAL RANDOM_UNIFORM", REDUCE_ARG="REDUCE_PROD", TAKE="TERNARY"
)
_1_2 = _behind(_1_1, RESIZE_IMAGE="ROI_ALIGN SIGMOID", TERNARY="TOPK", TRANSPOSE="TRILU")
_1_3 = _behind(_1_2, DEQUANTIZE="EQUAL")
_1_6 = _behind(_1_2, CALL="COMPARE")
_1_8 = _behind(
    _1_6,
    UNARY="GRU TFLITE_DETECTION_POSTPROCESS LAYER_NORMALIZATION COMPRESS GATHER_ELEMENTS "
    "INSTANCE_NORMALIZATION",
)
_SHORT = {**_FORMATS, "BINARY": "7B2f"}
_LONG = {**_FORMATS, "BINARY": "8B2f"}
# what the operands of these are in the development version is not known
_DEV_FORMATS = {n: f for n, f in _SHORT.items() if n not in ("MATMUL", "SOFTMAX")}

# "1.0-dev" is what published files of August and September 2021 have
DIALECTS = (
    Dialect(("1.0-dev",), _DEV, _DEV_FORMATS, _UNARY_DEV, interior=False),
    Dialect(("1.0.0",), _1_0, _SHORT, _UNARY_1_0, interior=False),
    Dialect(("1.1.0",), _1_1, _SHORT, _UNARY, interior=True),
    Dialect(("1.2.0",), _1_2, _SHORT, _UNARY, interior=True),
    Dialect(("1.3.0",), _1_3, _SHORT, _UNARY, interior=True),
    Dialect(("1.4.0", "1.5.0"), _1_3, _LONG, _UNARY, interior=True),
    Dialect(("1.6.0", "1.7.0", "1.7.1"), _1_6, _LONG, _UNARY, interior=True),
    Dialect(("1.8.0", "1.9.0"), _1_8, _LONG, _UNARY, interior=True),
)
RELEASES = tuple(release for dialect in DIALECTS for release in dialect.releases)


def dialect_of(text: str) -> Dialect:
    """The numbering of a release, "1.3.0", "1.3" or "1.0-dev"; KmodelError for any other."""
    for dialect in DIALECTS:
        if text in dialect.releases or f"{text}.0" in dialect.releases:
            return dialect
    raise KmodelError(f"numbering {text!r}: expected a release of nncase, {', '.join(RELEASES)}")


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One decoded instruction; tensor functions have a dotted name."""

    offset: int  # in the file
    name: str
    operands: tuple


@dataclasses.dataclass(frozen=True)
class Code:
    """The instructions of a function up to its end, or to one that is unknown."""

    instructions: tuple[Instruction, ...]
    problem: KmodelError | None  # what ended it early


def decode_function(text: Cursor, dialect: Dialect) -> Code:
    """A function's code."""
    found: list[Instruction] = []
    blob, end = text.blob, text.end
    position = text.position
    data = blob.data

    def stopped(start: int, what: str) -> Code:
        return Code(tuple(found), bad(blob.name, start, what))

    def unsupported(start: int, function: str) -> Code:
        return Code(tuple(found), Unsupported.of(blob.name, start, function.lower()))

    while position < end:
        start, opcode = position, data[position]
        if len(found) == INSTRUCTIONS_MAX:
            return stopped(start, f"more than {INSTRUCTIONS_MAX} instructions in a function")
        position += 1
        if opcode < TENSOR:
            name, form = PLAIN[opcode]
        elif opcode == TENSOR and position + 2 <= end:
            number = struct.unpack_from("<H", data, position)[0]
            position += 2
            if number >= len(dialect.functions):
                return stopped(start, f"tensor function 0x{number:x} is not supported")
            function = dialect.functions[number]
            if function not in dialect.formats:
                return unsupported(start, function)
            name, form = f"TENSOR.{function}", dialect.formats[function]
        else:
            return stopped(start, f"instruction 0x{opcode:02x} is not supported")
        form = "<" + form
        if position + struct.calcsize(form) > end:
            return stopped(start, f"operands of {name} reach beyond the code")
        found.append(Instruction(start, name, struct.unpack_from(form, data, position)))
        position += struct.calcsize(form)
    return Code(tuple(found), None)
