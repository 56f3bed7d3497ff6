# SPDX-License-Identifier: Apache-2.0
"""Running a program: CPU operations here, KPU layers by a callable on an emulated AI RAM.

The golden model runs the layers by default.  Another executor, the RTL's driver for example, is
called with the layer and the AI RAM before it, and gives back the output map (read from AI RAM or
taken from the FIFO) and, if it likes, the AI RAM after it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Container
from typing import Any

import numpy as np
import numpy.typing as npt

from ..airam import pack, unpack
from ..golden import run_layer
from ..layer import LayerArg
from .errors import KmodelError
from .program import KpuLayer, Memory, Program

WORK_MAX = 10**13


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
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

    def golden(self, x: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """What the golden model makes of an input map."""
        result = run_layer(
            self.arg,
            x,
            self.weights,
            self.bn,
            self.act,
            eight_bit=self.eight_bit,
            rounding=self.rounding,
        )
        return result.y


@dataclasses.dataclass(eq=False)
class Outcome:
    """What an executor gives back for a step."""

    y: npt.NDArray[np.uint8] | None  # (O, oh, ow); None: read it from ``ram``
    ram: npt.NDArray[np.uint8] | None = None  # AI RAM afterwards; None: the map is written there
    info: Any = None  # cycles or whatever the caller wants to see again


@dataclasses.dataclass(frozen=True, eq=False)
class LayerEvent:
    """A finished layer, for the hook."""

    step: Step
    x: npt.NDArray[np.uint8]
    y: npt.NDArray[np.uint8]
    expected: npt.NDArray[np.uint8] | None  # the golden model's map when it was compared
    selected: bool  # ran on the given executor (otherwise on the golden model)
    info: Any

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


Kpu = Callable[[Step, npt.NDArray[np.uint8]], Outcome]
Hook = Callable[[LayerEvent], None]


@dataclasses.dataclass(eq=False)
class Result:
    """Outputs by name, and the memory as it was at the end."""

    outputs: dict[str, npt.NDArray]
    memory: Memory
    layers: int  # KPU layers that ran
    wrong: int  # pixels that differed from the golden model, where compared

    @property
    def output(self) -> npt.NDArray:
        """The first output."""
        return next(iter(self.outputs.values()))


def golden_kpu(step: Step, ram: npt.NDArray[np.uint8]) -> Outcome:
    """The default executor."""
    return Outcome(step.golden(unpack(ram, step.arg.image_src_addr, step.arg.in_shape)))


def parse_layers(text: str, count: int) -> range:
    """Layers "3-7", "5", "4-" or "-2" of a model with ``count`` of them; KmodelError if none."""
    match = re.fullmatch(r"\s*(\d*)\s*(-?)\s*(\d*)\s*", text)
    if match is None or not (match[1] or match[3]):
        raise KmodelError(f"layers {text!r}: expected for example 3-7 or 5")
    first = int(match[1] or 0)
    last = int(match[3]) if match[3] else (count - 1 if match[2] else first)
    if not first <= last < count:
        raise KmodelError(f"layers {text!r}: the model has layers 0-{count - 1}")
    return range(first, last + 1)


def run(
    program: Program,
    inputs: dict[str, npt.NDArray] | list[npt.NDArray] | npt.NDArray,
    *,
    kpu: Kpu | None = None,
    hook: Hook | None = None,
    layers: Container[int] | None = None,
    compare: bool = False,
    rounding: str = "nncase",
    work_max: int = WORK_MAX,
) -> Result:
    """Run the program on its inputs (NCHW arrays, by name or in order).

    ``kpu`` runs the layers in ``layers`` (default: all), the golden model the others.  ``compare``
    runs the golden model beside it on the same input map.  ``hook`` sees every finished layer in
    order.  What ``kpu`` gives back is what the model goes on with, right or wrong.  KmodelError
    for inputs of the wrong shape and for more than ``work_max`` elementary steps.
    """
    program.check()
    work = sum(op.work for op in program.operations)
    if work > work_max:
        raise KmodelError(f"{program.file}: {work} steps to run, at most {work_max} are allowed")
    memory = program.new_memory()
    _load(program, memory, inputs)
    count = wrong = index = 0
    for op in program.operations:
        if not isinstance(op, KpuLayer):
            with np.errstate(all="ignore"):
                op.run(memory)
            continue
        selected = kpu is not None and (layers is None or index in layers)
        maps = []
        for batch in range(op.batches):
            step = Step(index, batch, op, op.argument(batch), rounding)
            event = _run_step(step, memory, kpu if selected else None, compare)
            maps.append(event.y)
            wrong += event.wrong
            if hook is not None:
                hook(event)
        if op.main_out is not None:
            op.main_out.of(memory)[...] = np.stack(maps).reshape(op.main_out.shape)
        index += 1
        count += 1
    outputs = {t.name: t.view.of(memory).copy() for t in program.outputs}
    return Result(outputs, memory, count, wrong)


def _run_step(step: Step, memory: Memory, kpu: Kpu | None, compare: bool) -> LayerEvent:
    """One layer of one batch; leaves its map in the AI RAM."""
    arg = step.arg
    x = unpack(memory["kpu"], arg.image_src_addr, arg.in_shape).copy()
    expected = step.golden(x) if compare or kpu is None else None
    outcome = Outcome(expected) if kpu is None else kpu(step, memory["kpu"].copy())
    if outcome.ram is not None:
        if outcome.ram.shape != memory["kpu"].shape or outcome.ram.dtype != np.uint8:
            raise ValueError(f"{step.name}: AI RAM of {outcome.ram.dtype}{outcome.ram.shape}")
        memory["kpu"][...] = outcome.ram
    y = outcome.y
    if y is None:
        y = unpack(memory["kpu"], arg.image_dst_addr, arg.out_shape).copy()
    y = np.asarray(y, dtype=np.uint8)
    if y.shape != arg.out_shape:
        raise ValueError(f"{step.name}: a map {y.shape}, the layer gives {arg.out_shape}")
    if outcome.ram is None:
        pack(memory["kpu"], arg.image_dst_addr, y)
    return LayerEvent(step, x, y, expected if compare else None, kpu is not None, outcome.info)


def _load(
    program: Program,
    memory: Memory,
    inputs: dict[str, npt.NDArray] | list[npt.NDArray] | npt.NDArray,
) -> None:
    """Model inputs into their spaces."""
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
