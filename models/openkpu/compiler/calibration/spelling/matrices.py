# SPDX-License-Identifier: Apache-2.0
"""Matrix products with a constant that readers have for one matrix behind the computed one alone.

A constant in front, w x, is (x' w')'; several matrices are as many products, or one where all of
them have the same rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from openkpu.compiler.calibration.net import Net
from openkpu.compiler.calibration.spelling.nodes import Spelled


def spell_products(net: Net) -> None:
    """MatMul of one constant that is in front, or has another number of axes than two."""
    made: list[Any] = []
    for node in net.nodes:
        constant = [name in net.constants for name in node.input]
        shapes = [net.shapes.get(name, ()) for name in node.input]
        ranks = [len(shape) for shape in shapes]
        known = node.op_type == "MatMul" and sum(constant) == 1 and min(ranks) > 0
        known = known and ranks[constant.index(False)] > 1
        odd = constant == [True, False] or (known and ranks[1] != 2)
        made += _Product(net, node, constant[0]).nodes if known and odd else [node]
    net.nodes = made


class _Product(Spelled):
    """One product; ``front``: its constant is in front."""

    def __init__(self, net: Net, node: Any, front: bool) -> None:
        super().__init__(net, node)
        x, w = node.input[::-1] if front else node.input
        rank = len(net.shapes[x])
        weights, end = net.constants[w], node.output[0]
        vector = weights.ndim == 1
        if vector:
            weights = weights[None] if front else weights[:, None]
        if front:
            x, weights = self.turned(x, _swapped(rank)), np.swapaxes(weights, -1, -2)
        own, shape = weights.shape[:-2], net.shapes[x]
        batch = np.broadcast_shapes(own, shape[:-2])
        size = shape[-2], weights.shape[-1]
        if math.prod(own) == 1:
            y = self.make("MatMul", x, net.put(f"{w}/matrix", weights.reshape(weights.shape[-2:])))
        elif math.prod(shape[:-2]) == 1:
            y = self._same_rows(x, w, weights)
        else:
            y = self._products(x, w, weights, batch)
        if vector:
            self.reshaped(y, (*batch, size[0]), to=end)
        elif front:
            y = self.reshaped(y, (*batch, *size))
            self.turned(y, _swapped(len(batch) + 2), to=end)
        else:
            self.reshaped(y, (*batch, *size), to=end)

    def _same_rows(self, x: str, w: str, weights: np.ndarray) -> str:
        """The matrices beside each other."""
        rows, (k, columns) = self.net.shapes[x][-2], weights.shape[-2:]
        flat = weights.reshape(-1, k, columns)
        beside = self.net.put(f"{w}/beside", flat.transpose(1, 0, 2).reshape(k, -1))
        y = self.make("MatMul", self.reshaped(x, (rows, k)), beside)
        return self.turned(self.reshaped(y, (rows, len(flat), columns)), (1, 0, 2))

    def _products(self, x: str, w: str, weights: np.ndarray, batch: tuple[int, ...]) -> str:
        """One product for each matrix, all results behind each other."""
        shape = self.net.shapes[x]
        places = np.broadcast_to(np.arange(math.prod(shape[:-2])).reshape(shape[:-2]), batch)
        numbers = np.arange(math.prod(weights.shape[:-2])).reshape(weights.shape[:-2])
        flat = weights.reshape(-1, *weights.shape[-2:])
        matrices = [self.net.put(f"{w}/{i}", matrix) for i, matrix in enumerate(flat)]
        x = self.reshaped(x, (math.prod(shape[:-2]), *shape[-2:]))
        pairs = zip(places.ravel(), np.broadcast_to(numbers, batch).ravel(), strict=True)
        parts = [
            self.make("MatMul", self.part(x, int(i), int(i) + 1, 0), matrices[n]) for i, n in pairs
        ]
        return self.joined(parts, 0)


def _swapped(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)
