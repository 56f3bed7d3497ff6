# SPDX-License-Identifier: Apache-2.0
"""Weights of 16 bits (docs/compiler.md): every byte as the reference has it, in lists of their own
or with all weights of a list as wide."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from models.tests.bands import test_bands
from models.tests.compiler.attention_graph import attention
from models.tests.compiler.compiled_graphs import Maker, differs
from models.tests.quantised.wide_graphs import chain, mixed, on_grid, parted
from openkpu import configs
from openkpu.compiler import agree, build, okpu, run
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Conv, Dense, Graph
from openkpu.compiler.lowering.costs import lists_cycles
from openkpu.compiler.program import Program
from openkpu.compiler.random_graphs import choices, drawn, wide

EVERY = (0, 1, 3, 5)  # nodes of ``chain`` with weights
K210 = configs.load_config("k210")


def widths(program: Program) -> list[int]:
    """Bits of the weights of each list."""
    return [8 if part.network.eight_bit else 16 for part in program.device_parts]


def cycles(program: Program) -> int:
    """Predicted, of all lists."""
    return lists_cycles(K210, [part.network for part in program.device_parts])


def equal(graph: Graph, program: Program) -> None:
    """Every byte is the reference's; of the edges few are beside a sum that is no tie there."""
    reports = program.reports.values()
    missed, edges = sum(r.missed for r in reports), sum(r.edges for r in reports)
    assert differs(graph, program) == (0, 0)
    assert missed < edges / 20, (missed, edges)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("numbers", [(0,), (1,), (3,), (5,), EVERY])
def test_layers(numbers: tuple[int, ...], dtype: str) -> None:
    """Any layer of a network, or all of them, in one list and in several."""
    graph = on_grid(chain(2, dtype), *numbers)
    one, several = build.build_program(graph, K210, one_list=True), build.Builder(graph, K210, True)
    for program, count in (
        (one, 1),
        (several.run(), 1 + (numbers != EVERY) + (numbers[0] in (1, 3))),
    ):
        equal(graph, program)
        assert len(program.device_parts) == count and 16 in widths(program)
        equal(graph, okpu.loads_okpu(okpu.dumps(program), "net.okpu"))
    assert widths(one) == [16]


def test_fewer_cycles_count() -> None:
    """Lists are parted where this takes fewer cycles, unless one list is asked for."""
    for graph, lists in ((mixed(), [16]), (parted(), [16, 8])):
        program = build.build_program(graph, K210)
        assert widths(program) == lists
        equal(graph, program)
        ways = [build.Builder(graph, K210, apart).run() for apart in (False, True)]
        assert cycles(program) == min(map(cycles, ways)) < max(map(cycles, ways))
    assert widths(build.build_program(parted(), K210, one_list=True)) == [16]


def test_no_such_weights() -> None:
    """A configuration without 16-bit weights: one line with the first such node."""
    config = dataclasses.replace(K210, name="eight", weight_bits=8)
    with pytest.raises(CompileError, match="weights of 16 bits, configuration eight has") as error:
        build.build_program(on_grid(chain(), 1), config)
    assert error.value.node == "n1"
    build.build_program(on_grid(chain()), config)


def test_weights_that_the_host_writes() -> None:
    """The second product of an attention is in one list with the projection behind it."""
    graph = attention(tokens=5, width=8, heads=2)
    graph = wide.widened(graph, ["n14"], np.random.default_rng(3))
    program = build.Builder(graph, K210).run()
    given = [p for p in program.device_parts if p.weights]
    assert [p.network.eight_bit for p in given] == [True, False]
    inputs = choices.chosen_inputs(graph, np.random.default_rng(4))
    assert not agree.faults(graph, program, inputs)
    read = okpu.loads_okpu(okpu.dumps(program), "net.okpu")
    first, second = (run.run_program(p, inputs) for p in (program, read))
    assert all(np.array_equal(first[name], second[name]) for name in graph.outputs)


def test_more_than_36_bits() -> None:
    """Sums that the device would not hold are refused with their size."""
    m = Maker(4)
    graph = m.done(m.dense(m.input(1, 9000), 4))
    node = graph.nodes[0]
    assert isinstance(node, Dense)
    weights = np.full_like(node.weights, 32767)
    graph.nodes[0] = dataclasses.replace(node, weights=weights, w_scale=node.w_scale / 65536)
    with pytest.raises(CompileError, match="the device keeps 36 bits: up to 34,359,738,367"):
        build.build_program(graph, K210)


def test_weights_of_17_bits() -> None:
    """Zero points of their own for each channel: two times the input, as with 8 bits."""
    m = Maker(5)
    graph = on_grid(m.done(m.conv(m.input(1, 3, 5, 5), 4, (3, 3))), 0)
    node = graph.nodes[0]
    assert isinstance(node, Conv)
    shape, zero = node.weights[0].shape, node.w_zero.copy()
    weights, zero[:2] = node.weights.copy(), (5000, 20000)
    weights[0], weights[1] = m.rng.integers(0, 65536, shape), m.rng.integers(-32768, 32768, shape)
    weights[0, 0, 0, 0], weights[1, 0, 0, 0] = 65535, -32768
    fields = {"weights": weights, "w_zero": zero, "w_scale": node.w_scale / 4}
    graph.nodes[0] = dataclasses.replace(node, **fields)
    program = build.build_program(graph, K210)
    assert program.layers > 1
    assert differs(graph, program) == (0, 0)


@pytest.mark.parametrize("name", test_bands.GRAPHS)
@pytest.mark.tier(check=[name for name in test_bands.GRAPHS if name not in ("residual", "pooled")])
def test_in_bands(name: str) -> None:
    """Maps that do not fit: the bands of a layer share its weights of 16 bits as well."""
    graph, rows = test_bands.graph_of(name), test_bands.GRAPHS[name][1]
    graph = wide.widened(graph, wide.weighted_nodes(graph), np.random.default_rng(3))
    banded, whole = (test_bands.on(graph, n) for n in (rows, test_bands.WHOLE))
    assert banded.layers > whole.layers and widths(banded) == widths(whole) == [16]
    sizes = [p.device_parts[0].network.weights.size for p in (banded, whole)]
    assert sizes[0] <= sizes[1] + 400  # copies have a few
    given = test_bands.values(graph)
    found, plain = run.run_program(banded, given), run.run_program(whole, given)
    want = reference.evaluate(graph, given)
    for output in graph.outputs:
        assert np.array_equal(found[output], plain[output])
        assert np.abs(found[output] - want[output]).max() <= 1


BLOCKS = 8


@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.tier(check=["1"], nightly=[str(b) for b in range(2, BLOCKS)])
def test_random_graphs(block: int) -> None:
    """Random graphs, half of their weights of 16 bits: what is compiled is as it should be, and
    few are refused."""
    refused = 0
    for seed in range(10 * block, 10 * block + 10):
        graph = drawn.draw(choices.Numbers(np.random.default_rng(seed)), name=f"seed {seed}")
        rng = np.random.default_rng(seed)
        names = [name for name in wide.weighted_nodes(graph) if rng.integers(2)]
        graph = wide.widened(graph, names, rng)
        try:
            programs = [build.build_program(graph, K210, one) for one in (False, True)]
        except CompileError as error:
            refused += 1
            assert "\n" not in str(error)
            continue
        inputs = choices.chosen_inputs(graph, rng)
        for program in programs:
            assert not agree.faults(graph, program, inputs), f"seed {seed}\n{graph}"
    assert refused <= 3
