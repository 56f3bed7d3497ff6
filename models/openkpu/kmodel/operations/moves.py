# SPDX-License-Identifier: Apache-2.0
"""Operations on the CPU that move elements and compute nothing, common to all containers."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from openkpu.kmodel.operations import kernels as k
from openkpu.kmodel.operations.operations import shape_problem
from openkpu.kmodel.program import Memory, Operation, View, kpu_problem
from openkpu.layer.layout import ROW_BYTES


@dataclasses.dataclass(frozen=True, kw_only=True)
class Concat(Operation):
    """Inputs (outer, size of each) one after the other along the second axis, bytes."""

    name: ClassVar[str] = "concat"
    sources: tuple[View, ...]
    dst: View

    def problem(self) -> str | None:
        if not self.sources:
            return "nothing to concatenate"
        want = self.dst.shape[0], sum(v.shape[1] for v in self.sources)
        return shape_problem(self.dst, want)

    def run(self, memory: Memory) -> None:
        self.dst.of(memory)[...] = np.concatenate([v.of(memory) for v in self.sources], axis=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pad(Operation):
    """Padding before and after on every axis; negative amounts cut."""

    name: ClassVar[str] = "pad"
    src: View
    dst: View
    pads: tuple[k.Padding, ...]
    value: float
    mode: k.PadMode = "constant"

    def problem(self) -> str | None:
        want = tuple(n + b + a for n, (b, a) in zip(self.src.shape, self.pads, strict=True))
        for n, (before, after) in zip(self.src.shape, self.pads, strict=True):
            if max(0, -before) + max(0, -after) > n:
                return f"cuts {before}, {after} off an axis of {n}"
            if self.mode != "constant" and max(before, after) >= max(1, n):
                return f"{self.mode} padding {before}, {after} of an axis of {n}"
        return shape_problem(self.dst, want)

    def run(self, memory: Memory) -> None:
        x = self.src.of(memory)
        self.dst.of(memory)[...] = k.pad_axes(
            x, self.pads, np.array(self.value, x.dtype), self.mode
        )

    def describe(self) -> str:
        return f"{super().describe()}, by {list(self.pads)} with {self.value:g}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PadPixels(Operation):
    """v3 add_padding: channel k becomes the 4 x 4 map whose pixel (0, 0) is byte k."""

    name: ClassVar[str] = "add_padding"
    src: View  # (C,)
    base: int  # AI RAM row

    def problem(self) -> str | None:
        return kpu_problem(self.src.flat(1, self.src.count, 4, 4), self.base)

    def run(self, memory: Memory) -> None:
        group, place = np.divmod(np.arange(self.src.count), 4)
        first = self.base * ROW_BYTES + group * 4 * ROW_BYTES + place * 16
        memory["kpu"][first] = self.src.of(memory)

    def describe(self) -> str:
        return f"{self.src} -> row {self.base}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Transpose(Operation):
    """Axis i of the result is axis perm[i] of the source."""

    name: ClassVar[str] = "transpose"
    src: View
    dst: View
    perm: tuple[int, ...]

    def problem(self) -> str | None:
        if sorted(self.perm) != list(range(len(self.src.shape))):
            return f"permutation {list(self.perm)} of {self.src}"
        return shape_problem(self.dst, tuple(self.src.shape[p] for p in self.perm))

    def run(self, memory: Memory) -> None:
        self.dst.of(memory)[...] = self.src.of(memory).transpose(self.perm).copy()

    def describe(self) -> str:
        return f"{super().describe()}, axes {list(self.perm)}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class StridedSlice(Operation):
    """Elements begin, begin + stride ... before end on every axis."""

    name: ClassVar[str] = "strided_slice"
    src: View
    dst: View
    begin: tuple[int, ...]
    end: tuple[int, ...]
    stride: tuple[int, ...]

    def _slices(self) -> tuple[slice, ...]:
        return tuple(map(k.slice_axis, self.begin, self.end, self.stride))

    def problem(self) -> str | None:
        rank = len(self.src.shape)
        if {len(self.begin), len(self.end), len(self.stride)} != {rank} or 0 in self.stride:
            return f"begin {self.begin}, end {self.end}, stride {self.stride} of {self.src}"
        if any(not 0 <= b < max(1, n) for b, n in zip(self.begin, self.src.shape, strict=True)):
            return f"begin {list(self.begin)} of {self.src}"
        want = [len(range(n)[part]) for n, part in zip(self.src.shape, self._slices(), strict=True)]
        return shape_problem(self.dst, tuple(want))

    def run(self, memory: Memory) -> None:
        self.dst.of(memory)[...] = self.src.of(memory)[self._slices()].copy()

    def describe(self) -> str:
        return f"{super().describe()}, {self.begin} to {self.end} by {self.stride}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gather(Operation):
    """np.take along an axis."""

    name: ClassVar[str] = "gather"
    src: View
    indices: View
    dst: View
    axis: int

    def problem(self) -> str | None:
        if not 0 <= self.axis < len(self.src.shape) or self.src.shape[self.axis] < 1:
            return f"axis {self.axis} of {self.src}"
        shape = self.src.shape
        return shape_problem(
            self.dst, (*shape[: self.axis], *self.indices.shape, *shape[self.axis + 1 :])
        )

    def run(self, memory: Memory) -> None:
        self.dst.of(memory)[...] = np.take(
            self.src.of(memory), self.indices.of(memory), self.axis, mode="wrap"
        )
