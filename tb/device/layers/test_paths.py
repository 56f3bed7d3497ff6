# SPDX-License-Identifier: Apache-2.0
"""Builds unlike the named ones: paths that do not match the array, other lanes of pools or none."""

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest

from openkpu import configs
from openkpu.generators.generate import Limits, random_layer
from openkpu.generators.generate_fp16 import random_fp16
from openkpu.generators.generate_pools import random_pool
from openkpu.generators.generate_products import random_product
from openkpu.layer.decoded import STRIDE_1
from openkpu.layer.vectors import VectorLayer
from openkpu_tb.core.registers import Err
from openkpu_tb.runs import launch
from openkpu_tb.runs.requests import VectorsRequest
from tb.device.streams.test_stream import FEW_WEIGHTS

pytestmark = pytest.mark.fixed  # the same with every seed

STORAGE = 4 * launch.LEAST_DEPTH


def replay(
    config: configs.Config, layers: list[VectorLayer], sim: str = "verilator"
) -> list[dict[str, Any]]:
    """Every layer alone, byte by byte as expected; what the bench said of each."""
    events: list[dict[str, Any]] = []
    request = VectorsRequest(layers, [200_000] * len(layers))
    launch.run_job(sim, config, request, events.append, storage_bytes=STORAGE)
    assert not [e for e in events if e["event"] == "rules"]
    done = [e for e in events if e["event"] == "layer"]
    assert len(done) == len(layers)
    for layer, event in zip(layers, done, strict=True):
        assert not event["failure"] and not event["mismatching_bytes"], (layer.title, event)
        if layer.arg.pool_type not in STRIDE_1:  # a line may be computed, and counted, twice
            assert event["counters"]["macs_gated"] == event["macs_gated"], layer.title
    return done


def rows() -> list[VectorLayer]:
    """Depthwise maps and others on odd and even rows, with odd and even numbers of lines."""
    rng = np.random.default_rng(4)
    layers = []
    for number, (src, dst) in enumerate(((0, 400), (1, 401), (2, 401), (3, 400))):
        for h, w in ((7, 64), (4, 40), (1, 33), (2, 63), (5, 20), (3, 9), (4, 130)):
            kernel = 1 if h == 4 and number % 2 else 3
            shape = {"c": 3, "h": h, "w": w, "o": 3, "kernel": kernel, "depthwise": True}
            place = {"src": src, "dst": dst, "case": f"rows_{number}_{h}x{w}"}
            more = {"pool": 0, "fc": False, "eight_bit": True}
            layers.append(random_layer(rng, **shape, **place, **more))
    return layers


def odd(n_y: int, n_z: int, path: int, share: int, lanes: int) -> configs.Config:
    """A build whose path does not match its array."""
    sizes = {"n_y": n_y, "n_z": n_z, "path_bytes": path, "tile_rows": 32}
    return dataclasses.replace(
        configs.load_config("nano"), post_share=share, pool_lanes=lanes, **sizes
    )


# a path far wider than the array, and one that is half of it with a post lane for four
WIDE, NARROW = odd(2, 2, 128, 1, 2), odd(4, 8, 16, 4, 8)


@pytest.mark.nightly
def test_two_rows() -> None:
    """Depthwise layers of 64 pixels a line, two lines a cycle wherever source and target begin."""
    replay(configs.load_config("large"), rows())


@pytest.mark.check
@pytest.mark.parametrize(
    ("sim", "n_y", "n_z", "share"),
    [
        ("icarus", 2, 64, 4),
        pytest.param("verilator", 16, 8, 2, marks=pytest.mark.nightly),
    ],
)
def test_shared_lanes_of_two_lines(sim: str, n_y: int, n_z: int, share: int) -> None:
    """The second line of an issue has the parameters of its own channel."""
    config = dataclasses.replace(
        odd(n_y, n_z, 128, share, 2), ai_ram_rows=32, wbuf_rows=64, post_share=share
    )
    rng = np.random.default_rng(6)
    shapes = ((1, 2, 33, 1, True), (2, 4, 40, 3, True), (2, 5, 64, 3, False), (1, 3, 48, 1, False))
    layers = [
        random_layer(
            rng, c=c, h=h, w=w, o=c, kernel=kernel, depthwise=True, pool=0, fc=False,
            eight_bit=eight_bit, src=0, dst=16, ram_rows=32, case=f"{c}x{h}x{w}",
        )
        for c, h, w, kernel, eight_bit in shapes
    ]  # fmt: skip
    replay(config, layers, sim)


