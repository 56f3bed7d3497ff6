# SPDX-License-Identifier: Apache-2.0
"""Streams on both simulators, with the usual and with a small weight buffer, and on wide buses."""

import dataclasses
import os

import pytest

from openkpu import configs
from openkpu_tb.coverage import instrument
from openkpu_tb.runs import launch

SMALL, K210 = configs.load_config("small"), configs.load_config("k210")
# networks that do not fit the weight buffer, wide words and bus; test_paths has its pools
FEW_WEIGHTS = dataclasses.replace(
    SMALL, wbuf_rows=64, ahb_width=64, path_bytes=64, tile_rows=32, pool_lanes=2
)
CASES = {
    "icarus-nano": ("icarus", configs.load_config("nano")),
    "verilator-small": ("verilator", SMALL),
    "verilator-few-weights": ("verilator", FEW_WEIGHTS),
    "verilator-k210-128-bit": ("verilator", dataclasses.replace(K210, ahb_width=128)),
}
if os.environ.get(instrument.FOLDER):  # coverage is counted on nano; the others are enough without
    CASES["verilator-nano"] = ("verilator", configs.load_config("nano"))


def cases(found: dict[str, tuple[str, configs.Config]], nightly: set[str]) -> list:
    """Parameters of a test, some of the nightly run."""
    return [
        pytest.param(*case, id=name, marks=[pytest.mark.nightly] if name in nightly else [])
        for name, case in found.items()
    ]


@pytest.mark.tier(nightly=["verilator-small", "icarus-nano", "verilator-few-weights"])
@pytest.mark.parametrize(("sim", "config"), cases(CASES, {"verilator-k210-128-bit"}))
def test_streams(sim: str, config: configs.Config) -> None:
    params = launch.parameters(config, 1 << 20)
    launch.run_device(
        sim, "tb.device.streams.stream_tests", params, env={"OKPU_WBUF": str(params["WBUF_ROWS"])}
    )


KEPT = {
    "icarus-small": ("icarus", dataclasses.replace(SMALL, wbuf_rows=64)),
    "verilator-few-weights": ("verilator", FEW_WEIGHTS),
    "verilator-small-few-weights": ("verilator", dataclasses.replace(SMALL, wbuf_rows=64)),
    "verilator-k210": ("verilator", dataclasses.replace(K210, wbuf_rows=64)),
    "verilator-nano": ("verilator", configs.load_config("nano")),
}


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus-small", "verilator-nano"])
@pytest.mark.parametrize(
    ("sim", "config"), cases(KEPT, {"verilator-small-few-weights", "verilator-k210"})
)
def test_kept_weights(sim: str, config: configs.Config) -> None:
    params = {**launch.parameters(config, 1 << 20), "KEEP_WEIGHTS": 1}
    launch.run_device(
        sim, "tb.device.streams.kept_tests", params, env={"OKPU_BUS": str(params["AHB_W"])}
    )


# weights wait in the AI RAM: words of each width, READ = 3, a bus half as wide as a word
AHEAD = {
    "verilator-small": dataclasses.replace(
        SMALL, wbuf_rows=64, look_ahead=16, weight_ahead=1, keep_weights=1
    ),
    "verilator-k210": dataclasses.replace(K210, n_z=4, wbuf_rows=128),
    "verilator-nano": dataclasses.replace(
        configs.load_config("nano"), wbuf_rows=64, look_ahead=8, weight_ahead=1, keep_weights=1
    ),
    "verilator-words-of-two-rows": dataclasses.replace(
        K210, n_z=4, wbuf_rows=64, path_bytes=128, ahb_width=128
    ),
    "icarus-nano": dataclasses.replace(
        configs.load_config("nano"), wbuf_rows=64, look_ahead=16, weight_ahead=1, keep_weights=1
    ),
}


@pytest.mark.check
@pytest.mark.tier(nightly=["verilator-k210", "verilator-words-of-two-rows", "icarus-nano"])
@pytest.mark.parametrize("name", AHEAD)
def test_weights_that_wait(name: str) -> None:
    params = launch.parameters(dataclasses.replace(AHEAD[name], ai_ram_rows=4096), 1 << 20)
    env = {"OKPU_BUS": str(params["AHB_W"])}
    launch.run_device(name.split("-")[0], "tb.device.streams.ahead_tests", params, env=env)
