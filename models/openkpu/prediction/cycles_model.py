# SPDX-License-Identifier: Apache-2.0
"""Cycles of whole models and networks: their runs one after the other, and the maps between them.

A run is what the device does without anybody's help: layers up to one whose map the CPU reads
(docs/architecture.md 15.10). Between runs the host moves maps, which MapMoves counts.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import round_up
from openkpu.configs import Config
from openkpu.kmodel.program import Download, KpuLayer, Operation, Program, Upload, View
from openkpu.kmodel.residence.resident import keep_all
from openkpu.layer import airam
from openkpu.layer.argument import WORDS, LayerArg
from openkpu.layer.layout import AI_RAM_ROWS, ROW_BYTES, Layout, map_bytes
from openkpu.network.network import Network, alignment
from openkpu.prediction import cycles, cycles_maps
from openkpu.prediction.cycles import LayerCycles
from openkpu.prediction.cycles_front import Tasks
from openkpu.words import MAPS, WAYS

BURST = 12  # layers that a host pushes at a time
FILE_AT = 0x100  # where a model's file begins in storage
ALIGN, RESULT_ALIGN = 64, 16  # of what lies behind it: bytes
# Cycles of registers and interrupts of a run, besides those of its layers: preparing it, and
# serving its interrupt where no map comes through the FIFO; of a task list, of a further one.
PREPARE, SERVE = 9, 9
TASK_FIRST, TASK_NEXT = 22, 36


@dataclasses.dataclass(frozen=True)
class Predicted:
    """A model or network: layers in the order in which they run, and what goes on besides."""

    names: list[str]
    layers: list[LayerCycles]
    host_maps: int = 0  # cycles in which the host moves maps
    other: int = 0  # registers and interrupts
    sizes: list[int] = dataclasses.field(default_factory=list)  # layers of each run

    @property
    def runs(self) -> list[list[LayerCycles]]:
        """The layers of each run: what the device does without the host."""
        ends = list(itertools.accumulate(self.sizes))
        return [self.layers[end - size : end] for size, end in zip(self.sizes, ends, strict=True)]

    @property
    def cycles(self) -> int:
        """From the first access for the input to the last byte of the result."""
        return sum(layer.cycles for layer in self.layers) + self.host_maps + self.other


class MapMoves:
    """Which maps the host moves between the runs of a model, and what that takes.

    A byte of the AI RAM is held when the device or the host has put it there since the CPU's work
    changed it.  The same map put to the same place again changes nothing.
    """

    def __init__(self, dma: bool = False) -> None:
        """``dma``: the device itself moves whole maps."""
        self.dma = dma
        self.stored: set[Layout] = set()  # maps that the last segment left in storage
        self.held = np.zeros(AI_RAM_ROWS * ROW_BYTES, dtype=bool)
        self.index = np.arange(self.held.size, dtype=np.int32)
        self.sources: dict[Layout, View] = {}  # of uploads, as long as source and place stay
        self.cycles = 0

    def _bytes(self, layout: Layout) -> npt.NDArray[np.int32]:
        return airam.read_rows(self.index, layout)

    def upload(self, op: Upload) -> None:
        """The CPU's work gives maps of the AI RAM their values."""
        if self.sources.get(op.layout) == op.src:
            return
        for layout in op.layout.batches(op.src.shape[0]):
            self._written(layout)
            self.held[self._bytes(layout)] = False
        self.sources[op.layout] = op.src

    def touch(self, op: Operation) -> None:
        """An operation of the CPU may write what it names."""
        self.sources = {
            layout: source
            for layout, source in self.sources.items()
            if not any(_meet(source, view) for view in op.views)
        }

    def learn(self, layout: Layout) -> None:
        """The device wrote a map, or reads it from storage itself."""
        self._written(layout)
        self.held[self._bytes(layout)] = True

    def _written(self, layout: Layout) -> None:
        """What was uploaded to these rows is there no more."""
        first, stop = layout.base, layout.base + layout.rows
        self.sources = {
            other: source
            for other, source in self.sources.items()
            if stop <= other.base or other.base + other.rows * source.shape[0] <= first
        }

    def bring_up(self, args: Sequence[LayerArg], plan: _Places | None = None) -> None:
        """Before a segment: what its layers read and nobody has put there."""
        made = np.zeros(self.held.size, dtype=bool)
        for number, arg in enumerate(args):
            at = self._bytes(arg.in_layout)
            missing = ~(self.held[at] | made[at])
            if missing.any():
                if made[at].any():  # single bytes of a map that is partly the device's own
                    self.cycles += cycles_maps.HOST_ACCESS * int(missing.sum()) + 1
                elif plan is not None:
                    plan.load(number, arg.in_layout)
                    made[at] = True
                else:
                    self.cycles += cycles_maps.host_moves(arg.in_layout)
                self.held[at] = True
            made[self._bytes(arg.out_layout)] = True

    def download(self, layout: Layout) -> None:
        """The host reads a map, if it is there at all and was not left in storage."""
        if layout not in self.stored and self.held[self._bytes(layout)].all():
            self.cycles += cycles_maps.host_moves(layout)


