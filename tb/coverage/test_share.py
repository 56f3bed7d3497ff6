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
from openkpu.generators.generate import Limits, random_layer
from openkpu.generators.generate_fp16 import random_fp16
from openkpu.generators.generate_lists import ALL_KINDS, every_pair, random_list
from openkpu.generators.generate_pools import random_pool
from openkpu.generators.generate_products import random_product
from openkpu.generators.generate_tasks import random_elementwise
from openkpu_tb.runs import launch
from openkpu_tb.runs.random_cases import case_of, draw_cases, images_of
from openkpu_tb.simrun import run_bench
from tb.device.layers.test_paths import replay
from tb.device.layers.test_random_layers import check
from tb.uvm.test_uvm import simulate

pytestmark = pytest.mark.nightly  # every part is tested elsewhere on every push

SEED = 1
EVERYTHING = dataclasses.replace(configs.load_config("small"), sum_planes=1, fp16_lanes=4)


def test_random_layers() -> None:
    """By the host, as lists and in streams, on a quiet and on a disturbed bus."""
    check("verilator", EVERYTHING, draw_cases(EVERYTHING, SEED, layers=14, networks=5), SEED)


def test_layers_alone() -> None:
    """Layers of every kind by the host."""
    rng, limits = np.random.default_rng(SEED), Limits(channels=40, size=30)
    kinds = (random_layer, random_product, random_pool, random_elementwise, random_fp16)
    replay(EVERYTHING, [kind(rng, limits=limits) for kind in kinds for _ in range(8)])


def test_lists() -> None:
    """Every kind of task behind every kind, in streams, with maps that come from storage."""
    rng, cases = np.random.default_rng(SEED), []
    for number in range(2):
        shape = int(rng.integers(1, 9)), 1, 2 * int(rng.integers(1, 20))
        kinds = every_pair(rng, ALL_KINDS[number], ALL_KINDS)
        limits = Limits(channels=12, size=30)
        network, image = random_list(rng, kinds, shape, limits=limits)
        each = np.concatenate([image[None], images_of(rng, shape, 2)])
        cases.append(case_of(EVERYTHING, f"list {number}", "stream", network, each, rng))
    check("verilator", EVERYTHING, cases, SEED)


@pytest.mark.parametrize("module", ["access_tests", "error_tests"])
def test_module(module: str) -> None:
    """Every access, every error."""
    run_bench(
        "verilator",
        "tb_top",
        launch.SOURCES,
        f"tb.device.hostile.{module}",
        params=launch.parameters(EVERYTHING, 1 << 20),
        public=launch.PUBLIC,
        random_start=False,
        seed=SEED,
    )


@pytest.mark.parametrize(
    ("module", "test"),
    [
        ("device_tests", "WindowTest"),
        ("register_tests", "WrittenValues"),
        ("register_tests", "VolatileValues"),
    ],
)
def test_uvm(module: str, test: str) -> None:
    simulate("verilator", EVERYTHING, f"tb.uvm.{module}", test, SEED)
