# SPDX-License-Identifier: Apache-2.0
"""Running a program: CPU operations here, KPU layers by a callable on an emulated AI RAM.

``walk`` is a generator: it yields the KPU layers that the caller runs, and the maps that the CPU
reads back, and continues with the results sent to it.  ``run_kmodel`` is the plain call: the golden
model, or a callable for each layer.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Container, Generator, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.kmodel.errors import KmodelError
from openkpu.kmodel.program import Download, KpuLayer, Memory, Operation, Program
from openkpu.layer.airam import pack_map, read_rows, write_rows
from openkpu.layer.argument import LayerArg
from openkpu.layer.golden import LayerResult, run_layer
from openkpu.layer.layout import Layout

WORK_MAX = 10**13
DIGITS = 18  # of a number that is read


@dataclasses.dataclass(frozen=True, eq=False)
class KpuStep:
    """One run of the KPU: a layer for one batch."""

    index: int  # number of the layer in the model
    batch: int
    layer: KpuLayer
    arg: LayerArg  # with the addresses of this batch; tables at their offsets in the file
    rounding: str

    @property
    def name(self) -> str:
        """L07, L07.1 for a further batch."""
        return f"L{self.index:02d}" + (f".{self.batch}" if self.batch else "")

    @property
    def weights(self) -> npt.NDArray[np.uint8]:
        return self.layer.weights

    @property
    def bn(self) -> npt.NDArray[np.uint64]:
        return self.layer.bn

    @property
    def act(self) -> npt.NDArray[np.uint64]:
        return self.layer.act

    @property
    def eight_bit(self) -> bool:
        return self.layer.eight_bit

    @property
    def to_main(self) -> bool:
        """The output map goes to main memory too."""
        return self.layer.main_out is not None

    def maps(self, ram: npt.NDArray[np.uint8]) -> list[npt.NDArray[np.uint8]]:
        """The input maps (C, H, W) in an AI RAM: one, or the two of an element-wise layer."""
        return [read_rows(ram, layout).copy() for layout in self.arg.in_layouts]

    def golden(
        self, x: npt.NDArray[np.uint8], x2: npt.NDArray[np.uint8] | None = None
    ) -> npt.NDArray[np.uint8]:
        """The golden model's output map (O, oh, ow) for an input map, or for two."""
        return self.result(x, x2).y

    def result(
        self, x: npt.NDArray[np.uint8], x2: npt.NDArray[np.uint8] | None = None
    ) -> LayerResult:
        """The same with the multiplications counted."""
        return run_layer(
            self.arg,
            x,
            self.weights,
            self.bn,
            self.act,
            x2=x2,
            eight_bit=self.eight_bit,
            rounding=self.rounding,
        )


@dataclasses.dataclass(eq=False)
class KpuOutcome:
    """The result of a step, as an executor returns it."""

    y: npt.NDArray[np.uint8] | None  # (O, oh, ow); None: read it from ``ram``
    ram: npt.NDArray[np.uint8] | None = None  # AI RAM afterwards; None: the map is written there
    info: Any = None  # cycles or other data of the caller


@dataclasses.dataclass(frozen=True, eq=False)
class Segment:
    """Layers with nothing for the CPU in between; answered with a list of outcomes.

    Only the last one's map may go to main memory.
    """

    steps: list[KpuStep]
    ram: npt.NDArray[np.uint8]  # the CPU's copy of the AI RAM before the first
    wanted: tuple[Layout, ...] = ()  # maps in the AI RAM that the CPU reads before the next segment

    @property
    def to_main(self) -> list[bool]:
        """Of each layer: its map goes to main memory."""
        return [step.to_main for step in self.steps]


@dataclasses.dataclass(frozen=True, eq=False)
class Fetch:
    """The CPU reads maps of this layout from the AI RAM in sequence; answered with the list of
    maps, or None when they are not there and the CPU uses its own copies."""

    layout: Layout
    count: int


@dataclasses.dataclass(frozen=True, eq=False)
class LayerEvent:
    """A finished layer, for the hook."""

    step: KpuStep
    x: npt.NDArray[np.uint8]
    y: npt.NDArray[np.uint8]
    expected: npt.NDArray[np.uint8] | None  # the golden model's map when it was compared
    selected: bool  # ran on the given executor (otherwise on the golden model)
    info: Any
    golden: LayerResult | None = None  # the golden model's complete result, if it ran

    @property
    def index(self) -> int:
        return self.step.index

    @property
    def name(self) -> str:
        return self.step.name

    @property
    def arg(self) -> LayerArg:
        return self.step.arg

    @property
    def wrong(self) -> int:
        """Pixels that differ from the golden model's."""
        return 0 if self.expected is None else int(np.count_nonzero(self.y != self.expected))


