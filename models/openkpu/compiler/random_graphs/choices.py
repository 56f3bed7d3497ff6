# SPDX-License-Identifier: Apache-2.0
"""Where choices of random graphs (``drawn``) come from, how large these become, their inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from openkpu.compiler.form.graph import Graph

T = TypeVar("T")


class Chooser(Protocol):
    """Where choices come from."""

    def number(self, least: int, most: int) -> int: ...
    def of(self, options: Sequence[T]) -> T: ...


@dataclasses.dataclass
class Numbers:
    """Choices of a numpy generator."""

    rng: np.random.Generator

    def number(self, least: int, most: int) -> int:
        return int(self.rng.integers(least, most, endpoint=True))

    def of(self, options: Sequence[T]) -> T:
        return options[int(self.rng.integers(len(options)))]


@dataclasses.dataclass(frozen=True)
class GraphSizes:
    """How large graphs become."""

    channels: int = 24
    side: int = 14
    steps: int = 7
    kernel: int = 7
    elements: int = 6000  # of a tensor
    tokens: bool = True  # attention may be there


SMALL = GraphSizes(channels=5, side=6, steps=2, kernel=3, elements=160, tokens=False)


def chosen_inputs(graph: Graph, rng: np.random.Generator) -> dict[str, npt.NDArray[np.int64]]:
    """Random bytes; now and then the ends and the zero point only."""
    found = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        values = rng.integers(*tensor.limits, tensor.shape, endpoint=True)
        if rng.random() < 0.2:
            values = rng.choice([*tensor.limits, tensor.zero], tensor.shape)
        found[name] = values
    return found
