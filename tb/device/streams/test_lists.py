# SPDX-License-Identifier: Apache-2.0
"""Lists of every kind of task in any order: nothing of one task leaks into the next.

A list has each kind of task behind each kind, itself too: 26 tasks, 25 ordered pairs. Outputs of
most tasks lie apart, and all of AI RAM and storage is compared, so that a wrong map is seen though
no later task reads it.
"""

import dataclasses
import itertools

import numpy as np
import pytest

from openkpu import configs
from openkpu.generators.generate import Limits
from openkpu.generators.generate_lists import ALL_KINDS, KINDS, every_pair, random_list
from openkpu.network.network import NetworkError
from openkpu_tb import seeds
from openkpu_tb.runs import launch
from openkpu_tb.runs.random_cases import case_of, images_of
from openkpu_tb.runs.requests import RandomCase
from tb.device.layers.test_random_layers import check

SEED = seeds.chosen_seeds()[0][0]
IMAGES = {"tasks": 1, "stream": 3}
FEW_ROWS = 2048
SMALL = Limits(channels=4, size=8)
# a small AI RAM on Icarus, and a small storage: to fill and compare them takes much of the time
SMALL_RAM, SMALL_STORE = 2048, 1 << 15  # rows, words


def lists(name: str, count: int, *, slow: bool = False, moves: float = 0.0) -> list[RandomCase]:
    """Lists, each as one and as a stream; ``moves`` as of ``random_list``."""
    config, rng = configs.load_config(name), np.random.default_rng(SEED)
    all_kinds = ALL_KINDS if config.fp16_lanes else KINDS
    most = (4, 6, 10) if slow else (9, 13, 150 if moves else 41)
    limits = SMALL if slow else Limits(channels=12, size=30)
    limits = dataclasses.replace(limits, dilation=config.dilation)
    cases: list[RandomCase] = []
    while len(cases) < count * len(IMAGES):
        number = len(cases) // len(IMAGES)
        shape = tuple(int(rng.integers(1, n)) for n in most)
        if config.fp16_lanes:  # the image is a matrix that a product can read
            shape = shape[0], 1, 2 * shape[2]
        kinds = every_pair(rng, all_kinds[number % len(all_kinds)], all_kinds)
        # few rows: outputs come to lie on maps that are not needed any more
        rows = FEW_ROWS if number % 2 else config.ai_ram_rows
        try:
            network, image = random_list(
                rng, kinds, shape, limits=limits, ram_rows=rows, moves=moves
            )
        except NetworkError:
            continue
        for way, images in IMAGES.items():
            more = images_of(rng, shape, (1 if slow else images) - 1)
            each = np.concatenate([image[None], more])
            cases.append(case_of(config, f"list {number}", way, network, each, rng))
    return cases


@pytest.mark.check
@pytest.mark.parametrize("kinds", [KINDS, ALL_KINDS])
def test_order_of_tasks(kinds: tuple[str, ...]) -> None:
    """Each kind follows each, and itself, once."""
    for seed in range(20):
        order = every_pair(np.random.default_rng(seed), kinds[seed % len(kinds)], kinds)
        pairs = list(itertools.pairwise(order))
        assert sorted(pairs) == sorted(itertools.product(kinds, kinds))


@pytest.mark.tier(nightly=["icarus-nano-1", "verilator-k210-3"])
@pytest.mark.parametrize(
    ("sim", "config", "count"),
    [
        *(("verilator", "nano", 6), ("verilator", "k210", 3), ("icarus", "nano", 1)),
        pytest.param("verilator", "nano_fp16", 5, marks=pytest.mark.check),
    ],
)
def test_mixed_lists(sim: str, config: str, count: int) -> None:
    """All ordered pairs of kinds, as a list and in a stream, quiet and disturbed."""
    check(sim, configs.load_config(config), lists(config, count, slow=sim == "icarus"), SEED)


@pytest.mark.tier(nightly=["icarus-nano-1", "verilator-nano-6"])
@pytest.mark.parametrize(
    ("sim", "config", "count"),
    [
        ("verilator", "nano", 6),
        pytest.param("verilator", "k210", 2, marks=pytest.mark.nightly),
        ("icarus", "nano", 1),
    ],
)
def test_maps_of_storage(sim: str, config: str, count: int) -> None:
    """The same, with maps that come from storage and go there on the way."""
    check(
        sim,
        configs.load_config(config),
        lists(config, count, slow=sim == "icarus", moves=0.4),
        SEED,
    )


@pytest.mark.tier(nightly=["verilator-nano"])
@pytest.mark.parametrize(
    ("sim", "config"),
    [
        ("verilator", "nano"),
        pytest.param("verilator", "k210", marks=pytest.mark.nightly),
        pytest.param("icarus", "nano", marks=pytest.mark.nightly),
    ],
)
def test_maps_of_host_layers(sim: str, config: str) -> None:
    """Layers that the host pushes, with maps in storage; refusals, failed transfers, resets."""
    params, slow = launch.parameters(configs.load_config(config), 1 << 20), sim == "icarus"
    launch.run_device(
        sim,
        "tb.device.streams.map_tests",
        {**params, "AI_RAM_ROWS": SMALL_RAM} if slow else params,
        plusargs=[f"+store_words={SMALL_STORE}"] if slow else [],
    )
