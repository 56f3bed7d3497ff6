# SPDX-License-Identifier: Apache-2.0
"""pyuvm tests under pytest, on both simulators."""

import dataclasses

import pytest

from openkpu import configs
from openkpu.configs import Config
from openkpu_tb import seeds
from openkpu_tb.runs import launch
from openkpu_tb.simrun import SIMS

TESTS = {
    "sequence_tests": (
        *("JobSequences", "BusSequences", "ErrorSequences", "ResetSequences"),
        *("WindowAccesses", "VirtualSequences"),
    ),
    "scoreboard_tests": ("WrongByte", "WrongByteInDoubt"),
    "special_tests": ("MovedMaps",),
}
FLOAT16 = ("Float16Values", "Float16Jobs", "EveryMove")
# on the slow simulator, where an unknown bit is seen: what differs from the rest in kind
ICARUS = {"MovedMaps", "JobSequences", "BusSequences", "ResetSequences", "WindowAccesses"}
ALL = [
    (sim, module, test)
    for module, tests in TESTS.items()
    for test in tests
    for sim in SIMS
    if sim == "verilator" or test in ICARUS
]


def simulate(sim: str, config: Config, module: str, test: str, seed: int | None = None) -> None:
    """One pyuvm test of a module in a simulation of its own; ``seed`` None: by name or SEED."""
    launch.run_device(sim, module, launch.parameters(config), testcase=test, seed=seed)


@pytest.mark.tier(
    nightly=[
        "icarus-sequence_tests-ResetSequences",
        "icarus-special_tests-MovedMaps",
        "icarus-sequence_tests-BusSequences",
        "icarus-sequence_tests-JobSequences",
        "verilator-scoreboard_tests-WrongByteInDoubt",
        "verilator-sequence_tests-VirtualSequences",
        "verilator-sequence_tests-JobSequences",
    ],
    check=[
        "icarus-sequence_tests-WindowAccesses",
        "verilator-scoreboard_tests-WrongByte",
        "verilator-sequence_tests-BusSequences",
        "verilator-sequence_tests-ErrorSequences",
        "verilator-sequence_tests-ResetSequences",
        "verilator-special_tests-MovedMaps",
    ],
)
@pytest.mark.parametrize(("sim", "module", "test"), ALL)
def test_uvm(sim: str, module: str, test: str) -> None:
    simulate(sim, configs.load_config("nano"), f"tb.uvm.{module}", test, seeds.chosen_seeds()[0][0])


# a build whose weights wait: little room for them elsewhere
WAITS = dataclasses.replace(
    configs.load_config("nano"), wbuf_rows=64, look_ahead=16, weight_ahead=1, ai_ram_rows=2048
)


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus-*", "*VirtualSequences"])
@pytest.mark.parametrize(
    ("sim", "test"),
    [
        ("verilator", "WeightsThatWait"),
        ("verilator", "VirtualSequences"),
        ("icarus", "WeightsThatWait"),
    ],
)
def test_weights_that_wait(sim: str, test: str) -> None:
    """Rows of the AI RAM for weights, in half of the jobs."""
    simulate(sim, WAITS, "tb.uvm.sequence_tests", test, seeds.chosen_seeds()[0][0])


@pytest.mark.tier(check=["verilator-*"], nightly=["icarus-*"])
@pytest.mark.parametrize(
    ("sim", "most"), [("verilator", 3), ("verilator", 1), ("verilator", 8), ("icarus", 3)]
)
def test_distance_of_taps(sim: str, most: int) -> None:
    """A build's largest distance: what the predictor reads of it, and what the device refuses."""
    config = dataclasses.replace(configs.load_config("nano"), dilation=most)
    seed = seeds.chosen_seeds()[0][0]
    simulate(sim, config, "tb.uvm.sequence_tests", "DistantTaps", seed)


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus-*", "*EveryMove", "*small*"])
@pytest.mark.parametrize(
    ("sim", "config", "module", "test"),
    [
        ("verilator", "small", "sequence_tests", "VirtualSequences"),  # layers take fewer cycles
        *(("verilator", "nano_fp16", "special_tests", name) for name in FLOAT16),
        *(("icarus", "nano_fp16", "special_tests", name) for name in FLOAT16[:2]),
    ],
)
def test_uvm_of(sim: str, config: str, module: str, test: str) -> None:
    """Another shape of the array, and a build with lanes for products of float16."""
    simulate(sim, configs.load_config(config), f"tb.uvm.{module}", test, seeds.chosen_seeds()[0][0])
