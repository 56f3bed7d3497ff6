# SPDX-License-Identifier: Apache-2.0
"""Numbers of the v5 byte code by release: each one is read, detected, requested or refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from models.tests.kmodel.operation_data import F, X, Y
from models.tests.kmodel.test_kmodel_containers import CONTAINERS, LAYERS
from models.tests.kmodel.test_kmodel_functions_v5 import SHP, V5, v5_model
from models.tests.kmodel.test_kmodel_real import shared
from openkpu.kmodel import KmodelError, Program, load_kmodel, loads_kmodel, run_kmodel
from openkpu.kmodel.__main__ import main
from openkpu.kmodel.build import Assembler, build_v3, build_v5, build_v5_alone
from openkpu.kmodel.version5.bytecode import DIALECTS, RELEASES, Dialect, dialect_of
from openkpu.kmodel.version5.numbering import Attempt, choose_numbering

F32, U8 = 9, 4
# from the published headers: the number of functions, and the opcodes of some
NUMBERS = {
    "1.0-dev": (27, {"COPY": 8, "DEQUANTIZE": 9, "QUANTIZE": 17, "SLICE": 21, "UNARY": 26}),
    "1.0.0": (30, {"CUMSUM": 9, "DEQUANTIZE": 10, "REDUCE_ARG": 21, "SLICE": 24, "UNARY": 29}),
    "1.1.0": (34, {"RANDOM_UNIFORM": 21, "REDUCE_PROD": 24, "TERNARY": 31, "UNARY": 33}),
    "1.2.0": (38, {"ROI_ALIGN": 27, "SIGMOID": 28, "TOPK": 34, "TRILU": 36, "UNARY": 37}),
    "1.3.0": (39, {"DEQUANTIZE": 10, "EQUAL": 11, "QUANTIZE": 20, "SIGMOID": 29, "UNARY": 38}),
    "1.5.0": (39, {"DEQUANTIZE": 10, "EQUAL": 11, "QUANTIZE": 20, "SIGMOID": 29, "UNARY": 38}),
    "1.6.0": (39, {"COMPARE": 4, "DEQUANTIZE": 11, "QUANTIZE": 20, "SIGMOID": 29, "UNARY": 38}),
    "1.9.0": (45, {"UNARY": 38, "GRU": 39, "GATHER_ELEMENTS": 43, "INSTANCE_NORMALIZATION": 44}),
}


@pytest.mark.parametrize("release", NUMBERS)
def test_numbers_of_a_release(release: str) -> None:
    dialect = dialect_of(release)
    count, some = NUMBERS[release]
    assert len(dialect.functions) == len(set(dialect.functions)) == count
    assert {name: dialect.functions.index(name) for name in some} == some
    assert dialect.formats["BINARY"] == ("8B2f" if release >= "1.4.0" else "7B2f")
    assert dialect.interior == (release >= "1.1.0")
    # the compilers' numbers for these, from files of each release
    unary = {"1.0-dev": (10, 12), "1.0.0": (12, 14)}.get(release, (13, 15))
    assert (dialect.unary.index("sqrt"), dialect.unary.index("tanh")) == unary
    assert ("sign" in dialect.unary) == ("erf" in dialect.unary) == (release >= "1.1.0")


def test_names_of_releases() -> None:
    assert dialect_of("1.3") is dialect_of("1.3.0") is not dialect_of("1.4")
    assert dialect_of("1.7.1") is dialect_of("1.6")
    for text in ("", "1.10", "1", "1.0.1", "2.0.0", "dev", "1.3.0 "):
        with pytest.raises(KmodelError, match=r"expected a release of nncase, 1\.0-dev, 1\.0\.0"):
            dialect_of(text)


# ------------------------------------------------------------------- programs of several functions
class Writer:
    """Random straight-line code on float maps, as a compiler writes it: registers set before each
    function, nothing left on the stack."""

    def __init__(self, rng: np.random.Generator, dialect: Dialect) -> None:
        self.rng, self.a = rng, Assembler(dialect)
        self.shape: tuple[int, ...] = (1, 4, 6, 8)
        self.place = (0, 0)  # where the last map lies
        self.free = 0  # in the data pool

    def chain(self, names: list[str], out: Callable[[tuple[int, ...]], tuple[int, int]]) -> None:
        for index, name in enumerate(names):
            last = index == len(names) - 1
            getattr(self, name)(out if last else self.buffer)

    def buffer(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Allocate the next place in the data pool."""
        at = self.free
        self.free += 4 * int(np.prod(shape))
        return 3, at

    def _same(self, name: str, out: Callable, *tail: float) -> None:
        place = out(self.shape)
        self.a.at(*self.place).at(*place).strided(0, *self.shape)
        self.a.tensor(name, F32, 0, 1, 1, *tail)
        self.place = place

    def _to(self, shape: tuple[int, ...], out: Callable, name: str, *operands: float) -> None:
        place = out(shape)
        self.a.at(*self.place).at(*place).strided(0, *self.shape).strides(2, *shape)
        self.a.tensor(name, F32, 0, 1, 2, *operands)
        self.place, self.shape = place, shape

    def copy(self, out: Callable) -> None:
        self._same("COPY", out)

    def softmax(self, out: Callable) -> None:
        self._same("SOFTMAX", out, int(self.rng.integers(-4, 4)), 1.0)

    def unary(self, out: Callable) -> None:
        name = ["abs", "exp", "tanh", "sqrt", "square"][self.rng.integers(0, 5)]
        self._same("UNARY", out, self.a.dialect.unary.index(name))

    def binary(self, out: Callable) -> None:
        place = out(self.shape)
        self.a.at(*self.place).at(*self.place).at(*place)
        self.a.strided(0, *self.shape).strided(2, *self.shape).strides(5, *self.shape)
        extra = ()
        if self.a.dialect.binary_shape:
            self.a.shape(4, *self.shape)
            extra = (4,)
        low, high = [(-np.inf, np.inf), (0.0, 6.0)][self.rng.integers(0, 2)]
        self.a.tensor("BINARY", F32, 0, 1, 2, 3, *extra, 5, int(self.rng.integers(0, 6)), low, high)
        self.place = place

    def transpose(self, out: Callable) -> None:
        perm = [int(n) for n in self.rng.permutation(4)]
        self.a.shape(3, *perm)
        self._to(tuple(self.shape[p] for p in perm), out, "TRANSPOSE", 3)

    def slice(self, out: Callable) -> None:
        shape = tuple(max(1, n // 2) for n in self.shape)
        self.a.shape(3, 0, 0, 0, 0).shape(4, *shape).shape(5, 1, 1, 1, 1)
        self._to(shape, out, "SLICE", 3, 4, 5)

    def pad(self, out: Callable) -> None:
        shape = tuple(n + 1 for n in self.shape)
        place = out(shape)
        self.a.at(*self.place).at(*place).push(0.5).strided(0, *self.shape).strides(2, *shape)
        self.a.pads(0, *[(0, 1)] * 4).tensor("PAD", F32, 0, 1, 2, 0, 0)
        self.place, self.shape = place, shape

    def resize(self, out: Callable) -> None:
        h, w = self.shape[2] + 1, self.shape[3] + 2
        self.a.push(h, w)
        self._to((*self.shape[:2], h, w), out, "RESIZE_IMAGE", 0, 0, 1)

    def reduce(self, out: Callable) -> None:
        shape = (*self.shape[:3], 1)
        place = out(shape)
        self.a.at(*self.place).at(*place).push(0.0).strided(0, *self.shape).strides(2, *shape)
        self.a.shape(3, 3).tensor("REDUCE", F32, 0, 1, 2, 0, 3, 1)
        self.place, self.shape = place, shape


PARTS = ["copy", "unary", "binary", "transpose", "slice", "pad", "resize", "reduce", "softmax"]


def random_program(seed: int, dialect: Dialect) -> tuple[bytes, str]:
    """A chain of two to six functions, with or without RET; and their names."""
    rng = np.random.default_rng(seed)
    parts = [p for p in PARTS if p != "softmax" or "SOFTMAX" in dialect.formats]
    names = [str(name) for name in rng.choice(parts, int(rng.integers(2, 7)))]
    writer = Writer(rng, dialect)
    shape = writer.shape
    writer.chain(names, lambda shape: (1, 0))
    if rng.random() < 0.5:
        writer.a.op("RET")
    size = 4 * int(np.prod(writer.shape))
    parameters = [((0, F32, 0, 768), shape)], [((1, F32, 0, size), writer.shape)]
    return build_v5(writer.a.code, *parameters, data=writer.free), " ".join(names)


def steps(program: Program) -> list[str]:
    return [f"{op.name} {op.describe()}" for op in program.operations]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_the_numbering_of_a_program_is_found(dialect: Dialect) -> None:
    """With any numbering the program is read back as it was written."""
    for seed in range(60):
        data, names = random_program(seed, dialect)
        program, asked = loads_kmodel(data, "m"), loads_kmodel(data, "m", dialect.name)
        print(seed, names, program.detail)
        assert steps(program) == steps(asked) and len(program.operations) == len(names.split())
        taken, _, rest = program.detail.partition(" (")
        assert not rest and dialect.name in taken.split("nncase ")[1].replace(" or", ",").split(
            ", "
        )
        if set(names.split()) - {"copy", "binary"}:  # these have the same number in most of them
            assert len(taken) < len(" or ".join(RELEASES))


# ---------------------------------------------------------------------------------- short programs
def added(dialect: Dialect, low: float = -np.inf, high: float = np.inf) -> bytes:
    """An addition and a RET: seven bytes and RET have room for eight bytes."""

    def write(a: Assembler) -> None:
        V5["add"][2](a)
        a.op("RET")

    return v5_model(dialect, [X, Y], (X + Y).astype(F), write)


def test_an_addition_at_the_end_is_read_by_its_registers() -> None:
    for dialect in DIALECTS:
        program = loads_kmodel(added(dialect), "m")
        long = "by 1.4.0" in program.detail or "1.4.0" in program.detail
        assert long == dialect.binary_shape, (dialect.name, program.detail)
        assert np.array_equal(run_kmodel(program, [X, Y]).output, X + Y)
    with pytest.raises(KmodelError, match=r"the code says \[105, 35, 7, 1\] .*1\.4\.0, as asked"):
        loads_kmodel(added(dialect_of("1.3.0")), "m", "1.4.0")


def softmax_of_nothing() -> bytes:
    """In 1.1.0 a softmax of axis 0 with beta 0; in 1.2.0 a sigmoid and eight nops."""

    def write(a: Assembler) -> None:
        a.at(0, 0).at(1, 0).strided(0, *SHP).tensor("SOFTMAX", F32, 0, 1, 1, 0, 0.0)

    return v5_model(dialect_of("1.1.0"), [X], X, write)


def test_of_two_programs_the_one_without_doubts_is_taken() -> None:
    data = softmax_of_nothing()
    assert steps(loads_kmodel(data, "m", "1.1.0"))[0].startswith("softmax")
    assert steps(loads_kmodel(data, "m", "1.2.0"))[0].startswith("unary sigmoid")
    program = loads_kmodel(data, "m")
    assert steps(program) == steps(loads_kmodel(data, "m", "1.1.0"))
    assert program.detail == (
        "byte code of nncase 1.1.0 (by 1.2.0 it would be another program; NUMBERING decides)"
    )


def test_of_two_equals_the_newest_is_taken_and_both_are_said() -> None:
    data = softmax_of_nothing()
    pair = [
        Attempt((dialect_of(name),), loads_kmodel(data, "m", name), None, "m", 9, [])
        for name in ("1.1.0", "1.2.0")
    ]
    assert choose_numbering(pair).detail.startswith(
        "byte code of nncase 1.2.0 (by 1.1.0 it would be another"
    )
    worse = [pair[0], dataclasses.replace(pair[1], doubts=["offset 0x1: something"])]
    assert choose_numbering(worse).detail.startswith("byte code of nncase 1.1.0 (by 1.2.0")
    assert choose_numbering(worse[1:]).detail.endswith("1.2.0 (doubtful: offset 0x1: something)")


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("nothing reads shape register 7", lambda a: a.shape(7, 1)),
        ("leaves 1 values on the stack", lambda a: a.push(3)),
        ("nop: stands for nothing", lambda a: a.op("NOP")),
    ],
)
def test_doubts_are_said(name: str, write: Callable) -> None:
    def code(a: Assembler) -> None:
        write(a)
        V5["copy"][2](a)
        if "stack" in name:
            a.op("POP")

    program = loads_kmodel(v5_model(DIALECTS[-1], [X], X, code), "m")
    assert "(doubtful: offset 0x" in program.detail and name in program.detail


