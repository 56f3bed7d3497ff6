# SPDX-License-Identifier: Apache-2.0
"""Dilated 3x3 layers on the device (docs/kpu.md 1.16): every byte of the golden model's map, and
the predicted cycles; compiled networks with such layers, and lists."""

import contextlib
import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from models.tests.compiler.compiled_graphs import Maker
from openkpu import configs
from openkpu.compiler import build
from openkpu.compiler.form.graph import Graph
from openkpu.configs import Config
from openkpu.generators.generate import Limits, random_layer
from openkpu.generators.generate_lists import KINDS, random_list
from openkpu.generators.generate_products import random_product
from openkpu.layer.vectors import VectorLayer
from openkpu.network import kept
from openkpu.network.device_rules import check_network
from openkpu.network.network import Network, NetworkError
from openkpu_tb.runs.random_cases import case_of, images_of
from openkpu_tb.runs.requests import RandomCase
from openkpu_tb.tiers import sizes
from tb.device import test_bands as bands
from tb.device.layers.test_paths import replay
from tb.device.layers.test_predicted import alone, contract
from tb.device.layers.test_random_layers import check

pytestmark = pytest.mark.fixed  # the same with every seed

# (lines, columns) by what is special: lines of 16, 32 and 64, stripes of several rows, maps of a
# stripe and a little more, smaller than the distance, of one pixel
SIZES = ((9, 13), (20, 16), (11, 29), (7, 64), (13, 40), (5, 70), (3, 135), (4, 3), (1, 1), (2, 65))


def draw(config: Config, seed: int, count: int) -> list[VectorLayer]:
    """Layers with each distance that the device has; depthwise ones, pools, sums of 32 bits, both
    widths of weights among them."""
    rng, found = np.random.default_rng(seed), []
    for number in range(count):
        far = 2 + number % (config.dilation - 1)
        high, wide = SIZES[int(rng.integers(0, len(SIZES)))]
        depthwise, pool = number % 4 == 3, int(rng.integers(1, 5)) if number % 3 == 2 else 0
        high, wide = (max(n, 4) if pool else n for n in (high, wide))
        c, o = (int(n) for n in rng.integers(1, 12 if wide > 64 else 24, 2))
        if number % 7 == 5:
            kind: dict[str, Any] = {"kernel": 3, "dilation": far, "ram_rows": config.ai_ram_rows}
            layer = random_product(rng, c=c, h=high, w=wide, o=o, **kind)
        else:
            layer = random_layer(
                rng,
                c=c,
                h=high,
                w=wide,
                o=c if depthwise else o,
                kernel=3,
                pool=pool,
                depthwise=depthwise,
                fc=False,
                dilation=far,
                eight_bit=bool(rng.random() < 0.7) or config.weight_bits < 16,
                ram_rows=config.ai_ram_rows,
                case=f"by {far}, {number}",
            )
        found.append(layer)
    return found


def pooled(config: Config, seed: int) -> list[VectorLayer]:
    """Every distance with every pool that permits it, dense and depthwise; sizes that the windows
    divide and others, stripes of several rows, lines of several rows, both widths of weights."""
    rng, found = np.random.default_rng(seed), []
    combinations = itertools.product(range(2, config.dilation + 1), range(1, 5), (False, True))
    for number, (far, pool, depthwise) in enumerate(combinations):
        wide = (16, 21, 33, 64, 66)[number % 5]
        layer = random_layer(
            rng,
            c=(3 if wide > 64 else 5) if depthwise else 3,
            h=(4, 9, 14)[number % 3],
            w=wide,
            o=None if depthwise else 1 + number % (2 * config.n_z),
            kernel=3,
            pool=pool,
            depthwise=depthwise,
            fc=False,
            dilation=far,
            eight_bit=number % 4 > 0 or config.weight_bits < 16,
            ram_rows=config.ai_ram_rows,
            case=f"by {far}, pool {pool}, {'depthwise' if depthwise else 'dense'}",
        )
        found.append(layer)
    return found


def compare(sim: str, config: Config, layers: list[VectorLayer]) -> None:
    """Every byte of each layer alone, from the host, and its cycles."""
    done = replay(config, layers, sim)
    cycles = [event["counters"]["total"] for event in done]
    names = [f"{layer.title} {layer.arg.in_shape} -> {layer.arg.out_shape}" for layer in layers]
    contract(names, alone(config, layers), cycles, alone=True)


@sizes(
    "sim name most count",
    test="verilator-small-8-42",
    check="verilator-k210-8-70",
    nightly="icarus-nano-3-6 verilator-nano-8-42 verilator-medium-8-70 verilator-large-8-70"
    " verilator-k210_fp16-8-70 verilator-small_fpga-8-70",
)
def test_layers(sim: str, name: str, most: int, count: int) -> None:
    """Distances in turn, everything else random."""
    config = dataclasses.replace(configs.load_config(name), dilation=most)
    layers = draw(config, most + count, count)
    assert {layer.arg.dilation for layer in layers} == set(range(2, most + 1))
    compare(sim, config, layers)


