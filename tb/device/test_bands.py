# SPDX-License-Identifier: Apache-2.0
"""Layers in bands of lines on the RTL (docs/compiler.md 6): every map of every layer as the golden
model has it, results as the exact reference, cycles as predicted."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from models.tests.bands.test_bands import GRAPHS, graph_of, values
from models.tests.compiler.compiled_graphs import Maker
from models.tests.compiler.mobilenet import block, relu6
from openkpu import configs
from openkpu.compiler import build, run
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.program import DevicePart, Program
from openkpu.configs import Config
from openkpu.network.network import Network
from openkpu.prediction.cycles_model import predict_network
from tb.device.test_compiled import maps_of_the_rtl

pytestmark = pytest.mark.fixed  # the same with every seed
Values = dict[str, np.ndarray]
NEAR = 0.03  # of the predicted cycles: many small maps in bands


def on_the_rtl(simulator: str, config: Config, program: Program, given: Values) -> Values:
    """All results, after every layer was compared; the cycles are as predicted."""
    (part,) = program.device_parts
    predicted = predict_network(config, run.bound(part, given)).cycles
    print(f"{len(part.network.layers)} layers, {predicted} cycles predicted", flush=True)

    def device(part: DevicePart, network: Network, x: np.ndarray) -> run.Maps:
        limit = int(1.1 * predicted) + 10_000
        found, cycles = maps_of_the_rtl(simulator, config, network, x, limit)
        print(f"{cycles} cycles")
        assert abs(cycles - predicted) <= NEAR * predicted
        return found

    return run.run_program(program, given, device)


def compare(simulator: str, config: Config, graph: Graph, rows: int) -> None:
    program = build.build_program(graph, dataclasses.replace(config, ai_ram_rows=rows))
    given = values(graph)
    found, want = on_the_rtl(simulator, config, program, given), reference.evaluate(graph, given)
    missed = sum(r.missed + r.steps for r in program.reports.values())
    for output in graph.outputs:
        apart = np.abs(found[output] - want[output])
        assert apart.max() <= (1 if missed else 0), (apart > 0).sum()


@pytest.mark.check
@pytest.mark.parametrize(
    ("simulator", "config", "name"),
    [
        ("icarus", "nano", "tiny"),
        *(("verilator", "nano_fpga", n) for n in ("residual", "strided", "pooled", "two_results")),
    ],
)
def test_small(simulator: str, config: str, name: str) -> None:
    """Networks of a few kilobytes on part of the AI RAM."""
    compare(simulator, configs.load_config(config), graph_of(name), GRAPHS[name][1])


def two_layers() -> Graph:
    """The first two layers of MobileNetV2 at 224x224."""
    m = Maker(71)
    x = relu6(m, m.input(1, 3, 224, 224), 32, (3, 3), (2, 2))
    return m.done(relu6(m, x, 32, (3, 3), groups=32))


def one_block() -> Graph:
    """Its first block with a sum: 24 channels of 56x56, 144 inside."""
    m = Maker(72)
    return m.done(block(m, m.input(1, 24, 56, 56), 6, 24, 1))


@pytest.mark.nightly
@pytest.mark.parametrize("make", [two_layers, one_block])
def test_mobilenet(make) -> None:
    """On ``nano_fpga``, in bands."""
    config = configs.load_config("nano_fpga")
    compare("verilator", config, make(), config.ai_ram_rows)
