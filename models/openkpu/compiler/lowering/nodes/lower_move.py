# SPDX-License-Identifier: Apache-2.0
"""Elements that change places: the rule is that only the index of the tensor changes.

Reshapes, transpositions and slices read the index of their input in another order; no byte moves.
A concatenation has its inputs written into one map from the start (``State.targets``), each behind
the other; an input that lies elsewhere is copied there.  A later node that cannot read elements
where they lie says so, and the host puts them in order.
"""

from __future__ import annotations

import numpy as np

from openkpu.arithmetic.integers import round_up
from openkpu.compiler.form.graph import Graph, Move
from openkpu.compiler.lowering import copies
from openkpu.compiler.lowering.device import Held, Place
from openkpu.compiler.lowering.lower import Disordered, State


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
    else:
        raise Disordered(name, "padding of its own")
    state.put(y.name, Held(held.place, np.ascontiguousarray(where), held.zero, held.span))


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
