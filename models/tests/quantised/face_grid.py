# SPDX-License-Identifier: Apache-2.0
"""A float TFLite detector of BlazeFace's structure with random weights of float16: a 5x5 kernel of
stride 2, residual blocks whose shortcuts are pooled and padded with channels, two heads that
reshapes and concatenations join: offsets, sizes and six keypoints of 2 and 6 anchors a cell."""

from __future__ import annotations

import math

import numpy as np

from models.tests.quantised.test_float_tflite import floating
from openkpu.writers import Quant, Value, Weights
from openkpu.writers.tflite_model import TfliteModel

Q = Quant(0.05, 3)
NUMBERS = 16  # of an anchor: offset, size, six points
CHANNELS = (8, 8, 10, 12, 15, 18)  # of the maps: some fill rows of the AI RAM, some do not


class Faces:
    """The model in the making."""

    def __init__(self, seed: int) -> None:
        self.m, self.rng = TfliteModel(np.int8), np.random.default_rng(seed)

    def conv(
        self, x: Value, o: int, k: int, stride: int = 1, spread: float = 0.9, depth: bool = False
    ) -> Value:
        inner = 1 if depth else x.shape[1]
        scale = spread / math.sqrt(inner * k * k) / 74
        data = self.rng.integers(-127, 128, (o, inner, k, k)).astype(np.int8)
        bias = self.rng.normal(0, 0.2 * spread / Q.scale / scale, o).astype(np.int32)
        groups = x.shape[1] if depth else 1
        act = "relu" if k == 5 else None
        weights = Weights(data, scale, bias)
        return self.m.conv(x, weights, Q, (stride, stride), "same", groups=groups, act=act)

    def block(self, x: Value, o: int, stride: int = 1) -> Value:
        y = self.conv(self.conv(x, x.shape[1], 3, stride, depth=True), o, 1)
        if stride > 1:
            x = self.m.pool("max", x, (2, 2), (2, 2))
        if o > x.shape[1]:
            wide = self.m.value((1, o, *x.shape[2:]), Q)
            words = self.m.integers([[0, 0], [0, 0], [0, 0], [0, o - x.shape[1]]])
            self.m.op("PAD", [x, words], [wide], "PadOptions")
            x = wide
        return self.m.binary("add", x, y, Q, "relu")

    def heads(self, maps: list[tuple[Value, int]]) -> list[Value]:
        ends: list[list[Value]] = [[], []]
        for x, anchors in maps:
            for kind, (numbers, spread) in enumerate(((NUMBERS, 6.0), (1, 3.0))):
                y = self.conv(x, anchors * numbers, 1, spread=spread)
                count = anchors * math.prod(x.shape[2:])
                ends[kind].append(self.m.reshape(y, (1, count, numbers)))
        return [self.m.concat(parts, Q) for parts in ends]


def face_grid(size: int, seed: int = 1) -> bytes:
    """The file, for pictures of ``size`` x ``size`` pixels of -1 to 1."""
    f = Faces(seed)
    x = f.conv(f.m.input((1, 3, size, size), Q), CHANNELS[0], 5, 2)
    x = f.block(f.block(x, CHANNELS[1]), CHANNELS[2])
    x = f.block(x, CHANNELS[3], 2)
    x = fine = f.block(x, CHANNELS[4], 2)
    coarse = f.block(x, CHANNELS[5], 2)
    outputs = f.heads([(fine, 2), (coarse, 6)])
    return floating(f.m, "float16").finish(outputs)