def test_elements_that_lie_over_each_other_are_doubtful() -> None:
    def code(a: Assembler) -> None:
        a.at(0, 0).at(1, 0).strided(0, *SHP).shape(2, 105, 15, 3, 1)
        a.tensor("COPY", F32, 0, 1, 2)

    assert "lie over each other" in loads_kmodel(v5_model(DIALECTS[-1], [X], X, code), "m").detail


# ----------------------------------------------------------------------------- fits no numbering
def test_what_no_type_allows_does_not_fit() -> None:
    """Errors in every numbering: the file is invalid."""

    def scaled(name: str, src: int, dst: int) -> Callable:
        def write(a: Assembler) -> None:
            a.at(0, 0).at(1, 0).strided(0, *SHP).push(1.0, 0.0).tensor(name, src, dst, 0, 1, 1)

        return write

    def clamped(a: Assembler) -> None:
        a.at(0, 0).at(0, X.nbytes).at(1, 0).strided(0, *SHP).strided(2, *SHP).strided(4, *SHP)
        a.tensor("BINARY", F32, 0, 1, 2, 3, 4, 5, 0, 1.0, -1.0)

    def into_input(a: Assembler) -> None:
        V5["copy"][2](a)
        a.at(1, 0).at(0, 0).strided(0, *SHP).tensor("COPY", F32, 0, 1, 1)

    byte = X.astype(np.uint8)
    for inputs, want, write, text in (
        ([byte], byte, scaled("QUANTIZE", U8, U8), "tensor.quantize: of u8"),
        ([X], X, scaled("DEQUANTIZE", F32, F32), "tensor.dequantize: of f32"),
        ([X, Y], X, clamped, "fused activation 1 .. -1"),
        ([X], X, into_input, "copy: writes to f32"),
    ):
        with pytest.raises(KmodelError, match="offset 0x") as caught:
            loads_kmodel(v5_model(DIALECTS[-1], inputs, want, write), "m", "1.9.0")
        assert text in str(caught.value)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_the_nearest_is_named(dialect: Dialect) -> None:
    """The numbering that decodes the code up to the point where none does."""

    def write(a: Assembler) -> None:
        V5["transpose"][2](a)
        V5["sigmoid" if "SIGMOID" in a.dialect.functions else "slice"][2](a)
        a.op("ECALL", 1)

    data = v5_model(dialect, [X], X, write)
    with pytest.raises(KmodelError, match=r"m: offset 0x.*ecall: is not supported") as caught:
        loads_kmodel(data, "m")
    text = str(caught.value).split("(byte code of nncase ")[1]
    names, _, rest = text.partition(", the nearest numbering)")
    assert dialect.name in names.replace(" or", ",").split(", ") and not rest
    with pytest.raises(KmodelError, match=rf"ecall.*nncase {dialect.name}, as asked"):
        loads_kmodel(data, "m", dialect.name)


