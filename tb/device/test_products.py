# SPDX-License-Identifier: Apache-2.0
"""Matrix products through the whole device: C in storage is numpy's, row by row."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openkpu.models import configs
from openkpu.models.generate import random_layer
from openkpu.models.generate_products import random_product
from openkpu.tb.device import launch
from openkpu.tb.device.requests import VectorsRequest
from openkpu.tb.device.test_device import replay
from openkpu.tb.device.test_predicted import alone, contract


@pytest.mark.parametrize(
    ("simulator", "config", "sizes", "kind"),
    [
        ("verilator", "nano", "9x30x70", "int8"),  # planes in rows of their own
        ("verilator", "nano", "4x36x16", "uint8"),  # four in a row
        ("verilator", "small", "21x100x48", "int8"),
        ("icarus", "nano", "3x10x20", "int8"),  # two in a row
        ("icarus", "nano", "2x2050x3", "uint8"),  # more channels than a map has elsewhere
        ("verilator", "nano", "5x9216x17", "int8"),
        pytest.param("verilator", "k210", "70x9216x150", "int8", marks=pytest.mark.nightly),
        pytest.param("verilator", "k210", "33x40x70", "int8", marks=pytest.mark.nightly),
    ],
)
def test_product(simulator: str, config: str, sizes: str, kind: str, tmp_path: Path) -> None:
    words = ["--sim", simulator, "--config", config, "--matmul", sizes, "--type", kind]
    content = replay(tmp_path, *words, "--output", str(tmp_path / "c.npy"))
    m, k, n = (int(size) for size in sizes.split("x"))
    (layer,) = content["layers"]
    assert layer["macs"] == m * k * n
    assert np.load(tmp_path / "c.npy").shape == (m, n)


def shapes(n_y: int, n_z: int) -> list[tuple[int, int, int, int]]:
    """(channels, height, width, output channels) of products of one step and more, of sweeps of one
    issue and more, of one group and several, one stripe and several."""
    return [
        *((c, 1, 1, 2 * n_z + 1) for c in (1, 10, 40)),
        *((c, 1, n_y + 1, n_z) for c in (9, 19, 60)),
        *((c, 2, 65, n_z + 1) for c in (3, 30, 50)),
        (28, 5, 17, 3 * n_z),
        (100, 3, 64, 2 * n_z),
    ]


@pytest.mark.parametrize(
    ("sim", "base", "changes"),
    [
        ("verilator", "small", {}),
        (
            "verilator",
            "nano",
            {"n_y": 4, "n_z": 8, "tile_rows": 32, "post_share": 4, "flat_maps": 1},
        ),
        ("icarus", "nano", {}),
    ],
)
def test_bytes_beside_the_array(sim: str, base: str, changes: dict[str, int]) -> None:
    """Three bytes of the sums leave while the array goes on: exact, as predicted, and never slower
    than a last step that is made four times; another layer's sums leave once behind it."""
    config = dataclasses.replace(configs.load(base), **changes, sum_planes=1)
    rng, layers = np.random.default_rng(6), []
    for number, (c, h, w, o) in enumerate(shapes(config.n_y, config.n_z)):
        kernel = 3 if number % 4 == 3 else 1
        layers.append(random_product(rng, c=c, h=h, w=w, o=o, kernel=kernel, case=f"{number}"))
    layers.insert(5, random_layer(rng, c=7, h=9, w=20, o=config.n_z + 1, kernel=3, eight_bit=True))
    # 1x1 layers that sum nothing up to 32 bits, with maps that may be taken as one line
    for c, h, w in ((100, 9, 7), (60, 30, 13), (130, 40, 5), (50, 7, 10)):
        layers.append(random_layer(rng, c=c, h=h, w=w, o=9, kernel=1, pool=0, depthwise=False))
    events: list[dict[str, Any]] = []
    request = VectorsRequest(layers, [200_000] * len(layers))
    launch.run_job(sim, config, request, events.append)
    ended = [event for event in events if event["event"] == "layer"]
    assert len(ended) == len(layers)
    for layer, event in zip(layers, ended, strict=True):
        assert not event["failure"] and not event["mismatching_bytes"], (layer.title, event)
    measured = [event["counters"]["total"] for event in ended]
    names = [f"{layer.arg.in_shape} -> {layer.arg.out_shape}" for layer in layers]
    contract(names, alone(config, layers), measured)
    before = alone(dataclasses.replace(config, sum_planes=0), layers)
    figures = zip(names, measured, before, strict=True)
    slower = [f"{name}: {now}, {was}" for name, now, was in figures if now > was + 5]
    assert not slower, slower
    sums = [number for number, layer in enumerate(layers) if layer.arg.out32]
    assert sum(measured[n] for n in sums) < 0.95 * sum(before[n] for n in sums)
