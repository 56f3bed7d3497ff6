# SPDX-License-Identifier: Apache-2.0
"""Jobs of any usual size share a build (docs/decisions/one-build.md); a larger one has its own."""

import pytest

from openkpu import configs
from openkpu_tb.runs import launch
from openkpu_tb.simrun import SIMS

pytestmark = pytest.mark.fixed  # the same with every seed

ROOM = {"icarus": 4 << 20, "verilator": 64 << 20}  # bytes


@pytest.mark.parametrize("sim", SIMS)
def test_size_of_the_storage_changes_no_build(sim: str) -> None:
    config = configs.load_config("small")
    least = launch.parameters(config, 1, sim=sim)
    assert launch.parameters(config, ROOM[sim], sim=sim) == least
    assert launch.parameters(config, ROOM[sim] + 1, sim=sim) != least
