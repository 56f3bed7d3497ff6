# SPDX-License-Identifier: Apache-2.0
"""Models of one of the rarer operators, as ``single_operators`` has the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from models.tests.readers.single_operators import FORMATS, SHAPE, conv, weights
from openkpu.writers import Quant, Value, Weights, Writer, rarer
from openkpu.writers.onnx_model import OnnxModel
from openkpu.writers.rarer import Model
from openkpu.writers.tflite_model import TfliteModel

Make = Callable[[Model, Value, np.random.Generator, int], list[Value]]
ONNX = FORMATS[1:]


def slopes(low: float, high: float) -> Make:
    """Slopes from ``low`` to ``high``."""

    def make(m: Model, x: Value, rng: np.random.Generator, zero: int) -> list[Value]:
        return [rarer.write_prelu(m, x, rng.uniform(low, high, 8), Quant(0.0437, zero + 5))]

    return make


def transposed(*shape: int, one_scale: bool = False, **how: object) -> Make:
    """A transposed convolution with weights of that shape."""

    def make(m: Model, x: Value, rng: np.random.Generator, zero: int) -> list[Value]:
        w = weights(rng, zero, *shape)
        if one_scale and not zero:
            w = Weights(w.data, 0.02 / float(np.sqrt(np.prod(shape[1:]))), w.bias)
        return [rarer.transposed(m, x, w, Quant(0.05, zero - 7), **how)]  # pyright: ignore

    return make


def product(a: Sequence[int], b: Sequence[int], turned: bool = False) -> Make:
    """A product of two further inputs."""

    def make(m: Model, x: Value, rng: np.random.Generator, zero: int) -> list[Value]:
        one = rarer.matrix(m, a, Quant(0.04, zero - 5))
        two = rarer.matrix(m, b, Quant(0.03, zero + 9))
        y = rarer.write_product(m, one, two, Quant(0.15 * float(np.sqrt(a[-1] / 8)), zero), turned)
        return [y, m.pool("max", x, (2, 2), (2, 2))]

    return make


def behind(make: Make) -> Make:
    """The same with a convolution behind it."""

    def both(m: Model, x: Value, rng: np.random.Generator, zero: int) -> list[Value]:
        (y,) = make(m, x, rng, zero)
        return conv(4, y.shape[1], 3, 3)(m, y, rng, zero)  # pyright: ignore

    return both


def resized(*size: int, how: str = "asymmetric") -> Make:
    def make(m: Model, x: Value, rng: np.random.Generator, zero: int) -> list[Value]:
        return [rarer.resized(m, _point(m, x, rng, zero), (size[0], size[1]), how)]

    return make


def _point(m: Model, x: Value, rng: np.random.Generator, zero: int) -> Value:
    """A convolution, for moves alone are nothing for the device."""
    return conv(8, 8, 1, 1)(m, x, rng, zero)[0]  # pyright: ignore


def blocks(apart: bool, mode: str = "DCR") -> Make:
    def make(m: Model, x: Value, rng: np.random.Generator, zero: int) -> list[Value]:
        y = _point(m, x, rng, zero)
        y = m.slice(y, (0, 0, 0, 0), (1, 8, 10, 6)) if apart else y
        return [rarer.blocks(m, y, 2, apart, mode)]

    return make


# name: the model, and the formats that have it
CASES: dict[str, tuple[Make, tuple[str, ...]]] = {
    "prelu": (slopes(0, 1), FORMATS),
    "prelu-below": (slopes(-1, 1.5), FORMATS),
    "transposed-2x2": (transposed(6, 8, 2, 2, stride=(2, 2)), FORMATS),
    "transposed-3x3-same": (*(transposed(6, 8, 3, 3, stride=(2, 2), pads=(0, 0, 1, 1)), FORMATS),),
    "transposed-3x3": (transposed(6, 8, 3, 3, stride=(2, 2), pads=(1, 1, 1, 1)), ONNX),
    "transposed-rest": (
        *(transposed(6, 8, 3, 3, stride=(2, 2), pads=(1, 1, 1, 1), rest=(1, 1)), ONNX),
    ),
    "transposed-relu": (
        *(transposed(6, 8, 4, 4, stride=(2, 2), pads=(1, 1, 1, 1), act="relu"), ONNX),
    ),
    "transposed-groups": (
        *(transposed(8, 4, 2, 3, stride=(2, 1), groups=2, one_scale=True), ONNX),
    ),
    "transposed-dilated": (transposed(4, 8, 2, 2, stride=(2, 2), dilation=(2, 3)), ONNX),
    "transposed-behind": (behind(transposed(6, 8, 2, 2, stride=(2, 2))), FORMATS),
    "resize": (resized(20, 14), FORMATS),
    "resize-behind": (behind(resized(20, 14)), FORMATS),
    "resize-half": (resized(23, 11, how="half_pixel"), FORMATS),
    "resize-corners": (resized(19, 13, how="align_corners"), FORMATS),
    "resize-less": (resized(7, 5), FORMATS),
    "depth-to-space": (blocks(apart=False), FORMATS),
    "depth-to-space-crd": (blocks(apart=False, mode="CRD"), ONNX),
    "space-to-depth": (blocks(apart=True), FORMATS),
    "product": (product((9, 8), (8, 5)), FORMATS),
    "product-turned": (product((9, 8), (5, 8), turned=True), FORMATS),
    "product-heads": (product((1, 3, 9, 8), (1, 3, 8, 5)), FORMATS),
    "product-heads-turned": (product((1, 4, 9, 8), (1, 4, 9, 8), turned=True), FORMATS),
    "depthwise5x5": (conv(8, 1, 5, 5, groups=8), FORMATS),  # pyright: ignore
    "depthwise5x5-stride2": (
        *(conv(8, 1, 5, 5, groups=8, stride=(2, 2)), FORMATS),  # pyright: ignore
    ),
    "depthwise1x5": (conv(8, 1, 1, 5, groups=8), FORMATS),  # pyright: ignore
    "depthwise5x1": (conv(8, 1, 5, 1, groups=8), FORMATS),  # pyright: ignore
    "depthwise-dilated": (
        *(conv(8, 1, 3, 3, groups=8, dilation=(2, 2)), FORMATS),  # pyright: ignore
    ),
    "grouped-2": (conv(6, 4, 3, 3, groups=2), ONNX),  # pyright: ignore
    "grouped-4": (conv(12, 2, 3, 3, groups=4), ONNX),  # pyright: ignore
}
EVERY = [f"{case}-{form}" for case, (_, forms) in CASES.items() for form in forms]


def build(case: str, kind: str, dtype: type = np.int8, seed: int = 1) -> bytes:
    """The model file of a case in one of its formats."""
    zero = 0 if np.dtype(dtype) == np.int8 else 128
    m: Writer = TfliteModel(dtype) if kind == "tflite" else OnnxModel(kind, dtype, opset=16)
    assert isinstance(m, TfliteModel | OnnxModel)
    x = m.input(SHAPE, Quant(0.05, zero + 3))
    return m.finish(CASES[case][0](m, x, np.random.default_rng(seed), zero))
