# SPDX-License-Identifier: Apache-2.0
"""Streams on both simulators, with the usual and with a small weight buffer, and on wide buses."""

import os

import pytest
from openkpu.models import configs
from openkpu.tb.coverage import instrument
from openkpu.tb.device import launch
from openkpu.tb.simrun import run

CASES = {
    "icarus-nano": ("icarus", "nano", {}),
    "verilator-small": ("verilator", "small", {}),
    "verilator-small-few-weights": ("verilator", "small", {"WBUF_ROWS": 64}),
    "verilator-k210-128-bit": ("verilator", "k210", {"AHB_W": 128}),
}
if os.environ.get(instrument.FOLDER):  # coverage is counted on nano; the others are enough without
    CASES["verilator-nano"] = ("verilator", "nano", {})


LONG = {"verilator-k210-128-bit"}  # of the nightly run


@pytest.mark.parametrize(
    ("sim", "name", "changes"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.nightly] if name in LONG else [])
        for name, case in CASES.items()
    ],
)
def test_streams(sim: str, name: str, changes: dict[str, int]) -> None:
    config = configs.load(name)
    params = {**launch.parameters(config, 1 << 20), **changes}
    run(
        sim,
        "tb_top",
        launch.SOURCES,
        "tb.device.stream_tests",
        params=params,
        public=launch.PUBLIC,
        random_start=False,
        env={"OKPU_WBUF": str(params["WBUF_ROWS"])},
    )


KEPT = {
    "icarus-small": ("icarus", "small", {"WBUF_ROWS": 64}),
    "verilator-small-few-weights": ("verilator", "small", {"WBUF_ROWS": 64}),
    "verilator-k210": ("verilator", "k210", {"WBUF_ROWS": 64}),
    "verilator-nano": ("verilator", "nano", {"KEEP_WEIGHTS": 1}),
}


@pytest.mark.parametrize(("sim", "name", "changes"), KEPT.values(), ids=KEPT)
def test_kept_weights(sim: str, name: str, changes: dict[str, int]) -> None:
    params = {**launch.parameters(configs.load(name), 1 << 20), **changes}
    run(
        sim,
        "tb_top",
        launch.SOURCES,
        "tb.device.kept_tests",
        params=params,
        public=launch.PUBLIC,
        random_start=False,
        env={"OKPU_BUS": str(params["AHB_W"])},
    )