def test_of_two_that_are_as_near_both_are_named() -> None:
    """Number 13 without preceding code that distinguishes them: its operation is ambiguous."""
    code = Assembler(dialect_of("1.1.0")).at(0, 0).code + b"\x5e\x0d\0" + bytes(20)
    with pytest.raises(KmodelError) as caught:
        loads_kmodel(build_v5(code, [((0, F32, 0, 4), (1,))], []), "m")
    for text in (
        "m: offset 0x",
        ": operation gather_nd is not supported (byte code of nncase 1.9.0, 1.8.0, 1.7.1, 1.7.0, "
        "1.6.0, 1.5.0, 1.4.0 or 1.3.0, the nearest numbering",
        "; as near, 1.2.0, 1.1.0 or 1.0.0: offset 0x",
        ": operation hardmax is not supported)",
    ):
        assert text in str(caught.value)
    assert "1.0-dev" not in str(caught.value)  # there it is a function that does not fit


def test_what_is_the_same_in_all_names_none() -> None:
    data = build_v5(Assembler().op("THROW").code, [], [])
    with pytest.raises(KmodelError, match=r"throw: is not supported$"):
        loads_kmodel(data, "m")


def test_an_operation_that_is_known_but_not_followed_is_named() -> None:
    for dialect in DIALECTS:
        for function in set(dialect.functions) - dialect.formats.keys():
            number = dialect.functions.index(function)
            code = b"\x5e" + number.to_bytes(2, "little") + bytes(40)
            with pytest.raises(KmodelError, match=f"operation {function.lower()} is not supported"):
                loads_kmodel(build_v5(code, [], []), "m", dialect.name)


