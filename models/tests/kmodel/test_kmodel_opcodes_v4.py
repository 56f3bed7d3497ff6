# SPDX-License-Identifier: Apache-2.0
"""Every v4 opcode by the cases of opcode_cases_v4, and invalid bodies."""

from __future__ import annotations

import dataclasses
import struct

import numpy as np
import pytest

from models.tests.kmodel.kmodel_bytes import (
    CONST,
    DOUBLING_ACT,
    DOUBLING_BN,
    DOUBLING_WEIGHTS,
    F32,
    KPU,
    MAIN,
    U8,
    doubling_layer,
    file4,
    floats,
    words,
)
from models.tests.kmodel.opcode_cases_v4 import CASES, ONE_TAP, OUT, A, B, Case, window
from openkpu.kmodel import KmodelError, loads_kmodel, run_kmodel


def same(got: bytes, want: bytes, close: bool) -> None:
    """Equal bytes; ``close``: floats from a library function, within a tolerance."""
    if close:
        assert np.allclose(np.frombuffer(got, "<f4"), np.frombuffer(want, "<f4"), atol=1e-6)
    elif len(want) % 4 == 0 and np.isnan(np.frombuffer(want, "<f4")).any():
        assert np.array_equal(np.frombuffer(got, "<f4"), np.frombuffer(want, "<f4"), equal_nan=True)
    else:
        assert got == want, f"{np.frombuffer(got, np.uint8)} {np.frombuffer(want, np.uint8)}"


@pytest.mark.parametrize("name", CASES)
def test_opcode(name: str) -> None:
    case = CASES[name]
    same(case.run(), case.want, name in ("cos", "exp", "sin", "softmax"))


def test_shapes_of_outputs() -> None:
    """As the last operation that writes there has them; the CPU target's maps are (N, H, W, C)."""
    for name, shape in {
        "conv2d padded": (1, 1, 2, 2),
        "quantized_conv2d": (1, 1, 1, 4),
        "conv2d_transpose": (1, 1, 4, 4),
        "matmul": (2, 2),
        "cpu_conv2d": (1, 2, 2, 2),
        "cpu_quantized_conv2d": (1, 1, 4, 1),
        "cpu_depthwise_conv2d": (1, 1, 1, 2),
        "cpu_reduce_window2d mean": (1, 1, 2, 2),
        "transpose": (1, 1, 3, 2),
    }.items():
        (output,) = loads_kmodel(CASES[name].file()).outputs
        assert output.shape == shape, name


def test_memory_copy_copies_the_bytes_of_the_input() -> None:
    """The number of input bytes counts, not the types of the ranges; the place has room for
    more."""
    src, out = words(MAIN, U8, A, 6), words(MAIN, F32, OUT, 8)
    data = file4([(0x09, src + out)], [(src, (1, 1, 1, 6))], [words(MAIN, U8, OUT, 8)], 768)
    x = np.array([1, 2, 3, 4, 5, 6], np.uint8)
    assert run_kmodel(loads_kmodel(data), x.reshape(1, 1, 1, 6)).output.tolist() == [
        1,
        2,
        3,
        4,
        5,
        6,
        0,
        0,
    ]
    data = file4([(0x09, out + src)], [(out, (1, 1, 1, 2))], [src], 768)
    with pytest.raises(KmodelError, match="8 bytes into 6"):
        loads_kmodel(data)


