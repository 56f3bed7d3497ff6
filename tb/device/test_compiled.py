# SPDX-License-Identifier: Apache-2.0
"""Compiled networks on the RTL: every layer's map and the results against the golden model.

A list with several inputs, stored outputs, joined and narrow reads, maps in place, turned maps and
moved copies, weights of 16 bits; the results are the exact reference's.
"""

from typing import Any

import numpy as np
import pytest

from models.tests.compiler.attention_graph import attention
from models.tests.compiler.compiled_graphs import Maker, compiled
from models.tests.quantised.wide_graphs import mixed, parted
from openkpu import configs
from openkpu.compiler import run
from openkpu.compiler.form import reference
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.form.rarer import Deconv, Prelu
from openkpu.compiler.program import DevicePart
from openkpu.configs import Config
from openkpu.network.network import Network, alignment
from openkpu.prediction.roofline import network_cycles
from openkpu_tb.runs import launch
from openkpu_tb.runs.requests import NetworkRequest

pytestmark = pytest.mark.fixed  # the same with every seed


def joined() -> Graph:
    """Parts of a concatenation, a slice of it, a sum of two inputs, two outputs."""
    m = Maker(30)
    a, b = m.input(1, 4, 7, 6), m.input(1, 4, 7, 6)
    total = m.both("add", a, b, scale=0.07)
    parts = [m.conv(total, 4, (3, 3)), m.conv(total, 3, (1, 1))]
    parts[1].scale, parts[1].zero = parts[0].scale, parts[0].zero
    one = m.move(parts, (1, 7, 7, 6), "concat", axis=1)
    some = m.move([one], (1, 4, 7, 6), "slice", starts=(0, 2, 0, 0), steps=(1, 1, 1, 1))
    return m.done(m.conv(some, 5, (3, 3)), one)


def turned() -> Graph:
    """TensorFlow's stride of 2, a shortcut, a table of two layers, an average."""
    m = Maker(31, "uint8")
    x = m.conv(m.input(1, 3, 8, 10), 4, (3, 3))
    y, z = m.conv(x, 6, (3, 3), (2, 2)), m.conv(x, 6, (1, 1), (2, 2))
    total = m.both("mul", y, z, scale=0.2)
    mean = m.pool(total, "average", (4, 5))
    return m.done(m.dense(m.move([mean], (1, 6), "reshape"), 5))


def copied() -> Graph:
    """A kernel of 5x5 inside, a depthwise one of 5x1, groups."""
    m = Maker(32)
    x = m.conv(m.input(1, 2, 9, 5), 4, (5, 5), (2, 2))
    y = m.conv(x, 4, (5, 1), groups=4)
    return m.done(m.conv(m.conv(y, 8, (3, 3), groups=2), 3, (2, 2), pads="valid"))


def rarer() -> Graph:
    """Slopes of channels, a transposed convolution with its pixels put in order, a signal."""
    m = Maker(33)
    x = m.conv(m.input(1, 3, 4, 5), 4, (3, 3))
    y = m.node(Prelu, [x], m.tensor(*x.shape), slopes=np.array([0.25, 0.9, 0.0, 0.5]))
    z = m.tensor(1, 4, 8, 10)
    weights = m.rng.integers(-127, 128, (4, 4, 3, 3))
    how = m._products(y, 4, 9, z)
    z = m.node(Deconv, [y], z, weights=weights, clamp=z.limits, strides=(2, 2), pads=(0, 0), **how)
    z = m.conv(z, 4, (8, 1), (1, 10), groups=4, pads="valid")
    signal = m.move([y], (1, 4, 20, 1), "reshape")
    return m.done(z, m.conv(signal, 4, (5, 1), groups=4))


def attended() -> Graph:
    """Two products of computed tensors: their weights are what the host writes."""
    return attention(tokens=5, width=8, heads=2)


def padded() -> Graph:
    """Channels of zeros: before a sum, with rows that others share, and written."""
    m = Maker(34)
    x = m.conv(m.input(1, 3, 5, 6), 6, (1, 1))
    fields = {"before": (0, 0, 0, 0), "value": x.zero}
    wide = m.move([x], (1, 9, 5, 6), "pad", after=(0, 3, 0, 0), **fields)
    y = m.both("add", wide, m.conv(x, 9, (1, 1)), scale=0.08)
    z = m.conv(y, 4, (1, 1))
    fields["value"] = z.zero
    return m.done(
        y, m.conv(m.move([z], (1, 8, 5, 6), "pad", after=(0, 4, 0, 0), **fields), 2, (3, 3))
    )


MAKERS = (mixed, parted, joined, turned, copied, rarer, attended, padded)
GRAPHS = {make.__name__: make for make in MAKERS}
LISTS = {"rarer": 2, "attended": 4, "parted": 2}
WIDE = {"mixed": 1, "parted": 1}  # lists whose weights have 16 bits


def maps_of_the_rtl(
    simulator: str, config: Config, network: Network, x: np.ndarray, limit: int
) -> tuple[run.Maps, int]:
    """The maps that a network leaves in storage, -1: its result, and the cycles it took; the map of
    every layer was the golden model's."""
    found: run.Maps = {}
    cycles = 0

    def on_event(event: dict[str, Any]) -> None:
        nonlocal cycles
        assert event["event"] != "rules", event
        if event["event"] == "stored":
            shape = network.layers[event["layer"]].out_shape
            found[event["layer"]] = np.array(event["y"], np.uint8).reshape(shape)
        elif event["event"] == "image":
            assert not event["failure"], event["failure"]
            wrong = {i["index"]: i["first"] for i in event["layers"] if i["mismatching_bytes"]}
            assert len(event["layers"]) == len(network.layers) and not wrong, wrong
            found[-1] = np.array(event["y"], np.uint8).reshape(network.out_shape)
            cycles = event["cycles"]

    request = NetworkRequest(network, x[None], limit, alignment(config))
    size = network.storage(x[None], align=request.align).data.size
    launch.run_job(simulator, config, request, on_event, storage_bytes=size)
    assert -1 in found, "no result"
    return found, cycles


@pytest.mark.tier(check=["verilator-*", *(f"icarus-{name}" for name in GRAPHS if name != "joined")])
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("simulator", ["icarus", "verilator"])
def test_compiled(simulator: str, name: str) -> None:
    """Every map of every layer, as the golden model has it; outputs as the reference has them."""
    config = configs.load_config("nano")
    graph = GRAPHS[name]()
    program = compiled(graph, "nano")
    lists = [part.network for part in program.device_parts]
    assert len(lists) == LISTS.get(name, 1)
    assert sum(not network.eight_bit for network in lists) == WIDE.get(name, 0)

    def device(part: DevicePart, network: Network, x: np.ndarray) -> run.Maps:
        least = network_cycles(config, network.layers, eight_bit=network.eight_bit)
        return maps_of_the_rtl(simulator, config, network, x, 50_000 + 60 * least)[0]

    rng = np.random.default_rng(5)
    values = {
        n: rng.integers(*graph.tensors[n].limits, graph.tensors[n].shape, endpoint=True)
        for n in graph.inputs
    }
    found, want = run.run_program(program, values, device), reference.evaluate(graph, values)
    missed = sum(r.missed for r in program.reports.values())
    for output in graph.outputs:
        apart = np.abs(found[output] - want[output])
        print(
            f"{simulator} {name}: {int((apart > 0).sum())} of {apart.size} differ, {missed} edges"
        )
        assert apart.max() <= (1 if missed else 0) and (apart > 0).sum() <= 2
