# SPDX-License-Identifier: Apache-2.0
"""A host that does anything at any time: nothing hangs, is wrong, or is lost without a word.

``ACTIONS=10000`` is the long run; the ordinary test takes a share of it.
"""

import os

import pytest

from openkpu import configs
from openkpu_tb import seeds
from openkpu_tb.runs import launch

SHARE = {"verilator": 300, "icarus": 60}  # actions


@pytest.mark.tier(check=["verilator"], nightly=["icarus"])
@pytest.mark.parametrize("sim", ["verilator", "icarus"])
def test_control_random(sim: str) -> None:
    actions = SHARE[sim]
    if sim == "verilator" and "ACTIONS" in os.environ:
        actions = seeds.seed_number("ACTIONS", os.environ["ACTIONS"], 1)
    launch.run_device(
        sim,
        "tb.device.actions.control_tests",
        launch.parameters(configs.load_config("nano")),
        env={"ACTIONS": str(actions)},
        seed=seeds.chosen_seeds()[0][0],
    )
