# SPDX-License-Identifier: Apache-2.0
"""The state of a compilation while nodes become layers, and what all lowerings use.

A lowering is a function ``lower_NAME_node(state, node)`` in a file of its own.  It asks for its
inputs with ``held``, for a map for its output with ``room``, appends layers with ``layer``, and
says where the output's elements lie with ``put``.  ``Unable`` means that the device cannot do a
node in this way; its text is the reason that the reader sees.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.pooling import POOL_STRIDE
from openkpu.compiler.form.graph import LONGEST, MOST_LINES, TALLEST, Graph, Node, Tensor
from openkpu.compiler.lowering import requant
from openkpu.compiler.lowering.device import Held, Place, Spec
from openkpu.configs import Config
from openkpu.layer.argument import LayerArg, LayerError
from openkpu.layer.layout import Layout
from openkpu.layer.pool_layer import pool_layer

MOST = 1024  # channels of a layer, but for the input of a 1x1 convolution


class Unable(Exception):
    """The device cannot do a node like this; the text says why."""


class Disordered(Unable):
    """... because of where a tensor's elements lie; the host could put them in order."""

    def __init__(self, tensor: str, text: str) -> None:
        super().__init__(text)
        self.tensor = tensor


@dataclasses.dataclass
class Report:
    """How a node was lowered."""

    runs: str = "device"  # or "host", "nothing"
    missed: int = 0  # edges of requantisation that lie elsewhere: there a byte is one step off
    edges: int = 0
    steps: int = 0  # by which bytes may differ from the exact result
    note: str = ""


