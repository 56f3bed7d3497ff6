# SPDX-License-Identifier: Apache-2.0
"""Matrix products through the whole device: C in storage is numpy's, row by row."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.tests.network import published_product
from openkpu import configs
from openkpu.arithmetic import fp16
from openkpu.generators.generate import random_layer
from openkpu.generators.generate_products import random_product
from openkpu.prediction.cycles_model import predict_network
from openkpu.products import matmul, matmul_deep, matmul_fp16
from openkpu.products.matmul import Tile
from openkpu.products.matmul_lists import input_of, network_of, put
from openkpu_tb import seeds
from openkpu_tb.runs import launch
from openkpu_tb.runs.requests import NetworkRequest
from tb.device.layers import test_paths
from tb.device.layers.test_predicted import alone, contract, near, of_layers
from tb.device.test_device import replay, sim

SEED = seeds.chosen_seeds()[0][0]
LIMIT = 500_000  # cycles of a list
FLOATS = (
    ("verilator", "nano_fp16", "9x30x20", "fp16"),
    ("verilator", "nano_fp16", "5x700x64", "fp16"),
    ("verilator", "nano_fp16", "40x17x250", "fp16to16"),  # two tiles
    ("icarus", "nano_fp16", "3x10x7", "fp16"),
)


@pytest.mark.tier(
    nightly=[
        "icarus-nano-2x2050x3-uint8",
        "verilator-nano-4x36x16-uint8",
        "verilator-nano-5x9216x17-int8",
    ],
    check=[
        "icarus-nano-3x10x20-int8",
        "verilator-nano_fp16-3x5000x7-fp16",
        "verilator-small-21x100x48-int8",
    ],
)
@pytest.mark.parametrize(
    ("simulator", "config", "sizes", "kind"),
    [
        ("verilator", "nano", "9x30x70", "int8"),  # planes in rows of their own
        ("verilator", "nano", "4x36x16", "uint8"),  # four in a row
        ("verilator", "small", "21x100x48", "int8"),
        ("icarus", "nano", "3x10x20", "int8"),  # two in a row
        ("icarus", "nano", "2x2050x3", "uint8"),  # more channels than a map has elsewhere
        ("verilator", "nano", "5x9216x17", "int8"),
        ("verilator", "nano_fp16", "3x5000x7", "fp16"),
        *(pytest.param(*case, marks=pytest.mark.check) for case in FLOATS),
        pytest.param("verilator", "k210", "70x9216x150", "int8", marks=pytest.mark.nightly),
        pytest.param("verilator", "k210", "33x40x70", "int8", marks=pytest.mark.nightly),
    ],
)
def test_product(simulator: str, config: str, sizes: str, kind: str, tmp_path: Path) -> None:
    words = ["--sim", simulator, "--config", config, "--matmul", sizes, "--type", kind]
    content = replay(tmp_path, *words, "--output", str(tmp_path / "c.npy"))
    m, k, n = (int(size) for size in sizes.split("x"))
    assert sum(layer["macs"] for layer in content["layers"]) == m * k * n
    c = np.load(tmp_path / "c.npy")
    types = {"fp16": np.float32, "fp16to16": np.float16}
    assert c.shape == (m, n) and c.dtype == types.get(kind, np.int32)


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus"])
@pytest.mark.parametrize("simulator", ["verilator", "icarus"])
def test_published_product(simulator: str, tmp_path: Path) -> None:
    """The product of ggml's own test: the command prints the table that is published."""
    a, b, c = published_product.matrices()
    files = [str(tmp_path / f"{name}.npy") for name in "ab"]
    for name, matrix in zip(files, (a, b), strict=True):
        np.save(name, matrix.astype(np.int8))
    found = sim("--sim", simulator, "--config", "nano", "--matmul", *files)
    assert found.returncode == 0, found.stdout + found.stderr
    lines = found.stdout.splitlines()
    at = lines.index("C: as numpy's A @ B")
    assert [[int(n) for n in line.split()] for line in lines[at + 1 : at + 5]] == c.tolist()


