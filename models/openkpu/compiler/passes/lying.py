# SPDX-License-Identifier: Apache-2.0
"""A pass that lays maps down: lines and columns of signals, or of tall maps, change places.

A row of the AI RAM holds up to 64 pixels of one line, or lines of four channels of up to 16 pixels.
A signal (1, C, T, 1), as models of sound and of wake words have them, uses one byte in sixteen of
it and T lines of a stripe; the same signal as (1, C, 1, T) fills the rows, and all of the array's
columns.  The pass swaps lines and columns of whole sets of tensors that depend on each other
(``alike.sets_of``), where every map of a set has one column; for ``tall`` also where every map has
more lines than columns, as spectra of words have (49 x 10, 25 x 5).  Whether that takes fewer
cycles depends on the layers; ``build`` tries both.  At the ends of a set a transposition stays,
which is an index (``lower_move``), or the host's where it writes the input.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from openkpu.compiler.form import alike
from openkpu.compiler.form.graph import (
    LONGEST,
    Conv,
    Elementwise,
    Graph,
    Host,
    Move,
    Node,
    Pool,
    Tensor,
)
from openkpu.terminal import printable

SWAP = (0, 1, 3, 2)
NARROW = 64  # pixels of a map's line that leave room in a row of the AI RAM


def lay_down(graph: Graph, tall: bool = False) -> None:
    """Maps (1, C, T, 1) become (1, C, 1, T), and their nodes work along lines; tall maps, too."""
    for names in _upright_sets(graph, tall):
        _swap(graph, names)


def stand_up(graph: Graph) -> None:
    """Maps with lines longer than the device's change lines and columns; tall ones are computed in
    bands."""
    sets = alike.sets_of(graph)
    for root in dict.fromkeys(sets.values()):
        names = {name for name, its in sets.items() if its == root}
        sizes = [graph.tensors[name].shape[2:] for name in names]
        wide, high = (max(size[axis] for size in sizes) for axis in (1, 0))
        inside = [n for n in graph.nodes if n.outputs[0] in names and alike.together(n)]
        flat = [n for n in inside if isinstance(n, Elementwise) and not _mapped(graph, n)]
        if wide > LONGEST >= high and any(isinstance(n, (Conv, Pool)) for n in inside) and not flat:
            _swap(graph, names)


def has_tall(graph: Graph) -> bool:
    """Are there maps that ``tall`` would lay down, and only it?"""
    return len(_upright_sets(graph, True)) > len(_upright_sets(graph, False))


def _upright_sets(graph: Graph, tall: bool) -> list[set[str]]:
    sets = alike.sets_of(graph)
    return [
        {name for name, its in sets.items() if its == root}
        for root in dict.fromkeys(sets.values())
        if _upright(graph, sets, root, tall)
    ]


def _upright(graph: Graph, sets: dict[str, str], root: str, tall: bool) -> bool:
    """Is no map of the set wider than one column (or than tall), and has a convolution or pool
    something to gain?"""
    tensors = [graph.tensors[name] for name, its in sets.items() if its == root]
    heights = [t.shape[2] for t in tensors]
    inside = [n for n in graph.nodes if sets.get(n.outputs[0]) == root and alike.together(n)]
    flat = [n for n in inside if isinstance(n, Elementwise) and not _mapped(graph, n)]
    gains = any(isinstance(n, (Conv, Pool)) for n in inside)
    tall = tall and not any(_of_host(n) and _meets(n, sets, root) for n in graph.nodes)
    narrow = all(
        t.shape[3] == 1 or (tall and t.shape[3] < min(t.shape[2], NARROW)) for t in tensors
    )
    return gains and not flat and narrow and 1 < max(heights) <= LONGEST


def _of_host(node: Node) -> bool:
    """Does the host compute the node from whole maps, which it would have to turn first?"""
    return isinstance(node, Host) and node.how not in ("quantize", "dequantize")


def _meets(node: Node, sets: dict[str, str], root: str) -> bool:
    return any(sets.get(name) == root for name in (*node.inputs, *node.outputs))


def _mapped(graph: Graph, node: Elementwise) -> bool:
    """Are both operands maps, or single numbers?"""
    return all(len(t.shape) == 4 or int(np.prod(t.shape)) == 1 for t in graph.of(node.inputs))


def _swap(graph: Graph, names: set[str]) -> None:
    """Lay the tensors of a set down; nodes outside of it see them upright, by their own names."""
    inner = [n for n in graph.nodes if n.outputs[0] in names and alike.together(n)]
    made = {name: graph.add_tensor(_lying(graph, name)).name for name in sorted(names)}
    written = {n.outputs[0] for n in inner}
    seen = {name for n in graph.nodes if all(n is not m for m in inner) for name in n.inputs}
    wanted = written & (seen | set(graph.outputs))
    there = [n for n in graph.inputs if n in names]
    nodes: list[Node] = [_turn(name, name, made[name]) for name in there]
    for node in graph.nodes:
        name = node.outputs[0]
        if name in written:
            nodes.append(_along(node, made))
            if name in wanted:
                nodes.append(_turn(name, made[name], name))
        else:
            nodes.append(node)
            nodes += [_turn(name, name, made[name])] if name in names else []
    graph.nodes = nodes
    for name in written - wanted:
        del graph.tensors[name]


def lies(graph: Graph, node: Node) -> bool:
    """Does the node lay an input down?  Then the host writes it lying, and nothing is computed.
    Where more moves follow, the host does all of them."""
    name = node.inputs[0]
    return name in graph.inputs and all(
        isinstance(n, Move)
        and n.axes == SWAP
        and n.outputs[0] not in graph.outputs
        and not any(isinstance(m, Move) for m in graph.readers(n.outputs[0]))
        for n in graph.readers(name)
    )


def _lying(graph: Graph, name: str) -> Tensor:
    """The tensor with lines and columns swapped."""
    tensor = graph.tensors[name]
    shape = tuple(tensor.shape[a] for a in SWAP)
    data = None if tensor.data is None else np.ascontiguousarray(tensor.data.transpose(SWAP))
    fields = {"name": graph.fresh(name), "shape": shape, "layout": "", "data": data}
    return dataclasses.replace(tensor, **fields)


def _turn(name: str, source: str, into: str) -> Move:
    label = f"{printable(name)}/{'down' if source == name else 'up'}"
    return Move(label, "lines along columns", (source,), (into,), how="transpose", axes=SWAP)


def _along(node: Node, made: dict[str, str]) -> Node:
    """The node on tensors that lie."""
    names: dict[str, Any] = {
        "inputs": tuple(made.get(n, n) for n in node.inputs),
        "outputs": tuple(made[n] for n in node.outputs),
    }
    if isinstance(node, Conv):
        names["weights"] = np.ascontiguousarray(node.weights.transpose(SWAP))
        names["dilation"] = node.dilation[::-1]
    if isinstance(node, Pool):
        names["kernel"] = node.kernel[::-1]
    if isinstance(node, (Conv, Pool)):
        top, left, bottom, right = node.pads
        names |= {"strides": node.strides[::-1], "pads": (left, top, right, bottom)}
    if isinstance(node, Move):
        names["axis"] = SWAP[node.axis]
        for field in ("starts", "steps", "before", "after"):
            values = getattr(node, field)
            names[field] = tuple(values[a] for a in SWAP) if values else values
    return dataclasses.replace(node, **names)
