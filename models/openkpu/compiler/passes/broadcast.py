# SPDX-License-Identifier: Apache-2.0
"""Operands of an element-wise node that the device cannot spread over the other one.

The device spreads maps: one pixel for each channel, or one channel for all (``lowering.spread``),
and the other operand is computed, too, and has the result's shape.  Every other operand is written
out in that shape, by the places of its elements.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from openkpu.compiler.form.graph import Elementwise, Graph, Move, Node, Tensor


def write_out(graph: Graph) -> None:
    """Moves in front of element-wise nodes whose operands are no maps, are both spread, or are
    spread over a constant."""
    for node in [n for n in graph.nodes if isinstance(n, Elementwise)]:
        operands, (y,) = graph.of(node.inputs), graph.of(node.outputs)
        known = any(t.data is not None for t in operands)
        small = [t.shape != y.shape and t.data is None for t in operands]
        if not any(small) or (len(y.shape) == 4 and not all(small) and not known):
            continue
        made: list[Node] = []
        names = tuple(
            _spread(graph, node, made, t, y.shape) if less else t.name
            for t, less in zip(operands, small, strict=True)
        )
        at = next(i for i, n in enumerate(graph.nodes) if n is node)
        graph.nodes[at : at + 1] = [*made, dataclasses.replace(node, inputs=names)]


def _spread(graph: Graph, node: Node, made: list[Node], x: Tensor, shape: tuple[int, ...]) -> str:
    """The name of ``x`` in this shape; the moves that make it so are appended to ``made``."""
    own = (1,) * (len(shape) - len(x.shape)) + x.shape
    sizes = zip(own, shape, strict=True)
    places = tuple(tuple(range(n)) if n == want else (0,) * want for n, want in sizes)
    steps: list[tuple[tuple[int, ...], dict[str, Any]]] = [
        (shape, {"how": "take", "places": places})
    ]
    if own != x.shape:
        steps.insert(0, (own, {"how": "reshape"}))
    name = x.name
    for size, how in steps:
        y = graph.add_tensor(Tensor(graph.fresh(x.name), x.dtype, size, x.scale, x.zero))
        label = f"{node.name}/spread{len(made)}"
        made.append(Move(label, node.operator, (name,), (y.name,), **how))
        name = y.name
    return name
