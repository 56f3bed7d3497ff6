# SPDX-License-Identifier: Apache-2.0
"""The layers of a plan: each chain for one band after the other.

A map that lies whole in the AI RAM is read and written by lines, without a copy; the channel groups
of a band then lie as far apart as those of the whole map (docs/kpu.md 1.15).  Of a map in storage
the pieces that its chain stored are read once each: lines that the next band needs again move to
the front of a buffer, and the next piece is put behind them.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from openkpu.compiler.bands.chains import BandPlan, Chain, Range, part_channels
from openkpu.compiler.bands.graph import Map
from openkpu.compiler.bands.lines import Window
from openkpu.compiler.bands.plan import MOST_MOVED, Planner
from openkpu.compiler.lowering import requant
from openkpu.compiler.lowering.device import Place, Shape, Spec
from openkpu.compiler.lowering.lower import copy_fit, tall, with_lines, zero_terms
from openkpu.layer.layout import Layout
from openkpu.layer.pool_layer import pool_layer
from openkpu.layer.pool_tasks import MAXIMUM

Pieces = list[tuple[Range, Spec]]


@dataclasses.dataclass
class BandView:
    """Lines of a map in a buffer."""

    buffer: int
    shape: Shape  # of what the buffer holds
    first: int = 0  # line of the map that its line 0 is
    load: str = ""  # tensor that the first reader loads here
    relayed: Spec | None = None  # ... or layer that stored the piece

    def part(self, channel: int, channels: int, lines: Range) -> Place:
        """Some channels and lines."""
        whole = Layout(*self.shape)
        row = channel // whole.groups * whole.channel_rows
        row += (lines[0] - self.first) * whole.row_len
        shape = channels, lines[1] - lines[0], self.shape[2]
        apart = shape[1] != self.shape[1] and channels > whole.groups
        return Place(self.buffer, row, shape, whole.channel_rows if apart else 0)

    def whole(self) -> Place:
        return Place(self.buffer, 0, self.shape)


@dataclasses.dataclass
class Cache:
    """Lines of a map of storage that a chain holds from band to band."""

    view: BandView
    behind: int  # line behind the last one that is there


class Emitter:
    """The layers of a plan in the making."""

    def __init__(self, planner: Planner, plan: BandPlan) -> None:
        self.planner, self.layers, self.plan = planner, planner.layers, plan
        self.config = planner.config
        self.made: list[Spec] = []
        self.ends: list[int] = []  # of each chain: layers made by then
        self.buffers = 0
        self.resident: dict[int, BandView] = {}
        self.pieces: dict[int, Pieces] = {}
        # by layer: lines that it writes, where they are stored, its first channel there
        self.results: dict[int, list[tuple[Range, Spec, int]]] = {}
        self.tables: dict[tuple[int, int, int], dict[str, Any]] = {}
        # of the chain and band at work
        self.views: dict[int, BandView] = {}
        self.caches: dict[int, Cache] = {}

    def run(self) -> list[Spec]:
        """All layers."""
        for chain in self.plan.chains:
            self.caches = {}
            for band in range(chain.bands):
                self._band(chain, band)
            self.ends.append(len(self.made))
        return self.made

    def _new(self, shape: Shape, first: int = 0) -> BandView:
        self.buffers += 1
        return BandView(self.buffers - 1, shape, first)

    # --------------------------------------------------------------------- band
    def _band(self, chain: Chain, band: int) -> None:
        wanted, windows, there, needs = self.planner.ranges(chain, band)
        self.views = {}
        for number in range(chain.first, chain.behind):
            for place in self.layers.sources(number):
                if place.buffer not in self.views and self.layers.of(place).first < chain.first:
                    self._source(chain, band, place.buffer, wanted[place.buffer], number)
            buffer = self.layers.specs[number].dst.buffer
            if buffer not in self.views:
                self._target(chain, buffer, there[buffer], windows)
        parts = dict(self.planner.segments(chain)) if chain.parts > 1 else {}
        number = chain.first
        while number < chain.behind:
            end = parts.get(number, number + 1)
            if end > number + 1:
                self._parts(chain, number, end, windows)
            else:
                self._layer(number, windows[number])
            for done in range(number, end):
                self._leave(chain, band, done, windows, needs[done])
            number = end

    def _source(self, chain: Chain, band: int, buffer: int, lines: Range, number: int) -> None:
        """What the chain reads of a map that was there before."""
        found = self.layers.maps[buffer]
        c, _, width = found.shape
        if buffer not in self.plan.stored:
            if buffer not in self.resident:  # a staged map, which is loaded now
                self.resident[buffer] = self._new(found.shape)
                self.resident[buffer].load = found.staged
            self.views[buffer] = self.resident[buffer]
        elif found.staged:
            self.views[buffer] = self._new((c, lines[1] - lines[0], width), lines[0])
            self.views[buffer].load = found.staged
        else:
            exact = dict(self.pieces[buffer])
            spans = [self.planner.ranges(chain, k).wanted[buffer] for k in range(chain.bands)]
            if all(span in exact for span in spans):
                self.views[buffer] = self._new((c, lines[1] - lines[0], width), lines[0])
                self.views[buffer].relayed = exact[lines]
            else:
                self._fetch(buffer, lines, spans, number)

    def _fetch(self, buffer: int, lines: Range, spans: list[Range], number: int) -> None:
        """The lines of a map of storage into its cache, as far as they are not there."""
        found, pieces = self.layers.maps[buffer], self.pieces[buffer]
        c, _, width = found.shape
        node = self.layers.specs[number]
        if buffer not in self.caches:
            most, behind = 0, 0
            for low, high in spans:
                start = low if low < behind else next(a for (a, b), _ in pieces if b > low)
                behind = max(behind, next(b for (_, b), _ in pieces if b >= high))
                most = max(most, behind - start)
            self.caches[buffer] = Cache(self._new((c, most, width)), 0)
        cache = self.caches[buffer]
        view, old = cache.view, cache.view.first
        low = lines[0] if lines[0] < cache.behind else -1
        if low < 0:
            low = next(a for (a, b), _ in pieces if b > lines[0])
        elif low > old:
            kept = view.part(0, c, (low, cache.behind))
            moved = BandView(view.buffer, view.shape, low).part(0, c, (low, cache.behind))
            self._copy(node, kept, moved, in_order=True)
        view.first = low
        cache.behind = max(cache.behind, low)
        for (first, behind), spec in pieces:
            if behind > cache.behind and cache.behind < lines[1]:
                piece = self._new((c, behind - first, width), first)
                into = view.part(0, c, (first, behind))
                self._copy(node, piece.whole(), into, relayed=spec)
                cache.behind = behind
        self.views[buffer] = view

    def _target(self, chain: Chain, buffer: int, lines: Range, windows: dict[int, Window]) -> None:
        """Where the layers of the band write a map."""
        found = self.layers.maps[buffer]
        c, _, width = found.shape
        leaves = self.planner.leaves(found, chain)
        whole = leaves and buffer not in self.plan.stored
        if whole and buffer not in self.resident:
            self.resident[buffer] = self._new(found.shape)
        if (whole and not self._vain(found, windows)) or not found.even:
            if buffer not in self.resident:
                self.resident[buffer] = self._new(found.shape)
            self.views[buffer] = self.resident[buffer]
        else:
            self.views[buffer] = self._new((c, lines[1] - lines[0], width), lines[0])

    def _vain(self, found: Map, windows: dict[int, Window]) -> bool:
        return self.planner._vain(found, windows)

    # -------------------------------------------------------------------- layers
    def _place(self, place: Place, lines: Range) -> Place:
        """A place of the list as this band has it."""
        found, view = self.layers.of(place), self.views[place.buffer]
        if not found.even:
            return dataclasses.replace(place, buffer=view.buffer)
        return view.part(found.channel(place), place.shape[0], lines)

    def _layer(self, number: int, seen: Window) -> None:
        """A layer for the lines of its window."""
        spec, lines = self.layers.specs[number], (seen.low, seen.high)
        constant = None
        if spec.constant is not None:
            constant = np.ascontiguousarray(spec.constant[:, seen.low : seen.high])
            src = self._new(constant.shape).whole()
        else:
            src = self._place(spec.src, lines)
        src2 = None if spec.src2 is None else self._place(spec.src2, lines)
        if src2 is not None and not spec.arg.pool_task:
            src, src2 = self._alike(spec, src, src2)
        dst = self._place(spec.dst, (seen.first, seen.behind))
        arg = with_lines(spec.arg, seen.high - seen.low, seen.behind - seen.first)
        arg = arg.replace(pool_top=seen.pads[0], pool_bottom=seen.pads[1])
        made = dataclasses.replace(spec, arg=arg, src=src, src2=src2, dst=dst, constant=constant)
        self._append(made)

    def _alike(self, spec: Spec, src: Place, src2: Place) -> tuple[Place, Place]:
        """Two maps whose channel groups lie equally far apart: copies where they do not."""
        if src.layout.channel_rows == src2.layout.channel_rows or src.shape[0] <= src.groups:
            return src, src2
        found = []
        for place in (src, src2):
            if place.stride:
                compact = self._new(place.shape).whole()
                self._copy(spec, place, compact)
                place = compact
            found.append(place)
        return found[0], found[1]

    def _append(self, spec: Spec) -> None:
        """A layer at the end."""
        spec.loads, spec.stores, spec.lines = "", "", None
        self._brought(spec)
        self._strided(spec)
        self.made.append(spec)

    def _brought(self, spec: Spec) -> None:
        """What a layer reads first comes from storage: it loads it, or a copy in place does so."""
        for view in self.views.values():
            if not (view.load or view.relayed is not None):
                continue
            if view.buffer not in (spec.src.buffer, spec.src2 and spec.src2.buffer):
                continue
            load, relayed, view.load, view.relayed = view.load, view.relayed, "", None
            if spec.src == view.whole() and spec.relayed is None and spec.constant is None:
                self._loads(spec, view, load, relayed)
            else:
                self._copy(spec, view.whole(), view.whole(), in_order=True)
                self._loads(self.made[-1], view, load, relayed)

    def _loads(self, spec: Spec, view: BandView, load: str, relayed: Spec | None) -> None:
        spec.loads, spec.relayed = load, relayed
        spec.lines = (view.first, view.first + view.shape[1]) if load else None

    @staticmethod
    def _strided(spec: Spec) -> None:
        fields: dict[str, int] = {}
        for place, flag, field in (
            (spec.src, "in_strided", "channel_switch_addr"),
            (spec.dst, "out_strided", "wb_channel_switch_addr"),
        ):
            if place.stride:
                fields |= {flag: 1, field: place.stride}
        spec.arg = spec.arg.replace(**fields) if fields else spec.arg

    def _copy(
        self,
        like: Spec,
        src: Place,
        dst: Place,
        *,
        in_order: bool = False,
        relayed: Spec | None = None,
        stores: str = "",
    ) -> Spec:
        """A layer that copies a map; ``in_order``: towards lower rows of the same buffer."""
        empty = np.zeros(0, np.uint64)
        if self.config.pool_lanes and not in_order:
            arg = pool_layer(src.shape, MAXIMUM, (1, 1))
            tables: dict[str, Any] = {"weights": np.zeros(0, np.uint8), "bn": empty, "act": empty}
        else:
            c = src.shape[0]
            arg = tall(src.shape, c, depthwise=True, **zero_terms(0, 0, 1))
            tables = _copy_tables(c)
        spec = Spec(like.node, arg, src=src, dst=dst, **tables)
        spec.relayed, spec.stores = relayed, stores
        if relayed is None:
            self._brought(spec)
        self._strided(spec)
        self.made.append(spec)
        return spec

    # --------------------------------------------------------------------- parts
    def _parts(self, chain: Chain, start: int, end: int, windows: dict[int, Window]) -> None:
        """A segment, some channels after the others."""
        outputs = self.layers.specs[start].arg.o_ch_num
        step = part_channels(outputs, chain.parts)
        for low in range(0, outputs, step):
            high = min(outputs, low + step)
            for number in range(start, end):
                self._channels(number, windows[number], (low, high), (start, end))

    def _channels(self, number: int, seen: Window, channels: Range, segment: Range) -> None:
        """A layer of a segment for some channels."""
        spec, (low, high) = self.layers.specs[number], channels
        start, end = segment
        size = high - low
        if number == start:
            src = self._place(spec.src, (seen.low, seen.high))
        else:
            before = self.made[-1].dst
            view = BandView(before.buffer, before.shape, self.first)
            src = view.part(0, size, (seen.low, seen.high))
        if number == end - 1:
            found, view = self.layers.of(spec.dst), self.views[spec.dst.buffer]
            first = found.channel(spec.dst) + low
            dst = view.part(first, size, (seen.first, seen.behind))
        else:
            dst = self._new((size, seen.behind - seen.first, spec.dst.shape[2])).whole()
        self.first = seen.first
        arg = spec.arg.replace(o_ch_num=size)
        arg = arg if number == start else arg.replace(i_ch_num=size)
        arg = with_lines(arg, seen.high - seen.low, seen.behind - seen.first)
        arg = arg.replace(pool_top=seen.pads[0], pool_bottom=seen.pads[1])
        if not arg.pool_task:
            arg = arg.with_loads(True)
        made = dataclasses.replace(
            spec, arg=arg, src=src, dst=dst, **self._tables(number, channels)
        )
        self._append(made)

    def _tables(self, number: int, channels: Range) -> dict[str, Any]:
        """Weights and batch norm of some output channels, the same arrays each time."""
        key = number, *channels
        if key not in self.tables:
            spec, (low, high) = self.layers.specs[number], channels
            taps = spec.arg.taps
            weights = spec.weights[low * taps : high * taps]
            self.tables[key] = {"weights": weights, "bn": spec.bn[low:high]}
        return self.tables[key]

    # -------------------------------------------------------------------- leaving
    def _leave(
        self,
        chain: Chain,
        band: int,
        number: int,
        windows: dict[int, Window],
        need: Range,
    ) -> None:
        """Lines that a layer has written go to where the map lies."""
        spec = self.layers.specs[number]
        buffer, found = spec.dst.buffer, self.layers.of(spec.dst)
        if not self.planner.leaves(found, chain):
            return
        view, height = self.views[buffer], found.shape[1]
        own = height * band // chain.bands, height * (band + 1) // chain.bands
        if buffer not in self.plan.stored:
            if view is not self.resident.get(buffer):
                kept, channels = self.resident[buffer], spec.dst.shape[0]
                first = found.channel(spec.dst)
                moved = (v.part(first, channels, need) for v in (view, kept))
                self._copy(spec, *moved)
            elif found.wanted and self.made[-1].dst != (whole := self._place(spec.dst, own)):
                self._copy(spec, whole, whole, in_order=True)  # parts of its channels
            self.results.setdefault(number, []).append((own, self.made[-1], 0))
            return
        if number != max(n for n in found.writers if n in windows):
            return
        last = self.made[-1]
        if last.dst == view.whole() and (view.first, view.first + view.shape[1]) == own:
            last.stores = "piece"
        else:
            out = self._new((found.shape[0], own[1] - own[0], found.shape[2])).whole()
            last = self._copy(spec, view.part(0, found.shape[0], own), out, stores="piece")
        self.pieces.setdefault(buffer, []).append((own, last))
        for writer in found.writers:
            channel = found.channel(self.layers.specs[writer].dst)
            self.results.setdefault(writer, []).append((own, last, channel))


@functools.lru_cache(maxsize=64)
def _copy_fit(channels: int) -> requant.Fit:
    return copy_fit(0, channels)


@functools.lru_cache(maxsize=64)
def _copy_weights(channels: int) -> np.ndarray:
    return np.ones(channels, np.uint8)


def _copy_tables(channels: int) -> dict[str, Any]:
    assert channels <= MOST_MOVED
    fit = _copy_fit(channels)
    return {"weights": _copy_weights(channels), "bn": fit.bn, "act": fit.act}
