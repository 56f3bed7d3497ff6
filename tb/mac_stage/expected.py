# SPDX-License-Identifier: Apache-2.0
"""Expected sums of the MAC stage for an issue, lane by lane, from the operands of a layer."""

import random
from dataclasses import dataclass, field

import numpy as np

from openkpu.layer.decoded import CHAN, DWROW, FC, TAPS
from openkpu.layer.elementwise import MAXIMUM, MINIMUM, MULTIPLY

N_X = 9  # columns of the array
OWN = 6  # the column that receives the other operand in a multiplication
# columns of an element-wise layer: pad value, first map, second map (docs/architecture.md 8). For a
# maximum or minimum the second last column has the last column's pixel and weight, too
EW_COLUMNS = {1, 4, 8}
LAST = 8
MASK36 = (1 << 36) - 1
# the modes of a layer: MODE_*, depthwise
MODES = {
    "taps": (TAPS, 0),
    "channels": (CHAN, 0),
    "row": (DWROW, 1),
    "stripe": (TAPS, 1),
    "vector": (FC, 0),
}


@dataclass(frozen=True)
class Shape:
    """Sizes of the stage under test: pixels, channels, bits of a weight, bytes of a tile word."""

    n_y: int
    n_z: int
    wb: int
    tile: int

    @property
    def lanes(self) -> int:
        return self.n_y * self.n_z

    @property
    def entry(self) -> int:
        """Bytes of a word that belong to one entry of the tile buffer."""
        return min(self.tile, 64)

    @property
    def row_lanes(self) -> int:
        """Lanes of a depthwise row."""
        return min(self.lanes, self.entry)

    @property
    def top(self) -> int:
        """The largest weight."""
        return (1 << self.wb) - 1


@dataclass(frozen=True)
class Layer:
    """The fields of a layer that the stage uses."""

    kind: str
    signed: bool
    pad: int
    pitch: int  # 0, 1, 2: a line of the map has 16, 32, 64 bytes of a row
    ewop: int | None = None  # of an element-wise layer
    words: bool = False  # its sums leave as 32 bits

    @property
    def mode(self) -> int:
        return MODES[self.kind][0]

    @property
    def dw(self) -> int:
        return MODES[self.kind][1]

    @property
    def padded(self) -> bool:
        """True if the nine columns are taps of a window: its edges may be outside the map."""
        return self.kind in ("taps", "row", "stripe")

    @property
    def slot(self) -> int:
        """Bytes from a channel to the next in a depthwise row."""
        return 16 << self.pitch


@dataclass
class Issue:
    """Operands of an issue and its tag; arrays of columns, or of lanes."""

    taps: np.ndarray  # (9,) columns in use
    bank: int
    pos: int
    kernels: int
    valid: np.ndarray  # (lanes,)
    edges: dict[str, np.ndarray]  # left, right, top, bot: (lanes,)
    row: np.ndarray  # (9, bytes of a tile word)
    weight: np.ndarray  # (9, channels)
    tag: dict[str, int]
    counted: bool = True  # its multiplications are counted; those of a repeated step are not
    control: int = 0  # as the columns receive it
    out: tuple[list[int], list[int]] = field(default=([], []))  # sums, sums of pixels
    issued: list[int] = field(default_factory=list)  # multiplications of each column
    gated: list[int] = field(default_factory=list)

    def pixels(self, shape: Shape, layer: Layer) -> np.ndarray:
        """(9, lanes) signed pixels; arbitrary for an invalid lane."""
        at = np.arange(shape.lanes)
        base = self.pos % shape.entry
        if layer.dw:  # a byte a lane; lanes from 64 on see the second entry of a word
            at = np.where(at < 64, (base + at) % shape.tile, at % shape.tile)
        elif layer.kind == "vector":
            at = np.full(shape.lanes, base)
        else:
            at = base + at % shape.n_y
        raw = self.row[:, at].astype(np.int64)
        if layer.padded:
            for t in range(N_X):
                raw[t, self.outside(t)] = layer.pad
        return np.where(raw > 127, raw - 256, raw) if layer.signed else raw

    def outside(self, t: int) -> np.ndarray:
        """Lanes whose tap ``t`` is outside the map."""
        ky, kx = divmod(t, 3)
        lanes = np.zeros(len(self.valid), bool)
        for name, there in (("left", kx == 0), ("right", kx == 2), ("top", ky == 0)):
            lanes |= self.edges[name] & there
        return lanes | (self.edges["bot"] & (ky == 2))

    def weights(self, shape: Shape, layer: Layer) -> np.ndarray:
        """(9, lanes) weight of each lane."""
        lane = np.arange(shape.lanes)
        if layer.kind == "row":  # channels of a row lie in consecutive banks
            bank = self.bank + lane % shape.row_lanes // layer.slot
        elif layer.kind in ("stripe", "vector"):
            bank = np.full(shape.lanes, self.bank)
        else:
            bank = lane // shape.n_y
        return self.weight[:, bank % shape.n_z].astype(np.int64)

    def sums(self, shape: Shape, layer: Layer) -> tuple[np.ndarray, np.ndarray]:
        """(sum of products, sum of pixels) of each lane; fills the counts of the columns."""
        pixel, used = self.pixels(shape, layer), self.taps[:, None] & self.valid
        above = used & (pixel > 0)
        self.issued = [int(n) * self.counted for n in used.sum(axis=1)]
        self.gated = [int(n) * self.counted for n in (used & ~above).sum(axis=1)]
        weight = self.weights(shape, layer)
        if layer.ewop == MULTIPLY:
            weight[OWN] = np.maximum(pixel[OWN - 1], 0)
        pixel = np.where(above, pixel, 0)
        product = pixel * weight
        if layer.ewop in (MAXIMUM, MINIMUM):
            choose = np.maximum if layer.ewop == MAXIMUM else np.minimum
            return choose(product[:-1].sum(axis=0), product[-1]), pixel.sum(axis=0)
        return product.sum(axis=0), pixel.sum(axis=0)


