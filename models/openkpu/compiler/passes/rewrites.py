# SPDX-License-Identifier: Apache-2.0
"""Passes over a graph before it is lowered: each is a function that rewrites the graph.

``fold_pads``: zeros around a map that only convolutions read are their padding.  ``drop_unused``:
nodes whose output nobody reads.  ``fuse_clamps``: a clamp of the same scale behind a node that has
a clamp of its own.  ``straighten``: a reshape or transposition without effect passes its input on.
``take_evenly``: elements at equal distances are a slice.
``space_to_depth``: a strided convolution of an input, whose kernel is larger than 3x3, reads
the input's phases as channels; the host writes the pixels in that order anyway.
``lying`` has the pass that lays signals and tall maps down, ``transposed`` that of transposed
convolutions, ``padded`` that of sums with a map that is padded with channels, ``broadcast`` that of
operands that are spread, ``constants`` that of nodes of constants,
``folding`` that of maps with long lines.
"""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import numpy as np

from openkpu.arithmetic.integers import ceil_div
from openkpu.compiler.form.graph import (
    Conv,
    Dense,
    Elementwise,
    Graph,
    Host,
    Move,
    Node,
    Pool,
    Table,
    Tensor,
)
from openkpu.compiler.passes.broadcast import write_out
from openkpu.compiler.passes.constants import fold_constants
from openkpu.compiler.passes.folding import fold_wide
from openkpu.compiler.passes.lying import SWAP, has_tall, lay_down, stand_up
from openkpu.compiler.passes.padded import split_padded
from openkpu.compiler.passes.transposed import phases

CLAMPED = (Conv, Dense, Elementwise, Pool)


def simplified(graph: Graph, tall: bool = False) -> Graph:
    """A copy of the graph after all passes; ``tall``: tall maps are laid down, too."""
    made = dataclasses.replace(graph, tensors=dict(graph.tensors), nodes=list(graph.nodes))
    for rule in FIRST:
        rule(made)
    lay_down(made, tall)
    for rule in LAST:
        rule(made)
    return made


def variants(graph: Graph) -> list[Graph]:
    """The graph after all passes, and another one with tall maps laid down, where there are any."""
    made = dataclasses.replace(graph, tensors=dict(graph.tensors), nodes=list(graph.nodes))
    for rule in FIRST:
        rule(made)
    return [simplified(graph, tall) for tall in ((False, True) if has_tall(made) else (False,))]


def fold_pads(graph: Graph) -> None:
    """Pad with the zero point -> pads of the convolutions that read it."""
    for node in [n for n in graph.nodes if isinstance(n, Move) and n.how == "pad"]:
        x, name = graph.tensors[node.inputs[0]], node.outputs[0]
        readers = graph.readers(name)
        edges = node.before[2:], node.after[2:]
        plain = len(x.shape) == 4 and not any((*node.before[:2], *node.after[:2]))
        if not plain or node.value != x.zero or name in graph.outputs or not readers:
            continue
        convs = [r for r in readers if isinstance(r, Conv)]
        if len(convs) < len(readers):
            continue
        for reader in convs:
            pads = tuple(a + b for a, b in zip(reader.pads, (*edges[0], *edges[1]), strict=True))
            _swap(graph, reader, dataclasses.replace(reader, inputs=node.inputs, pads=pads))
        graph.nodes.remove(node)


def fuse_clamps(graph: Graph) -> None:
    """A table that only limits the integers of a node with a clamp."""
    for node in [n for n in graph.nodes if isinstance(n, Table)]:
        name, y = node.inputs[0], graph.tensors[node.outputs[0]]
        maker = graph.maker(name)
        x = graph.tensors[name]
        alone = len(graph.readers(name)) == 1 and name not in graph.outputs
        if not alone or not isinstance(maker, CLAMPED) or not x.same_numbers(y):
            continue
        least, most = int(node.table.min()), int(node.table.max())
        if not np.array_equal(node.table, np.clip(np.arange(256) + x.limits[0], least, most)):
            continue
        low, high = max(maker.clamp[0], least), min(maker.clamp[1], most)
        if low > high:
            continue
        made = dataclasses.replace(maker, outputs=node.outputs, clamp=(low, high))
        _swap(graph, maker, made)
        graph.nodes.remove(node)


def straighten(graph: Graph) -> None:
    """Moves that leave shape and order as they are."""
    for node in [n for n in graph.nodes if isinstance(n, Move)]:
        x, y = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
        same = node.how in ("reshape", "transpose") and x.shape == y.shape
        if node.how == "transpose":
            same = same and node.axes == tuple(range(len(x.shape)))
        if not same or y.name in graph.outputs:
            continue
        for reader in graph.readers(y.name):
            inputs = tuple(x.name if name == y.name else name for name in reader.inputs)
            _swap(graph, reader, dataclasses.replace(reader, inputs=inputs))
        graph.nodes.remove(node)


