# SPDX-License-Identifier: Apache-2.0
"""The host driver's sequences on both simulators."""

import pytest

from openkpu import configs
from openkpu_tb.runs import launch
from openkpu_tb.simrun import run_bench


@pytest.mark.parametrize("sim", [pytest.param("icarus", marks=pytest.mark.nightly), "verilator"])
def test_driver(sim: str) -> None:
    run_bench(
        sim,
        "tb_top",
        launch.SOURCES,
        "tb.device.driver_tests",
        params=launch.parameters(configs.load_config("nano")),
        public=launch.PUBLIC,
        random_start=False,
    )
