# SPDX-License-Identifier: Apache-2.0
"""Every tensor function of v5 in every numbering, against plain loops and formulas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from models.tests.kmodel.operation_data import (
    BIAS,
    FLOAT_MAX,
    INF,
    M1,
    M2,
    POSITIVE,
    TABLE,
    B,
    F,
    W,
    X,
    Y,
    bilinear,
    close,
    conv_loop,
    pool_loop,
)
from openkpu.kmodel import loads_kmodel, run_kmodel
from openkpu.kmodel.build import Assembler, build_v5
from openkpu.kmodel.version5.bytecode import DIALECTS
from openkpu.kmodel.version5.tensor5 import TENSOR


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