def test_numbering_of_what_has_none() -> None:
    for data, text in (
        (CONTAINERS["v3"], "version 3 has no numbering, expected version 5"),
        (CONTAINERS["v0"], "version 0 has no numbering"),
        (build_v5_alone(LAYERS[:1]), "no byte code for the CPU"),
        (build_v3([], [], 64), "version 3 has no numbering"),
    ):
        with pytest.raises(KmodelError, match=text):
            loads_kmodel(data, "m", "1.3.0")
    with pytest.raises(KmodelError, match=r"numbering '1\.33'"):
        loads_kmodel(CONTAINERS["v5"], "m", "1.33")


def test_command(tmp_path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "m.kmodel"
    path.write_bytes(random_program(3, dialect_of("1.3.0"))[0])
    assert main([str(path)]) == 0
    assert "kmodel v5, byte code of nncase " in capsys.readouterr().out
    assert main([str(path), "--numbering", "1.3.0"]) == 0
    assert "kmodel v5, byte code of nncase 1.3.0 (as asked)" in capsys.readouterr().out
    for words, text in (
        (["--numbering", "1.0-dev"], "as asked"),
        (["--numbering", "7"], "expected a release of nncase"),
        (["--numbering", "1.3.0", "--functions"], "--functions leaves it out"),
    ):
        assert main([str(path), *words]) == 2
        out, err = capsys.readouterr()
        assert not out and err.count("\n") == 1 and text in err


@pytest.mark.parametrize("release", ["1.1.0", "1.3.0", "1.6.0"])
def test_a_published_file_of_each_release(release: str) -> None:
    path = shared(f"real/nncase_releases/mini_{release}.kmodel")
    program = load_kmodel(path)
    assert release in program.detail and "doubtful" not in program.detail
    x = np.random.default_rng(1).integers(0, 256, (1, 3, 16, 16), dtype=np.uint8)
    output = run_kmodel(program, x).output
    assert output.shape == (1, 4, 16, 16) and output.dtype == F and output.std() > 0
    assert np.array_equal(run_kmodel(load_kmodel(path, release), x).output, output)
    other = "1.6.0" if release != "1.6.0" else "1.3.0"
    with pytest.raises(KmodelError, match=f"nncase {other}, as asked"):
        load_kmodel(path, other)


# ---------------------------------------------------------------------- output of the compilers
COMPILED = Path(__file__).parents[1] / "data" / "numberings.npz"
COMPILERS = ("1.0.0", "1.1.0", "1.3.0", "1.4.0", "1.5.0", "1.6.0", "1.7.1", "1.8.0", "1.9.0")


@pytest.mark.parametrize("target", ["k210", "cpu"])
@pytest.mark.parametrize("release", COMPILERS)
def test_what_each_compiler_made_of_one_network(release: str, target: str) -> None:
    """Convolution, padding, tanh, product, pool, resize, maximum: compiled by each release of
    nncase, with the output of its own simulator (models/tests/data/README.md)."""
    with np.load(COMPILED) as data:
        kmodel = data[f"{release}/{target}/kmodel"].tobytes()
        want, x = data[f"{release}/{target}/output"], data["input"]
    if target == "cpu":
        x = x.astype(F) / F(255)
    program = loads_kmodel(kmodel, "m")
    taken, _, rest = program.detail.partition(" (")
    assert release in taken and not rest
    names = {op.name for op in program.operations}
    assert names >= {"pad", "binary", "reduce_window2d", "resize_image", "reduce"}
    assert ("unary" in names) == (target == "cpu") != ("kpu_conv2d" in names)
    for asked in (program, loads_kmodel(kmodel, "m", release)):
        got = run_kmodel(asked, x).output
        assert got.shape == want.shape and np.abs(got - want).max() < 1e-5
