# SPDX-License-Identifier: Apache-2.0
"""pyuvm tests under pytest, on both simulators."""

import pytest

from openkpu import configs
from openkpu.configs import Config
from openkpu_tb import seeds
from openkpu_tb.runs import launch
from openkpu_tb.simrun import SIMS

TESTS = {
    "device_tests": ("LayersTest", "NetworksTest", "ErrorsTest", "WindowTest", "StreamTest"),
    "register_tests": ("ResetValues", "WrittenValues", "VolatileValues"),
    "sequence_tests": (
        *("JobSequences", "BusSequences", "ErrorSequences", "ResetSequences"),
        *("MisbehaviourSequences", "MisalignedAccesses", "VirtualSequences"),
    ),
    "factory_tests": (
        *("AnotherItem", "AnotherDriver", "AnotherScoreboard", "WrongByte", "WrongByteInDoubt"),
        "WindowByte",
    ),
    "special_tests": ("MovedMaps",),
}
# on the slow simulator, where an unknown bit is seen: what differs from the rest in kind
ICARUS = {
    *TESTS["device_tests"],
    *TESTS["register_tests"],
    *("MovedMaps", "JobSequences", "BusSequences", "ResetSequences", "MisbehaviourSequences"),
    "MisalignedAccesses",
}
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
        "icarus-device_tests-LayersTest",
        "icarus-device_tests-ErrorsTest",
        "icarus-special_tests-MovedMaps",
        "icarus-device_tests-NetworksTest",
        "icarus-sequence_tests-MisbehaviourSequences",
        "icarus-sequence_tests-BusSequences",
        "icarus-register_tests-WrittenValues",
        "icarus-sequence_tests-JobSequences",
        "verilator-factory_tests-AnotherItem",
        "icarus-sequence_tests-MisalignedAccesses",
        "icarus-register_tests-VolatileValues",
        "verilator-factory_tests-AnotherDriver",
        "verilator-factory_tests-AnotherScoreboard",
        "verilator-factory_tests-WrongByteInDoubt",
        "verilator-sequence_tests-VirtualSequences",
        "icarus-device_tests-StreamTest",
        "verilator-sequence_tests-JobSequences",
    ],
    check=[
        "icarus-device_tests-WindowTest",
        "icarus-register_tests-ResetValues",
        "verilator-device_tests-ErrorsTest",
        "verilator-device_tests-LayersTest",
        "verilator-device_tests-StreamTest",
        "verilator-device_tests-WindowTest",
        "verilator-factory_tests-WindowByte",
        "verilator-factory_tests-WrongByte",
        "verilator-register_tests-ResetValues",
        "verilator-register_tests-VolatileValues",
        "verilator-register_tests-WrittenValues",
        "verilator-sequence_tests-BusSequences",
        "verilator-sequence_tests-ErrorSequences",
        "verilator-sequence_tests-MisalignedAccesses",
        "verilator-sequence_tests-MisbehaviourSequences",
        "verilator-sequence_tests-ResetSequences",
        "verilator-special_tests-MovedMaps",
    ],
)
@pytest.mark.parametrize(("sim", "module", "test"), ALL)
def test_uvm(sim: str, module: str, test: str) -> None:
    seed = None if module == "device_tests" else seeds.chosen_seeds()[0][0]
    simulate(sim, configs.load_config("nano"), f"tb.uvm.{module}", test, seed)


@pytest.mark.tier(nightly=["VirtualSequences", "CoverageClosure"])
@pytest.mark.parametrize("test", ["VirtualSequences", "CoverageClosure"])
def test_uvm_small(test: str) -> None:
    """Another shape of the array, where layers take fewer cycles."""
    simulate(
        "verilator",
        configs.load_config("small"),
        "tb.uvm.sequence_tests",
        test,
        seeds.chosen_seeds()[0][0],
    )


@pytest.mark.check
@pytest.mark.parametrize(
    ("sim", "test"),
    [
        *(("verilator", "Float16Values"), ("verilator", "Float16Jobs")),
        pytest.param("icarus", "Float16Values", marks=pytest.mark.nightly),
        pytest.param("icarus", "Float16Jobs", marks=pytest.mark.nightly),
        pytest.param("verilator", "EveryMove", marks=pytest.mark.nightly),
    ],
)
def test_uvm_float16(sim: str, test: str) -> None:
    """A build with lanes for products of float16."""
    simulate(
        sim,
        configs.load_config("nano_fp16"),
        "tb.uvm.special_tests",
        test,
        seeds.chosen_seeds()[0][0],
    )
