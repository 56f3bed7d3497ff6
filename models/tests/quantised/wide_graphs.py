# SPDX-License-Identifier: Apache-2.0
"""Graphs with weights of 16 bits in some layers, for tests of the compiler and of the RTL."""

from __future__ import annotations

import dataclasses

import numpy as np

from models.tests.compiler.compiled_graphs import Maker
from openkpu.compiler.form.graph import Conv, Dense, Graph
from openkpu.compiler.random_graphs import wide


def on_grid(graph: Graph, *numbers: int, seed: int = 3) -> Graph:
    """The graph with weights of 16 bits in nodes of these numbers, and scales as a calibration has
    them.

    Steps of tensors are n of 8 bits; of weights j of 15 bits times that of the output, or, where
    they have 16 bits, j of 11 bits; each times powers of two.
    """
    for tensor in graph.tensors.values():
        tensor.scale = round(tensor.step * 4096) / 4096
    for number, node in enumerate(graph.nodes):
        if isinstance(node, (Conv, Dense)):
            step = graph.tensors[node.outputs[0]].step
            bits = 11 if number in numbers else 15
            unit = 2.0 ** (np.ceil(np.log2(node.w_scale.max() / step)) - bits)
            scale = np.rint(node.w_scale / step / unit) * unit * step
            graph.nodes[number] = dataclasses.replace(node, w_scale=scale)
    names = [graph.nodes[number].name for number in numbers]
    return wide.widened(graph, names, np.random.default_rng(seed))


def chain(seed: int = 1, dtype: str = "int8") -> Graph:
    """Three convolutions, one of them depthwise, a pool, a fully connected layer."""
    m = Maker(seed, dtype)
    x = m.conv(m.input(1, 3, 10, 10), 8, (3, 3))
    x = m.conv(x, 8, (3, 3), groups=8)
    x = m.conv(m.pool(x, "max", (2, 2), (2, 2)), 12, (1, 1))
    x = m.move([x], (1, 12 * 25), "reshape")
    return m.done(m.dense(x, 10))


def mixed() -> Graph:
    """All weights are as wide as those of one layer: the others are few."""
    m = Maker(34)
    x = m.conv(m.input(1, 3, 7, 6), 6, (3, 3), (2, 2))
    y = m.both("add", m.conv(x, 6, (3, 3), groups=6), x, scale=0.06)
    return on_grid(m.done(m.conv(y, 5, (1, 1))), 0, 3)


def parted() -> Graph:
    """A small layer with weights of 16 bits in front of a large one with 8: two lists."""
    m = Maker(35)
    x = m.conv(m.input(1, 3, 6, 6), 6, (3, 3))
    return on_grid(m.done(m.dense(m.move([x], (1, 216), "reshape"), 48)), 0)
