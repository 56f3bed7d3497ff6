# SPDX-License-Identifier: Apache-2.0
"""Pools: the rule is a pooling task; an average of all of a map is one over the whole map.

The task sees all of a map, so a tensor with something around it is cut out first, unless its
windows never see that.  What the output's scale or a clamp changes is a table behind it:
of a maximum that is exact, of an average it rounds a second time.
"""

from __future__ import annotations

from openkpu.compiler import functions
from openkpu.compiler.graph import Pool, Tensor
from openkpu.compiler.lowering import copies, lower_table
from openkpu.compiler.lowering.device import Geometry, Held, indices
from openkpu.compiler.lowering.lower import Disordered, State, Unable, offset
from openkpu.layer.pool_tasks import (
    AVERAGE,
    AVERAGE_INSIDE,
    MAXIMUM,
    MOST_KERNEL,
    MOST_PAD,
    MOST_STRIDE,
)


def lower(state: State, node: Pool) -> None:
    """A pooling task, and a table where one is needed."""
    (x,), (y,) = state.graph.of(node.inputs), state.graph.of(node.outputs)
    held = state.held(x.name)
    geometry = held.geometry()
    if geometry is None:
        raise Disordered(x.name, "its input's elements do not lie as a map does")
    if geometry.step != (1, 1):
        held = copies.on_grid(state, node, held, geometry)
        geometry = _geometry(held)
    plain = x.same_numbers(y) and node.clamp == y.limits
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
        state.report(node).steps += 1
        state.report(node).note = "the average is rounded, then its scale changes"


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