class _Places:
    """Maps of a segment that its layers load and store (tb/openkpu_tb/device/map_plan.py)."""

    def __init__(self, at: int) -> None:
        """``at``: first byte of storage that is free."""
        self.at = at
        self.fields: dict[int, dict[str, int]] = {}  # of the arguments, by place in the segment
        self.stores: dict[int, Layout] = {}

    def load(self, number: int, layout: Layout) -> None:
        """The layer reads its map from storage."""
        self.fields.setdefault(number, {}).update(load_map=1, map_load_addr=self._room(layout))

    def store(self, number: int, layout: Layout) -> None:
        """The layer's map goes to storage."""
        self.stores[number] = layout
        fields = {"store_map": 1, "map_store_addr": self._room(layout), "send_data_out": 0}
        self.fields.setdefault(number, {}).update(fields)

    def store_wanted(
        self, args: Sequence[LayerArg], wanted: Sequence[Layout], but: Sequence[int] = ()
    ) -> None:
        """Every map that the CPU reads next, unless it leaves otherwise as that of ``but``."""
        for layout in wanted:
            for number in reversed(range(len(args))):
                out = args[number].out_layout
                if out == layout and number not in {*but, *self.stores}:
                    self.store(number, layout)
                if out.base < layout.base + layout.rows and layout.base < out.base + out.rows:
                    break  # what lay there before is overwritten

    def _room(self, layout: Layout) -> int:
        size = map_bytes((layout.channels, layout.height, layout.width))
        at, self.at = self.at, self.at + round_up(size, ALIGN)
        return at


def _meet(one: View, other: View) -> bool:
    """Two tensors have bytes in common, or may have."""
    apart = one.start + one.size <= other.start or other.start + other.size <= one.start
    return one.space == other.space and not apart


def _groups(operations: Sequence[Operation]) -> Iterator[list[Operation]]:
    """Operations one by one, KPU layers together up to one whose map the CPU reads."""
    found: list[Operation] = []
    for op in operations:
        if isinstance(op, KpuLayer):
            found.append(op)
            if op.main_out is None:
                continue
        if found:
            yield found
            found = []
        if not isinstance(op, KpuLayer):
            yield [op]
    if found:
        yield found


def _wanted(groups: Sequence[list[Operation]]) -> list[Layout]:
    """Maps that are downloaded before the next layer."""
    found: list[Layout] = []
    for first, *_ in groups:
        if isinstance(first, KpuLayer):
            break
        if isinstance(first, Download):
            found += first.layouts
    return found


def _placed(arg: LayerArg) -> LayerArg:
    """With the addresses of its tables in storage."""
    return arg.replace(
        para_start_addr=FILE_AT + arg.para_start_addr,
        bwsx_base_addr=FILE_AT + arg.bwsx_base_addr,
        active_addr=FILE_AT + arg.active_addr,
    )


