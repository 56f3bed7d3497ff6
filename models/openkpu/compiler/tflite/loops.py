# SPDX-License-Identifier: Apache-2.0
"""Loops of a TFLite file, step by step, where their number of steps is known (docs/compiler.md 2).

Keras exports most recurrent layers as WHILE: a counter, the states, and a list of results from
which each step cuts an element to put another in its place. ``next_step`` puts a step's operators
in front of the loop; ``Lists`` follows lists, so that the results of all steps are joined once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from openkpu.compiler.errors import CompileError
from openkpu.compiler.tflite.raw import RawModel, RawOperator, RawTensor

MOST_STEPS = 4096  # of all loops of a file
Evaluate = Callable[[RawOperator, list[RawTensor]], bool]  # are its results known, and set?


def next_step(
    op: RawOperator, model: RawModel, tensors: list[RawTensor], evaluate: Evaluate, step: int
) -> tuple[list[RawOperator], list[int]] | None:
    """(the operators of a loop's next step and the loop as it is then, or none behind the last one;
    the tensors that are its results so far). None where its end is not known. ``tensors`` grows by
    those of the step."""
    graphs = [op.options.CondSubgraphIndex(), op.options.BodySubgraphIndex()]
    if any(not 0 < n < len(model.graphs) for n in graphs):
        raise ValueError(f"a loop of the graphs {graphs}, there are {len(model.graphs)}")
    condition, body = (model.graphs[n] for n in graphs)
    if not len(op.inputs) == len(op.outputs) == len(body.outputs) or len(condition.outputs) != 1:
        raise ValueError("a loop whose graphs have other tensors than the loop")
    operators, (end,) = inlined(condition, tensors, op.inputs, step)
    if not all(evaluate(each, tensors) for each in operators):
        return None
    known = tensors[end].data
    if known is None or known.size != 1:
        return None
    if not known.reshape(()):
        return [], list(op.inputs)
    if step >= MOST_STEPS:
        what = f"a loop of more than {MOST_STEPS:,} steps"
        raise CompileError(what, node=op.name, operator=op.operator)
    operators, ends = inlined(body, tensors, op.inputs, step)
    return [*operators, dataclasses.replace(op, inputs=ends)], ends


def inlined(
    graph: RawModel, tensors: list[RawTensor], inputs: Sequence[int], step: int
) -> tuple[list[RawOperator], list[int]]:
    """(operators, numbers of the outputs) of a graph with these tensors as its inputs."""
    if len(graph.inputs) != len(inputs):
        raise ValueError(f"a graph of {len(graph.inputs)} inputs with {len(inputs)}")
    first = len(tensors)
    tensors += [dataclasses.replace(t, name=f"{t.name}~{step}") for t in graph.tensors]
    place = {-1: -1, **{n: first + n for n in range(len(graph.tensors))}}
    place.update(zip(graph.inputs, inputs, strict=True))
    operators = [
        dataclasses.replace(
            op,
            name=f"{op.name}~{step}",
            inputs=[place[n] for n in op.inputs],
            outputs=[place[n] for n in op.outputs],
        )
        for op in graph.operators
    ]
    return operators, [place[n] for n in graph.outputs]


def live_operators(operators: Sequence[RawOperator], outputs: Sequence[int]) -> list[RawOperator]:
    """The operators that these tensors depend on, in order."""
    read, kept = set(outputs), []
    for op in reversed(operators):
        if read & set(op.outputs):
            kept.append(op)
            read |= set(op.inputs)
    return kept[::-1]


class JoinOptions:
    """Options of a CONCATENATION that is not in the file."""

    def __init__(self, axis: int) -> None:
        self._axis = axis

    def Axis(self) -> int:
        return self._axis

    def FusedActivationFunction(self) -> int:
        return 0


class Lists:
    """Joined tensors, and the constants, tensors or joins that slices and joins of them are.

    ``simplified`` returns another operator, the number of the tensor that the result is, or None
    for an operator that stays.
    """

    def __init__(self, tensors: list[RawTensor]) -> None:
        self.tensors = tensors
        self.parts: dict[int, tuple[int, list[int]]] = {}  # of a join: axis, tensors

    def simplified(self, op: RawOperator) -> RawOperator | int | None:
        if op.operator == "CONCATENATION":
            return self._concatenation(op)
        if op.operator in ("SLICE", "DYNAMIC_UPDATE_SLICE") and len(op.inputs) == 3:
            return self._slice(op) if op.operator == "SLICE" else self._update(op)
        return None

    def _concatenation(self, op: RawOperator) -> RawOperator | int | None:
        if op.options is None or op.options.FusedActivationFunction() or min(op.inputs) < 0:
            return None
        shapes = [self.tensors[n].shape for n in op.inputs]
        axis = op.options.Axis() % max(len(shapes[0]), 1)
        if any(len(shape) != len(shapes[0]) for shape in shapes):
            return None
        parts = [n for n, shape in zip(op.inputs, shapes, strict=True) if 0 not in shape]
        return self._join(op, axis, parts) if parts else None

    def _join(self, op: RawOperator, axis: int, parts: list[int]) -> RawOperator | int:
        """What joins these tensors in place of ``op``."""
        if len(parts) == 1:
            return parts[0]
        flat: list[int] = []
        for number in parts:
            along, own = self.parts.get(number, (-1, []))
            flat += own if along == axis else [number]
        sizes = list(self.tensors[flat[0]].shape)
        sizes[axis] = sum(self.tensors[n].shape[axis] for n in flat)
        self._shape(op, sizes)
        self.parts[op.outputs[0]] = axis, flat
        return dataclasses.replace(
            op, operator="CONCATENATION", inputs=flat, options=JoinOptions(axis)
        )

    def _shape(self, op: RawOperator, sizes: Sequence[int]) -> None:
        """Set the shape of the result."""
        raw = self.tensors[op.outputs[0]]
        closed = dataclasses.replace(raw, shape=tuple(sizes), open=(), dynamic=False)
        self.tensors[op.outputs[0]] = closed

    def _integers(self, number: int, count: int) -> list[int] | None:
        """A known list of so many integers."""
        data = self.tensors[number].data if number >= 0 else None
        return None if data is None or data.size != count else [int(n) for n in data.reshape(-1)]

    def _slice(self, op: RawOperator) -> RawOperator | int | None:
        x, shape = op.inputs[0], self.tensors[op.inputs[0]].shape
        begin, size = (self._integers(n, len(shape)) for n in op.inputs[1:])
        if begin is None or size is None:
            return None
        ends = [n if s == -1 else b + s for n, b, s in zip(shape, begin, size, strict=True)]
        if any(not 0 <= b <= e <= n for n, b, e in zip(shape, begin, ends, strict=True)):
            raise ValueError(f"a slice {begin} to {ends} of {shape}")
        self._shape(op, [e - b for b, e in zip(begin, ends, strict=True)])
        return self._part(op, x, begin, ends)

    def _update(self, op: RawOperator) -> RawOperator | int | None:
        """DYNAMIC_UPDATE_SLICE: a part of a tensor becomes another one, along one axis."""
        x, new = op.inputs[:2]
        shape, own = self.tensors[x].shape, self.tensors[new].shape
        begin = self._integers(op.inputs[2], len(shape))
        axes = [i for i, (n, m) in enumerate(zip(shape, own, strict=True)) if n != m]
        if begin is None or len(axes) > 1:
            return None
        if not axes:
            return new
        axis = axes[0]  # the start is moved to where the part fits
        first = min(max(begin[axis], 0), shape[axis] - own[axis])
        kept = []
        for low, high in ((0, first), (first + own[axis], shape[axis])):
            starts, ends = [0] * len(shape), list(shape)
            starts[axis], ends[axis] = low, high
            part = self._part(op, x, starts, ends)
            if part is None:
                return None
            kept += [part.inputs] if isinstance(part, RawOperator) else [[part]]
        parts = [*kept[0], new, *kept[1]]
        return self._join(op, axis, [n for n in parts if 0 not in self.tensors[n].shape])

    def _part(
        self, op: RawOperator, x: int, begin: list[int], ends: list[int]
    ) -> RawOperator | int | None:
        """What a part of tensor ``x`` is, in place of ``op``: no computed tensor may be cut."""
        raw = self.tensors[x]
        if list(raw.shape) == [e - b for b, e in zip(begin, ends, strict=True)]:
            return x
        cuts = [slice(b, e) for b, e in zip(begin, ends, strict=True)]
        if any(b == e for b, e in zip(begin, ends, strict=True)):
            return self._constant(np.zeros([e - b for b, e in zip(begin, ends, strict=True)]), x)
        if raw.data is not None and not raw.fault:
            return self._constant(raw.data[tuple(cuts)], x)
        axis, numbers = self.parts.get(x, (0, []))
        if any(
            cut != slice(0, n)
            for i, (cut, n) in enumerate(zip(cuts, raw.shape, strict=True))
            if i != axis
        ):
            return None
        first, found = 0, []
        for number in numbers:
            part = self.tensors[number]
            own = part.shape[axis]
            low, high = max(begin[axis] - first, 0), min(ends[axis] - first, own)
            first += own
            if low >= high:
                continue
            if high - low < own:
                if part.data is None:
                    return None
                cut = [slice(None)] * axis + [slice(low, high)]
                number = self._constant(part.data[tuple(cut)], number)
            found.append(number)
        return self._join(op, axis, found) if found else None

    def _constant(self, data: npt.NDArray, like: int) -> int:
        """A new constant, of the type of another tensor."""
        raw = self.tensors[like]
        data = np.ascontiguousarray(data)
        made = dataclasses.replace(raw, data=data, shape=data.shape, open=(), dynamic=False)
        self.tensors.append(made)
        return len(self.tensors) - 1
