# SPDX-License-Identifier: Apache-2.0
"""Normalisations of layers and groups of float models, which Keras exports as a dozen operators.

With m the mean of x and v that of (x - m)^2, s = gain / sqrt(v + epsilon), Keras computes
x * s + (offset - m * s).  Means are over the last axis, or, of groups, over all axes but the batch
and that of the groups, which is the last but one.  ``with_normalisations`` puts one operator in
their place, for the parts by themselves are not what the device, or bytes, can compute well.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from openkpu.compiler.tflite.raw import Normal, RawModel, RawOperator, RawTensor

NORMALISATION = "NORMALIZATION"  # TFLite has none of this name


def with_normalisations(model: RawModel) -> RawModel:
    """The model with one operator for each normalisation; other parts stay."""
    finder = _Finder(model)
    for op in model.operators:
        if op.operator == "MEAN":
            finder.find(op)
    if not finder.made:
        return model
    kept = [op for op in model.operators if id(op) not in finder.gone]
    for last, made in finder.made:
        kept[next(i for i, op in enumerate(kept) if op is last)] = made
    return dataclasses.replace(model, operators=kept)


class _Other(Exception):
    """It is no normalisation."""


class _Finder:
    def __init__(self, model: RawModel) -> None:
        self.model = model
        self.readers: dict[int, list[RawOperator]] = {}
        for op in model.operators:
            for n in dict.fromkeys(op.inputs):
                self.readers.setdefault(n, []).append(op)
        self.gone: set[int] = set()
        self.made: list[tuple[RawOperator, RawOperator]] = []

    def find(self, mean: RawOperator) -> None:
        """Note what begins with this mean, if it is one."""
        try:
            used, last, made = self._normalisation(mean)
        except _Other:
            return
        self.gone |= {id(op) for op in used}
        self.made.append((last, made))

    def _normalisation(
        self, mean: RawOperator
    ) -> tuple[list[RawOperator], RawOperator, RawOperator]:
        """(operators that go, the last one, which is replaced, and by what)."""
        x, m = mean.inputs[0], mean.outputs[0]
        axes, shape = self._axes(mean, x), self.model.tensors[x].shape
        rank = len(shape)
        grouped = rank > 3 and axes == [*range(1, rank - 2), rank - 1]
        if not grouped and axes != [rank - 1]:
            raise _Other
        minus, between = self._apart(x, m)
        power = self._one(between[-1], "MEAN")
        if self._axes(power, between[-1].outputs[0]) != axes:
            raise _Other
        more = self._one(power, "ADD")
        epsilon = self._constant(more, power.outputs[0])
        root = self._one(more, "RSQRT")
        used = [mean, *between, minus, power, more, root]
        factor, gain = root.outputs[0], None
        if len(self._read(factor)) == 1:
            scaled = self._one(root, "MUL")
            gain, factor = self._constant(scaled, factor), scaled.outputs[0]
            used.append(scaled)
        one, two = self._two(factor, "MUL", "MUL")
        if x not in one.inputs:
            one, two = two, one
        if {*one.inputs} != {x, factor} or {*two.inputs} != {minus.outputs[0], factor}:
            raise _Other
        last, offset, shift = self._one(one, "ADD"), None, two.outputs[0]
        if shift not in last.inputs:
            shifted = self._one(two, "ADD")
            offset, shift = self._constant(shifted, shift), shifted.outputs[0]
            used.append(shifted)
        if {*last.inputs} != {one.outputs[0], shift} or epsilon.values.size != 1:
            raise _Other
        used += [one, two]
        self._inner(used)
        ends = shape[-2:] if grouped else shape[-1:]
        arrays = [self._spread(t, ends, 1.0 - i) for i, t in enumerate((gain, offset))]
        groups = ends[0] if grouped else 0
        normal = Normal(arrays[0], arrays[1], float(epsilon.values.reshape(-1)[0]), groups)
        made = dataclasses.replace(last, operator=NORMALISATION, inputs=[x], normal=normal)
        return used, last, made

    # ----------------------------------------------------------------------------- the parts
    def _read(self, number: int) -> list[RawOperator]:
        return self.readers.get(number, [])

    def _one(self, op: RawOperator, kind: str) -> RawOperator:
        """The one reader of a result."""
        found = self._read(op.outputs[0])
        if len(found) != 1 or found[0].operator != kind or len(found[0].outputs) != 1:
            raise _Other
        return found[0]

    def _two(self, number: int, *kinds: str) -> list[RawOperator]:
        """The two readers of a tensor, in the order of ``kinds``."""
        found = sorted(self._read(number), key=lambda op: op.operator != kinds[0])
        if [op.operator for op in found] != [*kinds] or any(len(op.outputs) != 1 for op in found):
            raise _Other
        return found

    def _constant(self, op: RawOperator, computed: int) -> RawTensor:
        """The other operand of an operator."""
        others = [n for n in op.inputs if n != computed]
        raw = self.model.tensors[others[0]] if len(others) == 1 and others[0] >= 0 else None
        if raw is None or raw.data is None or raw.dtype != "float32" or raw.fault:
            raise _Other
        return raw

    def _apart(self, x: int, m: int) -> tuple[RawOperator, list[RawOperator]]:
        """(what negates the mean, the one or two operators that make (x - m)^2)."""
        try:
            square, minus = self._two(m, "SQUARED_DIFFERENCE", "NEG")
            if {*square.inputs} != {x, m}:
                raise _Other
            return minus, [square]
        except _Other:
            less, minus = self._two(m, "SUB", "NEG")
            if [*less.inputs] != [x, m]:
                raise
            return minus, [less, self._one(less, "SQUARE")]

    def _axes(self, op: RawOperator, x: int) -> list[int]:
        """The axes of a mean of this tensor, which stay."""
        rank = len(self.model.tensors[x].shape)
        axes = self.model.tensors[op.inputs[1]] if len(op.inputs) == 2 else None
        if axes is None or axes.data is None or axes.dtype not in ("int32", "int64"):
            raise _Other
        if op.inputs[0] != x or op.options is None or not op.options.KeepDims():
            raise _Other
        return sorted({int(a) % max(rank, 1) for a in axes.values.reshape(-1)})

    def _inner(self, used: list[RawOperator]) -> None:
        """Does nothing else want what is between, and is no activation there?"""
        if {n for op in used for n in op.outputs} & {*self.model.outputs}:
            raise _Other
        for op in used:
            if op.operator not in ("ADD", "MUL", "SUB") or op.options is None:
                continue
            if op.options.FusedActivationFunction():
                raise _Other

    @staticmethod
    def _spread(raw: RawTensor | None, ends: tuple[int, ...], default: float) -> np.ndarray:
        """Numbers of each channel, of all groups."""
        if raw is None:
            return np.full(math.prod(ends), default, np.float32)
        front = len(raw.shape) - len(ends)
        if math.prod(raw.shape[: max(front, 0)]) != 1:
            raise _Other
        values = raw.values.reshape(raw.shape[max(front, 0) :])
        try:
            return np.broadcast_to(values, ends).astype(np.float32).reshape(-1)
        except ValueError:
            raise _Other from None
