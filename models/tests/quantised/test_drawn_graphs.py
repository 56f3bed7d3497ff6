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

from models.tests.compiler.compiled_graphs import Maker, compiled, equal
from openkpu import configs
from openkpu.compiler import agree, build
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Conv, Graph, Tensor
from openkpu.compiler.lowering import requant
from openkpu.compiler.lowering.device import Geometry
from openkpu.compiler.lowering.nodes import lower_conv, lower_prelu, lower_product
from openkpu.compiler.passes import transposed
from openkpu.compiler.random_graphs import choices, drawn

T = TypeVar("T")
CONFIGS = ("k210", "small", "nano")
BLOCKS = range(20)
EACH = 25
HEALTH = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)


@dataclasses.dataclass
class Hypothesis:
    """Choices of hypothesis, which shrinks them."""

    draw: Callable[[st.SearchStrategy[Any]], Any]

    def number(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most))

    def of(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))


@st.composite
def graphs(draw: Any, sizes: choices.GraphSizes | None = None) -> Graph:
    """Graphs over all nodes."""
    return drawn.draw(Hypothesis(draw), sizes)


def judged(graph: Graph, seed: int) -> list[str] | None:
    """Faults of the compiled graph; None of one that the compiler refuses, in one line."""
    try:
        program = build.build_program(graph, configs.load_config(CONFIGS[seed % 3]))
    except CompileError as error:
        assert "\n" not in str(error)
        return None
    values = choices.chosen_inputs(graph, np.random.default_rng(seed))
    return agree.faults(graph, program, values)


def of_seed(seed: int) -> Graph:
    return drawn.draw(choices.Numbers(np.random.default_rng(seed)), name=f"seed {seed}")


@settings(max_examples=15, deadline=None, suppress_health_check=HEALTH, derandomize=True)
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


# ------------------------------------------------------------------ faults that must be seen
def _turned_not(node: Conv, geometry: Geometry) -> np.ndarray:
    """Kernels of turned maps as they were."""
    del geometry
    return node.weights - node.w_zero[:, None, None, None]


