# SPDX-License-Identifier: Apache-2.0
"""Layers for the sequencer: of every kind, small enough to be walked through in a simulation."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.pooling import POOL_STRIDE
from openkpu.layer.argument import MOST_DILATED_POOL, LayerArg, LayerError
from openkpu.layer.decoded import DWROW, FC, Sizes
from openkpu_tb.core.descriptor import describe_layer, flattened, may_be_flat, stripes
from tb.sequencer.reference import ROW, Array, Nest

KINDS = ("taps", "chan", "rows", "stripes", "fc")
POOLED = [(kind, pool) for kind in ("taps", "chan", "stripes") for pool in POOL_STRIDE]
BLOCK = 8  # groups of a convolution that share a reading at most
EDGES = (1, 15, 16, 17, 31, 32, 33, 63, 64, 65)  # widths at those of lines and stripes
# every kind with every pool that it may have
EVERY = [(k, p) for k, p in POOLED if k != "stripes" or p] + [("rows", 0), ("fc", 0)]


@dataclass
class Layer:
    """A layer: its descriptor and its issues."""

    name: str
    d: dict[str, int]
    nest: Nest


def work(d: dict[str, int], array: Array) -> int:
    """Issues of the layer, at least; about as many where lines are full."""
    if d["mode"] == FC:
        return d["o"] * d["s"]
    if d["mode"] == DWROW:
        rows = ceil_div(d["c"], 4 >> d["ip"]) * d["h"] * d["irl"]
        return rows * max(1, min(ROW, d["w"]) // array.row_lanes)
    lines = sum(n * ceil_div(width, array.n_y) for _, _, width, n in stripes(d))
    return d["s"] * lines * d["g"] if not d["dw"] else d["s"] * max(1, lines // array.n_z)


class Maker:
    """Layers that fit a device of ``sizes``."""

    def __init__(self, array: Array, sizes: Sizes, dilation: int = 1) -> None:
        """``dilation``: the largest of the device."""
        self.array, self.sizes, self.dilation = array, sizes, dilation
        self.budget = 400  # issues of a layer

    def fits(self, d: dict[str, int]) -> bool:
        """The device has room for the weights that must be there at once."""
        rows = ceil_div(d["c"], self.array.n_z) if d["dw"] else d["s"]
        return d["mode"] == FC or rows <= self.sizes.wbuf_rows

    def exact(
        self,
        c: int,
        h: int,
        w: int,
        o: int,
        *,
        kernel: int = 1,
        pool: int = 0,
        depthwise: bool = False,
        fc: bool = False,
        dilation: int = 1,
        dst: int | None = None,
        first: bool = False,
        **changes: int,
    ) -> Layer:
        """The layer of these sizes; ``changes`` of its descriptor: held, b."""
        flags = {"kernel": kernel, "pool": pool, "depthwise": depthwise, "fc": fc}
        flags["dilation"] = dilation
        arg = LayerArg.make(c, h, w, o, **flags)
        # where the output lies matters to pairs of lines; it need not be apart from the input here
        arg = arg.replace(image_dst_addr=random.randrange(1000) if dst is None else dst)
        d = {**describe_layer(arg, self.sizes, first=first), **changes}
        assert self.fits(d), f"{arg.in_shape} -> {arg.out_shape} does not fit"
        return self._layer(arg, d)

    def _layer(self, arg: LayerArg, d: dict[str, int]) -> Layer:
        name = f"mode {d['mode']} {arg.in_shape} -> {arg.out_shape} kernel {arg.kernel} "
        name += f"element-wise {d['ew']} op {d['ewop']} one {d['one']} "
        name += f"pool {arg.pool_type} block {d['b']} held {d['held']} dst {d['dst']} "
        name += f"out32 {d['out32']} dilation {arg.dilation}"
        return Layer(name, d, Nest(d, self.array))

    def draw(self, kind: str, pool: int, *, first: bool = False) -> Layer:
        """A layer of this kind of any sizes, of no more issues than the budget."""
        while True:
            least = 4 if pool in (3, 4, 7) else 2 if pool else 1
            c, o = _number(40), _number(40)
            h = max(least, _number(24))
            w = max(least, random.choice((*EDGES, random.randint(1, 16), _number(200))))
            flags = {"depthwise": kind in ("rows", "stripes"), "fc": kind == "fc"}
            kernel = {"taps": 3, "chan": 1, "fc": 1}.get(kind) or random.choice((1, 3))
            if flags["depthwise"]:
                o = c
            if kind == "fc":
                h, w = _number(8), _number(8)
            try:
                words = int(kind in ("taps", "chan") and not pool and random.random() < 0.4)
                far = kernel == 3 and kind != "rows" and pool <= MOST_DILATED_POOL
                far = far and (kind != "stripes" or pool) and random.random() < 0.5
                far = random.randint(1, self.dilation) if far else 1
                fields = {"kernel": kernel, "pool": pool, "out32": words, "dilation": far}
                arg = LayerArg.make(c, h, w, o, **fields, **flags)
            except LayerError:
                continue
            arg = arg.replace(image_dst_addr=random.randrange(1000))
            arg = arg.replace(ew_op=random.randrange(4), ew_one=random.getrandbits(1))
            if flags["depthwise"] and kernel == 3 and arg.dilation == 1:
                arg = arg.replace(elementwise=int(random.random() < 0.4))
            d = describe_layer(arg, self.sizes, first=first)
            if self.sizes.flat and may_be_flat(d) and random.getrandbits(1):
                d = flattened(d)
            if work(d, self.array) > self.budget or not self.fits(d):
                continue
            if not flags["depthwise"] and random.getrandbits(1):
                d["held"] &= random.getrandbits(1)  # an input may always be read again
                if kind != "fc":  # any block whose weights fit
                    most = min(d["g"], BLOCK, self.sizes.wbuf_rows // d["s"])
                    d["b"] = random.randint(1, max(1, most))
            layer = self._layer(arg, d)
            if len(layer.nest.issues) <= self.budget:
                return layer

    def any(self, *, first: bool = False) -> Layer:
        """A layer of any kind."""
        kind = random.choice(KINDS)
        pools = [p for k, p in EVERY if k == kind]
        return self.draw(kind, random.choice(pools), first=first)

    def borders(self) -> list[Callable[[], Layer]]:
        """Layers at the borders of what is treated alike."""
        n_z, lanes = self.array.n_z, self.array.lanes
        made: list[dict] = []
        conv = {"c": 2, "h": 3, "w": 20, "o": n_z + 1}
        # widths at those of stripes and their lines, heights at theirs
        made += [{**conv, "w": w, "kernel": 3} for w in (1, 16, 17, 32, 33, 64, 65, 130)]
        made += [{**conv, "w": 5, "h": h, "kernel": 3} for h in (1, 4, 5, 9)]
        made += [{**conv, "w": w, "h": 5, "kernel": 3, "pool": 9} for w in (2, 16, 17, 31)]
        made += [{**conv, "w": w, "h": 9, "kernel": 3, "pool": p} for p in (5, 6) for w in (33, 34)]
        made += [{**conv, "w": 63, "h": h, "kernel": 3, "pool": 7} for h in (13, 17)]
        made += [{**conv, "w": 9, "h": 13, "kernel": 1, "pool": p} for p in (3, 7)]
        # the edges of dilated layers: within a stripe, over two, wider than the map
        for far in sorted({2, 3, self.dilation} & set(range(2, self.dilation + 1))):
            sides = [
                (1, 1),
                (far, far),
                (2 * far + 1, 17),
                (9, 33),
                (2, 64),
                (3, 62 + far),
                (3, 65),
            ]
            made += [{**conv, "h": h, "w": w, "kernel": 3, "dilation": far} for h, w in sides]
            pooled = {"c": 3, "o": 3, "h": 9, "kernel": 3, "dilation": far, "pool": 1}
            made += [{**pooled, "w": w, "depthwise": dw} for w in (13, 34) for dw in (False, True)]
            made.append({**pooled, "w": 20, "pool": 0, "depthwise": True})
        # channels at a whole number of nines; several blocks, the last one smaller
        made += [{**conv, "c": c} for c in (1, 9, 10, 18)]
        some = {"c": 11, "h": 3, "w": 18, "o": 4 * n_z + 1, "b": 2}
        made += [{**some, "held": 1}, {**some, "held": 0}, {**some, "held": 1, "b": 3}]
        made += [{**some, "held": 0, "b": 5}, {**some, "o": 2 * n_z, "held": 0}]
        # maps taken as one line, where the device does: of a stripe, of a pixel more, of several
        for h, w in ((1, 1), (8, 8), (13, 5), (9, 7), (7, 9), (40, 13), (64, 15), (341, 3)):
            line = {"flat": 1, "kw": h * w, "kh": 1, "swl": 6}
            made.append(
                {"c": 10, "h": h, "w": w, "o": n_z + 1, **(line if self.sizes.flat else {})}
            )
        # an input that is too long to be held
        many = self.sizes.tile_rows
        made += [{"c": many, "h": 1, "w": 1, "o": 2 * n_z, "kernel": 3}]
        made += [{"c": many - 1, "h": 1, "w": 1, "o": 2 * n_z, "kernel": 3}]
        # as many weights as there is room for
        made += [{"c": min(9216, 9 * self.sizes.wbuf_rows), "h": 1, "w": 3, "o": n_z + 1}]
        # rows of four channels, of two, of one; of several rows a line
        deep = {"depthwise": True, "kernel": 3}
        for c in (1, 3, 4, 5, 8, n_z, n_z + 1, 2 * n_z + 3):
            made.append({"c": c, "h": 2, "w": 7, "o": c, **deep})
        for c in (1, 2, 5, n_z + 1):
            made.append({"c": c, "h": 3, "w": 29, "o": c, **deep})
        for w in (33, 63, 64, 65, 128, 150):
            made.append({"c": 3, "h": 3, "w": w, "o": 3, **deep})
        made.append({"c": 5, "h": 1, "w": 16, "o": 5, **deep, "kernel": 1})
        # two lines a word: begins on an odd row of the output, or ends with half a word
        for dst in (0, 1):
            for h in (1, 2, 5, 6):
                made.append({"c": 3, "h": h, "w": 50, "o": 3, **deep, "dst": dst})
        for c in (1, n_z, 2 * n_z + 1):  # stripes of depthwise layers
            made.append({"c": c, "h": 6, "w": 20, "o": c, **deep, "pool": 1})
        made.append({"c": 3, "h": 9, "w": 37, "o": 3, **deep, "pool": 8})
        made.append({"c": 2, "h": 12, "w": 70, "o": 2, **deep, "pool": 5})
        made.append({"c": 2, "h": 13, "w": lanes % 61 + 4, "o": 2, **deep, "pool": 7})
        # vectors: of one step, of one entry, of a step more; of several words a row
        full = {"h": 1, "w": 1, "fc": True}
        made += [{"c": c, "o": n_z + 1, **full} for c in (1, 9, 10)]
        made += [{"c": 576, "o": 2, **full, "held": held} for held in (0, 1)]
        made += [{"c": 64, "h": 1, "w": 10, "o": 3, "fc": True, "held": held} for held in (0, 1)]
        return [lambda m=m: self.exact(**m) for m in made]

    def extremes(self) -> list[Callable[[], Layer]]:
        """Sizes up to their bounds, as far as weights and patience reach."""
        n_z, rows = self.array.n_z, self.sizes.wbuf_rows
        deep = {"depthwise": True, "kernel": 3}
        chans = min(1024, n_z * rows)
        made: list[dict] = [
            {"c": 1, "h": 512, "w": 1, "o": 1, "kernel": 3},  # lines
            {"c": 1, "h": 512, "w": 2, "o": 1, "kernel": 3, "pool": 1},
            {"c": 1, "h": 1, "w": 960, "o": 2, "kernel": 3},  # columns
            {"c": 1, "h": 2, "w": 960, "o": 1, "kernel": 3, "pool": 5},
            {"c": 1, "h": 1, "w": 1, "o": 1024, "kernel": 3},  # groups
            {"c": 1, "h": 1, "w": 1, "o": 1023},
            {"c": min(1024, rows), "h": 1, "w": 1, "o": 1, "kernel": 3},  # steps
            {"c": chans, "h": 1, "w": 1, "o": chans, **deep},  # channels
            {"c": min(chans, 300), "h": 1, "w": 17, "o": min(chans, 300), **deep},
            {"c": chans, "h": 2, "w": 1, "o": chans, **deep, "pool": 9},
            {"c": 1, "h": 1, "w": 960, "o": 1, **deep},
            {"c": 2, "h": 512, "w": 3, "o": 2, **deep},
            {"c": 1, "h": 512, "w": 40, "o": 1, **deep},
            {"c": 1, "h": 1, "w": 1, "o": 1024, "fc": True},  # neurons
        ]
        # a vector that is too long to be held
        length = 9 * ROW * (self.sizes.tile_rows - 1)
        if length <= 20_000:
            made.append({"c": length // 64 + 1, "h": 1, "w": 64, "o": 2, "fc": True})
        return [lambda m=m: self.exact(**m) for m in made]


def _number(most: int) -> int:
    """1..most, small ones more often."""
    return random.choice((1, 2, most, random.randint(1, most), random.randint(1, min(most, 6))))
