# SPDX-License-Identifier: Apache-2.0
"""Every CPU operation through a container of its version, against plain loops and formulas."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import numpy as np
import pytest

from openkpu.arithmetic.integers import round_up
from openkpu.kmodel import KmodelError, Program, loads_kmodel, run_kmodel
from openkpu.kmodel.build import Assembler, build_v3, build_v4, build_v5
from openkpu.kmodel.version5.bytecode import DIALECTS
from openkpu.kmodel.version5.tensor5 import TENSOR

RNG = np.random.default_rng(20)
F = np.float32
X = RNG.normal(size=(1, 3, 5, 7)).astype(F)
Y = RNG.normal(size=(1, 3, 5, 7)).astype(F)
B = RNG.integers(0, 256, (1, 3, 5, 7), dtype=np.uint8)
B2 = RNG.integers(0, 256, (1, 3, 5, 7), dtype=np.uint8)
POSITIVE = np.abs(X) + F(0.1)
INF = math.inf
FLOAT_MAX = float(np.finfo(F).max)


# ------------------------------------------------------------------------ plain second opinions
def pool_loop(x, kh, kw, sh, sw, pt, pl, oh, ow, how: Callable) -> np.ndarray:
    out = np.zeros((*x.shape[:2], oh, ow), x.dtype)
    for n, c, oy, ox in np.ndindex(out.shape):
        inside = [
            x[n, c, oy * sh - pt + ky, ox * sw - pl + kx]
            for ky in range(kh)
            for kx in range(kw)
            if 0 <= oy * sh - pt + ky < x.shape[2] and 0 <= ox * sw - pl + kx < x.shape[3]
        ]
        out[n, c, oy, ox] = how(inside)
    return out


def conv_loop(x, w, bias, stride, pt, pl, oh, ow, groups, dilation=1) -> np.ndarray:
    out = np.zeros((x.shape[0], w.shape[0], oh, ow))
    per_in, per_out = w.shape[1], w.shape[0] // groups
    for n, o, oy, ox in np.ndindex(out.shape):
        total = float(bias[o])
        for i, ky, kx in np.ndindex(w.shape[1:]):
            yy = oy * stride - pt + ky * dilation
            xx = ox * stride - pl + kx * dilation
            if 0 <= yy < x.shape[2] and 0 <= xx < x.shape[3]:
                channel = o // per_out * per_in + i
                total += float(x[n, channel, yy, xx]) * float(w[o, i, ky, kx])
        out[n, o, oy, ox] = total
    return out


def shift_away(value: int, shift: int) -> int:
    """Half away from zero after an arithmetic shift, as the driver's C has it."""
    if shift == 0:
        return value
    value >>= shift - 1
    return (value >> 1) + ((-1 if value < 0 else 1) if value & 1 else 0)


def shift_up(value: int, shift: int) -> int:
    """Halves up, as nncase 0.2's quantised operations on the CPU have it."""
    return math.floor(value / 2**shift + 0.5)


def close(got: np.ndarray, want: np.ndarray) -> None:
    assert got.shape == np.shape(want), f"{got.shape} {np.shape(want)}"
    if got.dtype == np.uint8:
        assert np.array_equal(got, want)
    else:
        assert np.allclose(got, want, rtol=1e-5, atol=1e-6), np.abs(got - want).max()


# ------------------------------------------------------------------------------------------- v4
def range4(start: int, array: np.ndarray) -> bytes:
    return struct.pack("<4I", 1, 0 if array.dtype == F else 1, start, array.nbytes)


def model_v4(opcode: int, body: Callable, inputs: list, out: np.ndarray) -> bytes:
    """A model of one node; ``body`` gets the ranges of inputs and output."""
    starts, at = [], 0
    for array in (*inputs, out):
        starts.append(at)
        at += round_up(array.nbytes, 8)
    ranges = [range4(s, a) for s, a in zip(starts, (*inputs, out), strict=True)]
    shapes = [(1,) * (4 - a.ndim) + a.shape for a in inputs]
    return build_v4(
        [(opcode, body(*ranges))],
        [(struct.unpack("<4I", r), s) for r, s in zip(ranges, shapes, strict=False)],
        [struct.unpack("<4I", ranges[-1])],
        at,
    )


S = struct.pack
SHAPE = S("<4i", *X.shape)
NO_CLAMP = S("<2f", -FLOAT_MAX, FLOAT_MAX)
W = RNG.normal(size=(4, 3, 3, 3)).astype(F)
WG = RNG.normal(size=(6, 1, 3, 3)).astype(F)
BIAS = RNG.normal(size=6).astype(F)
QW = RNG.integers(0, 256, (4, 3, 3, 3), dtype=np.uint8)
QBIAS = RNG.integers(-9000, 9000, 4).astype(np.int32)
M1, M2 = RNG.normal(size=(4, 6)).astype(F), RNG.normal(size=(6, 5)).astype(F)
Q1 = RNG.integers(0, 256, (4, 6), dtype=np.uint8)
Q2 = RNG.integers(0, 256, (6, 5), dtype=np.uint8)
TABLE = RNG.permutation(256).astype(np.uint8)