@dataclasses.dataclass
class State:
    """One device part in the making."""

    graph: Graph
    config: Config
    specs: list[Spec] = dataclasses.field(default_factory=list)
    tensors: dict[str, Held] = dataclasses.field(default_factory=dict)
    reports: dict[str, Report] = dataclasses.field(default_factory=dict)
    buffers: int = 0
    # of parts of a concatenation: its map, and the first channel there
    targets: dict[str, tuple[Place, int, int]] = dataclasses.field(default_factory=dict)
    staged: dict[str, Held] = dataclasses.field(default_factory=dict)  # tensors from the host
    fresh: dict[int, str] = dataclasses.field(default_factory=dict)  # those not read yet, by buffer
    bits: int = 8  # of the weights of all layers: 8 or 16

    # ------------------------------------------------------------------ tensors
    def held(self, name: str) -> Held:
        """Location of a tensor; Unable for a constant."""
        if name not in self.tensors:
            raise Unable(f"{name!r} is a constant, expected a computed tensor")
        return self.tensors[name]

    def put(self, name: str, held: Held) -> None:
        """A tensor's place."""
        self.tensors[name] = held

    def new(self, shape: tuple[int, int, int]) -> Place:
        """A map in a buffer of its own."""
        try:
            layout = Layout(*shape)
        except ValueError as error:
            raise Unable(str(error)) from None
        if layout.row_len > 15 or shape[0] > 9216 or shape[1] > TALLEST:
            sizes = f"{LONGEST} pixels, {TALLEST} lines in bands and 9216 channels"
            raise Unable(f"a map {shape}, expected up to {sizes}")
        self.buffers += 1
        return Place(self.buffers - 1, 0, shape)

    def room(self, name: str, shape: tuple[int, int, int]) -> Place:
        """A map for the tensor ``name``: its place in a concatenation, or one of its own."""
        if name in self.targets:
            place, first, count = self.targets[name]
            if place.shape[1:] == shape[1:] and count == shape[0]:
                return place.part(first, count)
        return self.new(shape)

    # ------------------------------------------------------------------- layers
    def layer(
        self,
        node: Node,
        src: Place,
        dst: Place,
        *,
        weights: npt.NDArray,
        fit: requant.Fit,
        src2: Place | None = None,
        constant: npt.NDArray[np.uint8] | None = None,
        **fields: Any,
    ) -> Spec:
        """Append a layer from ``src`` to ``dst``; Unable where the device refuses it.

        ``weights`` are as they are stored, numbers of 8 or 16 bits; ``constant`` is a map that lies
        in storage and is brought to ``src`` first.
        """
        if src.shape[0] > MOST and fields.get("depthwise"):
            data, made = np.asarray(weights).reshape(src.shape[0], -1), None
            for first in range(0, src.shape[0], MOST):
                part = slice(first, first + MOST)
                count = min(MOST, src.shape[0] - first)
                missed = (fit.missed, fit.edges) if not first else (0, 0)
                some = requant.Fit(fit.bn[part], fit.act, *missed)
                more: dict[str, Any] = {} if src2 is None else {"src2": src2.part(first, count)}
                more |= {} if constant is None else {"constant": constant[part]}
                places = src.part(first, count), dst.part(first, count)
                made = self.layer(node, *places, weights=data[part], fit=some, **more, **fields)
            assert made is not None
            return made
        options: dict[str, Any] = {
            k: fields.pop(k) for k in ("kernel", "pool", "depthwise", "fc") if k in fields
        }
        try:
            arg = tall(src.shape, dst.shape[0], **options, **fields)
        except LayerError as error:
            raise Unable(str(error)) from None
        need = arg.weight_rows(self.config.n_z)
        if need > self.config.wbuf_rows:
            raise Unable(
                f"{need} rows of weights at once, the buffer of configuration"
                f" {self.config.name} has {self.config.wbuf_rows}"
            )
        data = np.asarray(weights).reshape(-1)
        most = (1 << self.bits) - 1
        if data.size != arg.weight_count or data.min(initial=0) < 0 or data.max(initial=0) > most:
            raise Unable(f"{data.size} weights, expected {arg.weight_count} of {self.bits} bits")
        kind = np.uint8 if self.bits == 8 else np.uint16
        spec = Spec(node.name, arg, data.astype(kind), fit.bn, fit.act, src, dst, src2)
        spec.constant = constant
        report = self.report(node)
        report.missed += fit.missed
        report.edges += fit.edges
        report.steps += fit.steps if fit.missed else 0
        return self._append(node, spec)

    def pool(
        self,
        node: Node,
        src: Place,
        dst: Place,
        kind: int,
        kernel: tuple[int, int] | None,
        strides: tuple[int, int] = (1, 1),
        pads: tuple[int, int, int, int] = (0, 0, 0, 0),
        pad_value: int = 0,
    ) -> Spec:
        """Append a pooling task; ``kernel`` None: the whole map."""
        if not self.config.pool_lanes:
            raise Unable(f"configuration {self.config.name} has no pooling tasks (pool_lanes = 0)")
        if src.shape[0] > MOST:
            made = None
            for first in range(0, src.shape[0], MOST):
                count = min(MOST, src.shape[0] - first)
                places = src.part(first, count), dst.part(first, count)
                made = self.pool(node, *places, kind, kernel, strides, pads, pad_value)
            assert made is not None
            return made
        try:
            window = (kind, kernel, strides, pads)
            arg = _tall_pool(src.shape, dst.shape[1], *window, pad_value=pad_value)
        except LayerError as error:
            raise Unable(str(error)) from None
        none = np.zeros(0, np.uint64)
        spec = Spec(node.name, arg, np.zeros(0, np.uint8), none, none, src, dst)
        return self._append(node, spec)

    def copy(self, node: Node, src: Place, dst: Place, zero: int = 0) -> Spec:
        """Append a layer that copies all channels of a map."""
        c = src.shape[0]
        terms = {"depthwise": True, **zero_terms(0, zero, 1)}
        return self.layer(node, src, dst, weights=np.ones(c), fit=copy_fit(zero, c), **terms)

    def bring(self, node: Node, place: Place) -> Spec:
        """Append a layer that has a staged map loaded: a copy onto itself, or, of more channels
        than a copy has, a 1x1 convolution with weights of 0 whose result nobody reads."""
        if place.shape[0] <= MOST:
            return self.copy(node, place, place)
        aside = self.new((1, *place.shape[1:]))
        none = np.zeros(place.shape[0], np.int64)
        return self.layer(node, place, aside, weights=none, fit=copy_fit(0, 1))

    def _append(self, node: Node, spec: Spec) -> Spec:
        """Append the layer, behind one that loads a staged map when this one reads a part of it."""
        if spec.arg.out_shape != spec.dst.shape:
            shape, want = spec.arg.out_shape, spec.dst.shape
            raise Unable(f"a layer of {spec.src.shape} gives {shape}, expected {want}")
        if (name := self.fresh.get(spec.src.buffer)) is not None and spec.constant is None:
            full = self.tensors[name].place
            if full != spec.src:
                self.bring(node, full)
            else:
                spec.loads = name
                del self.fresh[full.buffer]
        self.specs.append(spec)
        self.report(node)
        return spec

    def stage(self, name: str, held: Held) -> None:
        """A tensor whose bytes the host puts into storage."""
        self.tensors[name] = held
        self.fresh[held.place.buffer] = name
        self.staged[name] = held

    def report(self, node: Node) -> Report:
        """The node's line of the report."""
        return self.reports.setdefault(node.name, Report())

    def mark(self) -> dict[str, Any]:
        """State for ``back``, which undoes a lowering that failed."""
        return {
            "specs": list(self.specs),
            "buffers": self.buffers,
            "tensors": dict(self.tensors),
            "fresh": dict(self.fresh),
            "reports": dict(self.reports),  # only that of the node being lowered changes
        }

    def back(self, mark: dict[str, Any]) -> None:
        """Forget all that came since ``mark``."""
        for spec in self.specs[len(mark["specs"]) :]:
            spec.loads = ""
        for name, value in mark.items():
            setattr(self, name, value)


