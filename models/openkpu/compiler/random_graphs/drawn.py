# SPDX-License-Identifier: Apache-2.0
"""Random graphs of the intermediate form over all nodes, for tests and campaigns.

``draw`` makes one of a ``Chooser`` (``choices``): ``Numbers`` chooses by a numpy generator, and
tests have one of hypothesis, so that a failure shrinks.  Kernels, strides, pads, dilation, groups,
sizes, scales, zero points at both ends, branches and joins are drawn freely; what the graph's own
rules forbid (``check``) is never made.  Scales are such that outputs spread over their bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div
from openkpu.compiler.form import functions
from openkpu.compiler.form.check import check_graph
from openkpu.compiler.form.graph import (
    RANGE,
    Conv,
    Dense,
    Elementwise,
    Graph,
    Host,
    Move,
    Node,
    Pool,
    Table,
    Tensor,
    window_size,
)
from openkpu.compiler.form.rarer import Deconv, Prelu, Product
from openkpu.compiler.random_graphs.choices import Chooser, GraphSizes

DEVIATION = 74  # of a random byte
SPREAD = 50  # steps that an output deviates, about
PLAIN: dict[str, Any] = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilation": (1, 1)}


def draw(choose: Chooser, sizes: GraphSizes | None = None, name: str = "drawn") -> Graph:
    """A graph that ``check`` lets pass."""
    return Drawing(choose, sizes or GraphSizes(), name).make()


class Drawing:
    """A graph in the making."""

    def __init__(self, choose: Chooser, sizes: GraphSizes, name: str) -> None:
        self.choose, self.sizes = choose, sizes
        self.graph = Graph(name)
        self.dtype = choose.of(("int8", "int8", "uint8"))
        # scales of powers of two make sums of exactly half a step, which others hardly do
        self.plain = choose.of((False, False, True))
        self.rng = np.random.default_rng(choose.number(0, (1 << 32) - 1))  # of data, not of shape
        self.maps: list[Tensor] = []
        self.steps: list[Callable[[], Tensor | None]] = [
            *(self.conv, self.conv, self.conv, self.pointwise, self.depthwise, self.depthwise),
            *(self.grouped, self.deconv, self.pool, self.whole, self.both, self.both),
            *(self.constant, self.table, self.prelu, self.concat, self.slice, self.pad),
            *(self.resize, self.blocks, self.turn, self.softmax, self.excite),
        ]

    # ----------------------------------------------------------------------- tensors
    def tensor(self, shape: Sequence[int], scale: float, zero: int | None = None) -> Tensor:
        """A new tensor; zero points are anywhere, but at the ends and in the middle rather."""
        low, high = RANGE[self.dtype]
        if zero is None:
            some = (low, low, high, high - 1, low + 1, (low + high + 1) // 2)
            zero = self.choose.of((*some, self.choose.number(low, high)))
        name = f"t{len(self.graph.tensors)}"
        made = Tensor(name, self.dtype, tuple(shape), self.rounded(scale), zero)
        return self.graph.add_tensor(made)

    def rounded(self, scale: float) -> float:
        """A scale as models have it: a float32, in some graphs a power of two."""
        return 2.0 ** round(math.log2(scale)) if self.plain else float(np.float32(scale))

    def like(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """A tensor with the numbers of another."""
        return self.tensor(shape, x.step, x.zero)

    def node(self, kind: type[Node], inputs: Sequence[Tensor], y: Tensor, **how: Any) -> Tensor:
        """Append a node; its output."""
        names, label = tuple(t.name for t in inputs), f"n{len(self.graph.nodes)}"
        self.graph.nodes.append(kind(label, kind.__name__, names, (y.name,), **how))
        return y

    def one(self) -> Tensor:
        """A map that is there; the last ones rather."""
        back = self.choose.of((0, 0, 0, 1, 1, 2, 3))
        return self.maps[-1 - back % len(self.maps)]

    def scale(self) -> float:
        return float(self.rng.uniform(0.02, 0.06))

    def clamp(self, y: Tensor) -> tuple[int, int]:
        """Of the output: none, a ReLU, or any."""
        low, high = y.limits
        kind = self.choose.of(("none", "none", "relu", "any"))
        if kind == "relu":
            return y.zero, high
        if kind == "any":
            first = self.choose.number(low, high - 1)
            return first, self.choose.number(first, high)
        return low, high

    # ------------------------------------------------------------------ convolutions
    def weights(self, x: Tensor, shape: Sequence[int], fan_in: int) -> tuple[dict[str, Any], float]:
        """Weights, scales and biases of a node, and the scale of its output."""
        rng, o = self.rng, shape[0]
        zero = 0
        if self.dtype == "uint8":
            data, zero = rng.integers(0, 256, shape), self.choose.number(90, 165)
        else:
            data = rng.integers(-127, 128, shape)
        if self.choose.number(0, 7) == 0:  # at the ends, and nothing
            data = rng.choice([int(data.min()), int(data.max()), zero], shape)
        spread = self.choose.of((0.0, 0.3, 1.5))
        scale = 0.01 * np.exp(rng.uniform(-spread, spread, o))
        out = x.step * 0.01 * DEVIATION**2 * math.sqrt(max(fan_in, 1)) / SPREAD
        how = {
            "weights": data.astype(np.int64),
            "w_scale": np.array([self.rounded(float(s)) for s in scale]),
            "w_zero": np.full(o, zero, np.int64),
            "bias": rng.integers(-4000, 4001, o),
        }
        return how, out * float(rng.uniform(0.6, 1.6))

    def window(self, x: Tensor, kernel: tuple[int, int], strides: bool = True) -> dict[str, Any]:
        """Strides, pads and dilation; TensorFlow's SAME, none, or any."""
        choose = self.choose
        stride = choose.of(((1, 1), (1, 1), (2, 2), (2, 2), (1, 2), (3, 3), (4, 2)))
        stride = stride if strides else (1, 1)
        dilation = choose.of(((1, 1), (1, 1), (1, 1), (2, 2), (1, 3), (3, 2)))
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        how = choose.of(("same", "same", "valid", "any"))
        pads = [0, 0, 0, 0]
        for i, (n, s, k) in enumerate(zip(x.size, stride, spans, strict=True)):
            if how == "same":
                total = max((ceil_div(n, s) - 1) * s + k - n, 0)
                pads[i], pads[i + 2] = total // 2, total - total // 2
            elif how == "any":
                pads[i], pads[i + 2] = choose.number(0, k // 2), choose.number(0, k // 2 + 1)
        return {"strides": stride, "pads": tuple(pads), "dilation": dilation}

    def convolution(
        self, x: Tensor, o: int, kernel: tuple[int, int], groups: int, **how: Any
    ) -> Tensor | None:
        """A convolution, if it leaves something."""
        size = window_size(x.size, kernel, how["strides"], how["pads"], how["dilation"])
        if min(size) < 1 or o * math.prod(size) > self.sizes.elements:
            return None
        inner = x.shape[1] // groups
        data, scale = self.weights(x, (o, inner, *kernel), inner * math.prod(kernel))
        y = self.tensor((1, o, *size), scale)
        return self.node(Conv, [x], y, **data, clamp=self.clamp(y), groups=groups, **how)

    def kernel(self) -> tuple[int, int]:
        """3x3 rather, up to the largest; narrow ones as well."""
        most, number = self.sizes.kernel, self.choose.number
        wide = number(1, most), number(1, most)
        return self.choose.of(
            ((3, 3), (3, 3), wide, (1, wide[1]), (wide[0], 1), (wide[0], wide[0]))
        )

    def conv(self) -> Tensor | None:
        x, kernel = self.one(), self.kernel()
        o = self.choose.number(1, self.sizes.channels)
        return self.convolution(x, o, kernel, 1, **self.window(x, kernel))

    def pointwise(self) -> Tensor | None:
        x, o = self.one(), self.choose.number(1, self.sizes.channels)
        strides = self.choose.of(((1, 1), (1, 1), (2, 2), (2, 1)))
        how = {"strides": strides, "pads": (0, 0, 0, 0), "dilation": (1, 1)}
        return self.convolution(x, o, (1, 1), 1, **how)

    def depthwise(self) -> Tensor | None:
        """Depthwise, now and then with several outputs of each channel."""
        x, kernel = self.one(), self.kernel()
        c, times = x.shape[1], self.choose.of((1, 1, 1, 2))
        return self.convolution(x, c * times, kernel, c, **self.window(x, kernel))

    def grouped(self) -> Tensor | None:
        """Any number of groups."""
        x, kernel = self.one(), self.kernel()
        groups = self.choose.of([n for n in range(1, x.shape[1] + 1) if x.shape[1] % n == 0])
        o = groups * self.choose.number(1, max(1, self.sizes.channels // groups))
        return self.convolution(x, o, kernel, groups, **self.window(x, kernel))

    def deconv(self) -> Tensor | None:
        """Transposed convolutions."""
        x, number = self.one(), self.choose.number
        kernel = self.choose.of(((2, 2), (3, 3), (4, 4), (number(1, 4), number(1, 4))))
        strides = self.choose.of(((2, 2), (2, 2), (1, 1), (2, 1), (3, 2)))
        groups = self.choose.of((1, 1, x.shape[1]))
        o = groups * self.choose.of((1, 1, 2)) if groups > 1 else number(1, self.sizes.channels)
        pads, size = [], []
        for n, s, k in zip(x.size, strides, kernel, strict=True):
            top, bottom = number(0, k - 1), number(0, k - 1) - number(0, s - 1)
            pads.append(top)
            size.append((n - 1) * s + k - top - bottom)
        if min(size) < 1 or o * math.prod(size) > self.sizes.elements:
            return None
        inner = x.shape[1] // groups
        fan_in = inner * math.ceil(math.prod(kernel) / math.prod(strides))
        data, scale = self.weights(x, (o, inner, *kernel), fan_in)
        y = self.tensor((1, o, *size), scale)
        how = {"strides": strides, "pads": (pads[0], pads[1]), "groups": groups}
        return self.node(Deconv, [x], y, **data, clamp=self.clamp(y), **how)

    # --------------------------------------------------------------------------- pools
    def pool(self) -> Tensor | None:
        x, number = self.one(), self.choose.number
        kernel, strides = (number(1, 4), number(1, 4)), (number(1, 3), number(1, 3))
        pads = tuple(number(0, (k - 1) // 2) for k in (*kernel, *kernel))
        size = window_size(x.size, kernel, strides, (pads[0], pads[1], pads[2], pads[3]))
        if min(size) < 1:
            return None
        how = self.choose.of(("max", "max", "average"))
        y = self.like(x, (1, x.shape[1], *size))
        counts = how == "average" and self.choose.of((False, True))
        fields = {"strides": strides, "pads": pads, "count_pads": counts, "clamp": y.limits}
        return self.node(Pool, [x], y, how=how, kernel=kernel, **fields)

    def whole(self) -> Tensor | None:
        """An average of all of the map, with a scale of its own or the input's."""
        x = self.one()
        if len(self.maps) < 3:
            return None
        y = self.like(x, (1, x.shape[1], 1, 1))
        if self.choose.of((False, True)):
            y.scale = self.rounded(x.step * 0.5)
        return self.node(Pool, [x], y, how="average", kernel=x.size, clamp=y.limits)

    # -------------------------------------------------------------- element by element
    def both(self) -> Tensor | None:
        """Two maps, where there are two of a shape; of one a table makes the other."""
        a = self.one()
        others = [t for t in self.maps if t.shape == a.shape and t is not a]
        b = self.choose.of(others) if others else None
        if b is None:
            b = self.node(Table, [a], self.tensor(a.shape, self.scale()), table=self.curve(a))
        how = self.choose.of(("add", "add", "sub", "mul", "max", "min"))
        scale = a.step * b.step * 40 if how == "mul" else max(a.step, b.step) * 1.2
        same = how in ("max", "min") and self.choose.of((False, True))
        y = self.like(a, a.shape) if same else self.tensor(a.shape, scale)
        inputs = self.choose.of(([a, b], [b, a]))
        return self.node(Elementwise, inputs, y, how=how, clamp=self.clamp(y))

    def excite(self) -> Tensor | None:
        """Squeeze and excite: a number for each channel, computed from the map, and its product
        with the map; or one channel for all."""
        x = self.one()
        if math.prod(x.size) < 2 or len(self.maps) < 3:
            return None
        mean = self.like(x, (1, x.shape[1], 1, 1))
        self.node(Pool, [x], mean, how="average", kernel=x.size, clamp=mean.limits)
        few = self.convolution(mean, self.choose.number(1, 4), (1, 1), 1, **PLAIN)
        assert few is not None
        gate = self.convolution(few, x.shape[1], (1, 1), 1, **PLAIN)
        if self.choose.of((False, False, True)):
            gate = self.convolution(x, 1, (1, 1), 1, **PLAIN)
        if gate is None:
            return None
        how = self.choose.of(("mul", "mul", "add"))
        scale = x.step * gate.step * 40 if how == "mul" else max(x.step, gate.step) * 1.2
        y = self.tensor(x.shape, scale)
        return self.node(Elementwise, [x, gate], y, how=how, clamp=y.limits)

    def constant(self) -> Tensor | None:
        """With a number, a number for each channel, or a map of constants."""
        x = self.one()
        _, c, h, w = x.shape
        kind = self.choose.of(("number", "channels", "channels", "map"))
        shape = {"number": (1, 1, 1, 1), "channels": (1, c, 1, 1), "map": (1, c, h, w)}[kind]
        most = ("add", "sub", "mul", "max", "min") if kind == "number" else ("add", "sub", "mul")
        how = self.choose.of(most)
        b = self.tensor(shape, self.scale())
        b.data = self.rng.integers(*RANGE[self.dtype], shape, endpoint=True)
        scale = x.step * b.step * 60 if how == "mul" else max(x.step, b.step) * 1.2
        y = self.tensor(x.shape, scale)
        inputs = self.choose.of(([x, b], [b, x])) if how != "sub" else [x, b]
        return self.node(Elementwise, inputs, y, how=how, clamp=y.limits)

    def curve(self, x: Tensor) -> npt.NDArray[np.int64]:
        """A function of one byte, as a table into a tensor like ``x``."""
        kind = self.choose.of(("leaky", "sigmoid", "tanh", "hard-swish", "relu", "other"))
        rules: dict[str, functions.Real] = {
            "leaky": functions.leaky(0.125),
            "sigmoid": lambda r: functions.sigmoid(r) * 4,
            "tanh": lambda r: functions.tanh(r) * 4,
            "hard-swish": functions.hard_swish,
            "relu": functions.between(0, math.inf),
            "other": lambda r: r * 2 / 3,
        }
        return functions.table_of(rules[kind], x, x)

    def table(self) -> Tensor | None:
        x = self.one()
        return self.node(Table, [x], self.like(x, x.shape), table=self.curve(x))

    def prelu(self) -> Tensor | None:
        x = self.one()
        low, high = self.choose.of(((0.0, 1.0), (0.0, 0.3), (-0.5, 1.5)))
        slopes = self.rng.uniform(low, high, x.shape[1]).astype(np.float32).astype(np.float64)
        y = self.tensor(x.shape, x.step * self.choose.of((1.0, 0.7, 1.3)))
        return self.node(Prelu, [x], y, slopes=slopes)

    # --------------------------------------------------------------------------- moves
    def concat(self) -> Tensor | None:
        """Channels of several maps, those of other numbers by a table."""
        a = self.one()
        others = [t for t in self.maps if t.shape[2:] == a.shape[2:]]
        parts = [a]
        for _ in range(self.choose.number(1, 2)):
            b = self.choose.of(others)
            if not b.same_numbers(a):
                table = functions.requantise(b, a)
                b = self.node(Table, [b], self.like(a, b.shape), table=table)
            parts.append(b)
        total = sum(t.shape[1] for t in parts)
        y = self.like(a, (1, total, *a.size))
        if math.prod(y.shape) > self.sizes.elements:
            return None
        return self.node(Move, parts, y, how="concat", axis=1)

    def slice(self) -> Tensor | None:
        x = self.one()
        starts, steps, shape = [0], [1], [1]
        for n in x.shape[1:]:
            step = self.choose.of((1, 1, 1, 2))
            first = self.choose.number(0, (n - 1) // 2)
            steps.append(step)
            starts.append(first)
            shape.append(self.choose.number(1, (n - first + step - 1) // step))
        y = self.like(x, shape)
        return self.node(Move, [x], y, how="slice", starts=tuple(starts), steps=tuple(steps))

    def pad(self) -> Tensor | None:
        """With lines and columns; or with channels, as the shortcut of a block that widens x."""
        x, most = self.one(), self.choose.of(((0, 2, 2), (0, 2, 2), (6, 0, 0)))
        before, after = ((0, *(self.choose.number(0, n) for n in most)) for _ in "ab")
        shape = [b + n + a for b, n, a in zip(before, x.shape, after, strict=True)]
        if math.prod(shape) > self.sizes.elements:
            return None
        y = self.like(x, shape)
        y = self.node(Move, [x], y, how="pad", before=before, after=after, value=x.zero)
        wide = self.convolution(x, y.shape[1], (1, 1), 1, **PLAIN) if most[0] else None
        if wide is None:
            return y
        total = self.tensor(y.shape, max(y.step, wide.step) * 1.2)
        return self.node(Elementwise, [y, wide], total, how="add", clamp=self.clamp(total))

    def resize(self) -> Tensor | None:
        """Nearest upsampling, by a whole factor or to any size."""
        x, places = self.one(), []
        for n in x.size:
            size = self.choose.of((2 * n, 2 * n, n, self.choose.number(1, 2 * n)))
            places.append(tuple(i * n // size for i in range(size)))
        shape = (1, x.shape[1], *map(len, places))
        if math.prod(shape) > self.sizes.elements:
            return None
        every = (0,), tuple(range(x.shape[1]))
        return self.node(Move, [x], self.like(x, shape), how="take", places=(*every, *places))

    def blocks(self) -> Tensor | None:
        """Channels become pixels, or pixels channels."""
        x = self.one()
        _, c, h, w = x.shape
        if self.choose.of((False, True)) and c % 4 == 0:
            first, axes = (c // 4, 2, 2, h, w), (0, 3, 1, 4, 2)
            last = 1, c // 4, 2 * h, 2 * w
        elif h % 2 == 0 and w % 2 == 0:
            first, axes = (c, h // 2, 2, w // 2, 2), (2, 4, 0, 1, 3)
            last = 1, 4 * c, h // 2, w // 2
        else:
            return None
        y = self.node(Move, [x], self.like(x, first), how="reshape")
        turned = self.like(x, [first[a] for a in axes])
        y = self.node(Move, [y], turned, how="transpose", axes=axes)
        return self.node(Move, [y], self.like(x, last), how="reshape")

    def turn(self) -> Tensor | None:
        """Lines become columns."""
        x = self.one()
        axes = 0, 1, 3, 2
        y = self.like(x, [x.shape[a] for a in axes])
        return self.node(Move, [x], y, how="transpose", axes=axes)

    # ----------------------------------------------------------------------- the host
    def softmax(self) -> Tensor | None:
        x = self.one()
        if len(self.maps) < 3:
            return None
        y = self.tensor(x.shape, 1 / 256, RANGE[self.dtype][0])
        return self.node(Host, [x], y, how="softmax", axis=1)

    # ------------------------------------------------------------------------ the ends
    def vector(self, x: Tensor) -> Tensor:
        """A map flattened, and one or two fully connected nodes."""
        count = math.prod(x.shape)
        y = self.node(Move, [x], self.like(x, (1, count)), how="reshape")
        for _ in range(self.choose.number(1, 2)):
            y = self.dense(y, self.choose.number(1, self.sizes.channels))
        return y

    def dense(self, x: Tensor, o: int) -> Tensor:
        k = x.shape[-1]
        data, scale = self.weights(x, (o, k), k)
        y = self.tensor((*x.shape[:-1], o), scale)
        return self.node(Dense, [x], y, **data, clamp=self.clamp(y))

    def attention(self, x: Tensor) -> Tensor:
        """Pixels as the tokens of an attention, a sum around it, a normalisation behind it."""
        _, c, h, w = x.shape
        tokens, heads = h * w, self.choose.of((1, 2, 3))
        each = self.choose.number(1, 6)
        flat = self.node(Move, [x], self.like(x, (1, c, tokens)), how="reshape")
        turned = self.like(x, (1, tokens, c))
        flat = self.node(Move, [flat], turned, how="transpose", axes=(0, 2, 1))

        def part() -> Tensor:
            y = self.dense(flat, heads * each)
            y = self.node(Move, [y], self.like(y, (1, tokens, heads, each)), how="reshape")
            made = self.like(y, (1, heads, tokens, each))
            return self.node(Move, [y], made, how="transpose", axes=(0, 2, 1, 3))

        q, k, v = part(), part(), part()
        scale = q.step * k.step * DEVIATION**2 * math.sqrt(each) / SPREAD
        scores = self.tensor((1, heads, tokens, tokens), scale)
        self.node(Product, [q, k], scores, clamp=scores.limits, turned=True)
        soft = self.tensor(scores.shape, 1 / 256, RANGE[self.dtype][0])
        self.node(Host, [scores], soft, how="softmax", axis=3)
        mixed = self.tensor(v.shape, v.step / 2)
        self.node(Product, [soft, v], mixed, clamp=self.clamp(mixed))
        back = self.like(mixed, (1, tokens, heads, each))
        back = self.node(Move, [mixed], back, how="transpose", axes=(0, 2, 1, 3))
        joined = self.like(mixed, (1, tokens, heads * each))
        y = self.dense(self.node(Move, [back], joined, how="reshape"), c)
        total = self.tensor(y.shape, max(y.step, flat.step))
        y = self.node(Elementwise, [flat, y], total, how="add", clamp=total.limits)
        norm = self.tensor(y.shape, 0.03)
        gain, offset = self.rng.uniform(0.5, 1.5, c), self.rng.uniform(-1, 1, c)
        more = {"axis": 2, "epsilon": 1e-5, "gain": gain, "offset": offset}
        return self.node(Host, [y], norm, how="layernorm", **more)

    def make(self) -> Graph:
        """Steps on maps, and an end."""
        choose, sizes, graph = self.choose, self.sizes, self.graph
        column = choose.number(0, 5) == 0  # a signal
        shape = (
            *(1, choose.number(1, sizes.channels // 2), choose.number(1, sizes.side)),
            1 if column else choose.number(1, sizes.side),
        )
        x = self.tensor(shape, self.scale())
        x.layout = choose.of(("NCHW", "NHWC"))
        graph.inputs.append(x.name)
        self.maps.append(x)
        first = None
        while first is None:
            first = choose.of((self.conv, self.pointwise, self.depthwise))()
        self.maps.append(first)
        for _ in range(choose.number(0, sizes.steps)):
            before = len(graph.nodes), len(graph.tensors)
            made = choose.of(self.steps)()
            if made is not None:
                self.maps.append(made)
            else:  # what it began is not used
                names = list(graph.tensors)[before[1] :]
                del graph.nodes[before[0] :]
                for name in names:
                    del graph.tensors[name]
        y = self.maps[-1]
        ends = ["map", "vector"]
        if sizes.tokens and 1 < y.shape[2] * y.shape[3] <= 40:
            ends.append("attention")
        end = choose.of(ends)
        y = {"map": lambda t: t, "vector": self.vector, "attention": self.attention}[end](y)
        graph.outputs.append(y.name)
        unread = [t for t in self.maps[1:-1] if not graph.readers(t.name)]
        if unread and choose.of((False, True)):
            graph.outputs.append(unread[-1].name)
        self._sweep()
        return check_graph(graph)

    def _sweep(self) -> None:
        """Leave out what no output needs."""
        graph, used = self.graph, set(self.graph.outputs)
        kept: list[Node] = []
        for node in reversed(graph.nodes):
            if used & set(node.outputs):
                used |= set(node.inputs)
                kept.append(node)
        graph.nodes = kept[::-1]
        used |= set(graph.inputs)
        graph.tensors = {name: t for name, t in graph.tensors.items() if name in used}
