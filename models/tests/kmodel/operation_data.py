# SPDX-License-Identifier: Apache-2.0
"""Tensors for tests of a K210 model's CPU operations, and plain loops as second opinions."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import numpy as np

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