@sizes(
    "sim name most",
    check="verilator-small-8 verilator-k210-8",
    nightly="icarus-nano-2 verilator-nano-8 verilator-medium-8 verilator-large-8"
    " verilator-k210_fp16-8 verilator-small_fpga-8",
)
def test_pools(sim: str, name: str, most: int) -> None:
    """Windows of a pool over lines that read others far away."""
    config = dataclasses.replace(configs.load_config(name), dilation=most)
    layers = pooled(config, most)
    args = [layer.arg for layer in layers]
    seen = {(arg.dilation, arg.pool_type, arg.depth_wise_layer) for arg in args}
    assert len(seen) == len(layers) == 8 * (most - 1)
    compare(sim, config, layers)


def chain(most: int) -> Graph:
    """A network of dilated convolutions, dense and depthwise, and a sum of two branches."""
    m = Maker(7)
    x = m.conv(m.input(1, 3, 22, 37), 8, (3, 3), dilation=(2, 2))
    y = m.conv(x, 8, (3, 3), dilation=(most, most), groups=8)
    y = m.conv(m.conv(y, 12, (1, 1)), 8, (3, 3), dilation=(most, most))
    y = m.both("add", x, y, scale=0.1)
    return m.done(m.conv(y, 10, (3, 3), (2, 2), dilation=(2, 2)))


@sizes(
    "sim name rows",
    check="verilator-small-32768 verilator-k210-360",
    nightly="icarus-small-32768 verilator-k210-32768 verilator-medium-360",
)
def test_compiled(sim: str, name: str, rows: int) -> None:
    """A compiled network on the whole AI RAM, or in bands whose halo is that of the distance:
    every map of every layer, results as the exact reference."""
    config = dataclasses.replace(configs.load_config(name), ai_ram_rows=rows)
    graph = chain(5)
    program = build.build_program(graph, config)
    far = {arg.dilation for part in program.device_parts for arg in part.network.layers}
    assert far == {1, 2, 5} and (program.layers > 10) == (rows < 32768)
    bands.compare(sim, config, graph, rows)


LISTS = 4


def lists(config: Config, seed: int) -> list[RandomCase]:
    """Lists in which every other layer is dilated or so, as one and as a stream; maps that come
    and go by bands, rows between channel groups, weights that are kept."""
    rng, found = np.random.default_rng(seed), []
    limits = Limits(channels=12, size=24, dilation=config.dilation)
    while len(found) < 2 * LISTS:
        kinds = [str(n) for n in rng.choice(KINDS, 9, p=(0.6, 0.05, 0.1, 0.15, 0.1))]
        shape = tuple(int(rng.integers(2, n)) for n in (9, 24, 70))
        with contextlib.suppress(NetworkError):
            made: dict[str, Any] = {"ram_rows": config.ai_ram_rows, "moves": 0.4, "strides": 0.3}
            network, image = random_list(rng, kinds, shape, limits=limits, **made)
            if sum(arg.dilation > 1 for arg in network.layers) < 2:
                continue
            if config.keep_weights and config.pool_lanes:
                network.kept = kept.scatter(rng, network, config.ai_ram_rows, 0.3)
            for way, more in (("tasks", 0), ("stream", 2)):
                images = np.concatenate([image[None], images_of(rng, shape, more)])
                number = f"list {len(found)}"
                found.append(case_of(config, number, way, network, images, rng))
    return found


@sizes(
    "sim name",
    check="verilator-k210",
    nightly="verilator-small verilator-medium verilator-large verilator-small_fpga",
)
def test_lists(sim: str, name: str) -> None:
    """Dilated layers among others in lists and streams, on a quiet and on a disturbed bus."""
    config = configs.load_config(name)
    check(sim, config, lists(config, 11), 11)


def test_a_network_for_another_device() -> None:
    """One line says what is missing, before anything is built."""
    layer = random_layer(np.random.default_rng(1), c=2, h=4, w=9, o=3, kernel=3, pool=0, fc=False,
                         depthwise=False, dilation=4)  # fmt: skip
    network = Network.single(layer)
    config = configs.load_config("nano")
    for most, fits in ((1, False), (3, False), (4, True)):
        device = dataclasses.replace(config, dilation=most)
        if fits:
            check_network(network, device)
            continue
        said = f"layer 0: dilation 4, configuration nano has dilation = {most}"
        with pytest.raises(NetworkError, match=said):
            check_network(network, device)