@pytest.mark.check
def test_list_of_tiles(tmp_path: Path) -> None:
    """Two tiles by the command: a line for each, one run, end-to-end figures of the whole."""
    report, c = tmp_path / "report.json", tmp_path / "c.npy"
    words = ["--sim", "verilator", "--config", "nano", "--matmul", "3x10x1009", "--type", "uint8"]
    found = sim(*words, "--report", str(report), "--output", str(c))
    assert found.returncode == 0, found.stdout + found.stderr
    tiles = [line.split() for line in found.stdout.splitlines() if line.startswith("rows ")]
    assert [line[3] for line in tiles] == ["0-511", "512-1008"]
    assert all(line[-1] == "ok" for line in tiles) and "2 layers in 1 list" in found.stdout
    content = json.loads(report.read_text())
    totals = content["totals"]
    assert totals["inferences"] == 1 and totals["mismatching_bytes"] == 0
    assert totals["end_to_end"]["cycles"] == sum(int(line[4]) for line in tiles)
    assert sum(layer["macs"] for layer in content["layers"]) == 3 * 10 * 1009
    # nano writes four bytes, one sum, a cycle: with K of 10 twice as long as the multiplications
    assert 0.25 < totals["inference_efficiency"] < 1
    assert np.load(c).shape == (3, 1009)


def run_tiles(
    config: str,
    tiles: Sequence[Tile],
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    simulator: str = "verilator",
) -> tuple[list[int], int]:
    """Run a list into C: cycles of its layers, and of the whole."""
    network, events = network_of(tiles, a, b), list[dict[str, Any]]()
    request = NetworkRequest(network, input_of(tiles, a, b)[None], LIMIT)
    launch.run_job(simulator, configs.load_config(config), request, events.append)
    (ended,) = [event for event in events if event["event"] == "image"]
    assert not ended["failure"] and not ended["mismatching_bytes"], ended["failure"]
    assert [layer["mismatching_bytes"] for layer in ended["layers"]] == [0] * len(network.layers)
    maps = {event["layer"]: event for event in events if event["event"] == "stored"}
    assert list(maps) == [i for i, arg in enumerate(network.layers) if arg.store_map]
    assert not any(event["mismatching_bytes"] for event in maps.values())
    stored = {i: np.array(event["y"], dtype=np.uint8) for i, event in maps.items()}
    put(c, tiles, stored, np.array(ended["y"], dtype=np.uint8))
    return [layer["counters"]["total"] for layer in ended["layers"]], ended["inference"]["total"]


def exact_as_predicted(
    tiles: Sequence[Tile], a: np.ndarray, b: np.ndarray, simulator: str = "verilator"
) -> None:
    """Run a list of integers on nano: C is numpy's, the cycles are as predicted."""
    c = np.full((len(a), b.shape[1]), -1, dtype=np.int32)
    measured, whole = run_tiles("nano", tiles, a, b, c, simulator)
    assert (c == a.astype(int) @ b.astype(int)).all()
    network = network_of(tiles, a, b)
    found = predict_network(configs.load_config("nano"), network)
    contract(found.names, of_layers(found), measured)
    near(found.cycles, whole)


