# SPDX-License-Identifier: Apache-2.0
"""A pass for nodes of constants, such as a recurrent layer has for its first state.

They are computed, but for one that a move reads beside a computed tensor: moves change where the
device finds elements, and a constant lies nowhere.  The host writes such a constant, as the result
of a table.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Graph, Move, Node, Table, Tensor


def fold_constants(graph: Graph) -> None:
    """Results of constants in place of their nodes; a table in front of a move of some."""
    known = {t.name for t in graph.tensors.values() if t.data is not None}
    candidates: list[Node] = []
    for node in graph.nodes:
        if set(node.inputs) <= known:
            candidates.append(node)
            known |= set(node.outputs)
    folded: list[Node] = []
    for node in reversed(candidates):
        readers = [r for r in graph.readers(node.outputs[0]) if not _among(r, folded)]
        moved = any(isinstance(r, Move) for r in readers)
        if not moved and node.outputs[0] not in graph.outputs:
            folded.append(node)
    for node in reversed(folded):
        inputs, name = graph.of(node.inputs), node.outputs[0]
        values = [reference.held(np.asarray(t.data), t) for t in inputs]
        made = reference.compute(graph, node, values)
        graph.tensors[name] = dataclasses.replace(graph.tensors[name], data=made)
    nodes: list[Node] = []
    for node in graph.nodes:
        if not _among(node, folded):
            nodes += _with_tables(graph, node) if isinstance(node, Move) else [node]
    graph.nodes = nodes


def _among(node: Node, nodes: list[Node]) -> bool:
    return any(node is other for other in nodes)


def _with_tables(graph: Graph, node: Move) -> list[Node]:
    """The move with what the host writes in place of each constant."""
    made: list[Node] = []
    names = []
    for i, x in enumerate(graph.of(node.inputs)):
        if x.data is None or not x.quantised:
            names.append(x.name)
            continue
        y = graph.add_tensor(Tensor(graph.fresh(x.name), x.dtype, x.shape, x.scale, x.zero))
        low, high = x.limits
        same = np.arange(low, high + 1, dtype=np.int64)
        fields = {"table": same, "function": "the same bytes"}
        made.append(
            Table(f"{node.name}/constant{i}", node.operator, (x.name,), (y.name,), **fields)
        )
        names.append(y.name)
    return [*made, dataclasses.replace(node, inputs=tuple(names)) if made else node]