Kpu = Callable[[KpuStep, npt.NDArray[np.uint8]], KpuOutcome]
Hook = Callable[[LayerEvent], None]
Inputs = dict[str, npt.NDArray] | list[npt.NDArray] | npt.NDArray


@dataclasses.dataclass(eq=False)
class ModelResult:
    """Outputs by name, and the memory after the run."""

    outputs: dict[str, npt.NDArray]
    memory: Memory
    layers: int  # KPU layers that ran
    wrong: int  # pixels that differed from the golden model, where compared

    @property
    def output(self) -> npt.NDArray:
        """The first output."""
        return next(iter(self.outputs.values()))


def golden_kpu(step: KpuStep, ram: npt.NDArray[np.uint8]) -> KpuOutcome:
    """The default executor."""
    return KpuOutcome(step.golden(*step.maps(ram)))


def parse_layers(text: str, count: int) -> range:
    """Layers "3-7", "5", "4-" or "-2" of a model with ``count`` of them; KmodelError if none."""
    match = re.fullmatch(r"\s*(\d*)\s*(-?)\s*(\d*)\s*", text)
    if match is None or not (match[1] or match[3]):
        raise KmodelError(f"layers {text!r}: expected for example 3-7 or 5")
    # Python refuses to parse a number of thousands of digits
    if max(len(match[1]), len(match[3])) > DIGITS:
        raise KmodelError(f"layers {text[:DIGITS]!r}...: the model has layers 0-{count - 1}")
    first = int(match[1] or 0)
    last = int(match[3]) if match[3] else (count - 1 if match[2] else first)
    if not first <= last < count:
        raise KmodelError(f"layers {text!r}: the model has layers 0-{count - 1}")
    return range(first, last + 1)


def run_kmodel(
    program: Program,
    inputs: Inputs,
    *,
    kpu: Kpu | None = None,
    hook: Hook | None = None,
    layers: Container[int] | None = None,
    compare: bool = False,
    rounding: str = "nncase",
    work_max: int = WORK_MAX,
) -> ModelResult:
    """Run the program on its inputs (NCHW arrays, by name or in order).

    ``kpu`` runs the layers in ``layers`` (default: all), the golden model the others.  ``compare``
    runs the golden model as well, on the same input map.  ``hook`` gets every finished layer in
    order.  The model continues with the result of ``kpu``, right or wrong.  KmodelError for inputs
    of the wrong shape and for more than ``work_max`` elementary steps.
    """
    walker = walk(
        program,
        inputs,
        hook=hook,
        layers=() if kpu is None else layers,
        compare=compare,
        rounding=rounding,
        work_max=work_max,
        one_by_one=True,
    )
    answer: list[KpuOutcome] | None = None
    while True:
        try:
            request = walker.send(answer)
        except StopIteration as stop:
            return stop.value
        answer = None
        if kpu is not None and isinstance(request, Segment):
            answer = [kpu(step, request.ram) for step in request.steps]


def walk(
    program: Program,
    inputs: Inputs,
    *,
    hook: Hook | None = None,
    layers: Container[int] | None = None,
    compare: bool = False,
    rounding: str = "nncase",
    work_max: int = WORK_MAX,
    one_by_one: bool = False,
) -> Generator[Segment | Fetch, Any, ModelResult]:
    """The program as a generator of the KPU's work; arguments as in ``run_kmodel``.

    Layers outside of ``layers`` run on the golden model and are not yielded.  ``one_by_one``:
    segments of a single layer.
    """
    program.check()
    work = sum(op.work for op in program.operations)
    if work > work_max:
        raise KmodelError(f"{program.file}: {work} steps to run, at most {work_max} are allowed")
    memory = program.new_memory()
    _load(program, memory, inputs)
    wrong = 0
    index = 0
    runs = list(runs_of(program.operations, layers, one_by_one))
    for number_of_run, run_of in enumerate(runs):
        if isinstance(run_of, Operation):
            if isinstance(run_of, Download):
                yield from _fetch(run_of, memory)
            with np.errstate(all="ignore"):
                run_of.run(memory)
            continue
        steps = [
            KpuStep(index + i, batch, op, op.argument(batch), rounding)
            for i, op in enumerate(run_of)
            for batch in range(op.batches)
        ]
        mine = layers is None or index in layers
        wanted = wanted_maps(runs[number_of_run + 1 :])
        maps: list[npt.NDArray[np.uint8]] = []
        for part in [[step] for step in steps] if one_by_one else [steps]:
            outcomes: list[KpuOutcome] | None = None
            if mine:
                outcomes = yield Segment(part, memory["kpu"].copy(), wanted)
                if outcomes is None or len(outcomes) != len(part):
                    raise ValueError(f"{part[0].name}: an outcome for each of {len(part)} expected")
            for number, step in enumerate(part):
                event = _finish(step, memory, outcomes[number] if outcomes else None, compare)
                wrong += event.wrong
                if hook is not None:
                    hook(event)
                maps = [*maps, event.y] if step.batch else [event.y]
        out = steps[-1].layer.main_out
        if out is not None:
            out.of(memory)[...] = np.stack(maps).reshape(out.shape)
        index += len(run_of)
    outputs = {t.name: t.view.of(memory).copy() for t in program.outputs}
    return ModelResult(outputs, memory, index, wrong)


