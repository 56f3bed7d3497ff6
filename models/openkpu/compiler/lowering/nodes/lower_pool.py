# SPDX-License-Identifier: Apache-2.0
"""Pools: the rule is a pooling task; an average of all of a map is one over the whole map.

The task reads all of a map, so a tensor with other data around it is cut out first, unless its
windows never read those.  A change by the output's scale or a clamp is a table after the task: for
a maximum that is exact.  An average would be rounded twice, so one with another scale is a sum
instead: of windows, a depthwise convolution whose weights are 1; of a whole map, fully connected
layers of a few channels each.  Windows that count the pixels inside the map alone divide by several
numbers, and there, as where the sum does not fit, the average is rounded and then its scale
changes; the report says how many steps that may be.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from openkpu.compiler.form import functions
from openkpu.compiler.form.graph import Pool, Tensor
from openkpu.compiler.lowering import copies, requant
from openkpu.compiler.lowering.device import Geometry, Held, indices
from openkpu.compiler.lowering.lower import (
    Disordered,
    State,
    Unable,
    offset,
    reach_of,
    stored,
    zero_terms,
)
from openkpu.compiler.lowering.nodes import lower_conv, lower_table
from openkpu.layer.pool_tasks import (
    AVERAGE,
    AVERAGE_INSIDE,
    MAXIMUM,
    MOST_KERNEL,
    MOST_PAD,
    MOST_STRIDE,
)

SUMMED = 3  # largest window whose sum costs no more than a pooling task and a table
OVERHEAD = 100  # cycles of a layer beside those in which it reads its weights, about


def lower_pool_node(state: State, node: Pool) -> None:
    """A pooling task, and a table where one is needed; or an exact sum."""
    (x,), (y,) = state.graph.of(node.inputs), state.graph.of(node.outputs)
    held = state.held(x.name)
    geometry = held.geometry()
    if geometry is None:
        raise Disordered(x.name, "its input's elements do not lie as a map does")
    if geometry.step != (1, 1):
        held = copies.on_grid(state, node, held, geometry)
        geometry = _geometry(held)
    plain = x.same_numbers(y) and node.clamp == y.limits
    if node.how == "average" and x.exact != y.exact and _summed(state, node, held, geometry):
        return
    name = y.name if plain else state.graph.fresh(y.name)
    pooled = _task(state, node, held, geometry, y, name)
    if plain:
        state.put(y.name, pooled)
        return
    between = Tensor(name, x.dtype, y.shape, x.scale, x.zero)
    table = functions.clamp_table(between, y, node.clamp) + offset(y)
    lower_table.bytes_of(state, node, pooled, table, y.name)
    found = state.tensors[y.name]
    span = tuple(int(n) + offset(y) for n in node.clamp)
    state.put(y.name, Held(found.place, pooled.where, y.zero + offset(y), (span[0], span[1])))
    if node.how == "average" and x.exact != y.exact:
        # half a step of the input, and half a step of the output where it is rounded again
        state.report(node).steps += math.floor(x.exact / y.exact / 2 + 1)
        state.report(node).note = "the average is rounded, then its scale changes"


def _summed(state: State, node: Pool, held: Held, geometry: Geometry) -> bool:
    """An exact average by a sum; False where there is none."""
    (x,), (y,) = state.graph.of(node.inputs), state.graph.of(node.outputs)
    everything = node.kernel == geometry.size and y.shape[2:] == (1, 1) and not any(node.pads)
    if any(node.pads) and not node.count_pads:
        return False
    if not everything and max(node.kernel) > SUMMED and x.exact <= y.exact:
        return False  # a step at most, and faster
    mark = state.mark()
    try:
        if everything and max(node.kernel) > SUMMED:
            _whole(state, node, held, geometry)
        else:
            lower_conv.lower_conv_node(state, _convolution(node, x.shape[1]))
    except Unable:
        state.back(mark)
        return False
    return True


def _convolution(node: Pool, channels: int) -> lower_conv.Average:
    """The average as a depthwise convolution."""
    share = Fraction(1, math.prod(node.kernel))
    zeros = np.zeros(channels, np.int64)
    return lower_conv.Average(
        *(node.name, node.operator, node.inputs, node.outputs),
        weights=np.ones((channels, 1, *node.kernel), np.int64),
        w_scale=np.full(channels, share, object),
        w_zero=zeros,
        bias=zeros,
        clamp=node.clamp,
        strides=node.strides,
        pads=node.pads,
        groups=channels,
    )


def _whole(state: State, node: Pool, held: Held, geometry: Geometry) -> None:
    """The average of all pixels: channels that share rows, a fully connected layer for each."""
    (x,), (y,) = state.graph.of(node.inputs), state.graph.of(node.outputs)
    c, *size = held.place.shape
    pixels = math.prod(size)
    dst = state.room(y.name, (c, 1, 1))
    both = math.lcm(held.place.groups, dst.groups)
    # the channels of a layer for which its weights take as long as its overhead
    each = math.sqrt(OVERHEAD * state.config.bus_bytes / pixels)
    each = max(1, round(each / both)) * both
    seen = np.zeros(c * pixels, np.int64)
    seen[held.where.reshape(-1)] = 1
    seen = seen.reshape(c, pixels)
    zero, clamp = stored(y, node.clamp)
    factor = x.exact / y.exact / math.prod(node.kernel)
    low, high = reach_of(seen[geometry.channels[:1]], held.span, held.zero)
    one = requant.fit([factor], [0], zero, clamp, (low, high), up=True)
    for first in range(0, c, each):
        count = min(each, c - first)
        weights = np.zeros((count, count, pixels), np.int64)
        weights[np.arange(count), np.arange(count)] = seen[first : first + count]
        missed = 0 if first else one.missed, 0 if first else one.edges
        fit = requant.Fit(np.repeat(one.bn, count), one.act, *missed)
        terms = zero_terms(0, held.zero, count * pixels)
        places = held.place.part(first, count), dst.part(first, count)
        state.layer(node, *places, weights=weights, fit=fit, fc=True, **terms)
    where = indices(dst, geometry.channels, (0, 0), (1, 1))
    state.put(y.name, Held(dst, where, zero, clamp))


def _task(state: State, node: Pool, held: Held, geometry: Geometry, y: Tensor, name: str) -> Held:
    """The pool in the input's numbers."""
    kind = {"max": MAXIMUM, "average": AVERAGE if node.count_pads else AVERAGE_INSIDE}[node.how]
    c = held.place.shape[0]
    if node.kernel == geometry.size and y.shape[2:] == (1, 1) and not any(node.pads):
        if geometry.size != held.place.shape[1:]:
            small = max(geometry.size) <= MOST_KERNEL
            if not small or _windows(node, geometry, held, y) is None:
                held = copies.cropped(state, node, node.inputs[0], held, geometry)
                return _task(state, node, held, _geometry(held), y, name)
        else:
            dst = state.room(name, (c, 1, 1))
            state.pool(node, held.place, dst, kind, None)
            where = indices(dst, geometry.channels, (0, 0), (1, 1))
            return Held(dst, where, held.zero, held.span)
    if max(node.kernel) > MOST_KERNEL or max(node.strides) > MOST_STRIDE:
        raise Unable(
            f"a window of {node.kernel}, strides {node.strides}: the device has up to"
            f" {MOST_KERNEL}, or the whole map"
        )
    found = _windows(node, geometry, held, y)
    if found is None:
        used = _used(node, held, y)
        if used.where.shape != held.where.shape:
            return _task(state, node, used, _geometry(used), y, name)
        if geometry.size == held.place.shape[1:]:
            raise Disordered(node.inputs[0], f"windows with pads {node.pads} do not fit the map")
        held = copies.cropped(state, node, node.inputs[0], held, geometry)
        return _task(state, node, held, _geometry(held), y, name)
    pads, start, size = found
    dst = state.room(name, (c, *size))
    state.pool(node, held.place, dst, kind, node.kernel, node.strides, pads, held.zero)
    where = indices(dst, geometry.channels, start, y.size, geometry.turned)
    return Held(dst, where, held.zero, held.span)


