# SPDX-License-Identifier: Apache-2.0
"""Cycles of whole models and networks: their runs in sequence, and the moves of maps between them.

A run is a sequence of layers that the device executes without the host, up to a layer whose map the
CPU reads (docs/architecture.md 15.10). Between runs the host moves maps, which MapMoves counts.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from openkpu.configs import Config
from openkpu.kmodel.execute import runs_of, wanted_maps
from openkpu.kmodel.program import Download, KpuLayer, Operation, Program, Upload, View
from openkpu.kmodel.residence.map_plan import MapPlan, maps_to_bring, segment_parts
from openkpu.kmodel.residence.resident import keep_all
from openkpu.layer.airam import bytes_of
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import AI_RAM_ROWS, ROW_BYTES, Layout
from openkpu.network.network import Network, alignment
from openkpu.prediction import cycles, cycles_maps
from openkpu.prediction.cycles import LayerCycles
from openkpu.prediction.cycles_shape import late_reads
from openkpu.prediction.spare import rows_of_network, rows_of_programs
from openkpu.words import MAPS, WAYS

# Cycles of registers and interrupts of a run, besides those of its layers: preparing it, and
# serving its interrupt where no map comes through the FIFO; of a task list, of a further one.
PREPARE, SERVE = 9, 9
TASK_FIRST, TASK_NEXT = 22, 36


@dataclasses.dataclass(frozen=True)
class Predicted:
    """A model or network: its layers in order of execution, and the cycles between the runs."""

    names: list[str]
    layers: list[LayerCycles]
    host_maps: int = 0  # cycles in which the host moves maps
    other: int = 0  # registers and interrupts
    sizes: list[int] = dataclasses.field(default_factory=list)  # layers of each run

    @property
    def runs(self) -> list[list[LayerCycles]]:
        """The layers of each run."""
        ends = list(itertools.accumulate(self.sizes))
        return [self.layers[end - size : end] for size, end in zip(self.sizes, ends, strict=True)]

    @property
    def cycles(self) -> int:
        """From the first access for the input to the last byte of the result."""
        return sum(layer.cycles for layer in self.layers) + self.host_maps + self.other


class MapMoves:
    """Tracks the maps that the host moves between the runs of a model, and their cycles.

    A byte of the AI RAM is held when the device or the host has written it since the CPU last
    changed its value.  Uploading the same map to the same place again has no effect.
    """

    def __init__(self, late: int = 0) -> None:
        """``late``: cycles that the host waits for a read besides."""
        self.late = late
        self.stored: set[Layout] = set()  # maps that the last segment left in storage
        self.held = np.zeros(AI_RAM_ROWS * ROW_BYTES, dtype=bool)
        self.sources: dict[Layout, View] = {}  # of uploads, as long as source and place stay
        self.cycles = 0

    def upload(self, op: Upload) -> None:
        """The CPU sets the values of maps in the AI RAM."""
        if self.sources.get(op.layout) == op.src:
            return
        for layout in op.layout.batches(op.src.shape[0]):
            self._written(layout)
            self.held[bytes_of(layout)] = False
        self.sources[op.layout] = op.src

    def touch(self, op: Operation) -> None:
        """An operation of the CPU may write any of its views."""
        self.sources = {
            layout: source
            for layout, source in self.sources.items()
            if not any(map(source.meets, op.views))
        }

    def learn(self, layout: Layout) -> None:
        """The device wrote a map, or reads it from storage itself."""
        self._written(layout)
        self.held[bytes_of(layout)] = True

    def _written(self, layout: Layout) -> None:
        """Uploads to these rows are overwritten."""
        self.sources = {
            other: source
            for other, source in self.sources.items()
            if not any(map(layout.meets, other.batches(source.shape[0])))
        }

    def bring_up(self, args: Sequence[LayerArg], plan: MapPlan | None = None) -> None:
        """Before a segment: move the bytes that its layers read and that are not in the AI RAM."""
        missing = maps_to_bring(args, lambda at: ~self.held[at], plan is not None)
        for number, layout, at in missing:
            if layout is None:
                self.cycles += cycles_maps.HOST_ACCESS * at.size + 1
            elif plan is None or layout != args[number].in_layout:
                self.cycles += cycles_maps.host_moves(layout)
            else:
                plan.load(number, layout)
            self.held[at] = True

    def download(self, layout: Layout) -> None:
        """The host reads a map, if it is in the AI RAM and was not stored."""
        if layout not in self.stored and self.held[bytes_of(layout)].all():
            self.cycles += cycles_maps.host_moves(layout, self.late)


class _Model:
    """The runs of a model in sequence."""

    def __init__(self, config: Config, via: str, dma: bool, spare: int) -> None:
        self.config, self.via, self.dma, self.spare = config, via, dma, spare
        self.moves = MapMoves(late_reads(config))
        self.names: list[str] = []
        self.layers: list[LayerCycles] = []
        self.sizes: list[int] = []
        self.other = self.index = 0

    def program(self, program: Program) -> None:
        """All operations of a program."""
        runs = list(runs_of(program.operations))
        for number, run in enumerate(runs):
            if isinstance(run, list):
                self.segment(run, wanted_maps(runs[number + 1 :]))
            elif isinstance(run, Upload):
                self.moves.upload(run)
                continue
            elif isinstance(run, Download):
                for layout in run.layout.batches(run.dst.shape[0]):
                    self.moves.download(layout)
            for op in run if isinstance(run, list) else [run]:
                self.moves.touch(op)

    def segment(self, ops: list[KpuLayer], wanted: Sequence[Layout]) -> None:
        """Layers without CPU work in between; cut after a map for main memory."""
        steps = [(op, op.argument(batch)) for op in ops for batch in range(op.batches)]
        for number, op in enumerate(ops, self.index):
            self.names += [f"L{number:02d}" + (f".{b}" if b else "") for b in range(op.batches)]
        self.index += len(ops)
        if self.via == "tasks":
            self.moves.learn(steps[0][1].in_layout)
        args, to_main = [arg for _, arg in steps], [op.main_out is not None for op, _ in steps]
        parts, plan = segment_parts(to_main), MapPlan(0)
        if self.dma and self.via == "tasks":
            plan.store_wanted(args, wanted, [part[-1] for part in parts])
        elif self.dma:
            plan.store_all(args, to_main, wanted)
        self.moves.stored = set()
        self.moves.bring_up(args, plan if self.dma else None)
        for part in parts:
            last, maps = steps[part[-1]][0], [args[n].replace(**plan.fields(n)) for n in part]
            self.part(maps, last.eight_bit, last.main_out is not None, part[0] == 0)
        for arg in args:
            self.moves.learn(arg.out_layout)
        self.moves.stored |= {layout for _, layout in plan.stores.values()}

    def part(self, args: list[LayerArg], eight_bit: bool, to_main: bool, first: bool) -> None:
        """One run of the device, or one for each layer."""
        tasks, alone = self.via == "tasks", self.via == "layers"
        if tasks:
            if args[0].load_map:  # the list loads it as its image
                args[0] = args[0].replace(load_map=0, map_load_addr=0)
            elif not first:
                self.moves.download(args[0].in_layout)
            if self.dma:
                self.moves.stored.add(args[-1].out_layout)
        for chosen in [[arg] for arg in args] if alone else [args]:
            out = to_main and not (self.dma or tasks) and chosen[-1] is args[-1]
            found = cycles.predict_layers(
                self.config,
                chosen,
                eight_bit=eight_bit,
                tasks=tasks,
                to_host=out,
                spare=self.spare,
            )
            if tasks:
                self.other += TASK_NEXT if self.sizes else TASK_FIRST
            else:
                self.other += PREPARE + (found.after if out else SERVE)
            self.layers += found.layers
            self.sizes.append(len(found.layers))


def predict_model(
    config: Config, programs: Sequence[Program], size: int, via: str = "burst", maps: str = "dma"
) -> Predicted:
    """A model's programs, a file of ``size`` bytes in storage; ``via`` as in WAYS, ``maps`` as in
    MAPS (ValueError)."""
    for name, value, known in (("way", via, WAYS), ("maps", maps, MAPS)):
        if value not in known:
            raise ValueError(f"unknown {name} {value!r}, expected one of {', '.join(known)}")
    if maps == "dma":
        programs, _ = keep_all(programs, size, config)
    model = _Model(config, via, maps == "dma", rows_of_programs(config, programs)[1])
    for program in programs:
        model.program(program)
    return Predicted(model.names, model.layers, model.moves.cycles, model.other, model.sizes)


def predict_network(config: Config, network: Network, *, inferences: int = 1) -> Predicted:
    """A network as a task list, for ``inferences`` in one continuous run; the prediction has the
    layers of all of them."""
    args = network.with_moves(0, alignment(config))[0].layers
    found = cycles.predict_layers(
        config,
        args,
        eight_bit=network.eight_bit,
        tasks=True,
        inferences=inferences,
        spare=rows_of_network(config, network)[1],
    )
    names = [f"L{number % len(args):02d}" for number in range(len(found.layers))]
    return Predicted(names, found.layers, other=1, sizes=[len(names)])