class _Model:
    """The runs of a model, one after the other."""

    def __init__(self, config: Config, size: int, via: str, dma: bool) -> None:
        self.config, self.size, self.via, self.dma = config, size, via, dma
        self.moves = MapMoves()
        self.names: list[str] = []
        self.layers: list[LayerCycles] = []
        self.sizes: list[int] = []
        self.other = 0
        self.index = 0

    def program(self, program: Program) -> None:
        """All operations of a program."""
        groups = list(_groups(program.operations))
        for number, group in enumerate(groups):
            first = group[0]
            if isinstance(first, KpuLayer):
                ops = [op for op in group if isinstance(op, KpuLayer)]
                self.segment(ops, _wanted(groups[number + 1 :]))
            elif isinstance(first, Upload):
                self.moves.upload(first)
                continue
            elif isinstance(first, Download):
                for layout in first.layout.batches(first.dst.shape[0]):
                    self.moves.download(layout)
            for op in group:
                self.moves.touch(op)

    def segment(self, ops: list[KpuLayer], wanted: list[Layout]) -> None:
        """Layers with nothing for the CPU in between; cut behind a map for main memory."""
        steps = [(op, op.argument(batch)) for op in ops for batch in range(op.batches)]
        for op in ops:
            names = [f"L{self.index:02d}" + (f".{b}" if b else "") for b in range(op.batches)]
            self.names += names
            self.index += 1
        if self.via == "tasks":
            self.moves.learn(steps[0][1].in_layout)
        plan = self.plan(steps, wanted) if self.dma else None
        self.moves.stored = set()
        self.moves.bring_up([arg for _, arg in steps], plan)
        if plan is not None:
            steps = [
                (op, arg.replace(**plan.fields.get(number, {})))
                for number, (op, arg) in enumerate(steps)
            ]
        part: list[tuple[KpuLayer, LayerArg]] = []
        first = True
        for op, arg in steps:
            part.append((op, arg))
            if op.main_out is not None:
                self.part(part, first)
                part, first = [], False
        if part:
            self.part(part, first)
        for _, arg in steps:
            self.moves.learn(arg.out_layout)
        if plan is not None:
            self.moves.stored |= set(plan.stores.values())

    def plan(self, steps: list[tuple[KpuLayer, LayerArg]], wanted: list[Layout]) -> _Places:
        """Which maps the layers of a segment store, as the driver has it (Driver._plan)."""
        args = [arg for _, arg in steps]
        largest = max(map_bytes(s) for arg in args for s in (arg.in_shape, arg.out_shape))
        sizes = (FILE_AT + self.size, 8 * WORDS * len(args), largest, largest)
        plan = _Places(sum(round_up(size, ALIGN) for size in sizes))
        to_main = [number for number, (op, _) in enumerate(steps) if op.main_out is not None]
        if self.via == "tasks":
            plan.store_wanted(args, wanted, [*to_main, len(args) - 1])
            return plan
        for number in to_main:
            plan.store(number, args[number].out_layout)
        plan.store_wanted(args, wanted)
        return plan

    def part(self, steps: list[tuple[KpuLayer, LayerArg]], first: bool) -> None:
        """One run of the device, or one for each layer."""
        args = [_placed(arg) for _, arg in steps]
        eight_bit, to_main = steps[-1][0].eight_bit, steps[-1][0].main_out is not None
        if self.via == "tasks":
            if args[0].load_map:  # the list itself brings it
                args[0] = args[0].replace(load_map=0, map_load_addr=0)
            elif not first:
                self.moves.download(args[0].in_layout)
            found = cycles.predict_layers(
                self.config, args, eight_bit=eight_bit, tasks=_tasks(self.size, args)
            )
            if self.dma:
                self.moves.stored.add(args[-1].out_layout)
            self.other += TASK_NEXT if self.sizes else TASK_FIRST
            self._took(found.layers)
            return
        alone = self.via == "layers"
        for number, chosen in enumerate([[arg] for arg in args] if alone else [args]):
            out = to_main and not self.dma and (not alone or number == len(args) - 1)
            found = cycles.predict_layers(
                self.config,
                chosen,
                eight_bit=eight_bit,
                burst=BURST,
                to_host=out,
            )
            self.other += PREPARE + (found.after if out else SERVE)
            self._took(found.layers)

    def _took(self, layers: list[LayerCycles]) -> None:
        """A run is over."""
        self.layers += layers
        self.sizes.append(len(layers))


def _tasks(size: int, args: Sequence[LayerArg]) -> Tasks:
    """Where list, input and result of a run lie, behind a file of ``size`` bytes."""
    list_at = round_up(FILE_AT + size, ALIGN)
    pixels = round_up(list_at + 8 * WORDS * len(args), ALIGN)
    result = round_up(pixels + map_bytes(args[0].in_shape), RESULT_ALIGN)
    return Tasks(list_at, pixels, result)


def predict_model(
    config: Config, programs: Sequence[Program], size: int, via: str = "burst", maps: str = "dma"
) -> Predicted:
    """A model's programs, a file of ``size`` bytes in storage; ``via`` as in WAYS, ``maps`` as in
    MAPS (ValueError)."""
    for name, value, known in (("way", via, WAYS), ("maps", maps, MAPS)):
        if value not in known:
            raise ValueError(f"unknown {name} {value!r}, expected one of {', '.join(known)}")
    if maps == "dma":
        programs, tail = keep_all(programs, size, config)
        size += len(tail)
    model = _Model(config, size, via, maps == "dma")
    for program in programs:
        model.program(program)
    return Predicted(model.names, model.layers, model.moves.cycles, model.other, model.sizes)


def predict_network(
    config: Config,
    network: Network,
    count: int = 1,
    *,
    align: int | None = None,
    inferences: int = 1,
) -> Predicted:
    """A network as a task list: ``count`` input maps in storage, blobs at multiples of ``align``,
    by default as ``network.alignment`` has it.

    ``inferences`` in one continuous run, whose layers are all given.
    """
    align = alignment(config) if align is None else align
    images = np.broadcast_to(np.uint8(0), (count, *network.in_shape))
    at = network.storage(images, align=align).registers
    moved, _ = network.with_moves(0, align)
    args = [
        arg.replace(
            para_start_addr=arg.para_start_addr + (0 if arg.kept_weights else at["AI_WGT_ADR"]),
            bwsx_base_addr=at["AI_BIAS_ADR"] + arg.bwsx_base_addr,
            active_addr=at["AI_BIAS_ADR"] + arg.active_addr,
        )
        for arg in moved.layers
    ]
    tasks = Tasks(
        list_at=at["AI_LIST_ADR"],
        pixels_at=at["AI_PIX_ADR"],
        result_at=at["AI_RES_ADR"],
        pixels_stride=at["AI_PIX_STRIDE"],
        result_stride=at["AI_RES_STRIDE"],
    )
    found = cycles.predict_layers(
        config, args, eight_bit=network.eight_bit, tasks=tasks, inferences=inferences
    )
    names = [f"L{number % len(args):02d}" for number in range(len(found.layers))]
    return Predicted(names, found.layers, other=1, sizes=[len(names)])