def tall(shape: tuple[int, int, int], o: int, **fields: Any) -> LayerArg:
    """``LayerArg.make`` for maps of any height: where they do not fit they are cut into bands."""
    c, height, width = shape
    try:
        return LayerArg.make(c, height, width, o, **fields)
    except LayerError as error:
        stride = POOL_STRIDE.get(fields.get("pool", 0), 1)
        if (error.code != "BAD_ADDR" and height <= MOST_LINES) or height // stride <= 1:
            raise
    arg = tall((c, height // 2, width), o, **fields)
    return with_lines(arg, height, height // stride)


def _tall_pool(shape: tuple[int, int, int], lines: int, *window: Any, pad_value: int) -> LayerArg:
    """``pool_layer`` for maps of any height, ``lines`` of the result."""
    c, height, width = shape
    faults: list[LayerError] = []
    for less in range(height.bit_length()):
        try:
            arg = pool_layer((c, height >> less, width), *window, pad_value=pad_value)
            return with_lines(arg, height, lines) if less else arg
        except LayerError as error:
            faults.append(error)
    raise faults[0]


def with_lines(arg: LayerArg, height: int, out_height: int) -> LayerArg:
    """The same layer on maps of other heights; places of its maps are still to come."""
    c, _, width = arg.in_shape
    o, _, out_width = arg.out_shape
    source, result = Layout(c, height, width), Layout(o, out_height, out_width)
    return arg.replace(
        i_col_high=height,
        o_col_high=out_height,
        channel_switch_addr=source.own_rows,
        wb_channel_switch_addr=result.own_rows,
        channel_byte_num=min(out_height * out_width, 1 << 16),
        dma_total_byte=o * out_height * out_width,
    )


# ------------------------------------------------------------------------- numbers
def offset(tensor: Tensor) -> int:
    """Stored byte less integer: 128 for int8, whose bytes are stored around 128."""
    return 128 if tensor.dtype == "int8" else 0


def stored(tensor: Tensor, clamp: tuple[int, int]) -> tuple[int, tuple[int, int]]:
    """(zero point, clamp) as stored bytes."""
    add = offset(tensor)
    return tensor.zero + add, (clamp[0] + add, clamp[1] + add)


def signed_weights(
    effective: npt.NDArray[np.int64], bits: int
) -> tuple[npt.NDArray[np.int64], int]:
    """(stored weights, arg_x) of weights that may be negative; Unable for more than ``bits``.

    A weight of 0 is always there: gaps and what is no tap have it.
    """
    least, most = min(int(effective.min()), 0), max(int(effective.max()), 0)
    if least >= -128 and most <= 127:
        least = -128
    if is_wide(effective, bits):
        raise Unable(f"weights without their zero point from {least} to {most}: over {bits} bits")
    return effective - least, least


def is_wide(effective: npt.NDArray[np.int64], bits: int) -> bool:
    """Do weights without their zero points take more than ``bits``, as those whose channels have
    zero points of their own may?"""
    return max(int(effective.max()), 0) - min(int(effective.min()), 0) >= 1 << bits


def shares(effective: npt.NDArray[np.int64], bits: int) -> list[npt.NDArray[np.int64]]:
    """Arrays whose sum is ``effective``, each 0 where it is, all of them together of ``bits``: one
    for each copy of a map that the input repeats."""
    count, span = 2, (1 << bits) - 1
    while effective.max() > count * (effective.min() // count + span):
        count += 1
    least = min(int(effective.min()), 0) // count
    found, rest = [], effective
    for _ in range(count):
        found.append(np.clip(rest, least, least + span))
        rest = rest - found[-1]
    return found


def zero_terms(arg_x: int, zero: int, taps: int) -> dict[str, Any]:
    """Fields that make alu the sum of (x - zero) * weight; ``taps``: taps that arg_add counts once,
    those of one input channel, or all of a fully connected layer."""
    return {"arg_x": arg_x, "arg_w": -zero, "arg_add": -arg_x * zero * taps, "pad_value": zero}


def reach_of(
    effective: npt.NDArray[np.int64], span: tuple[int, int], zero: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Least and largest sum of each channel (O,) for bytes of ``span``; padding included."""
    flat = effective.reshape(len(effective), -1)
    low, high = min(span[0] - zero, 0), max(span[1] - zero, 0)
    up, down = np.maximum(flat, 0).sum(axis=1), np.minimum(flat, 0).sum(axis=1)
    return up * low + down * high, up * high + down * low


def factors_of(x: Tensor, w_scale: npt.NDArray, y: Tensor) -> list[Fraction]:
    """Steps of the output that one step of a channel's sum is; scales are floats or fractions."""
    return [x.exact * Fraction(s) / y.exact for s in w_scale]


def copy_fit(zero: int, channels: int) -> requant.Fit:
    """Tables of a layer whose sums are (x - zero): the byte again."""
    ends = np.full(channels, -zero), np.full(channels, 255 - zero)
    one = requant.fit([Fraction(1)], [0], zero, (0, 255), (ends[0][:1], ends[1][:1]))
    return requant.Fit(np.repeat(one.bn, channels), one.act, 0, 0)


def one_tap(channels: int, dy: int = 0, dx: int = 0) -> npt.NDArray[np.int64]:
    """Weights (C, 3, 3) of a depthwise layer that reads dy lines below, dx columns to the right."""
    weights = np.zeros((channels, 3, 3), dtype=np.int64)
    weights[:, 1 + dy, 1 + dx] = 1
    return weights
