# SPDX-License-Identifier: Apache-2.0
"""The layers of a list and the maps between them, as the planning of bands sees them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

from openkpu.arithmetic.integers import ceil_div
from openkpu.compiler.bands.lines import bandable
from openkpu.compiler.lowering.device import Place, Shape, Spec
from openkpu.layer.layout import Layout


@dataclasses.dataclass
class Map:
    """A buffer: its whole map, the layers that write and read it."""

    shape: Shape = (0, 0, 0)
    even: bool = True  # all places in it are channels of one map
    rows: int = 0
    writers: list[int] = dataclasses.field(default_factory=list)
    readers: list[int] = dataclasses.field(default_factory=list)
    staged: str = ""  # tensor that the host writes
    wanted: bool = False  # the host reads it

    @functools.cached_property
    def first(self) -> int:
        return self.writers[0] if self.writers else -1

    @functools.cached_property
    def last(self) -> int:
        return max(self.all)

    @functools.cached_property
    def all(self) -> list[int]:
        """Layers that use it."""
        return [*self.writers, *self.readers]

    @functools.cached_property
    def line_rows(self) -> tuple[int, int]:
        """Channel groups, and rows of a line of one."""
        layout = Layout(*self.shape)
        return ceil_div(layout.channels, layout.groups), layout.row_len

    @property
    def bytes(self) -> int:
        c, h, w = self.shape
        return c * h * w

    def channel(self, place: Place) -> int:
        """The first channel of a place."""
        layout = Layout(*self.shape)
        return place.row // layout.channel_rows * layout.groups


class Layers:
    """Specs of a list, and their maps by buffer."""

    def __init__(self, specs: list[Spec], wanted: set[int], staged: Mapping[int, str]) -> None:
        """``wanted``: layers whose output maps the host reads; ``staged``: tensors that the host
        writes, by their buffers, besides the ones that layers load."""
        self.specs = specs
        self.maps: dict[int, Map] = {}
        for number, spec in enumerate(specs):
            for place in self.sources(number):
                self._use(place).readers.append(number)
            if spec.loads:
                self.maps[spec.src.buffer].staged = spec.loads
            self._use(spec.dst).writers.append(number)
            if number in wanted:
                self.maps[spec.dst.buffer].wanted = True
        for buffer, tensor in staged.items():
            self.maps[buffer].staged = tensor
        self.segments = [self._segment(number) for number in range(len(specs))]

    def _use(self, place: Place) -> Map:
        found = self.maps.setdefault(place.buffer, Map((0, *place.shape[1:])))
        layout = Layout(*place.shape)
        found.even &= found.shape[1:] == place.shape[1:] and place.row % layout.channel_rows == 0
        channels = place.row // layout.channel_rows * layout.groups + place.shape[0]
        found.shape = max(found.shape[0], channels), *found.shape[1:]
        found.rows = max(found.rows, place.row + place.rows)
        return found

    def of(self, place: Place) -> Map:
        return self.maps[place.buffer]

    def sources(self, number: int) -> list[Place]:
        """Maps that a layer reads from the AI RAM or storage; a constant is its own."""
        spec = self.specs[number]
        own = [] if spec.constant is not None else [spec.src]
        return [*own, *([spec.src2] if spec.src2 is not None else [])]

    def bandable(self, number: int) -> bool:
        """Can the layer compute a band, of maps that have lines?"""
        spec = self.specs[number]
        places = [*self.sources(number), spec.dst]
        return bandable(spec.arg) and all(self.of(place).even for place in places)

    def _segment(self, number: int) -> int:
        """Behind the layers that follow a convolution channel by channel, each on the map before:
        all of them can be computed for some channels after the other."""
        spec = self.specs[number]
        arg = spec.arg
        end = number + 1
        if arg.depthwise or arg.fc or arg.pool_task or spec.constant is not None:
            return end
        while end < len(self.specs):
            follower, between = self.specs[end], self.of(self.specs[end - 1].dst)
            alone = between.writers == [end - 1] and between.readers == [end] and between.even
            alone = alone and not between.wanted and follower.src == self.specs[end - 1].dst
            channelwise = (follower.arg.depthwise or follower.arg.pool_task) and not follower.src2
            if not (alone and channelwise and follower.constant is None):
                break
            end += 1
        return end
