# SPDX-License-Identifier: Apache-2.0
"""Convolutions: the rule is that an output lies at the place where the device's 3x3 window sees it.

The device computes 3x3 and 1x1 windows around every pixel of a map.  Along each axis a tap k of the
node reads pixel ``s * o + k * d - top``; with an anchor a the output o is computed at pixel
``s * o + a``, so the tap is ``k * d - top - a`` away.  Taps at most one pixel away are the device's
own, and where the device has a dilation those as far away as the node's taps are from each other.
For the others the map is copied, moved (``copies``), and the copies are further channels.
Strides pick pixels: pools 5, 6 and 7 where anchor and size allow it, else a pooling task of 1x1
windows behind the layer, or a copy moved by one pixel with such a pool.  Of all anchors the one is
chosen that costs least.  Maps may lie turned around (``turn``): kernels are turned with them.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu.compiler.form.graph import Conv
from openkpu.compiler.lowering import copies, costs, requant, ways
from openkpu.compiler.lowering.axes import Axis
from openkpu.compiler.lowering.device import Geometry, Held, Place, indices
from openkpu.compiler.lowering.lower import (
    Disordered,
    State,
    factors_of,
    is_wide,
    reach_of,
    shares,
    signed_weights,
    stored,
    zero_terms,
)
from openkpu.compiler.lowering.nodes import lower_whole
from openkpu.layer.argument import LayerArg
from openkpu.layer.pool_tasks import MAXIMUM

Into = Callable[[tuple[int, int, int]], Place]  # a map of this shape for the output
MOST_OUTPUTS = 1024
FEW_LINES = 16  # of a map on which two ways are compared


class Average(Conv):
    """A convolution that computes the average of windows; ties go up."""


def lower_conv_node(state: State, node: Conv) -> None:
    """Layers of a convolution; with a single output pixel the faster of two ways."""
    if lower_whole.possible(state, node):
        costs.fewest(state, node, (lower_whole.lower_whole_node, _windows))
    else:
        _windows(state, node)


def _windows(state: State, node: Conv) -> None:
    """Layers of windows, whatever the groups."""
    node, held, geometry = _input(state, node)
    held, geometry = _inside(state, node, held, geometry)
    if node.depthwise and not is_wide(turned_weights(node, geometry), state.bits):
        plan = ways.cheapest(state, node, held, geometry, depthwise=True)
        if plan is not None:
            _depthwise(state, node, held, geometry, plan)
            return
    pieces = _pieces(state, node, held, geometry)
    if pieces > 1:
        _grouped(state, node, held, geometry, pieces)
    elif len(node.weights) > MOST_OUTPUTS:
        _wide(state, node, held, geometry)
    else:
        _dense(state, node, held, geometry, _planned(state, node, held, geometry))


def _pieces(state: State, node: Conv, held: Held, geometry: Geometry) -> int:
    """Parts of the groups, each a layer of its own, so that all together take least."""
    c, whole = held.place.shape[0], held.place.groups
    outputs = len(node.weights)
    plain = np.array_equal(geometry.channels, np.arange(c))
    best, least = 1, None
    for pieces in range(1, node.groups + 1 if plain else 2):
        inner, outer = c // pieces, outputs // pieces
        if node.groups % pieces or (pieces > 1 and (inner % whole or outer % 4)):
            continue
        if outer > MOST_OUTPUTS:
            continue
        part = Held(held.place.part(0, inner), held.where[:, :inner], held.zero, margin=held.margin)
        some = dataclasses.replace(geometry, channels=geometry.channels[:inner])
        plan = ways.cheapest(state, _piece(node, 0, pieces), part, some, depthwise=False)
        if plan is not None and (least is None or plan.cost * pieces < least):
            best, least = pieces, plan.cost * pieces
    return best


def _piece(node: Conv, number: int, pieces: int) -> Conv:
    """The node's groups of one part."""
    count = len(node.weights) // pieces
    part = slice(number * count, (number + 1) * count)
    names = ("weights", "w_scale", "w_zero", "bias")
    arrays = {name: getattr(node, name)[part] for name in names}
    return dataclasses.replace(node, groups=node.groups // pieces, **arrays)


def _grouped(state: State, node: Conv, held: Held, geometry: Geometry, pieces: int) -> None:
    """Each part of the groups from its own channels into its own channels."""
    inner = held.place.shape[0] // pieces
    some = dataclasses.replace(geometry, channels=geometry.channels[:inner])
    parts = []
    for number in range(pieces):
        place = held.place.part(number * inner, inner)
        part = Held(place, held.where[:, :inner], held.zero, held.span, held.margin)
        parts.append((_piece(node, number, pieces), part))
    _parts(state, node, parts, some)


def _wide(state: State, node: Conv, held: Held, geometry: Geometry) -> None:
    """More output channels than a layer has: the first ones, the next ones, and so on."""
    names = ("weights", "w_scale", "w_zero", "bias")
    node, parts = _ungrouped(node), []
    for first in range(0, len(node.weights), MOST_OUTPUTS):
        arrays = {n: getattr(node, n)[first : first + MOST_OUTPUTS] for n in names}
        parts.append((dataclasses.replace(node, **arrays), held))
    _parts(state, node, parts, geometry)


def _ungrouped(node: Conv) -> Conv:
    """The same without groups: weights of other groups are the zero point."""
    if node.groups == 1:
        return node
    o, each = node.weights.shape[:2]
    weights = np.zeros((o, each * node.groups, *node.kernel), dtype=np.int64)
    weights += node.w_zero[:, None, None, None]
    channels = (np.arange(o) // (o // node.groups))[:, None] * each + np.arange(each)
    weights[np.arange(o)[:, None], channels] = node.weights
    return dataclasses.replace(node, weights=weights, groups=1)


def _parts(state: State, node: Conv, parts: list[tuple[Conv, Held]], geometry: Geometry) -> None:
    """Layers that write channels of the node's output one behind the other."""
    name, total = node.outputs[0], len(node.weights)
    found: list[Place] = []
    index, first = [], 0

    def into(shape: tuple[int, int, int]) -> Place:
        if not found:
            found.append(state.room(name, (total, *shape[1:])))
        return found[0].part(first, shape[0])

    for piece, held in parts:
        _dense(state, piece, held, geometry, _planned(state, piece, held, geometry), into)
        size = int(np.prod(found[0].shape[1:]))
        index.append(state.tensors[name].where + first * size)
        first += len(piece.weights)
    last = state.tensors[name]
    state.put(name, Held(found[0], np.concatenate(index, axis=1), last.zero, last.span))


def _input(state: State, node: Conv) -> tuple[Conv, Held, Geometry]:
    """The input at a place where the device's windows read the same pixels as the node's."""
    name = node.inputs[0]
    held = state.held(name)
    geometry = held.geometry()
    if geometry is None:
        raise Disordered(name, "its input's elements do not lie as a map does")
    if node.kernel == (1, 1) and not any(node.pads):
        # single pixels: pick the ones in use first, unless a pool of its own does it
        where = held.where[:, :, :: node.strides[0], :: node.strides[1]]
        thin = dataclasses.replace(held, where=where, margin=False)
        geometry = thin.geometry()
        assert geometry is not None
        if geometry.step == (1, 1) or not _own_pool(held, geometry):
            held = copies.on_grid(state, node, thin, geometry)
            node = dataclasses.replace(node, strides=(1, 1))
        else:
            return dataclasses.replace(node, strides=(1, 1)), thin, geometry
    elif geometry.step != (1, 1):
        held = copies.on_grid(state, node, held, geometry)
    geometry = held.geometry()
    assert geometry is not None
    return node, held, geometry


def _own_pool(held: Held, geometry: Geometry) -> bool:
    """Does a pool of the layer pick just these pixels?"""
    if (
        geometry.step,
        tuple(p % s for p, s in zip(geometry.start, geometry.step, strict=True)),
    ) not in ways.PICKS:
        return False
    return all(
        p // s + n <= whole // s
        for p, s, n, whole in zip(
            geometry.start, geometry.step, geometry.size, held.place.shape[1:], strict=True
        )
    )


def _inside(state: State, node: Conv, held: Held, geometry: Geometry) -> tuple[Held, Geometry]:
    """The input so that what its taps read outside of it is the zero point."""
    axes = [Axis.of(node, i, geometry, held.place.shape[1 + i]) for i in (0, 1)]
    if held.margin or not any(axis.outside for axis in axes):
        return held, geometry
    held = copies.cropped(state, node, node.inputs[0], held, geometry)
    found = held.geometry()
    assert found is not None
    return held, found


def _planned(state: State, node: Conv, held: Held, geometry: Geometry) -> ways.Plan:
    """The cheapest way; Disordered when there is none."""
    plan = ways.cheapest(state, node, held, geometry, depthwise=False)
    if plan is None:
        size, whole = state.graph.tensors[node.outputs[0]].shape[2:], held.place.shape[1:]
        raise Disordered(
            node.inputs[0],
            f"its outputs {size}, pads {node.pads}, do not lie on a map of {whole}, or it takes"
            " too many copies of its input",
        )
    return plan


# ------------------------------------------------------------------------- weights
def turned_weights(node: Conv, geometry: Geometry) -> npt.NDArray[np.int64]:
    """Weights without zero points, in the order in which the map lies."""
    weights = node.weights - node.w_zero[:, None, None, None]
    weights = weights[:, :, ::-1] if geometry.turned[0] else weights
    return weights[:, :, :, ::-1] if geometry.turned[1] else weights


def _fit(state: State, node: Conv, held: Held, effective: npt.NDArray[np.int64]) -> requant.Fit:
    """Tables of outputs in the node's order; ``effective`` (O, ...)."""
    (x,), (y,) = state.graph.of(node.inputs), state.graph.of(node.outputs)
    zero, clamp = stored(y, node.clamp)
    reach = reach_of(effective, held.span, held.zero)
    factors = factors_of(x, node.w_scale, y)
    up = isinstance(node, Average)
    return requant.fit(factors, node.bias.tolist(), zero, clamp, reach, up)


def _spread(fit: requant.Fit, at: npt.NDArray[np.int64], count: int) -> requant.Fit:
    """Tables for ``count`` channels, those of the node at ``at``; the others give any byte."""
    bn = np.repeat(fit.bn[:1], count)
    bn[at] = fit.bn
    return dataclasses.replace(fit, bn=bn)


# -------------------------------------------------------------------------- layers
def _later(state: State, node: Conv, src: Place, plan: ways.Plan) -> bool:
    """Is it faster when a 1x1 convolution behind the layer picks the pixels?"""
    y = state.graph.tensors[node.outputs[0]]
    readers = state.graph.readers(y.name)
    alone = len(readers) == 1 and y.name not in (*state.graph.outputs, *state.targets)
    if not alone or plan.pool != 5 or plan.start != (0, 0):
        return False
    reader = readers[0]
    if not isinstance(reader, Conv) or reader.kernel != (1, 1) or reader.groups > 1:
        return False
    if any(reader.pads) or reader.strides != (1, 1):
        return False
    c, height, width = src.shape
    if y.shape[2:] != (height // 2, width // 2):
        return False
    o, lines = len(reader.weights), min(height, FEW_LINES)
    ways = []
    for first, second in ((plan.pool, 0), (0, plan.pool)):
        layer = LayerArg.make(c, lines, width, kernel=plan.kernel, depthwise=True, pool=first)
        ways.append([layer, LayerArg.make(*layer.out_shape, o, pool=second)])
    now, later = (costs.list_cycles(state.config, way) for way in ways)
    return later < now


def _depthwise(state: State, node: Conv, held: Held, geometry: Geometry, plan: ways.Plan) -> None:
    src = held.place
    step = 1
    if _later(state, node, src, plan):
        step, plan = 2, dataclasses.replace(plan, pool=0)
    weights = turned_weights(node, geometry)
    k = plan.kernel
    effective = np.zeros((src.shape[0], k, k), dtype=np.int64)
    for _, line, column, ky, kx in plan.taps():
        effective[geometry.channels, line, column] = weights[:, 0, ky, kx]
    data, arg_x = signed_weights(effective, state.bits)
    fit = _fit(state, node, held, effective[geometry.channels])
    fit = _spread(fit, geometry.channels, src.shape[0])
    terms = {"depthwise": True, **zero_terms(arg_x, held.zero, k * k)}
    _finish(state, node, geometry, plan, src, geometry.channels, data, fit, terms, step)


def _dense(
    state: State,
    node: Conv,
    held: Held,
    geometry: Geometry,
    plan: ways.Plan,
    into: Into | None = None,
) -> None:
    src, zero = held.place, held.zero
    channels = [np.arange(src.shape[0])]
    if plan.shifts != [(0, 0)]:
        src, channels = copies.stacked(state, node, src, zero, plan.shifts)
    weights = turned_weights(node, geometry)
    o, each = weights.shape[:2]
    k = plan.kernel
    effective = np.zeros((o, src.shape[0], k, k), dtype=np.int64)
    outputs = np.arange(o)[:, None]
    inputs = (outputs // (o // node.groups)) * each + np.arange(each)  # (O, C / groups)
    for number, line, column, ky, kx in plan.taps():
        at = channels[number][geometry.channels]
        effective[outputs, at[inputs], line, column] += weights[:, :, ky, kx]
    fit = _fit(state, node, held, effective)
    if is_wide(effective, state.bits):
        parts = shares(effective, state.bits)
        src, copied = copies.stacked(state, node, src, zero, [(0, 0)] * len(parts))
        effective = np.zeros((o, src.shape[0], k, k), dtype=np.int64)
        for at, part in zip(copied, parts, strict=True):
            effective[:, at] = part
    data, arg_x = signed_weights(effective, state.bits)
    full = o if into else _outputs(state, node, o)
    if full != o:  # rows that a concatenation fills
        data = np.concatenate([data, np.full((full - o, *data.shape[1:]), -arg_x)])
        fit = _spread(fit, np.arange(o), full)
    terms = zero_terms(arg_x, zero, k * k)
    _finish(state, node, geometry, plan, src, np.arange(o), data, fit, terms, into=into)


def _outputs(state: State, node: Conv, o: int) -> int:
    """Output channels: where the output is part of a larger map, as many as fill its rows."""
    if node.outputs[0] not in state.targets:
        return o
    return max(o, state.targets[node.outputs[0]][2])


def _finish(
    state: State,
    node: Conv,
    geometry: Geometry,
    plan: ways.Plan,
    src: Place,
    channels: npt.NDArray[np.int64],
    data: npt.NDArray[np.int64],
    fit: requant.Fit,
    terms: dict[str, Any],
    step: int = 1,
    into: Into | None = None,
) -> None:
    """The layer, what picks behind it, and where its output lies."""
    y = state.graph.tensors[node.outputs[0]]
    room = into or functools.partial(state.room, y.name)
    zero, clamp = stored(y, node.clamp)
    size = src.shape[1:]
    stride = {0: 1, 5: 2, 6: 2, 7: 4}[plan.pool]
    size = size[0] // stride, size[1] // stride
    o = len(fit.bn)
    ends = plan.shift == (0, 0) and plan.step == (1, 1)
    dst = room((o, *size)) if ends else state.new((o, *size))
    how = {"kernel": plan.kernel, "dilation": plan.far, "pool": plan.pool, **terms}
    state.layer(node, src, dst, weights=data, fit=fit, **how)
    if plan.shift != (0, 0):
        shape = (o, size[0] // 2, size[1] // 2) if plan.shift_pool else (o, *size)
        ends = plan.step == (1, 1)
        moved = room(shape) if ends else state.new(shape)
        if plan.shift_pool:
            copies.picked(state, node, dst, zero, plan.shift, plan.shift_pool, moved)
        else:
            copies.moved_map(state, node, dst, zero, plan.shift, moved)
        dst = moved
    if plan.step != (1, 1):
        (_, high, wide), (down, right) = dst.shape, plan.step
        shape = o, math.ceil(high / down), math.ceil(wide / right)
        last = room(shape)
        state.pool(node, dst, last, MAXIMUM, (1, 1), plan.step)
        dst = last
    where = indices(dst, channels, plan.start, y.size, geometry.turned, step)
    state.put(y.name, Held(dst, where, zero, clamp))
