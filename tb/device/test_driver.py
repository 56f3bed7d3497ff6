# SPDX-License-Identifier: Apache-2.0
"""The host driver's sequences on both simulators."""

import pytest

from openkpu import configs
from openkpu_tb.runs import launch


@pytest.mark.parametrize("sim", [pytest.param("icarus", marks=pytest.mark.nightly), "verilator"])
def test_driver(sim: str) -> None:
    launch.run_device(sim, "tb.device.driver_tests", launch.parameters(configs.load_config("nano")))


@pytest.mark.parametrize("sim", [pytest.param("icarus", marks=pytest.mark.nightly), "verilator"])
def test_resident(sim: str) -> None:
    parameters = launch.parameters(configs.load_config("nano"))
    launch.run_device(sim, "tb.device.resident_tests", parameters)