class Accumulators:
    """Sums of every place for all lanes, and the sums of pixels."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.places: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.wraps = 0

    def add(self, issue: Issue, layer: Layer) -> bool:
        """Add an issue; True if its sums leave."""
        sums, pixels = issue.sums(self.shape, layer)
        n_y = self.shape.n_y
        if layer.dw:
            issue.out = sums.tolist(), pixels.tolist()
            return True
        at = issue.tag["idx"]
        if not issue.tag["first"]:
            before, pixels_before = self.places[at]
            sums, pixels = sums + before, pixels + pixels_before
        self.wraps += int((sums > MASK36).sum())
        sums &= MASK36
        if not issue.tag["last"]:  # a last step may be repeated
            self.places[at] = sums, pixels
        # a convolution has the same pixels in all kernel modules: twelve bits are enough there
        others = np.tile(pixels[:n_y], self.shape.n_z) & 0xFFF
        others[:n_y] = pixels[:n_y]
        issue.out = sums.tolist(), others.tolist()
        return bool(issue.tag["last"])


def some(p: float, count: int) -> np.ndarray:
    """``count`` flags that are set with probability ``p``."""
    return np.array([random.random() < p for _ in range(count)])


def positions(shape: Shape, layer: Layer) -> range:
    """Where in the 64 positions of a stripe an issue may begin."""
    if layer.kind == "vector":
        return range(64)
    return range(0, 64, shape.row_lanes if layer.dw else shape.n_y)


def lanes_in_use(shape: Shape, layer: Layer, kernels: int, p: float) -> np.ndarray:
    """Flags of the lanes that an issue may have."""
    lane = np.arange(shape.lanes)
    if layer.kind == "vector":
        return lane == 0
    if layer.dw:
        second = shape.tile > 64 and layer.slot == 64  # lines of another width are never paired
        return some(p, shape.lanes) & ((lane < shape.row_lanes) | second)
    return np.tile(some(p, shape.n_y), shape.n_z) & (lane // shape.n_y < kernels)


def operands(shape: Shape, layer: Layer, rng: np.random.Generator, kind: str) -> Issue:
    """An issue without a tag.

    ``kind``: random operands, or those at the ends of their ranges: "largest", all of them, "ends",
    some of them, "unused", no lane and no column in use.
    """
    size, lanes = (N_X, shape.tile), shape.lanes
    row = rng.integers(0, 256, size)
    weight = rng.integers(0, shape.top + 1, (N_X, shape.n_z))
    p = 1.0 if kind == "largest" else random.choice((0.3, 0.9, 1.0))
    taps = some(p, N_X)
    if kind == "largest":
        row[:], weight[:] = 255, shape.top
    elif kind == "ends":
        row = rng.choice([0, 1, 127, 128, 255], size)
        weight = rng.choice([0, 1, shape.top], weight.shape)
    elif kind == "unused":
        p, taps = 0.0, np.zeros(N_X, bool)
    if layer.ewop is not None:
        used = EW_COLUMNS | ({OWN} if layer.ewop == MULTIPLY else set())
        taps &= np.isin(np.arange(N_X), list(used))
    if layer.ewop in (MAXIMUM, MINIMUM):
        row[LAST - 1], weight[LAST - 1] = row[LAST], weight[LAST]
    kernels = 1 if layer.kind == "vector" else random.randint(1, shape.n_z)
    if kind == "largest" and layer.kind != "vector":
        kernels = shape.n_z
    channels = max(1, shape.row_lanes // layer.slot) if layer.kind == "row" else 1
    edge = random.choice((0.0, 0.3, 1.0)) if kind != "largest" else 0.0
    # the lanes of a convolution's kernel modules have the same pixels, with the same edges
    flags = lanes if layer.dw else shape.n_y
    edges = {
        name: np.tile(some(edge, flags), lanes // flags) for name in ("left", "right", "top", "bot")
    }
    if layer.ewop is not None:  # both maps lie in the window's middle columns and in the last one
        edges["left"], edges["right"] = np.zeros(lanes, bool), np.zeros(lanes, bool)
    return Issue(
        taps=taps,
        bank=random.randrange(0, shape.n_z, min(channels, shape.n_z)),
        pos=random.choice(positions(shape, layer)),
        kernels=kernels,
        valid=lanes_in_use(shape, layer, kernels, p),
        edges=edges,
        row=row,
        weight=weight,
        tag={},
    )
