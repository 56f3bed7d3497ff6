# SPDX-License-Identifier: Apache-2.0
"""A pass for maps whose lines are longer than the device's, or that have more lines.

Nodes that compute each pixel by itself do not ask where a line ends: they read and write the same
pixels in lines that fit, as the anchors of a detector are (1, 16, 4, 8400); so do pools of whole
maps. Maps between convolutions with windows stay as they are: tall ones are computed in bands, wide
ones change lines and columns (``lying``).
"""

from __future__ import annotations

import dataclasses

from openkpu.arithmetic.integers import largest_divisor
from openkpu.compiler.form import alike
from openkpu.compiler.form.graph import (
    LONGEST,
    MOST_LINES,
    Conv,
    Elementwise,
    Graph,
    Move,
    Node,
    Pool,
    Table,
    Tensor,
)
from openkpu.compiler.form.rarer import Deconv


def fold_wide(graph: Graph) -> None:
    """Reshapes around such nodes, where the pixels fill lines that fit."""
    nodes: list[Node] = []
    sets = alike.sets_of(graph)
    windows = {sets.get(n.outputs[0]) for n in graph.nodes if _windowed(graph, n)}
    for node in graph.nodes:
        alone = sets.get(node.outputs[0]) not in windows or _whole(graph, node)
        able = alone and isinstance(node, (Conv, Elementwise, Pool, Table))
        size = _lines(graph, node) if able else None
        nodes += [node] if size is None else _folded(graph, node, size)
    graph.nodes = nodes


def _windowed(graph: Graph, node: Node) -> bool:
    """Does a node compute a pixel of several, or of some pixels only?"""
    if isinstance(node, Conv):
        return (node.kernel, node.strides) != ((1, 1), (1, 1))
    return isinstance(node, (Deconv, Pool)) and not _whole(graph, node)


def _whole(graph: Graph, node: Node) -> bool:
    """Is it a pool of whole maps?"""
    x = graph.tensors[node.inputs[0]]
    return isinstance(node, Pool) and node.kernel == x.shape[2:] and not any(node.pads)


def _lines(graph: Graph, node: Node) -> tuple[int, int] | None:
    """The lines and columns in which a node's pixels fit; None where it stays as it is."""
    maps = [*graph.of(node.inputs), *([] if _whole(graph, node) else graph.of(node.outputs))]
    height, width = maps[-1].shape[2:] if len(maps[-1].shape) == 4 else (0, 0)
    if width <= LONGEST and height <= MOST_LINES:
        return None
    if any(len(t.shape) != 4 or t.shape[2:] != (height, width) for t in maps):
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
    if _whole(graph, node):
        return [*made, dataclasses.replace(node, inputs=tuple(names), kernel=size)]
    folded = _like(graph, y, size)
    made.append(dataclasses.replace(node, inputs=tuple(names), outputs=(folded.name,)))
    label = f"{node.name}/map"
    return [*made, Move(label, node.operator, (folded.name,), (y.name,), how="reshape")]


def _like(graph: Graph, x: Tensor, size: tuple[int, int]) -> Tensor:
    shape = (*x.shape[:2], *size)
    return graph.add_tensor(Tensor(graph.fresh(x.name), x.dtype, shape, x.scale, x.zero))
