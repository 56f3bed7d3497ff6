# SPDX-License-Identifier: Apache-2.0
"""Elements that change places: the rule is that only the index of the tensor changes.

Reshapes, transpositions and slices read the index of their input in another order; no byte moves.
A Pad of channels is a copy of its input and of zeros, or a convolution.
A concatenation has its inputs written into one map from the start (``State.targets``), each behind
the other; an input that lies elsewhere is copied there.  A later node that cannot read elements
where they lie says so, and the host puts them in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from openkpu.arithmetic.integers import round_up
from openkpu.compiler.form.graph import Graph, Move
from openkpu.compiler.lowering import copies, costs
from openkpu.compiler.lowering.device import Geometry, Held, Place, indices
from openkpu.compiler.lowering.lower import Disordered, State, Unable, copy_fit, zero_terms
from openkpu.compiler.passes.padded import pads_channels


def lower_move_node(state: State, node: Move) -> None:
    """The output's index."""
    name, y = node.inputs[0], state.graph.tensors[node.outputs[0]]
    if node.how == "concat":
        _concat(state, node)
        return
    held = state.held(name)
    where = held.where
    if node.how == "reshape":
        where = where.reshape(y.shape)
    elif node.how == "transpose":
        where = where.transpose(node.axes)
    elif node.how == "slice":
        parts = zip(node.starts, node.steps, y.shape, strict=True)
        places = [start + step * np.arange(n) for start, step, n in parts]
        where = where[np.ix_(*places)]
    elif node.how == "take":
        where = where[np.ix_(*node.places)]
    elif pads_channels(state.graph, node):
        costs.fewest(state, node, (_pad_by_copies, _pad_by_channels))
        return
    else:
        raise Disordered(name, "padding of its own")
    found = Held(held.place, np.array(where, order="C"), held.zero, held.span)
    state.put(y.name, _narrowed(state, found) if node.how == "slice" else found)


def _narrowed(state: State, held: Held) -> Held:
    """A part of the channels as a map of its own, where it fills rows and has been written."""
    place = held.place
    if place.buffer in state.fresh or not held.where.size:
        return held
    pixels = place.shape[1] * place.shape[2]
    first, last = (int(at) // pixels for at in (held.where.min(), held.where.max()))
    count = last + 1 - first
    full = count % place.groups == 0 or last + 1 == place.shape[0]
    if first % place.groups or not full or count == place.shape[0]:
        return held
    where = held.where - first * pixels
    return Held(place.part(first, count), where, held.zero, held.span, held.margin)


def _pad_by_channels(state: State, node: Move) -> None:
    """One convolution with a weight for each channel, and none for those of zeros."""
    y = state.graph.tensors[node.outputs[0]]
    held, geometry, first = *_map_to_pad(state, node), node.before[1]
    src = held.place
    dst = state.room(y.name, (y.shape[1], *src.shape[1:]))
    weights = np.zeros((y.shape[1], src.shape[0]), dtype=np.int64)
    weights[first + np.arange(len(geometry.channels)), geometry.channels] = 1
    terms, fit = zero_terms(0, held.zero, 1), copy_fit(held.zero, y.shape[1])
    state.layer(node, src, dst, weights=weights, fit=fit, **terms)
    _put_padded(state, y.name, dst, held, geometry)


def _pad_by_copies(state: State, node: Move) -> None:
    """A copy of the channels, and copies that are multiplied by 0, where rows are full."""
    y = state.graph.tensors[node.outputs[0]]
    held, geometry, first = *_map_to_pad(state, node), node.before[1]
    src = held.place
    count, groups = src.shape[0], src.groups
    plain = np.array_equal(geometry.channels, np.arange(count))
    if not plain or first % groups or (count % groups and node.after[1]):
        raise Unable("channels of zeros share rows with others")
    dst = state.room(y.name, (y.shape[1], *src.shape[1:]))
    state.copy(node, src, dst.part(first, count), held.zero)
    spans = (0, first), (first + count, y.shape[1])
    for start in (n for low, end in spans for n in range(low, end, count)):
        end = min(start + count, next(e for low, e in spans if low <= start < e))
        part = dst.part(start, end - start)
        terms: dict[str, Any] = {"depthwise": True, **zero_terms(0, held.zero, 1)}
        fit = copy_fit(held.zero, end - start)
        few = dst.part(first, end - start)
        state.layer(node, few, part, weights=np.zeros(end - start), fit=fit, **terms)
    _put_padded(state, y.name, dst, held, geometry)


def _map_to_pad(state: State, node: Move) -> tuple[Held, Geometry]:
    held = state.held(node.inputs[0])
    geometry = held.geometry()
    if geometry is None:
        raise Disordered(node.inputs[0], "it does not lie as a map does")
    held = copies.on_grid(state, node, held, geometry)
    geometry = held.geometry()
    assert geometry is not None, "on_grid gives a map"
    return held, geometry


def _put_padded(state: State, name: str, dst: Place, held: Held, geometry: Geometry) -> None:
    channels = np.arange(dst.shape[0])
    where = indices(dst, channels, geometry.start, geometry.size, geometry.turned)
    span = min(held.span[0], held.zero), max(held.span[1], held.zero)
    state.put(name, Held(dst, where, held.zero, span))


def _concat(state: State, node: Move) -> None:
    y = state.graph.tensors[node.outputs[0]]
    maps = [state.held(n) for n in node.inputs]
    sizes = {m.place.shape[1:] for m in maps}
    if len(sizes) > 1:
        maps = [copies.plain_map(state, node, n, m) for n, m in zip(node.inputs, maps, strict=True)]
        sizes = {m.place.shape[1:] for m in maps}
    if len(sizes) > 1:
        raise Disordered(node.inputs[-1], "its inputs lie in maps of different sizes")
    size = sizes.pop()
    big = next((state.targets[n][0] for n in node.inputs if n in state.targets), None)
    total = sum(_full(m.place) for m in maps)
    if big is None or big.shape != (total, *size):
        big = state.new((total, *size))
    index, first, pixels = [], 0, size[0] * size[1]
    for held in maps:
        count = _full(held.place)
        part = big.part(first, count)
        if (held.place.buffer, held.place.row) != (part.buffer, part.row):
            source = held.place
            if source.shape[0] == count:
                state.copy(node, source, part, held.zero)
            else:
                copies.chosen_channels(
                    state, node, source, held.zero, np.arange(source.shape[0]), part
                )
        index.append(held.where + first * pixels)
        first += count
    spans = [m.span for m in maps]
    span = min(s[0] for s in spans), max(s[1] for s in spans)
    state.put(y.name, Held(big, np.concatenate(index, axis=node.axis), maps[0].zero, span))


def _full(place: Place) -> int:
    """Channels, filled up to whole rows."""
    return round_up(place.shape[0], place.groups)


def plan_concat(graph: Graph, node: Move, state: State) -> None:
    """Before anything is lowered: a map for the inputs of a concatenation of channels."""
    tensors = [graph.tensors[n] for n in node.inputs]
    if any(len(t.shape) != 4 or t.data is not None for t in tensors) or node.axis != 1:
        return
    if len(set(node.inputs)) < len(node.inputs) or set(node.inputs) & set(state.targets):
        return
    size = tensors[0].size
    counts = [_full(Place(0, 0, (t.shape[1], *size))) for t in tensors]
    big = state.new((sum(counts), *size))
    first = 0
    for name, count in zip(node.inputs, counts, strict=True):
        state.targets[name] = big, first, count
        first += count