@pytest.mark.parametrize(
    ("space", "dtype", "size", "shape", "says"),
    [
        (MAIN, U8, 15, (1, 1, 4, 4), r"input 0: .* for shape \[1, 1, 4, 4\]"),
        (MAIN, U8, 17, (1, 1, 4, 4), r"input 0: .* for shape \[1, 1, 4, 4\]"),
        (MAIN, F32, 16, (1, 1, 4, 4), r"input 0: .* for shape \[1, 1, 4, 4\]"),
        (CONST, U8, 16, (1, 1, 4, 4), r"input 0: .* for shape \[1, 1, 4, 4\]"),
        (KPU, F32, 256, (1, 1, 1, 1), "input 0 of float in the AI RAM"),
        (MAIN, U8, 16, (1, 0, 4, 4), r"input 0 of shape \[1, 0, 4, 4\]"),
    ],
)
def test_inputs_that_do_not_fit(space: int, dtype: int, size: int, shape: tuple, says: str) -> None:
    """The place of an input has the bytes of its shape (docs/kpu.md 4)."""
    place, copy = words(space, dtype, 0, size), words(MAIN, U8, A, 6) + words(MAIN, U8, OUT, 6)
    data = file4([(0x09, copy)], [(place, shape)], [words(MAIN, U8, OUT, 6)], 768, bytes(16))
    with pytest.raises(KmodelError, match=says):
        loads_kmodel(data)


def upload_and_layer(dst_main: int = OUT) -> list[tuple[int, bytes]]:
    """kpu_upload of a 4 x 4 map to row 7 and a kpu_conv2d from there to row 20 and main memory."""
    row = words(KPU, U8, 7 * 64, 256)
    upload = words(MAIN, U8, A, 16) + row + words(1, 1, 4, 4)
    skip = bytes([0xEE] * 3), bytes([0xEE] * 5), bytes([0xEE] * 9)
    layer = words(MAIN, U8, dst_main, 16, 1, 0)
    layer += doubling_layer(7, 20, *map(len, skip))
    layer += skip[0] + DOUBLING_BN + skip[1] + DOUBLING_ACT + skip[2] + DOUBLING_WEIGHTS
    return [(0x2001, upload), (0x2002, layer)]


PIXELS = bytes(range(0, 160, 10))


def kpu_file() -> bytes:
    place = words(MAIN, U8, A, 16)
    return file4(upload_and_layer(), [(place, (1, 1, 4, 4))], [words(MAIN, U8, OUT, 16)], 768)


def test_kpu_upload_and_conv2d() -> None:
    """2 x + 3, and nothing for a pixel that is 0; lines lie 64 bytes apart in the AI RAM."""
    program = loads_kmodel(kpu_file(), "kpu")
    result = run_kmodel(program, np.frombuffer(PIXELS, np.uint8).reshape(1, 1, 4, 4))
    want = [0 if x == 0 else min(255, 2 * x + 3) for x in PIXELS]
    assert result.output.reshape(-1).tolist() == want
    ram = result.memory["kpu"]
    for line in range(4):
        assert ram[(7 + line) * 64 :][:4].tobytes() == PIXELS[4 * line : 4 * line + 4]
        assert ram[(20 + line) * 64 :][:4].tolist() == want[4 * line : 4 * line + 4]


def test_constants() -> None:
    """A table in the constants, which precede the node headers."""
    src, out = words(MAIN, U8, A, 3), words(MAIN, U8, OUT, 3)
    body = src + words(CONST, U8, 2, 256) + out
    constants = b"\7\7" + bytes(range(255, -1, -1)) + b"\0\0"
    data = file4([(0x12, body)], [(src, (1, 1, 1, 3))], [out], 768, constants)
    output = run_kmodel(loads_kmodel(data), np.array([[[[1, 2, 3]]]], np.uint8)).output
    assert output.reshape(-1).tolist() == [254, 253, 252]


def test_types_of_ranges_are_not_looked_at() -> None:
    """The runtime reads the bytes of a float operation as floats, whatever type the range has."""
    case = dataclasses.replace(CASES["binary sub"], types=(F32, U8))
    assert case.run() == case.want


