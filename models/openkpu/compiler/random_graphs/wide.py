# SPDX-License-Identifier: Apache-2.0
"""Graphs whose convolutions and products get weights of 16 bits, the lowest byte at random."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

import numpy as np

from openkpu.compiler.form.graph import Conv, Dense, Graph


def weighted_nodes(graph: Graph) -> list[str]:
    """The nodes that may have them."""
    return [n.name for n in graph.nodes if isinstance(n, (Conv, Dense))]


def widened(graph: Graph, names: Collection[str], rng: np.random.Generator) -> Graph:
    """A copy with weights of 16 bits in these nodes: about the same numbers in steps of a 256th."""
    nodes = []
    for node in graph.nodes:
        if node.name in names:
            assert isinstance(node, (Conv, Dense)), node.name
            fine = node.weights * 256 + rng.integers(-128, 129, node.weights.shape)
            zero, scale = node.w_zero * 256, node.w_scale / 256
            fields = {"weights": np.clip(fine, -32768, 65535), "w_zero": zero, "w_scale": scale}
            bias = np.clip(node.bias * 256, -(1 << 31) + 1, (1 << 31) - 1)
            node = dataclasses.replace(node, **fields, bias=bias)
        nodes.append(node)
    return dataclasses.replace(graph, nodes=nodes)
