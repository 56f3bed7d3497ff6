# SPDX-License-Identifier: Apache-2.0
"""Models of one operator, written alike as TFLite and as ONNX, for tests of readers and lowerings.

Each entry of ``CASES`` takes a writer, an input value (1, 8, 10, 7), a random generator and the
activations' zero step (0, or 128 for uint8), and returns the outputs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from openkpu.writers import Quant, Value, Weights, Writer
from openkpu.writers.onnx_model import OnnxModel
from openkpu.writers.tflite_model import TfliteModel

SHAPE = (1, 8, 10, 7)
FORMATS = ("tflite", "qdq", "qoperator")
Make = Callable[[Writer, Value, np.random.Generator, int], list[Value]]


def weights(rng: np.random.Generator, zero: int, *shape: int, bias: bool = True) -> Weights:
    """Random weights: int8 with a scale per channel, or uint8 with one and a zero point."""
    offsets = rng.integers(-3000, 3000, shape[0]).astype(np.int32) if bias else None
    fan_in = float(np.sqrt(np.prod(shape[1:])))
    if zero:
        data = rng.integers(0, 256, shape).astype(np.uint8)
        return Weights(data, 0.03 / fan_in, offsets, 120)
    data = rng.integers(-127, 128, shape).astype(np.int8)
    return Weights(data, rng.uniform(0.01, 0.03, shape[0]) / fan_in, offsets)


def conv(*shape: int, bias: bool = True, **options: object) -> Make:
    """A convolution with weights of that shape."""

    def make(m: Writer, x: Value, rng: np.random.Generator, zero: int) -> list[Value]:
        out = Quant(0.06, zero - 7)
        return [m.conv(x, weights(rng, zero, *shape, bias=bias), out, **options)]  # pyright: ignore

    return make


def binary(kind: str, act: str | None = None, same: bool = False) -> Make:
    """An element-wise operator of two different maps."""

    def make(m: Writer, x: Value, rng: np.random.Generator, zero: int) -> list[Value]:
        del rng
        own = x.quant if same else Quant(0.031, zero + 11)
        other = m.input(SHAPE, own)
        return [m.binary(kind, x, other, x.quant if same else Quant(0.09, zero - 5), act)]

    return make


def unary(kind: str, scale: float, zero: int, alpha: float = 0.0) -> Make:
    """A function of one value; the result's zero point counts from int8's."""

    def make(m: Writer, x: Value, rng: np.random.Generator, base: int) -> list[Value]:
        del rng
        return [m.unary(kind, x, Quant(scale, zero + base), alpha)]

    return make


def with_constant(m: Writer, x: Value, rng: np.random.Generator, zero: int) -> list[Value]:
    """A product with a constant for each channel."""
    assert isinstance(m, OnnxModel | TfliteModel)
    data = rng.integers(zero - 100, zero + 100, (1, 8, 1, 1))
    return [m.binary("mul", x, m.constant(data, Quant(0.02, zero)), Quant(0.05, zero))]


def fully(m: Writer, x: Value, rng: np.random.Generator, zero: int) -> list[Value]:
    """Mean over the map, then a fully connected layer."""
    mean = m.mean(x, Quant(0.02, zero), keep=False)
    return [m.fully(mean, weights(rng, zero, 40, 8), Quant(0.03, zero + 4), "relu")]


def plain_product(m: Writer, x: Value, rng: np.random.Generator, zero: int) -> list[Value]:
    """A fully connected layer without bias."""
    mean = m.mean(x, Quant(0.02, zero), keep=False)
    return [m.fully(mean, weights(rng, zero, 20, 8, bias=False), Quant(0.03, zero + 4))]


CASES: dict[str, Make] = {
    "conv1x1": conv(12, 8, 1, 1),
    "conv1x1-stride2": conv(12, 8, 1, 1, stride=(2, 2)),
    "conv3x3": conv(5, 8, 3, 3),
    "conv3x3-relu": conv(5, 8, 3, 3, act="relu"),
    "conv3x3-relu6": conv(5, 8, 3, 3, act="relu6"),
    "conv3x3-nobias": conv(5, 8, 3, 3, bias=False),
    "conv3x3-valid": conv(5, 8, 3, 3, pads="valid"),
    "conv3x3-stride2": conv(5, 8, 3, 3, stride=(2, 2), pads="same"),
    "conv3x3-stride2-symmetric": conv(5, 8, 3, 3, stride=(2, 2), pads=(1, 1, 1, 1)),
    "conv3x3-pads": conv(5, 8, 3, 3, pads=(2, 0, 1, 3)),
    "conv3x3-stride-2-1": conv(5, 8, 3, 3, stride=(2, 1)),
    "conv3x3-dilated": conv(5, 8, 3, 3, dilation=(2, 2)),
    "conv5x5": conv(5, 8, 5, 5),
    "conv7x3-stride3": conv(5, 8, 7, 3, stride=(3, 3)),
    "conv10x4-stride2": conv(6, 8, 10, 4, stride=(2, 2)),
    "conv1x5": conv(5, 8, 1, 5),
    "conv3x1": conv(5, 8, 3, 1),
    "grouped": conv(8, 4, 3, 3, groups=2),
    "depthwise3x3": conv(8, 1, 3, 3, groups=8),
    "depthwise3x3-stride2": conv(8, 1, 3, 3, groups=8, stride=(2, 2)),
    "depthwise5x5": conv(8, 1, 5, 5, groups=8),
    "depthwise-multiplier": conv(16, 1, 3, 3, groups=8),
    "fully": fully,
    "fully-nobias": plain_product,
    "average-2x2": lambda m, x, rng, zero: [m.pool("average", x, (2, 2), (2, 2))],
    "average-3x3-same": lambda m, x, rng, zero: [m.pool("average", x, (3, 3), (2, 2), "same")],
    "max-2x2": lambda m, x, rng, zero: [m.pool("max", x, (2, 2), (2, 2))],
    "max-3x3-same": lambda m, x, rng, zero: [m.pool("max", x, (3, 3), (2, 2), "same")],
    "mean": lambda m, x, rng, zero: [m.mean(x, Quant(0.02, zero + 3))],
    "add": binary("add"),
    "add-relu": binary("add", "relu"),
    "sub": binary("sub"),
    "mul": binary("mul"),
    "max": binary("max", same=True),
    "min": binary("min", same=True),
    "mul-constant": with_constant,
    "concat": lambda m, x, rng, zero: [m.concat([x, x], x.quant)],
    "split": lambda m, x, rng, zero: m.split(x, 2),
    "slice": lambda m, x, rng, zero: [m.slice(x, (0, 2, 1, 0), (1, 4, 5, 7))],
    "pad": lambda m, x, rng, zero: [m.pad(x, (1, 2, 3, 0))],
    "resize": lambda m, x, rng, zero: [m.resize(x, 2)],
    "leaky-relu": unary("leaky_relu", 0.05, 0, 0.1),
    "logistic": unary("logistic", 1 / 256, -128),
    "tanh": unary("tanh", 1 / 128, 0),
    "hard-swish": unary("hard_swish", 0.04, -30),
    "relu": unary("relu", 0.05, 3),
    "requantise": unary("requantise", 0.08, -9),
    "softmax": lambda m, x, rng, zero: [m.softmax(m.mean(x, Quant(0.02, zero), keep=False))],
    "argmax": lambda m, x, rng, zero: [m.argmax(x)],
    "reshape": lambda m, x, rng, zero: [m.reshape(m.mean(x, x.quant), (1, 8))],
}


def build(case: str, kind: str, dtype: type = np.int8, seed: int = 1, **options: object) -> bytes:
    """The model file of a case in one of FORMATS; options are those of ``OnnxModel``."""
    zero = 0 if np.dtype(dtype) == np.int8 else 128
    if kind == "tflite":
        m: Writer = TfliteModel(dtype)
    else:
        m = OnnxModel(kind, dtype, **{"opset": 14, **options})  # pyright: ignore
    x = m.input(SHAPE, Quant(0.05, zero + 3))
    return m.finish(CASES[case](m, x, np.random.default_rng(seed), zero))