def _used(node: Pool, held: Held, y: Tensor) -> Held:
    """The pixels up to the last one that a window sees."""
    ends = [
        (n - 1) * s + k - top
        for n, s, k, top in zip(y.size, node.strides, node.kernel, node.pads[:2], strict=True)
    ]
    where = held.where[:, :, : max(ends[0], 1), : max(ends[1], 1)]
    return Held(held.place, where, held.zero, held.span)


def _geometry(held: Held) -> Geometry:
    found = held.geometry()
    assert found is not None
    return found


def _windows(
    node: Pool, geometry: Geometry, held: Held, y: Tensor
) -> tuple[tuple[int, int, int, int], tuple[int, int], tuple[int, int]] | None:
    """(pads, first output of the node, size of the output) of windows over the whole map."""
    before, after, start, size = [], [], [], []
    for i in (0, 1):
        kernel, stride, outputs = node.kernel[i], node.strides[i], y.shape[2 + i]
        n, whole, first = geometry.size[i], held.place.shape[1 + i], geometry.start[i]
        top = node.pads[i]
        if geometry.turned[i]:
            top = (outputs - 1) * stride + kernel - n - top
        last = (outputs - 1) * stride + kernel - top  # behind the last pixel that is read
        if (top > 0 and first > 0) or (last > n and first + n < whole):
            return None  # a window sees what is not the tensor's
        lead = top - first
        skipped = 0
        if lead < 0:
            skipped, lead = -(lead // stride), lead % stride
        count = skipped + outputs
        behind = max(0, (count - 1) * stride + kernel - lead - whole)
        if max(lead, behind) > MOST_PAD or max(lead, behind) >= kernel:
            return None
        # windows behind the node's last one are made as well where the map has room for them
        before.append(lead)
        after.append(behind)
        start.append(skipped)
        size.append((whole + lead + behind - kernel) // stride + 1)
    pads = before[0], before[1], after[0], after[1]
    return pads, (start[0], start[1]), (size[0], size[1])
