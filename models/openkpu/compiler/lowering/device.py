# SPDX-License-Identifier: Apache-2.0
"""What a lowering makes: layers on maps that have no address yet, and tensors held in such maps.

A ``Place`` is a map in a buffer of the AI RAM; several places may share a buffer, one behind the
other (the parts of a concatenation), or one inside the other (a slice).  ``Held`` says where the
elements of a tensor lie in a place, as an index of each: channels in another order, with gaps
between, lines turned around, a margin.  Reshapes, transpositions and slices only change the index.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import Layout

Shape = tuple[int, int, int]


@dataclasses.dataclass(frozen=True)
class Place:
    """A map (C, H, W) at a row of a buffer; ``stride``: rows between its channel groups, where they
    do not follow each other."""

    buffer: int
    row: int
    shape: Shape
    stride: int = 0

    @property
    def rows(self) -> int:
        return self.layout.rows

    @property
    def layout(self) -> Layout:
        return Layout(*self.shape, stride=self.stride)

    @property
    def groups(self) -> int:
        """Channels that share a row."""
        return Layout(*self.shape).groups

    def part(self, first: int, channels: int) -> Place:
        """Channels from ``first`` on, a multiple of ``groups``."""
        layout = Layout(*self.shape)
        assert first % layout.groups == 0
        row = self.row + first // layout.groups * layout.channel_rows
        return Place(self.buffer, row, (channels, *self.shape[1:]))


@dataclasses.dataclass
class Given:
    """A tensor whose bytes the host writes as the weights of a layer before the list begins."""

    tensor: str
    where: npt.NDArray[np.int64]  # of the tensor's shape: the weight that each element is, or -1
    offset: int  # stored byte less integer
    zero: int  # byte of all other weights
    size: int  # weights of the layer
    layer: int = -1

    def bytes_of(self, values: npt.NDArray, eight_bit: bool) -> npt.NDArray[np.uint8]:
        """The layer's weights as bytes, each one or, not ``eight_bit``, two."""
        found, used = np.full(self.size, self.zero, dtype=np.uint8), self.where >= 0
        found[self.where[used]] = (np.asarray(values) + self.offset)[used]
        return stored_weights(found, eight_bit)


def stored_weights(
    weights: npt.NDArray[np.unsignedinteger], eight_bit: bool
) -> npt.NDArray[np.uint8]:
    """Weights as they lie in storage (docs/kpu.md 1.6)."""
    return np.ascontiguousarray(weights, "<u1" if eight_bit else "<u2").view(np.uint8)


@dataclasses.dataclass
class Spec:
    """A layer whose addresses are still to come."""

    node: str
    arg: LayerArg
    weights: npt.NDArray[np.unsignedinteger]  # uint8, or uint16: of a list with 16-bit weights
    bn: npt.NDArray[np.uint64]
    act: npt.NDArray[np.uint64]
    src: Place
    dst: Place
    src2: Place | None = None
    loads: str = ""  # tensor whose staged bytes the layer brings from storage first
    stores: str = ""  # tensor whose map goes to storage as well
    constant: npt.NDArray[np.uint8] | None = None  # a map that it brings from storage first
    given: Given | None = None  # weights that the host writes
    relayed: Spec | None = None  # the layer that stored the map which it brings from storage first
    lines: tuple[int, int] | None = None  # of the tensor that it loads, where not all

    @property
    def in_order(self) -> bool:
        """May the output lie on the input?"""
        alike = self.src.layout.channel_rows == self.dst.layout.channel_rows
        once = self.arg.depthwise and self.arg.pool_type == 0 and self.arg.dilation == 1
        return once and alike


@dataclasses.dataclass
class Geometry:
    """Where a tensor (1, C, H, W) lies in its place, when it lies there as a map does."""

    channels: npt.NDArray[np.int64]  # (C,) of the place
    start: tuple[int, int]  # lowest line and column of the place that belong to it
    turned: tuple[bool, bool]  # lines, columns in reverse order
    size: tuple[int, int]  # lines, columns
    step: tuple[int, int] = (1, 1)  # of the place from one to the next


@dataclasses.dataclass
class Held:
    """A tensor in the AI RAM."""

    place: Place
    where: npt.NDArray[np.int64]  # of the tensor's shape: c * H * W + y * W + x of the place
    zero: int  # its zero point as a stored byte
    span: tuple[int, int] = (0, 255)  # bytes that occur in it
    margin: bool = False  # what lies around it holds the zero point

    def geometry(self) -> Geometry | None:
        """How it lies there; None when not as a map of rank 4 does."""
        if self.where.ndim != 4 or self.where.shape[0] != 1:
            return None
        _, height, width = self.place.shape
        at = self.where[0]
        channels = at[:, 0, 0] // (height * width)
        if np.unique(channels).size < channels.size:  # weights are for one element each
            return None
        lines = at[0, :, 0] // width % height
        columns = at[0, 0, :] % width
        steps = []
        for places in (lines, columns):
            gaps = np.unique(np.diff(places))
            if gaps.size > 1 or 0 in gaps:
                return None
            steps.append(int(gaps[0]) if gaps.size else 1)
        full = (channels[:, None, None] * height + lines[:, None]) * width + columns
        if not np.array_equal(full, at):
            return None
        start, size = (int(lines.min()), int(columns.min())), (len(lines), len(columns))
        turned, step = (steps[0] < 0, steps[1] < 0), (abs(steps[0]), abs(steps[1]))
        return Geometry(channels, start, turned, size, step)


def indices(
    place: Place,
    channels: npt.ArrayLike,
    start: tuple[int, int],
    size: tuple[int, int],
    turned: tuple[bool, bool] = (False, False),
    step: int = 1,
) -> npt.NDArray[np.int64]:
    """The index (1, C, h, w) of a map of ``size`` at ``start``, its pixels ``step`` apart."""
    _, height, width = place.shape
    lines, columns = (s + step * np.arange(n) for s, n in zip(start, size, strict=True))
    lines = lines[::-1] if turned[0] else lines
    columns = columns[::-1] if turned[1] else columns
    channels = np.asarray(channels, dtype=np.int64)
    return ((channels[:, None, None] * height + lines[:, None]) * width + columns)[None]


def whole(place: Place) -> npt.NDArray[np.int64]:
    """The index (1, C, H, W) of all of a place."""
    return np.arange(np.prod(place.shape), dtype=np.int64).reshape(1, *place.shape)
