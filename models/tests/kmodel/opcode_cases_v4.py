# SPDX-License-Identifier: Apache-2.0
"""Cases of every v4 opcode: bodies laid out from the published structures, results by hand.

The numbers follow from neutral_kernels.h, cpu_kernels.h and k210_kernels.h of nncase 0.2; none of
them was computed with this project's code.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from models.tests.kmodel.kmodel_bytes import (
    F32,
    FREE,
    MAIN,
    U8,
    file4,
    floats,
    words,
)
from openkpu.kmodel import loads_kmodel, run_kmodel

A, B, OUT = 0, 256, 512  # places in main memory
NAN, INF = math.nan, math.inf


@dataclasses.dataclass
class Case:
    """One node.  ``body`` has {a}, {b}, {o}: replaced by the ranges."""

    opcode: int
    tail: bytes  # after the ranges
    a: bytes
    want: bytes
    b: bytes | None = None
    types: tuple[int, int] = (F32, F32)  # of inputs and output

    def file(self) -> bytes:
        def at(start: int, data: bytes, kind: int) -> bytes:
            return words(MAIN, kind, start, len(data))

        a, out = at(A, self.a, self.types[0]), at(OUT, self.want, self.types[1])
        ranges = [a]
        if self.b is not None:
            ranges.append(at(B, self.b, self.types[0]))
        size = 4 if self.types[0] == F32 else 1
        data = [self.a] if self.b is None else [self.a, self.b]
        inputs = [(r, (1, 1, 1, len(d) // size)) for r, d in zip(ranges, data, strict=True)]
        body = b"".join(ranges) + out + self.tail
        if self.opcode == 1:
            body = out + self.tail[:12] + b"".join(ranges) + self.tail[12:]
        return file4([(self.opcode, body)], inputs, [out], 768)

    def run(self) -> bytes:
        program = loads_kmodel(self.file(), "case")
        data = [self.a] if self.b is None else [self.a, self.b]
        inputs = [
            np.frombuffer(d, t.dtype).reshape(t.shape)
            for d, t in zip(data, program.inputs, strict=True)
        ]
        return run_kmodel(program, inputs).memory["main"][OUT : OUT + len(self.want)].tobytes()


def binary(op: int, a: tuple, b: tuple, want: tuple, clamp: tuple[float, float] = FREE) -> Case:
    shape = words(1, 1, 1, len(a))
    tail = words(op) + shape * 3 + floats(*clamp)
    return Case(0x00, tail, floats(*a), floats(*want), floats(*b))


def quantised_binary(op: int, a: bytes, b: bytes, want: bytes, *params: int) -> Case:
    tail = words(op) + words(1, 1, 1, len(a)) + words(1, 1, 1, len(b)) + words(1, 1, 1, len(a))
    return Case(0x11, tail + words(*params), a, want, b, (U8, U8))


def unary(op: int, values: tuple, want: tuple) -> Case:
    return Case(0x0E, words(op), floats(*values), floats(*want))


def window(pads: tuple, taps: tuple, stride: tuple = (1, 1), dilation: tuple = (1, 1)) -> bytes:
    return words(*pads, *taps, *stride, *dilation)


NINE = floats(1, 2, 3, 4, 5, 6, 7, 8, 9)
STRAIGHT = floats(1, 0, 0, 0, 10, 0, 0, 0, 100)
Q = (U8, U8)
ONE_TAP = window((0, 0, 0, 0), (1, 1))
CASES = {
    # ---------------------------------------------------------------- element by element
    "binary add, broadcast, clamp": Case(
        0x00,
        words(0, 1, 1, 2, 2, 1, 1, 1, 2, 1, 1, 2, 2, 0.0, 20.0),
        floats(1, 2, 3, 4),
        floats(11, 20, 13, 20),
        floats(10, 20),
    ),
    "binary sub": binary(1, (5, 1), (2, 4), (3, -3)),
    "binary mul, full range": binary(2, (3e38, -3e38), (2, 2), (FREE[1], FREE[0])),
    "binary div": binary(3, (1, 9), (4, -3), (0.25, -3)),
    # std::min(a, b) is (b < a) ? b : a
    "binary min": binary(4, (1, 4, 1, NAN), (2, 3, NAN, 1), (1, 3, 1, NAN)),
    "binary max": binary(5, (1, 4, 1, NAN), (2, 3, NAN, 1), (2, 4, 1, NAN)),
    # a = 17 - 10, 3 - 10, 10 - 10; b = 2, 2, 0; (a + b / 2) / b in C, -1 by zero on RISC-V
    "quantized_binary div": quantised_binary(
        3,
        bytes([17, 3, 10]),
        bytes([12, 12, 10]),
        bytes([104, 97, 99]),
        *(-10, 1, 0, -10, 1, 0, 100, 1, 0),
    ),
    # a: (x - 4) * 3 >> 1 = -6, -3 (-3.0), 2 (1.5); b: one value 5 for all; sum -1, 2, 7;
    # times 5 >> 2: -5 -> -1, 10 -> 3 (2.5), 35 -> 9 (8.75)
    "quantized_binary add, halves up": quantised_binary(
        0,
        bytes([0, 2, 5]),
        bytes([3]),
        bytes([99, 103, 109]),
        *(-4, 3, 1, 2, 1, 0, 100, 5, 2),
    ),
    # products of 3 * -3 = -9, * 1 >> 1 = -4.5 -> -4
    "quantized_binary mul": quantised_binary(
        2, bytes([3]), bytes([7]), bytes([6]), *(0, 1, 0, -10, 1, 0, 10, 1, 1)
    ),
    "quantized_binary sub": quantised_binary(
        1, bytes([3, 9]), bytes([7, 2]), bytes([0, 17]), *(0, 1, 0, 0, 1, 0, 3, 2, 0)
    ),
    "quantized_binary min": quantised_binary(
        4, bytes([3, 9]), bytes([7, 2]), bytes([3, 2]), *(0, 1, 0, 0, 1, 0, 0, 1, 0)
    ),
    "quantized_binary max, clamped": quantised_binary(
        5, bytes([3, 200]), bytes([7, 2]), bytes([14, 255]), *(0, 1, 0, 0, 1, 0, 0, 2, 0)
    ),
    "abs": unary(0, (-1.5, 2), (1.5, 2)),
    "ceil": unary(1, (-1.5, 1.25), (-1, 2)),
    "cos": unary(2, (0, math.pi), (1, -1)),
    "exp": unary(3, (0, -INF), (1, 0)),
    "floor": unary(4, (-1.5, 1.25), (-2, 1)),
    "log": unary(5, (1, 0), (0, -INF)),
    "neg": unary(6, (1, -2), (-1, 2)),
    "rsqrt": unary(7, (4, 0.25), (0.5, 2)),
    "sin": unary(8, (0, math.pi / 2), (0, 1)),
    "square": unary(9, (-3, 0.5), (9, 0.25)),
    # max(x, 0) / 2 + 1, at most 2
    "nnil_unary_method": Case(
        0x14,
        bytes([0x03, 0x04, 0x45, 0x06])
        + floats(0.5)
        + bytes([0x42, 0x05, 0x40, 0x04, 0x06])
        # literals need not be aligned
        + floats(2.0)
        + bytes([0x80, 0xA0]),
        floats(-3, 1, 9),
        floats(1, 1.5, 2),
    ),
    # ((x + x) * x - 3) / x, then the negative's absolute value: every stack instruction
    "nnil_unary_method stack": Case(
        0x14,
        bytes([0x00, 0x03, 0x01, 0x40, 0x03, 0x42, 0x06])
        + floats(3.0)
        + bytes([0x41, 0x03, 0x43, 0x26, 0x20, 0x05, 0x02, 0xA0]),
        floats(1, 2, -3),
        floats(1, 2.5, 5),
    ),
    "dequantize": Case(
        0x03, words(3, 4.0), bytes([0, 3, 255]), floats(-0.75, 0, 63), types=(U8, F32)
    ),
    # x * 2 + 10 = 10.5, 8.5, 410, -8: roundf goes away from zero
    "quantize": Case(
        0x06,
        words(10, 2.0),
        floats(0.25, -0.75, 200, -9),
        bytes([11, 9, 255, 0]),
        types=(F32, U8),
    ),
    "table_lookup1d": Case(
        0x12, b"", bytes([0, 2, 255]), bytes([255, 253, 0]), bytes(range(255, -1, -1)), (U8, U8)
    ),
    # ------------------------------------------------------------------------- movement
    "concat": Case(
        0x01,
        words(2, 2, 2) + words(1, 2),
        bytes([1, 2, 3, 4]),
        bytes([1, 2, 5, 6, 7, 8, 3, 4, 9, 10, 11, 12]),
        bytes([5, 6, 7, 8, 9, 10, 11, 12]),
        Q,
    ),
    "pad of bytes, type of the value unset": Case(
        0x05,
        words(1, 1, 1, 2, 0, 0, 0, 0, 0, 1, 1, 0, 0xCDCDCDCD, bytes([9, 0xCD, 0xCD, 0xCD])),
        bytes([1, 2]),
        bytes([9, 1, 2, 9, 9, 9]),
        types=Q,
    ),
    "pad of floats, cutting": Case(
        0x05,
        words(1, 1, 3, 3, 0, 0, 0, 0, -1, 0, 1, -2, F32, -0.5),
        NINE,
        floats(-0.5, 4, -0.5, 7),
    ),
    "memory_copy": Case(0x09, b"", floats(1, 2), floats(1, 2)),
    "resize_image nearest": Case(
        0x0A,
        words(1, 1, 2, 2, 4, 3, 1, b"\0\0\0\0"),
        bytes([1, 2, 3, 4]),
        bytes([1, 1, 2, 1, 1, 2, 3, 3, 4, 3, 3, 4]),
        types=Q,
    ),
    "resize_image bilinear": Case(
        0x0A, words(1, 1, 1, 2, 1, 4, 0, b"\0\0\0\0"), floats(0, 3), floats(0, 1.5, 3, 3)
    ),
    "resize_image bilinear, corners": Case(
        0x0A,
        words(1, 1, 2, 2, 3, 3, 0, b"\1\0\0\0"),
        floats(0, 2, 4, 6),
        floats(0, 1, 2, 2, 3, 4, 4, 5, 6),
    ),
    "resize_image bilinear of bytes truncates": Case(
        0x0A,
        words(1, 1, 1, 2, 1, 4, 0, b"\0\0\0\0"),
        bytes([0, 255]),
        bytes([0, 127, 255, 255]),
        types=Q,
    ),
    "transpose": Case(
        0x0C,
        words(1, 2, 1, 3, 0, 2, 3, 1),
        bytes([1, 2, 3, 4, 5, 6]),
        bytes([1, 4, 2, 5, 3, 6]),
        types=Q,
    ),
    "strided_slice backwards": Case(
        0x0D,
        words(1, 1, 2, 5, 0, 0, 1, 4, 1, 1, 2, -1, 1, 1, 1, -2, 7, 7, 7, 7, 7),
        bytes([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        bytes([10, 8, 6]),
        types=Q,
    ),
    # ----------------------------------------------------------------------- reductions
    # the sum times the float 1/7: 3 / 7 would be 0.42857143 (3edb6db7)
    "reduce mean": Case(
        0x07,
        words(0, 1, 1, 1, 7, 1, 1, 1, 1, 0.0),
        floats(1, 1, 1, 0, 0, 0, 0),
        bytes.fromhex("b86ddb3e"),
    ),
    "reduce min from the start value": Case(
        0x07, words(1, 1, 2, 1, 2, 1, 2, 1, 1, 2.5), floats(1, 4, 3, NAN), floats(1, 2.5)
    ),
    "reduce max": Case(
        0x07, words(2, 1, 2, 1, 2, 1, 1, 1, 2, -INF), floats(1, 4, 3, 2), floats(3, 4)
    ),
    "reduce sum": Case(
        0x07, words(3, 1, 1, 2, 2, 1, 1, 1, 1, 0.5), floats(1, 4, 3, 2), floats(10.5)
    ),
    # pixels outside do not count: (1+2+4+5)/4, (2+3+5+6)/4, (4+5+7+8)/4, (5+6+8+9)/4
    "reduce_window2d mean": Case(
        0x08,
        words(0, 1, 1, 3, 3) + window((1, 1, 1, 1), (3, 3), (2, 2)) + floats(0, *FREE),
        NINE,
        floats(3, 4, 6, 7),
    ),
    "reduce_window2d max, dilated, clamped": Case(
        0x08,
        words(2, 1, 1, 3, 3) + window((0, 0, 1, 0), (2, 2), (1, 1), (2, 1)) + floats(-9, 0, 8.5),
        NINE,
        floats(7, 8, 8.5),
    ),
    "reduce_window2d min": Case(
        0x08,
        words(1, 1, 1, 3, 3) + window((0, 0, 0, 0), (1, 3)) + floats(6.5, *FREE),
        NINE,
        floats(1, 4, 6.5),
    ),
    "reduce_window2d sum": Case(
        0x08,
        words(3, 1, 1, 3, 3) + window((0, 0, 0, 0), (3, 1)) + floats(0.5, *FREE),
        NINE,
        floats(12.5, 15.5, 18.5),
    ),
    # exp(2 * (x - max)): 1/3 and 1
    "softmax": Case(0x0B, words(2, 1, 2.0), floats(0, math.log(3) / 2), floats(0.25, 0.75)),
    # ------------------------------------------------------------------------- products
    # in groups: 2 * x + 0.5, and -x / 2 + 1
    "conv2d in groups": Case(
        0x02,
        words(1, 2, 2, 2, 2, 2) + ONE_TAP + floats(-2, 8) + floats(2, -0.5) + floats(0.5, 1),
        floats(1, 2, 3, 4, 5, 6, 7, 8),
        floats(2.5, 4.5, 6.5, 8, -1.5, -2, -2, -2),
    ),
    # 3 x 3 with 1, 10, 100 on the diagonal, one pixel around, every second place
    "conv2d padded": Case(
        0x02,
        words(1, 1, 3, 3, 1, 1)
        + window((1, 1, 1, 1), (3, 3), (2, 2))
        + floats(*FREE)
        + STRAIGHT
        + floats(0),
        NINE,
        floats(510, 30, 70, 95),
    ),
    # two channels into one through 1 x 2 taps: 1 a + 10 b + 100 c + 1000 d
    "conv2d of channels": Case(
        0x02,
        words(1, 2, 1, 2, 1, 1)
        + window((0, 0, 0, 0), (1, 2))
        + floats(*FREE)
        + floats(1, 10, 100, 1000)
        + floats(-1),
        floats(1, 2, 3, 4),
        floats(4320),
    ),
    # 2 * (x - 2) + 1 = -3, -1, 1, 3; >> 1, halves up: -1, 0, 1, 2
    "quantized_conv2d": Case(
        0x0F,
        words(1, 1, 1, 4, 1, 1) + ONE_TAP + words(-2, -128, 1, 1, 100) + words(1) + bytes([130]),
        bytes([0, 1, 2, 3]),
        bytes([99, 100, 101, 102]),
        types=Q,
    ),
    # pads count as zero after the offset: 5 * (x - 10) on the middle, 7 * on the left
    "quantized_conv2d padded": Case(
        0x0F,
        words(1, 1, 1, 2, 1, 1)
        + window((0, 0, 1, 0), (1, 2))
        + words(-10, 1, 1, 0, 50)
        + words(-3)
        + bytes([6, 4]),
        bytes([20, 15]),
        bytes([97, 142]),
        types=Q,
    ),
    # 2 x 2 of stride 2: every pixel becomes a block; the stored bias of 5 is not added
    "conv2d_transpose": Case(
        0x13,
        words(1, 1, 2, 2, 1, 1, 4, 4, 1)
        + window((0, 0, 0, 0), (2, 2), (2, 2))
        + floats(*FREE)
        + floats(1, 10, 100, 1000)
        + floats(5),
        floats(1, 2, 3, 4),
        floats(1, 10, 2, 20, 100, 1000, 200, 2000, 3, 30, 4, 40, 300, 3000, 400, 4000),
    ),
    # a pixel of padding before drops row and column -1; blocks overlap with stride 1
    "conv2d_transpose padded": Case(
        0x13,
        words(1, 1, 2, 2, 1, 1, 2, 2, 1)
        + window((1, 0, 1, 0), (2, 2))
        + floats(-INF, 3500.0)
        + floats(1, 10, 100, 1000)
        + floats(0),
        floats(1, 2, 3, 4),
        # (0,0): 1*1000 + 2*100 + 3*10 + 4*1; (0,1): 2*1000 + 4*10; (1,0): 3*1000 + 4*100; 4*1000
        floats(1234, 2040, 3400, 3500),
    ),
    # groups 2: (group, out of the group, in of the group, kh, kw)
    "conv2d_transpose in groups": Case(
        0x13,
        words(1, 2, 1, 1, 1, 4, 1, 1, 2)
        + ONE_TAP
        + floats(*FREE)
        + floats(1, 10, 100, 1000)
        + floats(7, 7, 7, 7),
        floats(2, 3),
        floats(2, 20, 300, 3000),
    ),
    "matmul": Case(
        0x04,
        words(2, 2, 2, 0.0, 4000.0) + floats(0.5, -0.5),
        floats(1, 2, 3, 4),
        floats(201.5, 2009.5, 403.5, 4000),
        floats(1, 10, 100, 1000),
    ),
    # (3-1)(5-2) + (4-1)(6-2) - 20 = -2; (3-1)(7-2) + (4-1)(1-2) - 10 = -3; * 3 >> 2:
    # -6/4 = -1.5 -> -1; -9/4 = -2.25 -> -2
    "quantized_matmul": Case(
        0x10,
        words(1, 2, 2, -1, -2, 3, 2, 50) + words(-20, -10),
        bytes([3, 4]),
        bytes([49, 48]),
        bytes([5, 7, 6, 1]),
        Q,
    ),
    # ---------------------------------------------------------------------- CPU target: NHWC
    "cpu_conv2d": Case(
        0x1001,
        words(1, 2, 2, 2, 2) + ONE_TAP + floats(0, 88) + floats(1, 10, -1, 0) + floats(0.5, 4),
        floats(1, 2, 3, 4, 5, 6, 7, 8),
        floats(21.5, 3, 43.5, 1, 65.5, 0, 87.5, 0),
    ),
    # weights (O, kh, kw, C)
    "cpu_conv2d taps": Case(
        0x1001,
        words(1, 1, 2, 2, 1)
        + window((0, 0, 0, 0), (1, 2))
        + floats(*FREE)
        + floats(1, 10, 100, 1000)
        + floats(0),
        floats(1, 2, 3, 4),
        floats(4321),
    ),
    "cpu_depthwise_conv2d": Case(
        0x1002,
        words(1, 1, 2, 2)
        + window((0, 0, 0, 0), (1, 2))
        + floats(*FREE)
        + floats(1, 10, 100, 1000)
        + floats(0.5, 0.25),
        floats(1, 2, 3, 4),
        floats(31.5, 4200.25),
    ),
    "cpu_reduce_window2d mean": Case(
        0x1003,
        words(0, 1, 2, 2, 2) + window((0, 0, 1, 0), (2, 2)) + floats(0, *FREE),
        floats(1, 2, 3, 4, 5, 6, 7, 8),
        floats(3, 4, 4, 5),
    ),
    # offsets are taken away: (x - 2) * (w - 128); -3, -1, 1, 3 >> 1
    "cpu_quantized_conv2d": Case(
        0x1004,
        words(1, 1, 4, 1, 1) + ONE_TAP + words(2, 128, 1, 1, 100) + bytes([130]) + words(1),
        bytes([0, 1, 2, 3]),
        bytes([99, 100, 101, 102]),
        types=Q,
    ),
    "cpu_quantized_depthwise_conv2d": Case(
        0x1005,
        words(1, 1, 2, 2) + ONE_TAP + words(1, 10, 1, 0, 20) + bytes([11, 8]) + words(0, 100),
        bytes([1, 2, 6, 200]),
        bytes([20, 118, 25, 0]),
        types=Q,
    ),
}
