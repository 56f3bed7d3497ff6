# SPDX-License-Identifier: Apache-2.0
"""Tensors whose maps lie alike, since a node reads and writes all of them in one order."""

from __future__ import annotations

from openkpu.compiler.form.graph import Conv, Elementwise, Graph, Move, Node, Pool, Table


def together(node: Node) -> bool:
    """Do the node's maps lie alike?"""
    if isinstance(node, Move):
        return node.how in ("concat", "slice", "pad")
    return isinstance(node, (Conv, Pool, Elementwise, Table))


def sets_of(graph: Graph) -> dict[str, str]:
    """The representative of each tensor's set."""
    parent = {t.name: t.name for t in graph.tensors.values() if len(t.shape) == 4}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    for node in graph.nodes:
        names = [n for n in (*node.inputs, *node.outputs) if n in parent]
        for name in names[1:] if together(node) else ():
            parent[root(name)] = root(names[0])
    return {name: root(name) for name in parent}
