# SPDX-License-Identifier: Apache-2.0
"""CI's share of the coverage: whole-device tests on one build that has every option.

With counters a build takes minutes, a test seconds. `make coverage SHARE=1` runs this file, always
with the same seeds. `make coverage` counts what the device's own tests cover, on builds as they are
used.
"""

import dataclasses

import numpy as np
import pytest

from openkpu import configs
from openkpu.configs import Config
from openkpu.generators.generate import Limits, random_layer
from openkpu.generators.generate_fp16 import random_fp16
from openkpu.generators.generate_lists import ALL_KINDS, every_pair, random_list
from openkpu.generators.generate_pools import random_pool
from openkpu.generators.generate_products import random_product
from openkpu.generators.generate_tasks import random_elementwise
from openkpu.layer.vectors import VectorLayer
from openkpu_tb.runs import launch
from openkpu_tb.runs.random_cases import case_of, draw_cases, images_of
from openkpu_tb.runs.requests import RandomCase
from tb.device.layers.test_paths import replay
from tb.device.layers.test_random_layers import check
from tb.uvm.test_uvm import simulate

pytestmark = pytest.mark.nightly  # every part is tested elsewhere on every push

SEED = 1
EVERYTHING = dataclasses.replace(
    configs.load_config("small"), sum_planes=1, fp16_lanes=4, weight_ahead=1, look_ahead=16
)
# the circuits of arrays with few lanes, and of pixels with one lane
NARROW = dataclasses.replace(configs.load_config("nano"), post_share=2)


def of_every_kind(rng: np.random.Generator, limits: Limits, count: int) -> list[VectorLayer]:
    """So many layers of each kind."""
    kinds = (random_layer, random_product, random_pool, random_elementwise, random_fp16)
    return [kind(rng, limits=limits) for kind in kinds for _ in range(count)]


def list_case(rng: np.random.Generator, config: Config, number: int, *, pairs: bool) -> RandomCase:
    """A stream of three images through a list of all kinds, or of one behind and before each."""
    shape = int(rng.integers(1, 9)), 1, 2 * int(rng.integers(1, 20))
    kinds: list[str] = [*ALL_KINDS]
    if pairs:
        kinds = every_pair(rng, ALL_KINDS[number], ALL_KINDS)
    network, image = random_list(rng, kinds, shape, limits=Limits(channels=12, size=30))
    each = np.concatenate([image[None], images_of(rng, shape, 2)])
    return case_of(config, f"list {number}", "stream", network, each, rng)


@pytest.mark.parametrize("config", [EVERYTHING, NARROW], ids=["everything", "narrow"])
def test_random_layers(config: Config) -> None:
    """By the host, as lists and in streams, on a quiet and on a disturbed bus."""
    check("verilator", config, draw_cases(config, SEED, layers=14, networks=5), SEED)


def test_layers_alone() -> None:
    """Layers of every kind by the host."""
    layers = of_every_kind(np.random.default_rng(SEED), Limits(channels=40, size=30), 8)
    replay(EVERYTHING, layers)


def test_lists() -> None:
    """Every kind of task behind every kind, in streams, with maps that come from storage."""
    rng = np.random.default_rng(SEED)
    cases = [list_case(rng, EVERYTHING, number, pairs=True) for number in range(2)]
    check("verilator", EVERYTHING, cases, SEED)


@pytest.mark.parametrize("module", ["access_tests", "error_tests"])
def test_module(module: str) -> None:
    """Every access, every error."""
    launch.run_device(
        "verilator",
        f"tb.device.hostile.{module}",
        launch.parameters(EVERYTHING, 1 << 20),
        seed=SEED,
    )


def test_window() -> None:
    simulate("verilator", EVERYTHING, "tb.uvm.sequence_tests", "WindowAccesses", SEED)
