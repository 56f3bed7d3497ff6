# SPDX-License-Identifier: Apache-2.0
"""Cycles of layers, segments and models without a simulator (docs/architecture.md 15).

A model of the machine's parts on a time line: what runs ahead (cycles_front), the array
(cycles_array), pooling tasks (cycles_pool), maps on their way (cycles_maps). Cycles are those of
the reports: PERF_TOTAL from one layer's end to the next one's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from openkpu.configs import Config
from openkpu.layer.argument import LIST_BYTES, LayerArg
from openkpu.layer.decoded import FC
from openkpu.layer.layout import map_bytes
from openkpu.prediction import cycles_fp16, cycles_pool
from openkpu.prediction import cycles_maps as maps
from openkpu.prediction.cycles_array import Engine
from openkpu.prediction.cycles_front import Front
from openkpu.prediction.cycles_shape import POOL, Shape

BOUNDS = ("array", "bus", "input", "output", "control")
DONE = 2  # from the end of a layer's work to layer_done
NEXT = 4  # ... to the start of the next one
ASKS = 2  # from the start of a fully connected layer to the request of the next pixels
START = 1  # from the head of the queue to the start
FRESH = 3  # from the end of an inference to the request of pixels that it did not ask for
PIXELS_FIRST = 2  # from the first layer's descriptor to the request of its pixels
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
        """The cause of most of the layer's cycles."""
        return max(BOUNDS, key=lambda name: self.parts[name])


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
    tasks: bool = False,
    inferences: int = 1,
    to_host: bool = False,
    spare: int = 0,
) -> Run:
    """Layers that run one after the other, from an idle device on.

    ``tasks``: as a task list from storage, for so many ``inferences`` in one continuous run;
    otherwise by the host; then ``to_host``: the last one's map leaves through the result FIFO.
    ``spare``: rows of the AI RAM in which weights may wait.
    """
    shapes = [Shape(config, arg, eight_bit) for arg in layers]
    front = Front(config, shapes, tasks=tasks, inferences=inferences, spare=spare)
    ask, free = _prefetch(shapes)
    found, after = [], 0
    start = 0  # of the layer at the earliest
    due: int | None = None  # when the next inference's pixels may come
    coming: maps.Coming | None = None  # ... they themselves
    before = 0 if tasks else -PUSHED  # then layer_done of the layer before
    for number, shape in enumerate(front.shapes):
        inference, place = divmod(number, len(shapes))
        last, follows = place == len(shapes) - 1, inference + 1 < inferences
        begin = ready = max(front.head(number) + START, start)
        load = None
        if shape.arg.load_map:
            load = maps.Coming(front, shape, begin + 1, number)
        elif tasks and not place:
            at = int(front.decoded[0]) + PIXELS_FIRST
            if due is not None:
                front.known(front.read_out, number)  # its first reads go before
                at = max(due, before + FRESH, int(front.bus.now) + 2)
            load, coming, due = coming or maps.Coming(front, shape, at, number), None, None
        if load is not None:
            there = load.line(0) if load.band else load.end
            begin = max(begin, there + maps.LOADED)
        if follows and place == ask:
            due = begin + ASKS
        goes = shape.arg.store_map or (last and tasks)
        leaving = maps.Leaving(front, shape.arg) if goes else None
        whole = leaving.written if leaving else lambda at, channels, used: None
        parts: dict[str, int] = dict.fromkeys(BOUNDS, 0)
        if shape.mode == POOL:
            end, by_reads = cycles_pool.predict_pool_task(config, shape.arg, begin, whole)
            parts["input" if by_reads else "output"] = end - begin
        elif shape.arg.fp16:
            end, steps = cycles_fp16.predict_fp16_layer(shape, front, begin)
            parts["array"], parts["bus"] = steps, end - begin - steps
        else:
            bands = load if load is not None and load.band else None
            engine = Engine(shape, front, begin, whole, bands)
            end = max(engine.run(), load.end + maps.LOADED - 1 if load is not None else 0)
            late = front.read_again(number, engine.reads, end - begin)
            end, engine.now = end + late, engine.now + late
            engine.waits["input"] += late
            parts |= engine.waits | {"array": engine.issues}
            parts["output"] += end - engine.now
        work = end
        if leaving is not None:
            end = max(end, leaving.end(end))
        elif last and to_host:
            end, read = maps.to_host(front, shape.arg, end)
            after = read - (end + DONE)
        parts["bus"] += end - work + begin - ready
        front.leave(shape, end + DONE)
        if follows and place == free and ask is None:
            due = end + DONE + 1
        if due is not None and place >= free and coming is None:
            front.advance(end)  # the next inference's first reads go before
            first = (inference + 1) * len(shapes)
            if len(front.read_out) > first:
                at = max(due, int(front.read_out[first]) + 2, end if place == free else 0)
                coming = maps.Coming(front, shapes[0], at, first)
        cycles = end + DONE - before
        parts["control"] = cycles - sum(parts.values())
        reads = sum(front.reads(number)) + (LIST_BYTES if tasks else 0)
        sizes = [map_bytes(at) for at in (shape.arg.in_shape, shape.arg.out_shape)]
        comes, goes = sizes[0] if load else 0, sizes[1] if leaving else 0
        found.append(LayerCycles(shape, cycles, parts, reads, comes, goes))
        start, before = end + NEXT, end + DONE
    return Run(found, after)


def _prefetch(shapes: Sequence[Shape]) -> tuple[int | None, int]:
    """When the next inference's pixels come: the layer that asks for them, the first fully
    connected one (None: there is none), and the last layer that uses the input map's place."""
    ask = next((n for n, shape in enumerate(shapes) if shape.mode == FC), None)
    first = shapes[0].arg.in_layout
    if any(shape.arg.load_map for shape in shapes):  # these want the writer for themselves
        ask = None

    free = max(
        n
        for n, shape in enumerate(shapes)
        if shape.arg.load_map
        or any(map(first.meets, [*shape.arg.in_layouts, shape.arg.out_layout]))
    )
    return ask, free