def _ties_up(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Ties go up, as in averages."""
    return lambda *args, **_: fit(*args[:5], up=True)


def _one_beside(of: Callable[..., Any]) -> Callable[..., Any]:
    """The phases of a transposed convolution change places."""

    def wrong(*args: Any) -> Any:
        made = of(*args)
        stride = args[2]
        reads = {k: ((v + 1) % stride, at) for k, (v, at) in made.reads.items()}
        return dataclasses.replace(made, reads=reads)

    return wrong


def _one_more(positive: Callable[..., Any]) -> Callable[..., Any]:
    """The positive end of a leaky ReLU is a step too high."""
    return lambda *args: np.minimum(positive(*args) + 1, 255)


# what is broken, by what, seeds of the nightly run that see it
PLANTS: dict[str, tuple[Any, str, Any, tuple[int, ...]]] = {
    "kernels-of-turned-maps": (lower_conv, "turned_weights", _turned_not, (32,)),
    "ties-of-convolutions": (requant, "fit", _ties_up(requant.fit), (14, 28)),
    "phases": (transposed.Axis, "of", _one_beside(transposed.Axis.of), (29, 31)),
    "positive-numbers": (lower_prelu, "_positive", _one_more(lower_prelu._positive), (12, 25)),
    "rows-of-products": (lower_product, "zero_terms", lambda *_: {}, (0, 1)),
}


@pytest.mark.check
@pytest.mark.parametrize("name", PLANTS)
def test_plants(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lowering broken on purpose is found by the graphs of a few seeds."""
    place, attribute, wrong, seeds = PLANTS[name]
    monkeypatch.setattr(place, attribute, wrong)
    found = []
    for seed in seeds:
        found += judged(of_seed(seed), seed) or []
        if found:
            break
    assert found, name


# ---------------------------------------------------------------------- what they have found
def test_pool_of_pixels_apart() -> None:
    """A pool of every second column of a map: not of the columns between."""
    m = Maker(3)
    x = m.conv(m.input(1, 8, 6, 12), 8, (3, 3))
    part = m.move([x], (1, 8, 6, 5), "slice", starts=(0, 0, 0, 1), steps=(1, 1, 1, 2))
    graph = m.done(m.pool(part, "average", (2, 2)), m.pool(part, "max", (6, 5)))
    equal(graph, compiled(graph))


@pytest.mark.parametrize("turned", [False, True])
def test_pool_that_leaves_pixels_out(turned: bool) -> None:
    """Windows with a stride above their size, on a map that lies turned around."""
    m = Maker(3)
    x = m.conv(m.input(1, 4, 12, 12), 8, (3, 3), (2, 2), pads="same" if turned else (1, 1, 1, 1))
    graph = m.done(m.pool(x, "average", (1, 1), (4, 3)), m.conv(x, 4, (3, 3), (2, 2)))
    equal(graph, compiled(graph))


@pytest.mark.parametrize("zeros", [(-128, 127), (0, 127), (-100, 100), (127, 127)])
@pytest.mark.parametrize("kind", ["inputs", "map", "self"])
def test_products_of_any_zero_points(zeros: tuple[int, int], kind: str) -> None:
    """The second operand's zero point may be the larger one, of a constant as well."""
    m = Maker(4)
    x = m.input(1, 5, 7, 9, zero=zeros[0])
    other = m.bytes(1, 5, 7, 9)
    b = x if kind == "self" else m.tensor(1, 5, 7, 9, zero=zeros[1], data=other)
    if kind == "inputs":
        b.data = None
        m.graph.inputs.append(b.name)
    for pair in ((x, b), (b, x)):
        y = m.both("mul", *pair, scale=float(np.float32(x.step * b.step * 90)), zero=0)
        graph = m.done(y)
        equal(graph, compiled(graph))


@pytest.mark.parametrize("clamp", [(-128, -128), (127, 127), (100, 127), (-128, -127)])
@pytest.mark.parametrize("zero", [-128, 3, 127])
def test_sums_with_nothing_left(zero: int, clamp: tuple[int, int]) -> None:
    """All sums at one end of a clamp: fields of the layer still hold its numbers."""
    m = Maker(4)
    a, b = m.input(1, 3, 5, 5, zero=0), m.input(1, 3, 5, 5, zero=0)
    y = m.both("add", a, b, zero=zero, scale=0.4)
    m.graph.nodes[0].clamp = clamp  # pyright: ignore
    graph = m.done(y)
    program = compiled(graph)
    wrong = agree.faults(graph, program, choices.chosen_inputs(graph, np.random.default_rng(1)))
    assert not wrong


def test_a_signal_for_the_host() -> None:
    """A part of a signal that only a node of the host reads: the device has no layer for it."""
    m = Maker(4)
    x = m.input(1, 4, 12, 1)
    part = m.move([x], (1, 4, 6, 1), "slice", starts=(0, 0, 1, 0), steps=(1, 1, 2, 1))
    how = {"before": (0, 0, 2, 0), "after": (0, 0, 1, 0), "value": x.zero + 1}
    graph = m.done(m.conv(m.move([part], (1, 4, 9, 1), "pad", **how), 6, (3, 1)))
    equal(graph, compiled(graph))


def _repeated(m: Maker, axis: int, places: tuple[int, ...]) -> Tensor:
    """A map of the device, of one axis these places, some of them more than once."""
    x = m.conv(m.input(1, 4, 4, 4), 4, (1, 1))
    every = [tuple(range(n)) for n in x.shape]
    every[axis] = places
    return m.move([x], [len(p) for p in every], "take", places=tuple(every))


def _constant(m: Maker, x: Tensor, *shape: int) -> Tensor:
    return m.both("add", x, m.tensor(*shape, data=m.bytes(*shape)), scale=0.08)


READERS: dict[str, Callable[[Maker, Tensor], Tensor]] = {
    "map": lambda m, x: _constant(m, x, *x.shape),
    "by-channel": lambda m, x: _constant(m, x, 1, x.shape[1], 1, 1),
    "3x3": lambda m, x: m.conv(x, 4, (3, 3)),
    "depthwise": lambda m, x: m.conv(x, x.shape[1], (3, 3), groups=x.shape[1]),
    "dense": lambda m, x: m.dense(m.move([x], (1, int(np.prod(x.shape))), "reshape"), 5),
    "average": lambda m, x: m.pool(x, "average", (x.shape[2], x.shape[3]), same=False),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("axis", "places"), [(1, (0, 0, 1, 2, 2, 3)), (1, (3, 1, 1, 0)), (3, (0, 1, 1, 3))]
)
def test_elements_that_lie_at_one_place(reader: str, axis: int, places: tuple[int, ...]) -> None:
    """Repeated pixels and channels are an index; weights and constants differ for each of them."""
    m = Maker(3)
    graph = m.done(READERS[reader](m, _repeated(m, axis, places)))
    wrong = agree.faults(
        graph, compiled(graph), choices.chosen_inputs(graph, np.random.default_rng(1))
    )
    assert not wrong
