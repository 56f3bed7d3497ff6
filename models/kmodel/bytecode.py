# SPDX-License-Identifier: Apache-2.0
"""Decoding the CPU byte code of kmodel v5: plain instructions and tensor functions.

The numbers of the tensor functions and some operands changed between releases of the compiler,
and nothing in the file names the release: a program is decoded by every known numbering
(``DIALECTS``), and the first that fits is taken.
"""

from __future__ import annotations

import dataclasses
import struct

from .binary import Cursor
from .errors import KmodelError, bad
from .names import words

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

# operands after datatype bytes: r = a register byte; see the readers in stackvm
_COMMON = {
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
    "ONEHOT": "6B",
    "PAD": "6B",
    "QUANTIZE": "5B",
    "REDUCE": "7B",
    "REDUCE_WINDOW2D": "5B6H2f",
    "RESIZE_IMAGE": "7B",
    "SLICE": "7B",
    "SPACE_TO_BATCH": "6B",
    "TRANSPOSE": "5B",
    "UNARY": "5B",
}


@dataclasses.dataclass(frozen=True)
class Dialect:
    """The numbering of one release."""

    name: str
    functions: tuple[str, ...]  # by number
    formats: dict[str, str]
    unary: tuple[str, ...]
    interior: bool  # a padding is before, after, interior (otherwise before, after)

    @property
    def binary_shape(self) -> bool:
        """Binary also names the register of the result's shape."""
        return self.formats["BINARY"] == "8B2f"


DIALECTS = (
    Dialect(
        "1.0",
        words(
            "BATCH_TO_SPACE BINARY BROADCAST CALL CLAMP CONV2D CONV2D_TRANSPOSE CONVERT COPY "
            "DEQUANTIZE GATHER GATHER_ND LOGISTIC LUT1D MATMUL ONEHOT PAD QUANTIZE REDUCE "
            "REDUCE_WINDOW2D RESIZE_IMAGE SLICE SOFTMAX SPACE_TO_BATCH TAKE TRANSPOSE "
            "UNARY"
        ),
        {**_COMMON, "BINARY": "7B2f"},
        words(
            "abs ceil cos exp floor log neg round rsqrt sin sqrt square tanh bitwise_not "
            "logical_not"
        ),
        False,
    ),
    Dialect(
        "1.9",
        words(
            "BATCH_TO_SPACE BINARY BROADCAST CALL COMPARE CLAMP CONV2D CONV2D_TRANSPOSE CONVERT "
            "COPY CUMSUM DEQUANTIZE GATHER GATHER_ND HARDMAX LOGISTIC LUT1D MATMUL ONEHOT PAD "
            "QUANTIZE RANDOM_NORMAL RANDOM_UNIFORM REDUCE REDUCE_ARG REDUCE_PROD REDUCE_WINDOW2D "
            "RESIZE_IMAGE ROI_ALIGN SIGMOID SLICE SOFTMAX SPACE_TO_BATCH TAKE TERNARY TOPK "
            "TRANSPOSE TRILU UNARY GRU TFLITE_DETECTION_POSTPROCESS LAYER_NORMALIZATION COMPRESS "
            "GATHER_ELEMENTS INSTANCE_NORMALIZATION"
        ),
        {
            **_COMMON,
            "BINARY": "8B2f",
            "MATMUL": "6B2f",
            "SIGMOID": "4B",
            "SOFTMAX": "4Bif",
        },
        words(
            "abs acos asin ceil cos exp floor log neg round rsqrt sign sin sqrt square tanh "
            "bitwise_not logical_not erf"
        ),
        True,
    ),
)


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One decoded instruction; tensor functions have a dotted name."""

    offset: int  # in the file
    name: str
    operands: tuple


def decode(text: Cursor, dialect: Dialect) -> list[Instruction]:
    """The instructions of a function; KmodelError names the first that is unknown."""
    found = []
    blob, end = text.blob, text.end
    position = text.position
    data = blob.data
    while position < end:
        start, opcode = position, data[position]
        position += 1
        if opcode < TENSOR:
            name, form = PLAIN[opcode]
        elif opcode == TENSOR and position + 2 <= end:
            number = struct.unpack_from("<H", data, position)[0]
            position += 2
            if number >= len(dialect.functions):
                raise _unknown(blob.name, start, f"tensor function 0x{number:x}", dialect)
            function = dialect.functions[number]
            form = dialect.formats.get(function)
            if form is None:
                raise _unknown(blob.name, start, f"operation {function.lower()}", dialect)
            name = f"TENSOR.{function}"
        else:
            raise _unknown(blob.name, start, f"instruction 0x{opcode:02x}", dialect)
        form = "<" + form
        if position + struct.calcsize(form) > end:
            raise blob.error(start, f"operands of {name} reach beyond the code")
        found.append(Instruction(start, name, struct.unpack_from(form, data, position)))
        position += struct.calcsize(form)
    return found


def _unknown(file: str, offset: int, what: str, dialect: Dialect) -> KmodelError:
    return bad(file, offset, f"{what} is not supported (byte code of nncase {dialect.name})")
