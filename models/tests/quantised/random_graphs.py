# SPDX-License-Identifier: Apache-2.0
"""Random small quantised graphs, written alike in each format (``models/openkpu/writers``)."""

from __future__ import annotations

import numpy as np

from openkpu.writers import Pair, Quant, Value, Weights, Writer, window_shape
from openkpu.writers.onnx_model import OnnxModel
from openkpu.writers.tflite_model import TfliteModel

MOST_VALUES = 3000  # of one tensor
FUNCTIONS = ("leaky_relu", "logistic", "tanh", "hard_swish", "relu", "relu6", "requantise")


class RandomGraph:
    """One graph; ``make`` gives the file. The same seed gives the same network in each format."""

    def __init__(self, seed: int, m: Writer, dtype: type) -> None:
        self.rng, self.m = np.random.default_rng(seed), m
        self.zero = 0 if np.dtype(dtype) == np.int8 else 128
        self.maps: list[Value] = []
        self.steps = {
            "conv": self.conv,
            "depthwise": self.depthwise,
            "pool": self.pool,
            "binary": self.binary,
            "function": self.function,
            "concat": self.concat,
            "slice": self.slice,
            "split": self.split,
            "pad": self.pad,
        }

    def quant(self, scale: float) -> Quant:
        """About that scale; any zero point, more often one of the middle."""
        zero = int(np.clip(self.rng.normal(0, 40), -128, 127))
        zero = int(self.rng.choice([zero, -128, 0]))
        return Quant(float(np.float32(scale * self.rng.uniform(0.6, 1.6))), zero + self.zero)

    def one(self) -> Value:
        """A map that is there; the last ones rather."""
        at = len(self.maps) - 1 - int(self.rng.geometric(0.5) - 1) % len(self.maps)
        return self.maps[at]

    def weights(self, *shape: int) -> tuple[Weights, float]:
        """Weights, and about how large the sum's steps get: for the output's scale."""
        rng = self.rng
        bias = rng.integers(-4000, 4000, shape[0]).astype(np.int32)
        grow = 74 * 73 * float(np.sqrt(np.prod(shape[1:]))) / 50
        if self.zero:
            data = rng.integers(0, 256, shape).astype(np.uint8)
            return Weights(data, 0.01, bias, int(rng.integers(100, 156))), 0.01 * grow
        data = rng.integers(-127, 128, shape).astype(np.int8)
        scale = rng.uniform(0.005, 0.015, shape[0]).astype(np.float32).astype(np.float64)
        if rng.random() < 0.3:
            return Weights(data, float(scale[0]), bias), float(scale[0]) * grow
        return Weights(data, scale, bias), 0.01 * grow

    def pair(self, low: int, high: int) -> Pair:
        """Two numbers from ``low`` to below ``high``."""
        first, second = self.rng.integers(low, high, 2)
        return int(first), int(second)

    def windows(self, x: Value) -> dict:
        """Stride and padding of a window; None of those may leave nothing."""
        rng = self.rng
        stride = int(rng.choice([1, 1, 1, 2, 2, 3]))
        pads = ["same", "valid", tuple(int(n) for n in rng.integers(0, 2, 4))][rng.integers(3)]
        return {"stride": (stride, stride), "pads": pads}

    def conv(self) -> Value | None:
        x, rng = self.one(), self.rng
        kernel = (1, 1) if rng.random() < 0.4 else self.pair(1, 6)
        kernel = (3, 3) if rng.random() < 0.4 else kernel
        where = self.windows(x)
        if min(window_shape((x.shape[2], x.shape[3]), kernel, **where)) < 1:
            return None
        weights, grow = self.weights(int(rng.integers(1, 25)), x.shape[1], *kernel)
        act = [None, "relu", "relu6"][rng.integers(3)]
        return self.m.conv(x, weights, self.quant(x.quant.scale * grow), act=act, **where)

    def depthwise(self) -> Value | None:
        x = self.one()
        where = self.windows(x)
        size = x.shape[2], x.shape[3]
        if x.shape[1] == 1 or min(window_shape(size, (3, 3), **where)) < 1:
            return None
        weights, grow = self.weights(x.shape[1], 1, 3, 3)
        out = self.quant(x.quant.scale * grow)
        return self.m.conv(x, weights, out, groups=x.shape[1], **where)

    def pool(self) -> Value | None:
        x, rng = self.one(), self.rng
        kernel = self.pair(1, 4)
        stride = self.pair(1, 3)
        pads = str(rng.choice(["same", "valid"]))
        if min(window_shape((x.shape[2], x.shape[3]), kernel, stride, pads)) < 1:
            return None
        return self.m.pool(str(rng.choice(["max", "average"])), x, kernel, stride, pads)

    def binary(self) -> Value | None:
        a, rng = self.one(), self.rng
        b = next((v for v in self.maps if v.shape == a.shape and v is not a), a)
        kind = str(rng.choice(["add", "add", "sub", "mul"]))
        scale = max(a.quant.scale, b.quant.scale)
        scale = a.quant.scale * b.quant.scale * 40 if kind == "mul" else scale
        return self.m.binary(kind, a, b, self.quant(scale), [None, "relu"][rng.integers(2)])

    def function(self) -> Value | None:
        x, kind = self.one(), str(self.rng.choice(FUNCTIONS))
        low = self.zero - 128
        out = self.quant(x.quant.scale)
        if kind == "logistic":
            out = Quant(1 / 256, low)
        if kind == "tanh":
            out = Quant(1 / 128, self.zero)
        if kind in ("relu", "relu6"):
            out = x.quant
        return self.m.unary(kind, x, out, 0.1)

    def concat(self) -> Value | None:
        a = self.one()
        others = [v for v in self.maps if v.shape[2:] == a.shape[2:]]
        b = others[int(self.rng.integers(len(others)))]
        if b.quant != a.quant:
            b = self.m.unary("requantise", b, a.quant)
        return self.m.concat([a, b], a.quant)

    def slice(self) -> Value | None:
        x, rng = self.one(), self.rng
        begin = [0, *(int(rng.integers(0, (n + 1) // 2)) for n in x.shape[1:])]
        size = [1, *(int(rng.integers(1, n - b + 1)) for n, b in zip(x.shape[1:], begin[1:]))]  # noqa: B905
        return self.m.slice(x, begin, size)

    def split(self) -> Value | None:
        x = self.one()
        if x.shape[1] % 2:
            return None
        first, second = self.m.split(x, 2)
        self.maps.append(first)
        return second

    def pad(self) -> Value | None:
        top, left, bottom, right = (int(n) for n in self.rng.integers(0, 3, 4))
        return self.m.pad(self.one(), (top, left, bottom, right))

    def make(self) -> bytes:
        """The file: three to seven steps; sometimes mean, product and softmax behind them."""
        rng = self.rng
        shape = (1, *(int(n) for n in rng.integers([1, 4, 4], [13, 15, 15])))
        self.maps.append(self.m.input(shape, self.quant(0.05)))
        wanted = int(rng.integers(4, 9))
        for _ in range(40):
            kind = str(rng.choice([*self.steps, "conv", "conv", "depthwise"]))
            made = self.steps[kind]()
            if made is None:
                continue
            self.maps.append(made)
            if len(self.maps) >= wanted or np.prod(made.shape) > MOST_VALUES:
                break
        y = self.maps[-1]
        if rng.random() < 0.5:
            other = self.quant(y.quant.scale * 0.6) if rng.random() < 0.4 else y.quant
            mean = self.m.mean(y, other, keep=False)
            weights, grow = self.weights(int(rng.integers(2, 20)), y.shape[1])
            y = self.m.fully(mean, weights, self.quant(mean.quant.scale * grow))
            if rng.random() < 0.5:
                y = self.m.softmax(y)
        return self.m.finish([y])


def random_graph(seed: int, kind: str, dtype: type = np.int8) -> bytes:
    """A random model in "tflite", "qdq" or "qoperator"."""
    m: Writer = TfliteModel(dtype) if kind == "tflite" else OnnxModel(kind, dtype, opset=14)
    return RandomGraph(seed, m, dtype).make()
