# SPDX-License-Identifier: Apache-2.0
"""Hosts that act in the unlucky cycle: single cases and sweeps, on both simulators."""

import pytest
from openkpu.models import configs
from openkpu.tb.device import launch
from openkpu.tb.simrun import SIMS, run

MODULES = ["hostile_tests", "hostile_stream_tests", "sweep_tests"]


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("sim", SIMS)
def test_hostile(sim: str, module: str) -> None:
    """Every case; Icarus runs a share of the cycles."""
    run(
        sim,
        "tb_top",
        launch.SOURCES,
        f"tb.device.{module}",
        params=launch.parameters(configs.load("nano")),
        public=launch.PUBLIC,
        random_start=False,
    )