def v4_binary(op: int, b: np.ndarray, want: np.ndarray, clamp: bytes = NO_CLAMP) -> tuple:
    shapes = SHAPE + S("<4i", *b.shape) + SHAPE
    return 0, lambda x, y, o: x + y + o + S("<I", op) + shapes + clamp, [X, b], want


def v4_conv(stride: int, pad: int, groups: int, w: np.ndarray, dilation: int = 1) -> tuple:
    span = 2 * dilation + 1
    oh, ow = ((n + 2 * pad - span) // stride + 1 for n in X.shape[2:])
    bias = BIAS[: w.shape[0]]
    want = conv_loop(X, w, bias, stride, pad, pad, oh, ow, groups, dilation)

    def body(x: bytes, o: bytes) -> bytes:
        head = S("<2i4i", groups, w.shape[0], pad, pad, pad, pad)
        window = S("<6i", 3, 3, stride, stride, dilation, dilation)
        return x + o + SHAPE + head + window + S("<2f", -1, 1) + w.tobytes() + bias.tobytes()

    return 2, body, [X], np.clip(want, -1, 1).astype(F)


def v4_quant_conv() -> tuple:
    want = conv_loop(B.astype(int) - 7, QW.astype(int) - 128, QBIAS, 1, 1, 1, 5, 7, 1)
    scaled = np.vectorize(lambda v: np.clip(shift_up(int(v) * 77, 19) + 100, 0, 255))(want)

    def body(x: bytes, o: bytes) -> bytes:
        head = SHAPE + S("<2i4i", 1, 4, 1, 1, 1, 1) + S("<6i", 3, 3, 1, 1, 1, 1)
        return x + o + head + S("<5i", -7, -128, 77, 19, 100) + QBIAS.tobytes() + QW.tobytes()

    return 0xF, body, [B], scaled.astype(np.uint8)


def v4_quant_binary() -> tuple:
    def one(a: int, b: int) -> int:
        a, b = shift_up((a - 3) * 1000, 4), shift_up((b + 5) * 700, 5)
        return min(255, max(0, shift_up((a + b) * 50, 15) + 11))

    want = np.vectorize(one)(B.astype(int), B2.astype(int)).astype(np.uint8)
    params = S("<9i", -3, 1000, 4, 5, 700, 5, 11, 50, 15)
    return 0x11, lambda x, y, o: x + y + o + S("<I", 0) + SHAPE * 3 + params, [B, B2], want


def v4_pool(op: int, initial: float, how: Callable) -> tuple:
    def body(x: bytes, o: bytes) -> bytes:
        pads = S("<4i", 1, 1, 1, 0)
        return (
            x
            + o
            + S("<I", op)
            + SHAPE
            + pads
            + S("<6i", 3, 2, 2, 1, 1, 1)
            + S("<f", initial)
            + NO_CLAMP
        )

    return 8, body, [X], pool_loop(X, 3, 2, 2, 1, 1, 1, 3, 7, how)


def v4_quant_matmul() -> tuple:
    bias = QBIAS.repeat(2)[:5]
    total = (Q1.astype(int) - 9) @ (Q2.astype(int) - 100) + bias
    want = np.vectorize(lambda v: np.clip(shift_up(int(v) * 900, 18) + 60, 0, 255))(total)

    def body(a: bytes, b: bytes, o: bytes) -> bytes:
        return a + b + o + S("<3i5i", 4, 6, 5, -9, -100, 900, 18, 60) + bias.tobytes()

    return 0x10, body, [Q1, Q2], want.astype(np.uint8)


NNIL = (
    bytes([3, 1, 0x29, 6])
    + S("<f", 0.5)
    + bytes([0x42, 0x40, 4, 6])
    + S("<f", 2)
    + bytes([0x80, 0xA0])
)
V4 = {
    "add": v4_binary(0, Y, X + Y),
    "sub": v4_binary(1, Y, X - Y),
    "mul_broadcast": v4_binary(2, Y[:, :, :1, :1].copy(), X * Y[:, :, :1, :1]),
    "div": v4_binary(3, POSITIVE, X / POSITIVE),
    "min_clamped": v4_binary(4, Y, np.clip(np.minimum(X, Y), 0, 0.5), S("<2f", 0, 0.5)),
    "max": v4_binary(5, Y, np.maximum(X, Y)),
    "concat": (
        1,
        lambda x, y, o: o + S("<3I", 35, 3, 2) + x + y + S("<2i", 4, 4),
        [X, Y],
        np.concatenate([X.reshape(3, -1), Y.reshape(3, -1)], axis=1),
    ),
    "conv2d": v4_conv(1, 1, 1, W),
    "conv2d_stride": v4_conv(2, 0, 1, W),
    "conv2d_dilated": v4_conv(1, 2, 1, W, 2),
    "conv2d_groups": v4_conv(1, 1, 3, WG),
    "dequantize": (3, lambda x, o: x + o + S("<if", 7, 4.0), [B], (B.astype(F) - 7) / 4),
    "matmul": (
        4,
        lambda a, b, o: a + b + o + S("<3i2f", 4, 6, 5, -1, 1) + BIAS[:5].tobytes(),
        [M1, M2],
        np.clip(M1 @ M2 + BIAS[:5], -1, 1),
    ),
    "pad": (
        5,
        lambda x, o: x + o + SHAPE + S("<8i", 0, 0, 1, 0, 2, 1, 0, 3) + S("<If", 0, 1.5),
        [X],
        np.pad(X, ((0, 0), (1, 0), (2, 1), (0, 3)), constant_values=1.5),
    ),
    "pad_cut": (
        5,
        lambda x, o: x + o + SHAPE + S("<8i", 0, 0, 0, 0, -1, 2, 0, -2) + S("<I4B", 1, 9, 0, 0, 0),
        [B],
        np.pad(B[:, :, 1:, :-2], ((0, 0), (0, 0), (0, 2), (0, 0)), constant_values=9),
    ),
    "quantize": (
        6,
        lambda x, o: x + o + S("<if", 128, 40.0),
        [X],
        np.clip(np.floor(np.abs(X * 40 + 128) + 0.5), 0, 255).astype(np.uint8),
    ),
    "reduce_mean": (
        7,
        lambda x, o: x + o + S("<I", 0) + SHAPE + S("<4i", 1, 3, 1, 1) + S("<f", 0),
        [X],
        X.mean(axis=(2, 3), keepdims=True),
    ),
    "reduce_max": (
        7,
        lambda x, o: x + o + S("<I", 2) + SHAPE + S("<4i", 1, 1, 5, 7) + S("<f", 0.25),
        [X],
        np.maximum(X.max(axis=1, keepdims=True), F(0.25)),
    ),
    "pool_max": v4_pool(2, -FLOAT_MAX, max),
    "pool_mean": v4_pool(0, 0.0, lambda v: sum(v) / len(v)),
    "pool_sum": v4_pool(3, 0.0, sum),
    "memory_copy": (9, lambda x, o: x + o, [X], X.reshape(-1)),
    "resize_nearest": (
        0xA,
        lambda x, o: x + o + SHAPE + S("<2iIB3x", 10, 21, 1, 0),
        [X],
        X.repeat(2, axis=2).repeat(3, axis=3),
    ),
    "resize_bilinear": (
        0xA,
        lambda x, o: x + o + SHAPE + S("<2iIB3x", 9, 13, 0, 1),
        [X],
        None,
    ),
    "softmax": (
        0xB,
        lambda x, o: x + o + S("<2if", 35, 3, 2.0),
        [X],
        np.exp(2 * X.reshape(3, 35))
        / np.exp(2 * X.reshape(3, 35)).sum(axis=1, keepdims=True, dtype=np.float64),
    ),
    "transpose": (
        0xC,
        lambda x, o: x + o + SHAPE + S("<4i", 0, 2, 3, 1),
        [X],
        X.transpose(0, 2, 3, 1),
    ),
    "strided_slice": (
        0xD,
        lambda x, o: (
            x
            + o
            + SHAPE
            + S("<12i", 0, 0, 4, 1, 1, 3, -1, 7, 1, 1, -2, 3)
            + S("<5i", 0, 0, 0, 0, 0)
        ),
        [X],
        X[:, :, ::-2, 1::3],
    ),
    "quantized_binary": v4_quant_binary(),
    "quantized_conv2d": v4_quant_conv(),
    "quantized_matmul": v4_quant_matmul(),
    "table_lookup": (0x12, lambda x, t, o: x + t + o, [B, TABLE], TABLE[B].reshape(-1)),
    "nnil": (0x14, lambda x, o: x + o + NNIL, [X], np.clip(X + X * X / 2, 0, 2).reshape(-1)),
}
for _i, (_name, _f) in enumerate(
    {
        "abs": np.abs,
        "ceil": np.ceil,
        "cos": np.cos,
        "exp": np.exp,
        "floor": np.floor,
        "log": np.log,
        "neg": np.negative,
        "rsqrt": lambda v: 1 / np.sqrt(v),
        "sin": np.sin,
        "square": np.square,
    }.items()
):
    V4[_name] = (
        0xE,
        lambda x, o, i=_i: x + o + S("<I", i),
        [POSITIVE],
        _f(POSITIVE).astype(F).reshape(-1),
    )


def bilinear(x: np.ndarray, oh: int, ow: int) -> np.ndarray:
    """Corners aligned."""
    out = np.zeros((*x.shape[:2], oh, ow), F)
    for oy, ox in np.ndindex(oh, ow):
        y, z = oy * (x.shape[2] - 1) / (oh - 1), ox * (x.shape[3] - 1) / (ow - 1)
        y0, x0 = min(int(y), x.shape[2] - 2), min(int(z), x.shape[3] - 2)
        fy, fx = y - y0, z - x0
        corner = x[:, :, y0 : y0 + 2, x0 : x0 + 2].astype(float)
        rows = corner[:, :, 0] * (1 - fy) + corner[:, :, 1] * fy
        out[:, :, oy, ox] = rows[..., 0] * (1 - fx) + rows[..., 1] * fx
    return out


V4["resize_bilinear"] = (*V4["resize_bilinear"][:3], bilinear(X, 9, 13))


@pytest.mark.parametrize("name", V4)
def test_v4(name: str) -> None:
    opcode, body, inputs, want = V4[name]
    want = np.asarray(want, np.uint8 if np.asarray(want).dtype == np.uint8 else F)
    program = loads_kmodel(model_v4(opcode, body, inputs, want), name)
    got = run_kmodel(
        program, [a.reshape(t.shape) for a, t in zip(inputs, program.inputs, strict=True)]
    )
    close(got.output.reshape(want.shape), want)


HALVES = np.array([0.5, 1.5, 2.5, 3.5, -0.5, 254.5, 255.5, 300.0, -9.0, np.nan], F)


def test_ties_of_quantize() -> None:
    """v3 and v4 round halves away from zero, v5 to even; the ends are clamped."""
    want = np.array([1, 2, 3, 4, 0, 255, 255, 255, 0, 0], np.uint8)
    even = np.array([0, 2, 2, 4, 0, 254, 255, 255, 0, 0], np.uint8)
    data = model_v4(6, lambda x, o: x + o + S("<if", 0, 1.0), [HALVES], want)
    assert np.array_equal(
        run_kmodel(loads_kmodel(data), HALVES.reshape(1, 1, 1, -1)).output.reshape(-1), want
    )
    for bias in (0.0, -2.0):
        body = S("<4I2f", 1, 0, 2048, HALVES.size, 0.5, bias)
        program = loads_kmodel(build_v3([(11, body)], [(2048, HALVES.size)], 4096))
        assert np.array_equal(run_kmodel(program, HALVES * F(0.5) + F(bias)).output, want)

    def write(a: Assembler) -> None:
        a.at(0, 0).at(1, 0).strided(0, HALVES.size).push(1.0, 0.0)
        a.tensor("QUANTIZE", F32, U8, 0, 1, 1)

    for dialect in DIALECTS:
        assert np.array_equal(
            run_kmodel(loads_kmodel(v5_model(dialect, [HALVES], even, write)), HALVES).output, even
        )


def test_v4_constants() -> None:
    """A table in the constants of the file."""
    at = 112
    body = range4(0, B) + S("<4I", 0, 1, 8, 256) + range4(at, B)
    data = build_v4(
        [(0x12, body)],
        [((1, 1, 0, B.nbytes), B.shape)],
        [(1, 1, at, B.nbytes)],
        at + B.nbytes,
        b"\0" * 8 + TABLE.tobytes(),
    )
    assert np.array_equal(run_kmodel(loads_kmodel(data), B).output.reshape(B.shape), TABLE[B])


# ------------------------------------------------------------------------------------------- v5
def v5_model(dialect, inputs: list, want: np.ndarray, write: Callable, rdata: bytes = b"") -> bytes:
    """One tensor function; ``write`` gets the assembler with inputs at their offsets."""
    assembler = Assembler(dialect)
    write(assembler)
    starts, at = [], 0
    for array in inputs:
        starts.append(at)
        at += array.nbytes
    code = {"uint8": 4, "float32": 9, "int32": 2}
    return build_v5(
        assembler.code,
        [
            ((0, code[a.dtype.name], s, a.nbytes), a.shape)
            for a, s in zip(inputs, starts, strict=True)
        ],
        [((1, code[want.dtype.name], 0, want.nbytes), want.shape)],
        rdata=rdata,
    )


U8, F32, SHP = 4, 9, X.shape
LOCAL = {d.name: d for d in DIALECTS}
RELEASED = DIALECTS[1:]  # after the development version


def unary_like(name: str, *tail: float, src: tuple = SHP, dst: tuple = SHP) -> Callable:
    def write(a: Assembler) -> None:
        a.at(0, 0).at(1, 0).strided(0, *src).strides(3, *dst)
        a.tensor(name, F32, 0, 1, 3, *tail)

    return write


def binary(op: int, b: tuple, out: tuple = SHP, low: float = -INF, high: float = INF) -> Callable:
    def write(a: Assembler) -> None:
        a.at(0, 0).at(0, X.nbytes).at(1, 0)
        a.strided(0, *SHP).strided(2, *b).strides(5, *out)
        extra = ()
        if a.dialect.binary_shape:
            extra = (4,)
            a.shape(4, *out)
        a.tensor("BINARY", F32, 0, 1, 2, 3, *extra, 5, op, low, high)

    return write


def scale(name: str, src: int, dst: int) -> Callable:
    def write(a: Assembler) -> None:
        a.at(0, 0).at(1, 0).strided(0, *SHP).push(40.0, 100.0)
        a.tensor(name, src, dst, 0, 1, 1)

    return write


def conv(a: Assembler) -> None:
    a.at(0, 0).at(2, 0).at(2, W.nbytes).at(1, 0)
    for pair in ((1, 1), (0, 2)):
        a.push(*pair, *([0] if a.dialect.interior else []))
    a.strided(0, *SHP).strided(2, *W.shape).shape(4, 1).strides(6, 1, 4, 3, 7)
    a.tensor("CONV2D", F32, 0, 1, 2, 3, 4, 6, 1, 2, 1, 1, 1, -1.0, 1.0)


def window(a: Assembler) -> None:
    a.at(0, 0).push(-FLOAT_MAX).at(1, 0)
    for pair in ((1, 1), (1, 0)):
        a.push(*pair, *([0] if a.dialect.interior else []))
    a.strided(0, *SHP).strides(3, 1, 3, 3, 7)
    a.tensor("REDUCE_WINDOW2D", F32, 2, 0, 1, 3, 3, 2, 2, 1, 1, 1, -INF, INF)


def resize(mode: int, align: int, half: int, h: int, w: int) -> Callable:
    def write(a: Assembler) -> None:
        a.push(h, w).at(0, 0).at(1, 0).strided(0, *SHP).strides(3, 1, 3, h, w)
        a.tensor("RESIZE_IMAGE", F32, 0, 1, 3, align, half, mode)

    return write


def slicing(a: Assembler) -> None:
    a.at(0, 0).at(1, 0).strided(0, *SHP).strides(3, 1, 2, 3, 3)
    a.shape(4, 0, 1, 4, 0).shape(5, 1, 3, -1, 7).shape(6, 1, 1, -2, 3)
    a.tensor("SLICE", F32, 0, 1, 3, 4, 5, 6)


def padding(a: Assembler) -> None:
    a.at(0, 0).at(1, 0).push(1.5).strided(0, *SHP).strides(2, 1, 4, 8, 10)
    a.pads(3, (0, 0), (1, 0), (2, 1), (0, 3)).tensor("PAD", F32, 0, 1, 2, 3, 0)


def reducing(op: int, keep: int, out: tuple) -> Callable:
    def write(a: Assembler) -> None:
        a.at(0, 0).at(1, 0).push(0.0).strided(0, *SHP).strides(3, *out).shape(4, 2, -1)
        a.tensor("REDUCE", F32, 0, 1, 3, op, 4, keep)

    return write


def lookup(a: Assembler) -> None:
    a.at(0, 0).at(2, 0).at(1, 0).push(0, 255).strided(0, *SHP)
    a.tensor("LUT1D", U8, 0, 1, 1, 256)


def transposing(a: Assembler) -> None:
    a.at(0, 0).at(1, 0).strided(0, *SHP).strides(3, 1, 7, 5, 3).shape(4, 0, 3, 2, 1)
    a.tensor("TRANSPOSE", F32, 0, 1, 3, 4)


def tanh(a: Assembler) -> None:
    unary_like("UNARY", 14 if a.dialect.name == "1.0.0" else 15)(a)


def multiplying(a: Assembler) -> None:
    a.at(0, 0).at(2, 0).at(2, M2.nbytes).at(1, 0)
    a.strided(0, 4, 6).strided(2, 6, 5).shape(4, 1).strides(6, 4, 5)
    a.tensor("MATMUL", 0, 1, 2, 3, 4, 6, -INF, INF)


def gathering(a: Assembler) -> None:
    a.at(0, 0).at(1, 0).at(0, X.nbytes).strided(0, *SHP).strided(2, 1, 4, 5, 7).shape(4, 4)
    a.tensor("GATHER", F32, 0, 2, 1, 3, 4, 1)


def broadcasting(a: Assembler) -> None:
    a.at(0, 0).at(1, 0).strided(0, 1, 3, 5, 7).strided(2, 2, 3, 5, 7)
    a.tensor("BROADCAST", F32, 0, 1, 2, 3)


def converting(a: Assembler) -> None:
    a.at(0, 0).at(1, 0).strided(0, *SHP).tensor("CONVERT", U8, F32, 0, 1, 1)


def arithmetic(a: Assembler) -> None:
    """A copy whose addresses and shapes are computed, over a branch."""
    a.push(1).op("BR_TRUE", 5).push(99)  # the push of 99 is jumped over
    a.at(0, 0).at(1, 0)
    a.push(1).push(2, 1).op("ADD").push(10, 5).op("SUB").push(14, 2).op("DIV").op("STSHAPE", 0, 4)
    a.push(7).op("DUP").op("POP").op("POP").shape(1, 105, 35, 7, 1)
    a.tensor("COPY", F32, 0, 1, 1).op("RET").push(1)


def half_pixel(x: np.ndarray, oh: int, ow: int) -> np.ndarray:
    """Nearest with half-pixel centres."""
    rows = np.clip(((np.arange(oh) + 0.5) * x.shape[2] / oh).astype(int), 0, x.shape[2] - 1)
    columns = np.clip(((np.arange(ow) + 0.5) * x.shape[3] / ow).astype(int), 0, x.shape[3] - 1)
    return x[:, :, rows[:, None], columns]


INDEX = np.array([2, 0, 0, 1], np.int32)
E4 = np.exp(X * 2)
V5: dict[str, tuple] = {
    "add": ([X, Y], X + Y, binary(0, SHP), "*"),
    "div_channel": (
        [X, POSITIVE[:, :, :1, :1].copy()],
        np.clip(X / POSITIVE[:, :, :1, :1], -1, 1),
        binary(3, (1, 3, 1, 1), SHP, -1.0, 1.0),
        "*",
    ),
    "pow": ([POSITIVE, Y], POSITIVE**Y, binary(6, SHP), "*"),
    "quantize": (
        [X],
        np.clip(np.rint(X * F(40) + F(100)), 0, 255).astype(np.uint8),
        scale("QUANTIZE", F32, U8),
        "*",
    ),
    "dequantize": ([B], B * F(40) + F(100), scale("DEQUANTIZE", U8, F32), "*"),
    "copy": ([X], X, unary_like("COPY"), "*"),
    "conv2d": (
        [X],
        np.clip(conv_loop(X, W, BIAS, 1, 1, 0, 5, 7, 1)[:, :, ::2], -1, 1),
        conv,
        "*",
    ),
    "reduce_window": ([X], pool_loop(X, 3, 2, 2, 1, 1, 1, 3, 7, max), window, "*"),
    "resize_nearest": ([X], X.repeat(2, 2).repeat(3, 3), resize(1, 0, 0, 10, 21), "*"),
    "resize_half": ([X], half_pixel(X, 8, 9), resize(1, 0, 1, 8, 9), "*"),
    "resize_bilinear": ([X], bilinear(X, 9, 13), resize(0, 1, 0, 9, 13), "*"),
    "slice": ([X], X[:, 1:3, ::-2, ::3], slicing, "*"),
    "pad": (
        [X],
        np.pad(X, ((0, 0), (1, 0), (2, 1), (0, 3)), constant_values=1.5),
        padding,
        "*",
    ),
    "reduce_mean": ([X], X.mean(axis=(2, 3)), reducing(0, 0, (1, 3)), "*"),
    "reduce_min": (
        [X],
        np.minimum(X.min((2, 3), keepdims=True), 0),
        reducing(1, 1, (1, 3, 1, 1)),
        "*",
    ),
    "lut1d": ([B], TABLE[B], lookup, "*"),
    "transpose": ([X], X.transpose(0, 3, 2, 1), transposing, "*"),
    "gather": ([X, INDEX], X[:, INDEX], gathering, "*"),
    "broadcast": ([X], X.repeat(2, 0), broadcasting, "*"),
    "convert": ([B], B.astype(F), converting, "*"),
    "arithmetic": ([X], X, arithmetic, "*"),
    "sqrt_dev": ([POSITIVE], np.sqrt(POSITIVE), unary_like("UNARY", 10), "1.0-dev"),
    "tanh": ([X], np.tanh(X), tanh, "released"),
    "sigmoid": ([X], 1 / (1 + np.exp(-X)), unary_like("SIGMOID"), "released"),
    "softmax": ([X], E4 / E4.sum(1, keepdims=True), unary_like("SOFTMAX", -3, 2.0), "released"),
    "matmul": ([M1], M1 @ M2 + BIAS[:5], multiplying, "released"),
}
RDATA = {
    "conv2d": W.tobytes() + BIAS[:4].tobytes(),
    "lut1d": TABLE.tobytes(),
    "matmul": M2.tobytes() + BIAS[:5].tobytes(),
}


def v5_case(name: str, dialect: str) -> tuple[bytes, list, np.ndarray]:
    inputs, want, write, _ = V5[name]
    want = np.asarray(want)
    want = want if want.dtype == np.uint8 else want.astype(F)
    data = v5_model(LOCAL[dialect], inputs, want, write, RDATA.get(name, b""))
    return data, inputs, want


def v5_cases() -> list[tuple[str, str]]:
    """Every case by every numbering that has its function."""
    found = []
    for name, case in V5.items():
        for dialect in DIALECTS if case[3] == "*" else RELEASED:
            missing = name == "sigmoid" and "SIGMOID" not in dialect.functions
            if case[3] in ("*", "released") and not missing:
                found.append((name, dialect.name))
    return [*found, ("sqrt_dev", "1.0-dev")]


V5_CASES = v5_cases()


@pytest.mark.parametrize(("name", "dialect"), V5_CASES)
def test_v5(name: str, dialect: str) -> None:
    """The numbering is found, or another by which the program is the same; or it is asked for."""
    data, inputs, want = v5_case(name, dialect)
    program = loads_kmodel(data, name)
    close(run_kmodel(program, inputs).output, want)
    taken, _, rest = program.detail.partition(" (")
    assert dialect in taken.split(" nncase ")[1].replace(" or", ",").split(", "), rest
    assert not rest or name == "arithmetic"
    for release in LOCAL[dialect].releases:
        asked = loads_kmodel(data, name, release)
        close(run_kmodel(asked, inputs).output, want)
        assert asked.detail == f"byte code of nncase {release} (as asked)"


def test_every_function_of_every_numbering_is_in_a_case() -> None:
    """What the machine can follow, by each numbering that has it; calls are in the containers."""
    tried = {(name.split("_")[0], dialect) for name, dialect in V5_CASES}
    names = {
        "BINARY": "add",
        "REDUCE_WINDOW2D": "reduce",
        "RESIZE_IMAGE": "resize",
        "UNARY": "tanh",
    }
    for dialect in DIALECTS:
        for function in TENSOR.keys() & dialect.formats.keys() & set(dialect.functions):
            name = names.get(function, function.lower())
            name = "sqrt" if name == "tanh" and dialect.name == "1.0-dev" else name
            assert function == "CALL" or (name, dialect.name) in tried, (function, dialect.name)


# ------------------------------------------------------------------------------------------- v3
def v3_model(kind: int, body: bytes, count: int, out: tuple[int, int], main: int = 4096) -> bytes:
    """The operation after a quantize that brings bytes into main memory at 2048 (floats at 0)."""
    first = S("<4I2f", 1, 0, 2048, count, 1.0, 0.0)
    return build_v3([(11, first), (kind, S("<I", 1) + body)], [out], main)


V3_X = RNG.integers(0, 256, 64).astype(F)  # whole numbers: the quantize copies them
V3_B = V3_X.astype(np.uint8)


def v3_quant_add() -> np.ndarray:
    a, b = V3_B[:32].astype(int), V3_B[32:].astype(int)
    v = (((a - 4) * 300) >> 3) + (((b + 9) * 200) >> 2)
    return np.clip([shift_away(int(x) * 60, 14) - 5 for x in v], 0, 255).astype(np.uint8)


def v3_max_pool() -> np.ndarray:
    x = V3_B.reshape(1, 4, 4, 4)
    return pool_loop(x, 3, 3, 2, 2, 1, 1, 2, 2, max)


SOFT = np.exp(V3_X[:10] - V3_X[:10].max())
V3 = {
    "add": (1, S("<4I", 0, 128, 1024, 32), (1024, 128), V3_X[:32] + V3_X[32:]),
    "quant_add": (
        2,
        S("<4I9i", 2048, 2080, 3000, 32, -4, 300, 3, 9, 200, 2, -5, 60, 14),
        (3000, 32),
        v3_quant_add(),
    ),
    "gap": (5, S("<4I", 0, 1024, 16, 4), (1024, 16), V3_X.reshape(4, 16).mean(axis=1)),
    "quant_max_pool": (
        8,
        S("<2I6I6I", 2048, 3000, 4, 4, 4, 2, 2, 4, 3, 3, 2, 2, 1, 1),
        (3000, 16),
        v3_max_pool(),
    ),
    "average_pool": (
        9,
        S("<2I6I6II", 0, 1024, 4, 4, 4, 2, 2, 4, 3, 3, 2, 2, 1, 1, 0),
        (1024, 64),
        pool_loop(V3_X.reshape(1, 4, 4, 4), 3, 3, 2, 2, 1, 1, 2, 2, lambda v: sum(v) / len(v)),
    ),
    "dequantize": (12, S("<3I2f", 2048, 1024, 64, 0.5, -3), (1024, 256), V3_X * 0.5 - 3),
    "requantize": (13, S("<3I", 2048, 3000, 64) + TABLE.tobytes(), (3000, 64), TABLE[V3_B]),
    "l2_norm": (
        14,
        S("<3I", 0, 1024, 64),
        (1024, 256),
        V3_X / np.sqrt(np.square(V3_X, dtype=float).sum()),
    ),
    "softmax": (15, S("<3I", 0, 1024, 10), (1024, 40), SOFT / SOFT.sum()),
    "concat": (
        17,
        S("<2I4I", 3000, 2, 2060, 4, 2048, 6),
        (3000, 10),
        np.concatenate([V3_B[12:16], V3_B[:6]]),
    ),
    "fully_connected": (
        18,
        S("<5I", 0, 1024, 6, 5, 1) + np.ascontiguousarray(M2.T).tobytes() + BIAS[:5].tobytes(),
        (1024, 20),
        np.maximum(V3_X[:6] @ M2 + BIAS[:5], 0),
    ),
    "flatten": (
        20,
        S("<5I", 0, 1024, 4, 2, 8),
        (1024, 256),
        V3_X.reshape(8, 2, 4).transpose(1, 2, 0).reshape(-1),
    ),
    "resize": (
        22,
        S("<8I", 0, 1024, 4, 4, 4, 8, 8, 0),
        (1024, 1024),
        V3_X.reshape(4, 4, 4).repeat(2, 1).repeat(2, 2).reshape(-1),
    ),
    "quant_resize": (
        23,
        S("<8I", 2048, 3000, 4, 4, 4, 8, 8, 0),
        (3000, 256),
        V3_B.reshape(4, 4, 4).repeat(2, 1).repeat(2, 2).reshape(-1),
    ),
    "channelwise": (
        24,
        S("<4I4f", 2048, 1024, 2, 32, 0.5, 1.0, 2.0, -1.0),
        (1024, 256),
        np.concatenate([V3_X[:32] * 0.5 + 1, V3_X[32:] * 2 - 1]),
    ),
    "logistic": (25, S("<3I", 0, 1024, 64), (1024, 256), 1 / (1 + np.exp(-V3_X))),
    "remove_padding": (10242, S("<3I", 2048, 3000, 4), (3000, 4), V3_B[::16]),
}


@pytest.mark.parametrize("name", V3)
def test_v3(name: str) -> None:
    kind, body, out, want = V3[name]
    program = loads_kmodel(v3_model(kind, body, 64, out), name)
    # operations on floats read the model input where the driver puts it, at 0
    got = run_kmodel(program, V3_X).output
    want = np.asarray(want)
    close(got.reshape(-1), want.astype(np.uint8 if want.dtype == np.uint8 else F).reshape(-1))


def test_v3_upload_and_add_padding() -> None:
    """Both leave bytes in the AI RAM where a layer would look for them."""
    for kind, body, places in (
        (10243, S("<5I", 2048, 5, 3, 2, 2), {0: 0, 2: 2, 3: 64, 6: 16, 11: 64 + 16 + 2}),
        (10241, S("<3I", 2048, 5, 6), {0: 0, 1: 16, 3: 48, 4: 256, 5: 272}),
    ):
        ram = run_kmodel(loads_kmodel(v3_model(kind, body, 64, (2048, 64))), V3_X).memory["kpu"]
        for index, place in places.items():
            assert ram[5 * 64 + place] == V3_B[index]


# ------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (build_v3([(3, bytes(20))], [], 64), "global_max_pool2d (type 3) is not supported"),
        (build_v3([(999, bytes(20))], [], 64), "unknown (type 999) is not supported"),
        (build_v4([(0x15, bytes(80))], [], [], 64), "unknown (opcode 0x15)"),
        (build_v4([(0x1234, bytes(80))], [], [], 64), "unknown (opcode 0x1234)"),
        (build_v5(Assembler().op("ECALL", 1).code, [], []), "ecall: is not supported"),
        (build_v5(Assembler().op("LDIND_I4").code, [], []), "ldind_i4: is not supported"),
        (build_v5(b"\x5e\x0e\x00" + bytes(20), [], []), "hardmax"),
        (build_v5(b"\x77", [], []), "instruction 0x77 is not supported"),
        (build_v5(Assembler().op("BR", -5).code, [], []), "more than 1000000 steps"),
        (build_v5(Assembler().op("POP").code, [], []), "pop: the stack is empty"),
    ],
)
def test_unsupported_names_operation_and_offset(data: bytes, text: str) -> None:
    with pytest.raises(KmodelError, match="offset 0x") as caught:
        loads_kmodel(data, "some.kmodel")
    assert text in str(caught.value) and str(caught.value).startswith("some.kmodel: offset 0x")


def all_containers() -> list[bytes]:
    """Every sample of this file, for the fuzz test."""
    samples = []
    for opcode, body, inputs, want in V4.values():
        want = np.asarray(want, np.uint8 if np.asarray(want).dtype == np.uint8 else F)
        samples.append(model_v4(opcode, body, inputs, want))
    samples += [v5_case(*case)[0] for case in V5_CASES]
    samples += [v3_model(kind, body, 64, out) for kind, body, out, _ in V3.values()]
    return samples


def test_programs_describe_themselves() -> None:
    from openkpu.kmodel.describe import as_dict, describe_program

    for data in all_containers():
        program: Program = loads_kmodel(data)
        assert len(describe_program(program).splitlines()) == len(program.operations) + 3 + len(
            program.inputs + program.outputs
        )
        assert len(as_dict(program)["operations"]) == len(program.operations)
