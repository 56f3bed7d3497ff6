# SPDX-License-Identifier: Apache-2.0
"""A pass for maps that are padded with channels of zeros before they are added to a wider map.

Residual blocks whose branches have different numbers of channels pad the narrow one.  The sum then
reads zeros in the further channels, where it is the other branch alone in other steps.  The pass
adds the channels that both have, makes the further ones a table, and puts both behind each other,
so that nothing is written for the zeros.  Channels that share a row of the AI RAM with zeros
are padded and added in a small layer of their own.  Rounding is the same: a sum with zero rounds
the same value as the table.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from openkpu.compiler.form import functions
from openkpu.compiler.form.graph import Elementwise, Graph, Move, Node, Table, Tensor
from openkpu.layer.layout import Layout


def split_padded(graph: Graph) -> None:
    """Sums of a map and one that a Pad of channels made as wide."""
    for pad in [n for n in graph.nodes if isinstance(n, Move) and pads_channels(graph, n)]:
        name, readers = pad.outputs[0], graph.readers(pad.outputs[0])
        whole = [r for r in readers if isinstance(r, Elementwise) and _splits(graph, r, name)]
        if name in graph.outputs or not readers or len(whole) < len(readers):
            continue
        edges = _edges(graph, pad)
        if edges is None:
            continue
        for node in whole:
            at = next(i for i, n in enumerate(graph.nodes) if n is node)
            graph.nodes[at : at + 1] = _Split(graph, pad, node).nodes(*edges)
        graph.nodes.remove(pad)


def pads_channels(graph: Graph, node: Move) -> bool:
    """Does a Pad make nothing but further channels of zeros of a map?"""
    x = graph.tensors[node.inputs[0]]
    if node.how != "pad" or len(x.shape) != 4 or node.value != x.zero:
        return False
    others = [n for edge in (node.before, node.after) for i, n in enumerate(edge) if i != 1]
    return not any(others)


def _splits(graph: Graph, node: Elementwise, name: str) -> bool:
    """A sum or difference of the padded map and another computed one of its shape?"""
    rest = [n for n in node.inputs if n != name]
    if node.how not in ("add", "sub") or len(rest) != 1:
        return False
    other = graph.tensors[rest[0]]
    return other.data is None and other.shape == graph.tensors[name].shape


def _edges(graph: Graph, pad: Move) -> tuple[int, int, int] | None:
    """(first channel of the map, first that shares a row with zeros behind it, first zero), where
    there are channels that fill rows."""
    _, count, height, width = graph.tensors[pad.inputs[0]].shape
    groups, first = Layout(count, height, width).groups, pad.before[1]
    full = first + count // groups * groups
    return None if first % groups or full == first else (first, full, first + count)


class _Split:
    """The nodes of one sum."""

    def __init__(self, graph: Graph, pad: Move, node: Elementwise) -> None:
        self.graph, self.pad, self.node = graph, pad, node
        self.second = node.inputs[1] == pad.outputs[0]  # is the padded map the second operand?
        self.x = graph.tensors[pad.inputs[0]]
        self.other = graph.tensors[node.inputs[0 if self.second else 1]]
        self.made: list[Node] = []
        self.parts: list[str] = []

    def nodes(self, first: int, full: int, end: int) -> list[Node]:
        """The zeros in front of ``first``, sums up to ``full``, sums of a small Pad where it is not
        ``end``, zeros to the last channel; then all of them as one map."""
        y = self.graph.tensors[self.node.outputs[0]]
        last = y.shape[1]
        self._alone(0, first)
        self._sum(self._slice(self.x, 0, full - first), first, full)
        if full < end:
            part = self._slice(self.x, full - first, end - first)
            after = (0, last - end, 0, 0)
            fields = {"how": "pad", "before": (0, 0, 0, 0), "after": after, "value": self.x.zero}
            self._sum(self._move([part], last - full, self.pad, **fields), full, last)
        else:
            self._alone(end, last)
        name = f"{self.node.name}/parts"
        join = Move(name, "its parts", tuple(self.parts), (y.name,), how="concat", axis=1)
        return [*self.made, join]

    def _like(self, tensor: Tensor, channels: int) -> Tensor:
        shape = (1, channels, *tensor.shape[2:])
        name = self.graph.fresh(tensor.name)
        made = Tensor(name, tensor.dtype, shape, tensor.scale, tensor.zero)
        return self.graph.add_tensor(made)

    def _move(self, inputs: list[Tensor], channels: int, like: Node, **fields: object) -> Tensor:
        y = self._like(inputs[0], channels)
        label = f"{self.node.name}/part{len(self.made)}"
        names = tuple(t.name for t in inputs)
        self.made.append(Move(label, like.operator, names, (y.name,), **fields))  # pyright: ignore
        return y

    def _slice(self, tensor: Tensor, first: int, end: int) -> Tensor:
        if end - first == tensor.shape[1]:
            return tensor
        fields = {"how": "slice", "starts": (0, first, 0, 0), "steps": (1, 1, 1, 1)}
        return self._move([tensor], end - first, self.node, **fields)

    def _sum(self, x: Tensor, first: int, end: int) -> None:
        """Channels to which both add something."""
        other = self._slice(self.other, first, end)
        y = self._like(self.graph.tensors[self.node.outputs[0]], end - first)
        inputs = (other.name, x.name) if self.second else (x.name, other.name)
        name = f"{self.node.name}/sum{first}"
        made = dataclasses.replace(self.node, name=name, inputs=inputs, outputs=(y.name,))
        self.made.append(made)
        self.parts.append(y.name)

    def _alone(self, first: int, end: int) -> None:
        """Channels of the other map and zeros."""
        if first == end:
            return
        x = self._slice(self.other, first, end)
        y = self._like(self.graph.tensors[self.node.outputs[0]], end - first)
        sign = -1 if self.node.how == "sub" and not self.second else 1
        table = np.clip(functions.table_of(lambda r: sign * r, x, y), *self.node.clamp)
        label, names = f"{self.node.name}/alone{first}", (x.name,)
        self.made.append(
            Table(label, self.node.operator, names, (y.name,), table=table, function="sum with 0")
        )
        self.parts.append(y.name)
