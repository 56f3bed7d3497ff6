# SPDX-License-Identifier: Apache-2.0
"""Every CPU operation of v3 through a container, against plain loops and formulas."""

from __future__ import annotations

import numpy as np
import pytest

from models.tests.kmodel.operation_data import (
    BIAS,
    M2,
    RNG,
    TABLE,
    F,
    S,
    close,
    pool_loop,
    shift_away,
)
from openkpu.kmodel import loads_kmodel, run_kmodel
from openkpu.kmodel.build import build_v3


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
