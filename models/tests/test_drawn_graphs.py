# SPDX-License-Identifier: Apache-2.0
"""Graphs nobody thought of: golden model and exact reference agree byte for byte."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openkpu import configs
from openkpu.compiler import agree, build, drawn
from openkpu.compiler.errors import CompileError
from openkpu.compiler.graph import Graph

T = TypeVar("T")
CONFIGS = ("k210", "small", "nano")
BLOCKS = range(20)
EACH = 25


@dataclasses.dataclass
class Hypothesis:
    """Choices of hypothesis, which shrinks them."""

    draw: Callable[[st.SearchStrategy[Any]], Any]

    def number(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most))

    def of(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))


@st.composite
def graphs(draw: Any, sizes: drawn.Sizes | None = None) -> Graph:
    """Graphs over all nodes."""
    return drawn.draw(Hypothesis(draw), sizes)


def judged(graph: Graph, seed: int) -> list[str] | None:
    """Faults of the compiled graph; None of one that the compiler refuses, in one line."""
    try:
        program = build.build(graph, configs.load(CONFIGS[seed % 3]))
    except CompileError as error:
        assert "\n" not in str(error)
        return None
    values = drawn.inputs_of(graph, np.random.default_rng(seed))
    return agree.faults(graph, program, values)


def of_seed(seed: int) -> Graph:
    return drawn.draw(drawn.Numbers(np.random.default_rng(seed)), name=f"seed {seed}")


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(graph=graphs(), seed=st.integers(0, 2))
def test_any_graph(graph: Graph, seed: int) -> None:
    """Hypothesis draws, and shrinks what fails."""
    wrong = judged(graph, seed)
    assert not wrong, f"{wrong}\n{graph}"


@pytest.mark.tier(check=["block1"], nightly=[f"block{b}" for b in BLOCKS if b >= 2])
@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: f"block{b}")
def test_golden(block: int) -> None:
    """The graphs of 25 seeds; few are refused."""
    refused = 0
    for seed in range(EACH * block, EACH * (block + 1)):
        wrong = judged(of_seed(seed), seed)
        refused += wrong is None
        assert not wrong, f"seed {seed}: {wrong}"
    assert refused <= EACH // 5
