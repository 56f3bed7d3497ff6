# SPDX-License-Identifier: Apache-2.0
"""A pass for maps whose lines are longer than the device's, or that have more lines.

Nodes that compute each pixel by itself do not ask where a line ends: they read and write the same
pixels in lines that fit, as the anchors of a detector are (1, 16, 4, 8400).
"""

from __future__ import annotations

import dataclasses

from openkpu.arithmetic.integers import largest_divisor
from openkpu.compiler.form.graph import (
    LONGEST,
    MOST_LINES,
    Conv,
    Elementwise,
    Graph,
    Move,
    Node,
    Table,
    Tensor,
)


def fold_wide(graph: Graph) -> None:
    """Reshapes around such nodes, where the pixels fill lines that fit."""
    nodes: list[Node] = []
    for node in graph.nodes:
        size = _lines(graph, node) if isinstance(node, (Conv, Elementwise, Table)) else None
        nodes += [node] if size is None else _folded(graph, node, size)
    graph.nodes = nodes


def _lines(graph: Graph, node: Node) -> tuple[int, int] | None:
    """The lines and columns in which a node's pixels fit; None where it stays as it is."""
    maps = [*graph.of(node.inputs), *graph.of(node.outputs)]
    height, width = maps[-1].shape[2:] if len(maps[-1].shape) == 4 else (0, 0)
    if width <= LONGEST and height <= MOST_LINES:
        return None
    if any(len(t.shape) != 4 or t.shape[2:] != (height, width) for t in maps):
        return None
    if isinstance(node, Conv) and (node.kernel, node.strides) != ((1, 1), (1, 1)):
        return None
    if isinstance(node, Elementwise) and any(t.shape != maps[0].shape for t in maps):
        return None
    wide = largest_divisor(height * width, LONGEST)
    lines = height * width // wide
    return (lines, wide) if lines <= MOST_LINES else None


def _folded(graph: Graph, node: Node, size: tuple[int, int]) -> list[Node]:
    """The node between reshapes; constants are reshaped here."""
    made: list[Node] = []
    names = []
    for i, x in enumerate(graph.of(node.inputs)):
        folded = _like(graph, x, size)
        if x.data is not None:
            folded.data = x.data.reshape(folded.shape)
        else:
            label = f"{node.name}/lines{i}"
            made.append(Move(label, node.operator, (x.name,), (folded.name,), how="reshape"))
        names.append(folded.name)
    (y,) = graph.of(node.outputs)
    folded = _like(graph, y, size)
    made.append(dataclasses.replace(node, inputs=tuple(names), outputs=(folded.name,)))
    label = f"{node.name}/map"
    return [*made, Move(label, node.operator, (folded.name,), (y.name,), how="reshape")]


def _like(graph: Graph, x: Tensor, size: tuple[int, int]) -> Tensor:
    shape = (*x.shape[:2], *size)
    return graph.add_tensor(Tensor(graph.fresh(x.name), x.dtype, shape, x.scale, x.zero))
