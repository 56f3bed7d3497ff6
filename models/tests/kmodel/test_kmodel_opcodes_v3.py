# SPDX-License-Identifier: Apache-2.0
"""Every v3 layer type that the SDK runs: bodies as kpu.h has them, results worked out by hand.

The numbers follow from kpu.c of kendryte-standalone-sdk; this project's code computed none of them.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from models.tests.kmodel.kmodel_bytes import (
    DOUBLING_ACT,
    DOUBLING_BN,
    DOUBLING_WEIGHTS,
    aligned,
    doubling_layer,
    file3,
    floats,
    words,
)
from openkpu.kmodel import KmodelError, ModelResult, loads_kmodel, run_kmodel

BYTES, OUT, MAIN = 512, 1024, 2048  # places in main memory; the floats are at 0


@dataclasses.dataclass
class Case:
    """A layer after one that leaves ``x`` as floats at 0 and one that makes bytes of it."""

    kind: int
    body: bytes  # after the flags
    x: tuple[float, ...]
    want: bytes

    def file(self) -> bytes:
        size = len(self.x)
        quantize = words(1, 0, BYTES, size, 1.0, 0.0)
        layers = [(11, quantize), (self.kind, words(1) + self.body)]
        return file3(layers, [(OUT, len(self.want))], MAIN, size)

    def run(self) -> ModelResult:
        return run_kmodel(loads_kmodel(self.file(), "case"), np.array([self.x], np.float32))


# scale and offset of both sides and of the sum, for the two ways of the driver
EQUAL = words(-3, 5, 2, 1, 3, 2, 100, 3, 1)
OTHER = words(-3, 5, 2, 1, 3, 1, 100, 3, 1)
CASES = {
    "add": Case(1, words(0, 8, OUT, 2), (1, 2, 10, 20), floats(11, 22)),
    # (1-3)*5 + (2+1)*3 = -1 >> 2 = -1, * 3 = -3, kpu_carry_shift by 1 = -3;
    # (9-3)*5 + (4+1)*3 = 45 >> 2 = 11, 33 -> 17
    "quant_add, one shift": Case(
        2, words(BYTES, BYTES + 2, OUT, 2) + EQUAL, (1, 9, 2, 4), bytes([97, 117])
    ),
    # -10 >> 2 = -3, 9 >> 1 = 4: 1 * 3 -> 2; 30 >> 2 = 7, 15 >> 1 = 7: 42 -> 21
    "quant_add, two shifts": Case(
        2, words(BYTES, BYTES + 2, OUT, 2) + OTHER, (1, 9, 2, 4), bytes([102, 121])
    ),
    "global_average_pool2d": Case(5, words(0, OUT, 2, 2), (1, 2, 10, 21), floats(1.5, 15.5)),
    "quant_max_pool2d": Case(
        8,
        words(BYTES, OUT, 3, 2, 1, 2, 1, 1, 2, 2, 2, 2, 1, 0),
        (1, 2, 3, 4, 5, 6),
        bytes([4, 6]),
    ),
    # the driver leaves the stored activation (relu6) alone
    "average_pool2d": Case(
        9,
        words(0, OUT, 3, 2, 1, 2, 1, 1, 2, 2, 2, 2, 1, 0, 2),
        (1, 20, 3, 4, 50, 6),
        floats(2.5, 19.75),
    ),
    # (x - 1) / 0.5 = 0.5, 1.5, -20, 998: roundf
    "quantize": Case(11, words(0, OUT, 4, 0.5, 1.0), (1.25, 1.75, -9, 500), bytes([1, 2, 0, 255])),
    "dequantize": Case(12, words(BYTES, OUT, 3, 0.5, -3.0), (0, 6, 255), floats(-3, 0, 124.5)),
    "requantize": Case(
        13, words(BYTES, OUT, 3) + bytes(range(255, -1, -1)), (0, 7, 255), bytes([255, 248, 0])
    ),
    "l2_normalization": Case(14, words(0, OUT, 2), (3, 4), floats(0.6, 0.8)),
    "l2_normalization of nothing": Case(14, words(0, OUT, 2), (0, 0), floats(0, 0)),
    "softmax": Case(15, words(0, OUT, 2), (-1, math.log(3) - 1), floats(0.25, 0.75)),
    # the greatest of FLT_MIN and the values is taken away: exp(-200) is 0
    "softmax far below 0": Case(15, words(0, OUT, 2), (-200, -200), floats(math.nan, math.nan)),
    "concat": Case(16, words(OUT, 2, 4, 4, 0, 8), (1, 2), floats(2, 1, 2)),
    "quant_concat": Case(
        17, words(OUT, 2, BYTES + 2, 2, BYTES, 3), (1, 2, 3, 4), bytes([3, 4, 1, 2, 3])
    ),
    "fully_connected": Case(
        18, words(0, OUT, 2, 2, 0) + floats(1, 2, 3, -4, 0.5, -1), (1, 2), floats(5.5, -6)
    ),
    "fully_connected relu": Case(
        18, words(0, OUT, 2, 2, 1) + floats(1, 3, 3, -4, 0.5, -1), (1, 2), floats(7.5, 0)
    ),
    "fully_connected relu6": Case(
        18, words(0, OUT, 2, 3, 2) + floats(1, 3, 3, -4, 1, 1, 0.5, -1, 0), (1, 2), floats(6, 0, 3)
    ),
    "tensorflow_flatten": Case(
        20, words(0, OUT, 3, 1, 2), (1, 2, 3, 4, 5, 6), floats(1, 4, 2, 5, 3, 6)
    ),
    # align_corners is stored, the driver does not look at it
    "resize_nearest_neighbor": Case(
        22, words(0, OUT, 2, 1, 1, 4, 2, 1), (1, 2), floats(1, 1, 2, 2, 1, 1, 2, 2)
    ),
    "quant_resize_nearest_neighbor": Case(
        23, words(BYTES, OUT, 3, 1, 2, 2, 1, 0), (1, 2, 3, 4, 5, 6), bytes([1, 2, 4, 5])
    ),
    "channelwise_dequantize": Case(
        24,
        words(BYTES, OUT, 2, 2) + floats(0.5, 1, 2, -1),
        (1, 2, 3, 4),
        floats(1.5, 2, 5, 7),
    ),
    "logistic": Case(25, words(0, OUT, 2), (0, math.log(3)), floats(0.5, 0.75)),
    "k210_remove_padding": Case(10242, words(BYTES, OUT, 2), tuple(range(20)), bytes([0, 16])),
}
ROUNDED = ("l2_normalization", "softmax", "logistic")  # a library function is in it


@pytest.mark.parametrize("name", CASES)
def test_layer(name: str) -> None:
    case = CASES[name]
    got = case.run().memory["main"][OUT : OUT + len(case.want)].tobytes()
    if name.split()[0] in ROUNDED:
        left, right = (np.frombuffer(data, "<f4") for data in (got, case.want))
        assert np.allclose(left, right, atol=1e-6, equal_nan=True)
    else:
        assert got == case.want, f"{np.frombuffer(got, np.uint8)}"


def test_upload_and_add_padding() -> None:
    """Two channels 3 wide, 2 high share rows of 64 bytes; padding: a pixel every 16 bytes."""
    x = tuple(range(1, 13))
    ram = Case(10243, words(BYTES, 5, 3, 2, 2), x, b"").run().memory["kpu"][320:]
    assert ram[0:3].tolist() == [1, 2, 3] and ram[64:67].tolist() == [4, 5, 6]
    assert ram[16:19].tolist() == [7, 8, 9] and ram[80:83].tolist() == [10, 11, 12]
    ram = Case(10241, words(BYTES, 5, 6), x, b"").run().memory["kpu"][320:]
    assert [ram[at] for at in (0, 16, 32, 48, 256, 272)] == [1, 2, 3, 4, 5, 6]


PIXELS = tuple(range(0, 160, 10))


def conv_file() -> bytes:
    """Upload of a 4 x 4 map to row 7, a layer from there to row 20 and main memory."""
    quantize = aligned(words(1, 0, BYTES, 16, 1.0, 0.0))
    upload = aligned(words(1, BYTES, 7, 4, 4, 1))
    # header, one output, four layer headers, the fully connected layer's body, the two above
    start = 28 + 8 + 4 * 8 + 24 + 4 * 16 * 17 + len(quantize) + len(upload)
    tables = doubling_layer(7, 20), b"\xee" * 3 + DOUBLING_WEIGHTS, b"\xee" * 4 + DOUBLING_BN
    at = start + 24
    places = [at, at + 96 + 3, at + 96 + 4 + 4, at + 96 + 4 + 12]
    body = words(1, OUT, *places) + b"".join(tables) + DOUBLING_ACT
    return file3([(11, quantize), (10243, upload), (10240, body)], [(OUT, 16)], MAIN, 16)


def test_k210_conv() -> None:
    """2 x + 3, and nothing for a pixel that is 0."""
    result = run_kmodel(loads_kmodel(conv_file()), np.array([PIXELS], np.float32))
    want = [0 if x == 0 else min(255, 2 * x + 3) for x in PIXELS]
    assert result.output.reshape(-1).tolist() == want and result.layers == 1
    for line in range(4):
        at = (20 + line) * 64
        assert result.memory["kpu"][at : at + 4].tolist() == want[4 * line : 4 * line + 4]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (0, "unknown"),
        (3, "global_max_pool2d"),
        (4, "quantized_global_max_pool2d"),
        (6, "quantized_global_average_pool2d"),
        (7, "max_pool2d"),
        (10, "quantized_average_pool2d"),
        (19, "quantized_fully_connected"),
        (21, "quantized_tensorflow_flatten"),
        (26, "unknown"),
        (10244, "unknown"),
    ],
)
def test_types_without_code_in_the_driver(kind: int, name: str) -> None:
    """The enumeration names them; no published driver runs them and no compiler writes them."""
    with pytest.raises(KmodelError, match=rf"operation {name} \(type {kind}\) is not supported"):
        loads_kmodel(Case(kind, bytes(60), (1, 2), b"").file())


def test_last_body_without_its_alignment() -> None:
    """The compiler moves on to eight bytes without writing; what the body says must be there."""
    spares = set()
    for name, case in CASES.items():
        data, spare = case.file(), -(4 + len(case.body)) % 8
        spares.add(spare)
        for missing in range(1, spare + 1):
            short = loads_kmodel(data[:-missing], name)
            assert [op.describe() for op in short.operations] == [
                op.describe() for op in loads_kmodel(data).operations
            ]
        with pytest.raises(KmodelError):
            loads_kmodel(data[: len(data) - spare - 1], name)
    assert spares == {0, 4}
    data = conv_file()
    assert len(loads_kmodel(data).kpu_layers) == 1
    with pytest.raises(KmodelError, match="activation table takes 144 bytes"):
        loads_kmodel(data[:-1])


def test_other_bodies_must_be_whole() -> None:
    """Eight bytes are no alignment, and a layer before the last must be there."""
    data = CASES["requantize"].file()
    with pytest.raises(KmodelError, match=r"body of layer 2 \(requantize, type 13\)"):
        loads_kmodel(data[:-256])
    with pytest.raises(KmodelError, match=r"body of layer 1 \(quantize, type 11\)"):
        loads_kmodel(data[: -(4 + 12 + 256) - 4])


def samples() -> list[bytes]:
    """Every file of these tests, for the fuzz test."""
    return [*(case.file() for case in CASES.values()), conv_file()]
