# SPDX-License-Identifier: Apache-2.0
"""The whole device behind APB3, with the storage of the bench of AHB."""

import pytest

from openkpu import configs
from openkpu_tb.runs import launch
from openkpu_tb.simrun import run_bench

CASES = {"verilator-nano": ("verilator", "nano"), "icarus-nano": ("icarus", "nano")}


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus-nano"])
@pytest.mark.parametrize(("sim", "name"), CASES.values(), ids=CASES.keys())
def test_apb(sim: str, name: str) -> None:
    """Registers, window, recorded layers, streams, errors; PSLVERR and cycles of each access."""
    config = configs.load_config(name)
    run_bench(
        sim,
        "tb_top",
        launch.SOURCES,
        "tb.device.buses.apb_tests",
        params=launch.parameters(config, 1 << 20),
        defines={"APB": 1},
        public=launch.PUBLIC,
        random_start=False,
        env={"OKPU_CONFIG": name},
    )