def runs_of(
    operations: list[Operation], layers: Container[int] | None = None, one_by_one: bool = False
) -> Iterator[Operation | list[KpuLayer]]:
    """Operations one by one; layers for the same executor are grouped, up to a layer whose map the
    CPU reads."""
    found: list[KpuLayer] = []
    index, was = 0, True
    for op in operations:
        if not isinstance(op, KpuLayer):
            if found:
                yield found
            found = []
            yield op
            continue
        mine = layers is None or index in layers
        if found and mine != was:
            yield found
            found = []
        found.append(op)
        was = mine
        index += 1
        if one_by_one or op.main_out is not None:
            yield found
            found = []
    if found:
        yield found


def wanted_maps(runs: list[Operation | list[KpuLayer]]) -> tuple[Layout, ...]:
    """Maps that are downloaded before the next layer."""
    found: list[Layout] = []
    for run_of in runs:
        if isinstance(run_of, list):
            break
        if isinstance(run_of, Download):
            found += run_of.layouts
    return tuple(found)


def _fetch(op: Download, memory: Memory) -> Generator[Fetch, Any, None]:
    """Request the maps of a download from the device's AI RAM."""
    rows, shape = op.layout.rows, op.dst.shape[1:]
    maps = yield Fetch(op.layout, op.dst.shape[0])
    for number, y in enumerate(maps or []):
        if y.shape != shape:
            raise ValueError(f"download at 0x{op.offset:x}: a map {y.shape}, expected {shape}")
        pack_map(memory["kpu"], op.base + number * rows, y)


def _finish(step: KpuStep, memory: Memory, outcome: KpuOutcome | None, compare: bool) -> LayerEvent:
    """Write a layer's map to the CPU's copy of the AI RAM; no outcome: by the golden model."""
    arg = step.arg
    x, *second = step.maps(memory["kpu"])
    golden = None
    selected = outcome is not None
    if outcome is None:
        golden = step.result(x, *second)
        outcome = KpuOutcome(golden.y)
    elif compare:
        golden = step.result(x, *second)
    if outcome.ram is not None:
        if outcome.ram.shape != memory["kpu"].shape or outcome.ram.dtype != np.uint8:
            raise ValueError(f"{step.name}: AI RAM of {outcome.ram.dtype}{outcome.ram.shape}")
        memory["kpu"][...] = outcome.ram
    y = outcome.y
    if y is None:
        y = read_rows(memory["kpu"], arg.out_layout).copy()
    y = np.asarray(y, dtype=np.uint8)
    if y.shape != arg.out_shape:
        raise ValueError(f"{step.name}: a map {y.shape}, the layer gives {arg.out_shape}")
    if outcome.ram is None:
        write_rows(memory["kpu"], arg.out_layout, y)
    expected = golden.y if golden is not None and compare else None
    return LayerEvent(step, x, y, expected, selected, outcome.info, golden)


def _load(
    program: Program,
    memory: Memory,
    inputs: Inputs,
) -> None:
    """Write model inputs to their spaces."""
    if isinstance(inputs, np.ndarray):
        inputs = [inputs]
    if not isinstance(inputs, dict):
        names = [t.name for t in program.inputs]
        if len(inputs) != len(names):
            raise KmodelError(f"{program.file}: {len(inputs)} inputs given, it has {len(names)}")
        inputs = dict(zip(names, inputs, strict=True))
    for tensor in program.inputs:
        if tensor.name not in inputs:
            raise KmodelError(f"{program.file}: {tensor.name} is missing")
        value = np.asarray(inputs[tensor.name])
        if value.size != tensor.view.count or value.dtype != np.dtype(tensor.dtype):
            raise KmodelError(
                f"{program.file}: {tensor.name} is {value.dtype}{list(value.shape)}, "
                f"expected {np.dtype(tensor.dtype)}{list(tensor.shape)}"
            )
        tensor.view.of(memory)[...] = value.reshape(tensor.shape)
