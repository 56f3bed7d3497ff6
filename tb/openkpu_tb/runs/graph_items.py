# SPDX-License-Identifier: Apache-2.0
"""Items of the regression that are compiled graphs: `make regress N=60 SEED=1 KIND=graph`.

A random graph over all nodes (``openkpu.compiler.random_graphs.drawn``) is compiled for the
configuration, one in four with weights of 16 bits in some nodes where the configuration has them.
Its bytes are judged first, the golden model against the exact reference
(``openkpu.compiler.agree``); the item is one of its task lists, with the input that reaches it, for
the device to compute.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from openkpu.compiler import agree, build, run
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.program import DevicePart, Program
from openkpu.compiler.random_graphs import choices, drawn, wide
from openkpu.configs import Config
from openkpu.network.network import Network

ONE_IN = 4  # graphs has weights of 16 bits


class Refused(ValueError):
    """A graph that the compiler refuses for this configuration."""


@dataclasses.dataclass
class Found:
    """A task list of a graph, and the bytes (C, H, W) of its input."""

    graph: Graph
    network: Network
    image: npt.NDArray[np.uint8]
    words: str


def draw(rng: np.random.Generator, config: Config, *, small: bool) -> Found:
    """A task list of a random graph; Refused for one that is none.

    AssertionError where the golden model is not what the reference computes, with the graph.
    """
    graph = drawn.draw(choices.Numbers(rng), choices.SMALL if small else choices.GraphSizes())
    (own,) = rng.spawn(1)  # what is drawn from ``rng`` stays as it is
    if config.weight_bits >= 16 and own.integers(ONE_IN) == 0:
        names = [name for name in wide.weighted_nodes(graph) if own.integers(2)]
        graph = wide.widened(graph, names, own)
    try:
        program = build.build_program(graph, config)
    except CompileError as error:
        raise Refused(str(error)) from None
    values = choices.chosen_inputs(graph, rng)
    lists = _lists(program, values)
    number = int(rng.integers(len(lists)))
    network, image = lists[number]
    if wrong := agree.faults(graph, program, values):
        raise AssertionError(f"golden model and reference differ: {'; '.join(wrong)}\n{graph}")
    kinds = ", ".join(dict.fromkeys(node.kind for node in graph.nodes))
    bits = "" if network.eight_bit else ", 16-bit weights"
    words = f"graph of {len(graph.nodes)} nodes ({kinds}{bits}), list {number + 1} of {len(lists)}:"
    return Found(graph, network, image, words)


def _lists(
    program: Program, values: dict[str, npt.NDArray[np.int64]]
) -> list[tuple[Network, npt.NDArray[np.uint8]]]:
    """The task lists with all that the host gives them, and their inputs."""
    found = []

    def runner(part: DevicePart, network: Network, x: npt.NDArray[np.uint8]) -> run.Maps:
        found.append((network, x))
        return run.golden_maps(part, network, x)

    run.run_program(program, values, runner)
    return found
