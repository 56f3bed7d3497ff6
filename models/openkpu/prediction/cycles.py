# SPDX-License-Identifier: Apache-2.0
"""Cycles of layers, segments and models without a simulator (docs/architecture.md 15).

A model of the machine's parts on a time line, each with the constants of its RTL: what runs ahead
(cycles_front, cycles_bus), the array (cycles_array), pooling tasks (cycles_pool), maps on their way
(cycles_maps). Cycles are those of the reports: PERF_TOTAL from one layer's end to the next one's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial

from openkpu.configs import Config
from openkpu.layer.argument import LIST_BYTES, LayerArg
from openkpu.layer.layout import Layout, map_bytes
from openkpu.prediction import cycles_fp16, cycles_pool
from openkpu.prediction import cycles_maps as maps
from openkpu.prediction.cycles_array import Engine
from openkpu.prediction.cycles_front import Front, Tasks
from openkpu.prediction.cycles_load import PixelLoad
from openkpu.prediction.cycles_shape import FC, POOL, Shape
from openkpu.prediction.cycles_words import HostWords

BOUNDS = ("array", "bus", "input", "output", "control")
LINE_SEEN = 1  # from a line's being there for the start of a layer to the walk of its stripe
LAST_LINE = -1  # ... the last one's, to the end of a layer at the earliest
DONE = 2  # from the end of a layer's work to layer_done
NEXT = 4  # ... to the start of the next one
ASKS = 2  # from the start of a fully connected layer to the request of the next pixels
START = 1  # from the head of the queue to the start
PUSHED = 1  # from the first busy cycle to the first word that the decoder sees


@dataclasses.dataclass(frozen=True)
class LayerCycles:
    """One layer of a run: cycles, and how many the array worked or waited for what."""

    shape: Shape
    cycles: int
    parts: dict[str, int]  # by BOUNDS, they add up to ``cycles``
    reads: int = 0  # bytes of words, weights and tables that come from storage for it
    loads: int = 0  # ... of its input map
    stores: int = 0  # ... of its output map that go there

    @property
    def bound(self) -> str:
        """What the layer spends most cycles on."""
        return max(BOUNDS, key=lambda name: self.parts[name])

    @property
    def leaves(self) -> bool:
        """Its map goes to storage while it computes."""
        return self.stores > 0


@dataclasses.dataclass(frozen=True)
class Run:
    """The layers of a run, and cycles until the host has read the last byte of a map for it."""

    layers: list[LayerCycles]
    after: int = 0


def predict_layers(
    config: Config,
    layers: Sequence[LayerArg],
    *,
    eight_bit: bool = True,
    tasks: Tasks | None = None,
    inferences: int = 1,
    burst: int = 12,
    to_host: bool = False,
) -> Run:
    """Layers that run one after the other, from an idle device on.

    ``tasks``: as a task list from storage, for so many ``inferences`` in one continuous run;
    otherwise by the host, ``burst`` layers at a time; then ``to_host``: the last one's map leaves
    through the result FIFO.
    """
    shapes = [Shape(config, arg, eight_bit) for arg in layers]
    front = Front(config, shapes, burst=burst, tasks=tasks, inferences=inferences)
    ask, free = _prefetch(shapes)
    found, after = [], 0
    start = loads = 0  # of the layer at the earliest; maps that were asked for
    before = 0 if tasks else -PUSHED  # then layer_done of the layer before
    for number, shape in enumerate(front.shapes):
        place, last = number % len(shapes), (number + 1) % len(shapes) == 0
        follows = number // len(shapes) + 1 < inferences
        begin = ready = max(front.head(number) + START, start)
        load = None
        if shape.arg.load_map:
            front.load(shape, begin + 1, shape.arg.map_load_addr)
        if shape.arg.load_map or (tasks and place == 0):
            load, loads = front.loaded(loads), loads + 1
            there = load.lines[0] if load.by_lines else load.end
            assert there is not None
            begin = max(begin, there + maps.LOADED)
        if follows and place == 0:
            front.place_free(None)
        if follows and place == ask:
            front.pixels(begin + ASKS, number // len(shapes) + 1)
        leaving = None
        if last and tasks:
            address = tasks.result_at + number // len(shapes) * tasks.result_stride
            leaving = maps.Leaving(front, shape.arg, begin, address)
        elif shape.arg.store_map:
            leaving = maps.Leaving(front, shape.arg, begin, shape.arg.map_store_addr)
        parts: dict[str, int] = dict.fromkeys(BOUNDS, 0)
        if shape.mode == POOL:
            end = cycles_pool.predict_pool_task(
                config, shape.arg, begin, leaving.written if leaving else None
            )
            reads = cycles_pool.bound_by_reads(config, shape.arg)
            parts["input" if reads else "output"] = end - begin
        elif shape.arg.fp16:
            floats = cycles_fp16.predict_fp16_layer(shape, front, begin)
            end = floats.end
            parts["array"], parts["bus"] = floats.steps, floats.weights
            parts["output"] = floats.output
        else:
            engine = Engine(shape, front, begin)
            if leaving is not None:
                engine.advance = leaving.advance
                engine.out.whole = leaving.written
                engine.tile.reads = leaving.reader.fills
                leaving.reader.stolen = engine.tile.wait
            if load is not None and load.by_lines:
                engine.tile.line = partial(_line, front, load)
                engine.out.writes = front.pixel_in.writes
            end = engine.run()
            if load is not None and load.by_lines:
                line = front.line(load, load.layout.height - 1)
                end = max(end, line + maps.LOADED + LAST_LINE)
            parts["array"] = engine.issues
            parts["bus"], parts["input"] = engine.waits.weights, engine.waits.input
            parts["output"] = engine.waits.output + end - engine.now
        work = end
        if leaving is not None:
            end = max(end, leaving.end(end))
        elif last and to_host:
            assert isinstance(front.words, HostWords)
            polls = front.words.pushed(len(shapes), front)
            end, read = maps.to_host(config, shape.arg, end, polls)
            after = read - (end + DONE)
        parts["bus"] += end - work + begin - ready
        front.leave(shape, end + DONE)
        if follows and place == free:
            if ask is None:
                front.pixels(end + DONE + 1, number // len(shapes) + 1)
            front.place_free(end + DONE + 1)
        cycles = end + DONE - before
        parts["control"] = cycles - sum(parts.values())
        reads = sum(size for part in front.reads(number) for _, size in part)
        reads += LIST_BYTES if tasks else 0
        comes = map_bytes(shape.arg.in_shape) if load else 0
        goes = map_bytes(shape.arg.out_shape) if leaving else 0
        found.append(LayerCycles(shape, cycles, parts, reads, comes, goes))
        start, before = end + NEXT, end + DONE
    return Run(found, after)


def _line(front: Front, load: PixelLoad, number: int) -> int:
    """Cycle from which on the walk may read a line of a map that is loaded."""
    return front.line(load, number) + maps.LOADED + LINE_SEEN


def _prefetch(shapes: Sequence[Shape]) -> tuple[int | None, int]:
    """When the next inference's pixels come: the layer that asks for them, the first fully
    connected one (None: there is none), and the last layer that uses the input map's place."""
    ask = next((n for n, shape in enumerate(shapes) if shape.mode == FC), None)
    first = shapes[0].arg.in_layout
    if any(shape.arg.load_map for shape in shapes):  # these want the writer for themselves
        ask = None

    def meets(layout: Layout) -> bool:
        return layout.base < first.base + first.rows and first.base < layout.base + layout.rows

    free = max(
        n
        for n, shape in enumerate(shapes)
        if shape.arg.load_map or any(map(meets, [*shape.arg.in_layouts, shape.arg.out_layout]))
    )
    return ask, free
