# SPDX-License-Identifier: Apache-2.0
"""A host that does anything at any time: nothing hangs, is wrong, or is lost without a word.

``ACTIONS=10000`` is the long run; the ordinary test takes a share of it.
"""

import os

import pytest
from openkpu.models import configs
from openkpu.tb import seeds
from openkpu.tb.device import launch
from openkpu.tb.simrun import run

SHARE = {"verilator": 300, "icarus": 60}  # actions


@pytest.mark.tier(nightly=["icarus"])
@pytest.mark.parametrize("sim", ["verilator", "icarus"])
def test_control_random(sim: str) -> None:
    actions = SHARE[sim]
    if sim == "verilator" and "ACTIONS" in os.environ:
        actions = seeds.number("ACTIONS", os.environ["ACTIONS"], 1)
    run(
        sim,
        "tb_top",
        launch.SOURCES,
        "tb.device.control_tests",
        params=launch.parameters(configs.load("nano")),
        public=launch.PUBLIC,
        random_start=False,
        env={"ACTIONS": str(actions)},
        seed=seeds.chosen()[0][0],
    )