def take_evenly(graph: Graph) -> None:
    """Elements that are taken at equal distances are a slice."""
    for i, node in enumerate(graph.nodes):
        if not isinstance(node, Move) or node.how != "take":
            continue
        steps = [{b - a for a, b in pairwise(places)} or {1} for places in node.places]
        if any(len(step) > 1 or 0 in step for step in steps):
            continue
        starts = tuple(places[0] for places in node.places)
        made = dataclasses.replace(node, how="slice", places=(), starts=starts)
        graph.nodes[i] = dataclasses.replace(made, steps=tuple(step.pop() for step in steps))


def drop_unused(graph: Graph) -> None:
    """Nodes whose outputs are read by nobody."""
    used = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if used & set(node.outputs):
            used |= set(node.inputs)
            kept.append(node)
    graph.nodes = kept[::-1]


def space_to_depth(graph: Graph) -> None:
    """Strided convolutions with large kernels of an input of the graph."""
    for node in [n for n in graph.nodes if isinstance(n, Conv)]:
        name = node.inputs[0]
        maker = graph.maker(name)
        if isinstance(maker, Move) and maker.axes == SWAP:  # which is the host's as well
            name, maker = maker.inputs[0], graph.maker(maker.inputs[0])
        if isinstance(maker, Host) and maker.how == "quantize":  # of a float input
            name = maker.inputs[0]
        if name not in graph.inputs or node.groups > 1 or node.dilation != (1, 1):
            continue
        if node.strides == (1, 1) or max(node.kernel) <= 3:
            continue
        _phases(graph, node, graph.tensors[node.inputs[0]])


def _phases(graph: Graph, node: Conv, x: Tensor) -> None:
    """Channels (c, line's rest, column's rest), lines and columns divided by the strides."""
    (sy, sx), (_, c, height, width) = node.strides, x.shape
    o, _, kh, kw = node.weights.shape
    size = node.out_size(height, width)
    ends = [
        _taps_over_phases(k, s, p)
        for k, s, p in zip(node.kernel, node.strides, node.pads[:2], strict=True)
    ]
    (top, th), (left, tw) = ends
    h, w = max(size[0], ceil_div(height, sy)), max(size[1], ceil_div(width, sx))
    bottom, right = size[0] - 1 + th - top - h, size[1] - 1 + tw - left - w
    if bottom < 0:
        h, bottom = h, 0
    if right < 0:
        w, right = w, 0
    weights = np.zeros((o, c, sy, sx, th, tw), dtype=np.int64)
    weights += node.w_zero[:, None, None, None, None, None]
    for ky in range(kh):
        for kx in range(kw):
            (qy, ry), (qx, rx) = divmod(ky - node.pads[0], sy), divmod(kx - node.pads[1], sx)
            weights[:, :, ry, rx, qy + top, qx + left] = node.weights[:, :, ky, kx]
    shapes = [
        (1, c, h * sy, w * sx),
        (1, c, h, sy, w, sx),
        (1, c, sy, sx, h, w),
        (1, c * sy * sx, h, w),
    ]
    names = [x.name]
    for shape in shapes:
        made = Tensor(graph.fresh(x.name), x.dtype, shape, x.scale, x.zero)
        names.append(graph.add_tensor(made).name)
    after = (0, 0, h * sy - height, w * sx - width)
    hows: list[dict[str, Any]] = [
        {"how": "pad", "before": (0, 0, 0, 0), "after": after, "value": x.zero},
        {"how": "reshape"},
        {"how": "transpose", "axes": (0, 1, 3, 5, 2, 4)},
        {"how": "reshape"},
    ]
    moves = [
        Move(f"{node.name}/phases{i}", "order of the input", (names[i],), (names[i + 1],), **how)
        for i, how in enumerate(hows)
    ]
    pads = (top, left, size[0] - 1 + th - top - h, size[1] - 1 + tw - left - w)
    if min(pads) < 0:  # the phases have lines behind the last window
        return
    made = dataclasses.replace(
        node,
        inputs=(names[-1],),
        weights=weights.reshape(o, c * sy * sx, th, tw),
        strides=(1, 1),
        pads=pads,
    )
    at = graph.nodes.index(node)
    graph.nodes[at : at + 1] = [*moves, made]


FIRST = (
    fold_constants,
    phases,
    write_out,
    take_evenly,
    fold_pads,
    fuse_clamps,
    fold_wide,
    stand_up,
)
LAST = (straighten, split_padded, space_to_depth, drop_unused)


def _swap(graph: Graph, old: Node, new: Node) -> None:
    graph.nodes[next(i for i, n in enumerate(graph.nodes) if n is old)] = new


def _taps_over_phases(kernel: int, stride: int, top: int) -> tuple[int, int]:
    """(padding in front, taps) of a kernel over the phases of a map."""
    first, last = (-top) // stride, (kernel - 1 - top) // stride
    return -first, last - first + 1