@pytest.mark.check
@pytest.mark.parametrize(
    ("sizes", "rows", "parts"),
    [
        ((140, 16, 150), 512, (2, 3)),
        ((207, 1, 42), 512, (3, 1)),  # the last tile reads the same columns as another map
        ((131, 31, 75), 256, (3, 3)),  # sizes that are no multiple of anything
    ],
)
def test_tiles_of_integers(sizes: tuple[int, int, int], rows: int, parts: tuple[int, int]) -> None:
    """Tiles of few rows of the AI RAM in one list: C is numpy's, the cycles are as predicted."""
    (m, k, n), rng = sizes, np.random.default_rng(SEED)
    print(f"seed {SEED}")
    a = rng.integers(-128, 128, (m, k)).astype(np.int8)
    b = rng.integers(0, 256, (k, n)).astype(np.uint8)
    tiles = matmul.plan_matmul(m, k, n, signed_b=False, ram_rows=rows)
    assert (len({t.m.start for t in tiles}), len({t.n.start for t in tiles})) == parts
    exact_as_predicted(tiles, a, b)


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus-sizes1-300"])
@pytest.mark.parametrize(
    ("simulator", "sizes", "rows"), [("verilator", (50, 70, 150), 700), ("icarus", (5, 23, 9), 300)]
)
def test_parts_of_k(simulator: str, sizes: tuple[int, int, int], rows: int) -> None:
    """Parts of K whose words are added up: C is numpy's, every map exact, cycles as predicted."""
    (m, k, n), rng = sizes, np.random.default_rng(SEED)
    print(f"seed {SEED}")
    a = rng.integers(-128, 128, (m, k)).astype(np.int8)
    b = rng.integers(-128, 128, (k, n)).astype(np.int8)
    tiles = matmul_deep.plan_deep(m, k, n, part=k // 2 - 1, ram_rows=rows)
    assert len(tiles[0].ks) > 2 and (len(tiles) > 1) == (simulator == "verilator")
    exact_as_predicted(tiles, a, b, simulator)


@pytest.mark.check
@pytest.mark.parametrize("wide", [True, False])
def test_tiles_of_float16(wide: bool) -> None:
    """The same of float16: each element is the exact sum, rounded once."""
    (m, k, n), rng = (100, 9, 288), np.random.default_rng(SEED)
    print(f"seed {SEED}")
    a, b = (rng.normal(0, 1, s).astype(np.float16) for s in ((m, k), (k, n)))
    tiles = matmul_fp16.plan_fp16(m, k, n, wide=wide, ram_rows=256)
    assert min(len({t.m.start for t in tiles}), len({t.n.start for t in tiles})) > 1
    c = np.zeros((m, n), dtype=np.float32 if wide else np.float16)
    run_tiles("nano_fp16", tiles, a, b, c)
    assert c.tobytes() == fp16.multiply(a, b, wide).tobytes()


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


@pytest.mark.tier(nightly=["verilator-small-changes0", "verilator-nano-changes1"])
@pytest.mark.parametrize(
    ("sim", "base", "changes"),
    [
        ("verilator", "small", {}),
        (  # CI's coverage of sum_planes, and of maps that are one line, is of this one
            "verilator",
            "nano",
            {"n_y": 4, "n_z": 8, "tile_rows": 32, "post_share": 4, "flat_maps": 1},
        ),
        pytest.param("icarus", "nano", {}, marks=pytest.mark.nightly),
    ],
)
def test_bytes_beside_the_array(sim: str, base: str, changes: dict[str, int]) -> None:
    """Three bytes of the sums leave while the array goes on: exact, as predicted, and never slower
    than a last step that is made four times; another layer's sums leave once behind it."""
    config = dataclasses.replace(configs.load_config(base), **changes, sum_planes=1)
    rng, layers = np.random.default_rng(6), []
    for number, (c, h, w, o) in enumerate(shapes(config.n_y, config.n_z)):
        kernel = 3 if number % 4 == 3 else 1
        layers.append(random_product(rng, c=c, h=h, w=w, o=o, kernel=kernel, case=f"{number}"))
    layers.insert(5, random_layer(rng, c=7, h=9, w=20, o=config.n_z + 1, kernel=3, eight_bit=True))
    # 1x1 layers that sum nothing up to 32 bits, with maps that may be taken as one line
    for c, h, w in ((100, 9, 7), (60, 30, 13), (130, 40, 5), (50, 7, 10)):
        layers.append(random_layer(rng, c=c, h=h, w=w, o=9, kernel=1, pool=0, depthwise=False))
    measured = [event["counters"]["total"] for event in test_paths.replay(config, layers, sim)]
    names = [f"{layer.arg.in_shape} -> {layer.arg.out_shape}" for layer in layers]
    found = alone(config, layers)
    contract(names, found, measured)
    before = alone(dataclasses.replace(config, sum_planes=0), layers)
    figures = zip(names, found, before, strict=True)  # both predicted, with the same errors
    slower = [f"{name}: {now}, {was}" for name, now, was in figures if now > was + 5]
    assert not slower, slower
    sums = [number for number, layer in enumerate(layers) if layer.arg.out32]
    assert sum(measured[n] for n in sums) < 0.95 * sum(before[n] for n in sums)
