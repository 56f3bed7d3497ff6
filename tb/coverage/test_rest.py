# SPDX-License-Identifier: Apache-2.0
"""What CI's share leaves out: long sequences, other paths, lanes, roundings (`make coverage`).

tb/coverage/test_share.py has a path of 16 bytes and the usual rounding. Each build here has an
array of few multipliers, for a build with counters takes minutes.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from openkpu.models import configs
from openkpu.models.configs import Config
from openkpu.models.generate import Limits, random_layer
from openkpu.models.generate_fp16 import random_fp16
from openkpu.models.generate_lists import ALL_KINDS, random_list
from openkpu.models.generate_pools import random_pool
from openkpu.models.generate_products import random_product
from openkpu.models.generate_tasks import random_elementwise
from openkpu.tb.coverage import test_share
from openkpu.tb.device import launch
from openkpu.tb.device.random_cases import case_of, draw, images_of
from openkpu.tb.device.test_models import check_rounding
from openkpu.tb.device.test_paths import replay, rows
from openkpu.tb.device.test_random_layers import check
from openkpu.tb.simrun import run
from openkpu.tb.uvm.test_uvm import simulate

pytestmark = pytest.mark.nightly

SEED = 1
EVERYTHING = {"sum_planes": 1, "keep_weights": 1, "flat_maps": 1, "fp16_lanes": 4}


def build(n_y: int, n_z: int, path: int, share: int) -> Config:
    """Pixels of a stripe, output channels, bytes of the path, sums that share a post lane."""
    sizes = {"n_y": n_y, "n_z": n_z, "path_bytes": path, "post_share": share}
    return dataclasses.replace(configs.load("small"), **sizes, **EVERYTHING)


BUILDS = {
    "32-bytes": build(4, 8, 32, 4),
    "64-bytes": build(4, 4, 64, 2),
    "128-bytes": build(8, 4, 128, 1),
}


@pytest.mark.parametrize("name", BUILDS)
def test_every_kind(name: str) -> None:
    """Layers alone, random layers three ways on both kinds of bus, lists of all kinds."""
    config, rng, limits = BUILDS[name], np.random.default_rng(SEED), Limits(channels=40, size=70)
    kinds = (random_layer, random_product, random_pool, random_elementwise, random_fp16)
    alone = [kind(rng, limits=limits) for kind in kinds for _ in range(8)]
    # narrow maps that are computed as one line
    flat = {"o": 9, "kernel": 1, "depthwise": False, "pool": 0, "fc": False, "eight_bit": True}
    alone += [random_layer(rng, c=20, h=w, w=w, **flat) for w in range(4, 16)]
    replay(config, rows() + alone)
    cases = draw(config, SEED, layers=8, networks=2)
    for number in range(2):
        shape = int(rng.integers(1, 9)), 1, 2 * int(rng.integers(1, 20))
        network, image = random_list(rng, ALL_KINDS, shape, limits=Limits(channels=12, size=30))
        each = np.concatenate([image[None], images_of(rng, shape, 2)])
        cases.append(case_of(config, f"list {number}", "stream", network, each, rng))
    check("verilator", config, cases, SEED)


def test_kept_weights() -> None:
    """Weights that stay in the AI RAM: of layers of the host, with errors, over resets."""
    config = BUILDS["32-bytes"]
    run(
        "verilator",
        "tb_top",
        launch.SOURCES,
        "tb.device.kept_tests",
        params=launch.parameters(config, 1 << 20),
        public=launch.PUBLIC,
        random_start=False,
        seed=SEED,
        env={"OKPU_BUS": str(config.ahb_width)},
        testcase=("host_layers", "refused", "resets"),
    )


@pytest.mark.parametrize("rounding", ["v01", "trunc"])
def test_roundings(rounding: str, tmp_path: Path) -> None:
    check_rounding("verilator", rounding, tmp_path)


@pytest.mark.parametrize(
    ("module", "test"), [("sequence_tests", "BusSequences"), ("special_tests", "MovedMaps")]
)
def test_uvm(module: str, test: str) -> None:
    """On the build of the share."""
    simulate("verilator", test_share.EVERYTHING, module, test, SEED)
