# SPDX-License-Identifier: Apache-2.0
"""How maps lie: turned around or not, along lines and along columns.

The device's pools pick the first pixel of each pair.  TensorFlow pads an even map with stride 2
only behind its end, so what it computes are the second pixels: read from the end of the map, these
are the first ones.  Maps that depend on each other lie alike, so the choice is made for each set of
nodes that reach each other, and along each axis.  Turning costs nothing: the host writes the input
in that order, and kernels are turned with it.
"""

from __future__ import annotations

import math

import numpy as np

from openkpu.compiler.form.alike import sets_of
from openkpu.compiler.form.graph import Conv, Graph
from openkpu.compiler.lowering.axes import Axis
from openkpu.compiler.lowering.device import Geometry

Turned = tuple[bool, bool]


def choose_turned(graph: Graph) -> dict[str, Turned]:
    """For each tensor of rank 4 whether its lines and its columns lie in reverse order."""
    sets = sets_of(graph)
    costs: dict[str, list[list[float]]] = {}
    for node in graph.nodes:
        if not isinstance(node, Conv) or node.strides == (1, 1):
            continue
        cost = costs.setdefault(sets[node.inputs[0]], [[0.0, 0.0], [0.0, 0.0]])
        for axis in (0, 1):
            for turned in (0, 1):
                if not _fits(graph, node, axis, bool(turned)):
                    cost[axis][turned] += math.prod(node.weights.shape)
    found = {}
    for name, root in sets.items():
        cost = costs.get(root, [[0.0, 0.0], [0.0, 0.0]])
        found[name] = cost[0][1] < cost[0][0], cost[1][1] < cost[1][0]
    return found


def _fits(graph: Graph, node: Conv, axis: int, turned: bool) -> bool:
    """Does a pool pick the node's outputs along an axis of a map that lies so?"""
    size = graph.tensors[node.inputs[0]].shape[2:]
    geometry = Geometry(np.zeros(1, np.int64), (0, 0), (turned, turned), (size[0], size[1]))
    found = Axis.of(node, axis, geometry, size[axis])
    room = found.whole // found.stride
    return any(
        found.place(a) % found.stride == 0
        and found.place(a) // found.stride + found.outputs <= room
        and list(found.cover(a, 1) or {}) == [0]
        for a in found.anchors()
    )