@pytest.mark.check
@pytest.mark.parametrize("sim", ["icarus", pytest.param("verilator", marks=pytest.mark.nightly)])
def test_odd_rows_with_a_wide_path(sim: str) -> None:
    """The last row is half of a word of 128 bytes: it is there, and is no other row."""
    config = dataclasses.replace(odd(2, 2, 128, 1, 2), ai_ram_rows=17, wbuf_rows=64)
    rng, more = np.random.default_rng(8), {"pool": 0, "fc": False, "eight_bit": True}
    shape = {"c": 2, "h": 4, "w": 20, "o": 2, "kernel": 1, "ram_rows": 17}
    there = [
        random_layer(rng, **shape, **more, src=src, dst=dst, depthwise=depthwise, case=f"{dst}")
        for src, dst, depthwise in ((0, 13, True), (13, 0, True), (0, 13, False), (13, 0, False))
    ]
    assert {layer.arg.out_layout.base + layer.arg.out_layout.rows for layer in there} == {4, 17}
    replay(config, there, sim)


@pytest.mark.tier(nightly=["8"])
@pytest.mark.check
@pytest.mark.parametrize(
    "config",
    [
        pytest.param(configs.load_config("nano"), id="1"),
        pytest.param(FEW_WEIGHTS, id="2"),
        pytest.param(NARROW, id="8"),
        pytest.param(WIDE, id="2-wide", marks=pytest.mark.nightly),
    ],
)
def test_lanes_of_pools(config: configs.Config) -> None:
    """Pooling tasks with fewer and with more divisions a cycle."""
    rng = np.random.default_rng(config.pool_lanes)
    limits = Limits(channels=6, size=40)
    replay(config, [random_pool(rng, limits=limits, case=f"pool {n}") for n in range(40)])


@pytest.mark.check
@pytest.mark.tier(nightly=["pool*"])
@pytest.mark.parametrize("lacks", ["fp16_lanes", "pool_lanes", "out32", "dilation"])
def test_build_without(lacks: str) -> None:
    """It refuses the task that needs it, and only that; what comes behind it is exact."""
    dilated = functools.partial(random_layer, kernel=3, pool=0, fc=False, dilation=2)
    made = {"fp16_lanes": random_fp16, "pool_lanes": random_pool, "out32": random_product}
    make = {**made, "dilation": dilated}[lacks]
    none = {lacks: int(lacks == "dilation")}
    config = dataclasses.replace(configs.load_config("nano"), **none)
    rng, limits = np.random.default_rng(5), Limits(channels=6, size=20)
    makers = [*(3 * (random_layer, make)), random_layer]
    layers = [maker(rng, limits=limits) for maker in makers]
    events: list[dict[str, Any]] = []
    request = VectorsRequest(layers, [200_000] * len(layers))
    launch.run_job("verilator", config, request, events.append, storage_bytes=STORAGE)
    done = [event for event in events if event["event"] == "layer"]
    for maker, layer, event in zip(makers, layers, done, strict=True):
        if maker is make:
            assert f"device error {Err.BAD_FLAGS} (BAD_FLAGS)" in event["failure"], layer.title
        else:
            assert not event["failure"] and not event["mismatching_bytes"], (layer.title, event)


@pytest.mark.check
def test_build_without_counters() -> None:
    """Its results are those of any other build."""
    rng = np.random.default_rng(6)
    layers = [random_layer(rng, limits=Limits(channels=6, size=20)) for _ in range(4)]
    events: list[dict[str, Any]] = []
    request = VectorsRequest(layers, [200_000] * len(layers))
    nano = configs.load_config("nano")
    launch.run_job("verilator", nano, request, events.append, storage_bytes=STORAGE, PERF=0)
    done = [event for event in events if event["event"] == "layer"]
    assert len(done) == len(layers)
    for event in done:
        assert not event["failure"] and not event["mismatching_bytes"], event
        assert not any(event["counters"].values()), event
