# SPDX-License-Identifier: Apache-2.0
"""Every CPU operation of v4 through a container, against plain loops; refusals of all versions."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from models.tests.kmodel.operation_data import (
    B2,
    BIAS,
    FLOAT_MAX,
    M1,
    M2,
    NO_CLAMP,
    POSITIVE,
    Q1,
    Q2,
    QBIAS,
    QW,
    SHAPE,
    TABLE,
    WG,
    B,
    F,
    S,
    W,
    X,
    Y,
    bilinear,
    close,
    conv_loop,
    pool_loop,
    shift_up,
)
from models.tests.kmodel.test_kmodel_functions_v5 import F32, U8, V5_CASES, v5_case, v5_model
from models.tests.kmodel.test_kmodel_operations_v3 import V3, v3_model
from openkpu.arithmetic.integers import round_up
from openkpu.kmodel import KmodelError, Program, loads_kmodel, run_kmodel
from openkpu.kmodel.build import Assembler, build_v3, build_v4, build_v5
from openkpu.kmodel.describe import as_dict, describe_program
from openkpu.kmodel.version5.bytecode import DIALECTS


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
    for data in all_containers():
        program: Program = loads_kmodel(data)
        assert len(describe_program(program).splitlines()) == len(program.operations) + 3 + len(
            program.inputs + program.outputs
        )
        assert len(as_dict(program)["operations"]) == len(program.operations)
