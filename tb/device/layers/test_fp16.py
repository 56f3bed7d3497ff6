# SPDX-License-Identifier: Apache-2.0
"""Products of float16 matrices through the whole device: alone, in streams, among other tasks."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openkpu import configs
from openkpu.arithmetic import fp16
from openkpu.generators.generate import Limits, random_layer
from openkpu.generators.generate_fp16 import random_fp16
from openkpu.generators.generate_lists import ALL_KINDS, every_pair, random_list
from openkpu.layer.vectors import VectorLayer
from openkpu.network.network import NetworkError
from openkpu_tb import seeds
from openkpu_tb.core.registers import Err
from openkpu_tb.runs import launch
from openkpu_tb.runs.random_cases import case_of, draw_cases, images_of
from openkpu_tb.runs.requests import RandomCase, VectorsRequest
from tb.device.layers.test_random_layers import check
from tb.device.test_device import replay

SEED = seeds.chosen_seeds()[0][0]
STORAGE = 1 << 20
IMAGES = {"tasks": 1, "stream": 3}
FP16 = configs.load_config("nano_fp16")


@pytest.mark.check
@pytest.mark.parametrize(
    ("simulator", "sizes", "kind"),
    [
        ("verilator", "9x30x20", "fp16"),
        ("verilator", "5x700x64", "fp16"),
        ("verilator", "40x17x250", "fp16to16"),  # two tiles
        ("icarus", "3x10x7", "fp16"),
    ],
)
def test_product(simulator: str, sizes: str, kind: str, tmp_path: Path) -> None:
    words = ["--sim", simulator, "--config", "nano_fp16", "--matmul", sizes, "--type", kind]
    content = replay(tmp_path, *words, "--output", str(tmp_path / "c.npy"))
    m, k, n = (int(size) for size in sizes.split("x"))
    assert sum(layer["macs"] for layer in content["layers"]) == m * k * n
    c = np.load(tmp_path / "c.npy")
    assert c.shape == (m, n) and c.dtype == (np.float16 if kind == "fp16to16" else np.float32)


@pytest.mark.check
def test_product_of_files(tmp_path: Path) -> None:
    """Any bits, infinities and NaN among them; what is saved is the golden model's, bit by bit."""
    rng = np.random.default_rng(SEED)
    a, b = (
        rng.integers(0, 1 << 16, s).astype(np.uint16).view(np.float16) for s in ((6, 5), (5, 9))
    )
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    words = ["--sim", "verilator", "--config", "nano_fp16", "--type", "fp16", "--matmul"]
    words += [str(tmp_path / "a.npy"), str(tmp_path / "b.npy"), "--output", str(tmp_path / "c.npy")]
    replay(tmp_path, *words)
    assert np.load(tmp_path / "c.npy").tobytes() == fp16.multiply(a, b).tobytes()


@pytest.mark.tier(nightly=["icarus-3-0", "verilator-48-4"])
@pytest.mark.parametrize(("sim", "layers", "networks"), [("verilator", 48, 4), ("icarus", 3, 0)])
def test_random_products(sim: str, layers: int, networks: int) -> None:
    """By the host, as lists and in streams, quiet and disturbed; streams keep their weights."""
    slow = sim == "icarus"
    cases = draw_cases(FP16, SEED, layers, networks, slow=slow)
    events = check(sim, FP16, cases, SEED)
    kept = [event["kept"] for event in events if event["event"] == "case"]
    floats = [any(arg.fp16 for arg in case.network.layers) for case in cases]
    assert slow or max(k for k, fp in zip(kept, floats, strict=True) if fp) == 2


def lists(name: str, count: int, *, slow: bool = False) -> list[RandomCase]:
    """Lists in which each kind follows each, those with few rows of the AI RAM among them."""
    config, rng = configs.load_config(name), np.random.default_rng(SEED)
    cases: list[RandomCase] = []
    while len(cases) < count * len(IMAGES):
        number = len(cases) // len(IMAGES)
        most = (4, 5) if slow else (9, 20)
        channels, half = (int(rng.integers(1, n)) for n in most)
        shape = channels, 1, 2 * half  # the image is a matrix that a product can read
        kinds = every_pair(rng, ALL_KINDS[-1 - number % len(ALL_KINDS)], ALL_KINDS)
        limits = Limits(channels=4, size=8) if slow else Limits(channels=12, size=30)
        rows = 2048 if number % 2 else config.ai_ram_rows
        try:
            network, image = random_list(rng, kinds, shape, limits=limits, ram_rows=rows)
        except NetworkError:
            continue
        for way, images in IMAGES.items():
            more = images_of(rng, shape, (1 if slow else images) - 1)
            each = np.concatenate([image[None], more])
            cases.append(case_of(config, f"list {number}", way, network, each, rng))
    return cases


@pytest.mark.check
def test_order_of_tasks() -> None:
    order = every_pair(np.random.default_rng(SEED), ALL_KINDS[-1], ALL_KINDS)
    assert sorted(itertools.pairwise(order)) == sorted(itertools.product(ALL_KINDS, ALL_KINDS))


@pytest.mark.check
def test_mixed_lists() -> None:
    """All ordered pairs of kinds, as a list and in a stream, quiet and disturbed."""
    check("verilator", FP16, lists("nano_fp16", 5), SEED)


@pytest.mark.check
def test_beginnings() -> None:
    """Each ordered pair of kinds at the start of a stream that keeps its weights.

    The weights of the second image begin at the first row of the ring, whatever the first task that
    has weights is, and however many without weights stand before it.
    """
    rng = np.random.default_rng(SEED)
    shape, limits = (3, 1, 8), Limits(channels=6, size=12)
    cases: list[RandomCase] = []
    for kinds in itertools.product(ALL_KINDS, repeat=2):
        network, image = random_list(rng, [*kinds, "convolution"], shape, limits=limits)
        each = np.concatenate([image[None], images_of(rng, shape, 2)])
        cases.append(case_of(FP16, " ".join(kinds), "stream", network, each, rng))
    events = check("verilator", FP16, cases, SEED)
    assert [event["kept"] for event in events if event["event"] == "case"] == [2] * len(cases)


@pytest.mark.check
def test_build_without_lanes() -> None:
    """It refuses a product of float16, and only that; what comes behind it is exact."""
    rng, limits = np.random.default_rng(SEED), Limits(channels=6, size=20)
    layers: list[VectorLayer] = []
    for _ in range(3):
        layers += [random_layer(rng, limits=limits), random_fp16(rng, limits=limits)]
    layers.append(random_layer(rng, limits=limits))
    events: list[dict[str, Any]] = []
    request = VectorsRequest(layers, [200_000] * len(layers))
    launch.run_job(
        "verilator", configs.load_config("nano"), request, events.append, storage_bytes=STORAGE
    )
    done = [event for event in events if event["event"] == "layer"]
    assert len(done) == len(layers)
    for layer, event in zip(layers, done, strict=True):
        if layer.arg.fp16:
            assert f"device error {Err.BAD_FLAGS} (BAD_FLAGS)" in event["failure"], layer.title
        else:
            assert not event["failure"] and not event["mismatching_bytes"], (layer.title, event)


@pytest.mark.check
def test_faults_in_lists() -> None:
    """A task of each kind that is refused: its number is told, it writes nothing, lists go on."""
    launch.run_device(
        "verilator",
        "tb.device.streams.list_fp16_tests",
        launch.parameters(configs.load_config("nano_fp16"), 1 << 20),
    )