# ------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("opcode", "tail", "text"),
    [
        (0x15, b"", "operation unknown (opcode 0x15) is not supported"),
        (0x1006, b"", "operation unknown (opcode 0x1006) is not supported"),
        (0x00, words(6), "binary operator 6 is not supported"),
        (0x06, b"", "quantize: zero point takes 4 bytes, 0 are left"),
        (0x0E, words(10), "unary operator 10 is not supported"),
        (0x1003, words(3), "reduce operator 3 is not supported"),
        (0x02, words(1, 1, 1, 1, 1, 1) + window((0,) * 4, (1, 1), (0, 1)), "stride (0, 1)"),
        (0x0F, words(1, 1, 1, 1, 1, 1) + ONE_TAP + words(0, 0, 1, 64), "shift 64, expected 0..63"),
        (0x10, words(1, 1, 1, 0, 0, 1, -1), "shift -1, expected 0..63"),
        (0x13, words(1, 3, 1, 1, 1, 4, 1, 1, 2) + ONE_TAP + floats(0, 1), "in 2 groups out of 3"),
        (0x04, words(1, 1, 1) + floats(1, -1), "fused activation 1 .. -1"),
        (
            0x0D,
            words(1, 1, 1, 1, *[0] * 4, 1, 1, 1, -1, *[1] * 4, *[0] * 5),
            "strides [1, 1, 1, 1]",
        ),
    ],
)
def test_refusals(opcode: int, tail: bytes, text: str) -> None:
    """One line that names the operation and the place."""
    one, two = bytes(4), opcode in (0, 4, 0x10)
    types = (U8, U8) if opcode in (0x0F, 0x10) else (F32, F32)
    size = 1 if types[0] == U8 else 4
    data = Case(opcode, tail, one[:size], one[:size], one[:size] if two else None, types).file()
    with pytest.raises(KmodelError) as caught:
        loads_kmodel(data, "some.kmodel")
    message = str(caught.value)
    assert message.startswith("some.kmodel: offset 0x") and "\n" not in message
    assert text in message


def test_last_body_without_its_alignment() -> None:
    """The compiler pads to eight bytes without writing them; the body itself must be complete."""
    for name, case in CASES.items():
        data = case.file()
        # the body's own length, without the padding of file4
        own = 16 * (2 if case.b is None else 3) + len(case.tail)
        spare = -own % 8
        for missing in range(1, spare + 1):
            cut = data[:-missing]
            same_program = loads_kmodel(cut, name)
            assert [op.describe() for op in same_program.operations] == [
                op.describe() for op in loads_kmodel(data).operations
            ]
        if case.opcode not in (0x0A, 0x14):  # these end with unused bytes
            with pytest.raises(KmodelError):
                loads_kmodel(data[: len(data) - spare - 1], name)
    data = kpu_file()
    spare = -(24 + 96 + 3 + 8 + 5 + 144 + 9 + 1) % 8
    assert spare == 6 and len(loads_kmodel(data[:-6]).kpu_layers) == 1
    with pytest.raises(KmodelError, match="weights takes 1 bytes"):
        loads_kmodel(data[:-7])
    with pytest.raises(KmodelError, match=r"body of node 1 \(kpu_conv2d, opcode 0x2002\)"):
        loads_kmodel(data[:-8])


def test_alignment_of_other_bodies_must_be_there() -> None:
    src, mid, out = (words(MAIN, U8, at, 4) for at in (A, B, OUT))
    body = src + mid + words(1, 1, 2, 2, 0, 1, 3, 2)
    pair = [(0x0C, body), (0x0C, mid + out + words(1, 1, 2, 2, 0, 1, 3, 2))]
    data = file4(pair, [(src, (1, 1, 1, 4))], [out], 768)
    assert len(loads_kmodel(data).operations) == 3
    head = struct.pack("<2I", 0x0C, len(body))
    at = data.index(head)
    longer = data[:at] + struct.pack("<2I", 0x0C, len(body) + 4) + data[at + 8 :]
    with pytest.raises(KmodelError):
        loads_kmodel(longer)


def samples() -> list[bytes]:
    """Every file of these tests, for the fuzz test."""
    return [*(case.file() for case in CASES.values()), kpu_file()]
