# SPDX-License-Identifier: Apache-2.0
"""Hosts that act in the unlucky cycle: single cases and sweeps, on both simulators.

`make sweep` tries every write of the sweeps (OKPU_SWEEP=whole); here it is a share by the seed.
"""

import dataclasses

import pytest

from openkpu import configs
from openkpu_tb.runs import launch
from openkpu_tb.simrun import SIMS

MODULES = ["hostile_tests", "hostile_stream_tests", "guard_tests", "watchdog_tests"]
SWEEPS = ["stream", "single", "reset", "host_layers", "error_hold", "pushes"]


def bench(sim: str, module: str, case: str | None = None, **other: int) -> None:
    """One module of cocotb tests on nano, or on one with ``other`` fields of the configuration."""
    launch.run_device(
        sim,
        f"tb.device.hostile.{module}",
        launch.parameters(dataclasses.replace(configs.load_config("nano"), **other)),
        testcase=case,
    )


# of Icarus, a minute and more
SLOW = {("icarus", f"{name}_tests") for name in ("hostile", "hostile_stream", "guard", "watchdog")}


@pytest.mark.check
@pytest.mark.parametrize(
    ("sim", "module"),
    [
        pytest.param(sim, module, marks=[pytest.mark.nightly] if (sim, module) in SLOW else [])
        for sim in SIMS
        for module in MODULES
    ],
)
def test_hostile(sim: str, module: str) -> None:
    """Every case; Icarus runs a share of the cycles."""
    bench(sim, module)


@pytest.mark.check
@pytest.mark.tier(
    nightly=[
        "icarus-stream",
        "icarus-reset",
        "icarus-host_layers",
        "icarus-pushes",
        "icarus-single",
        "icarus-error_hold",
    ]
)
@pytest.mark.parametrize("sweep", SWEEPS)
@pytest.mark.parametrize("sim", SIMS)
def test_sweep(sim: str, sweep: str) -> None:
    """One sweep."""
    bench(sim, "sweep_tests", f"sweep_{sweep}")


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus"])
@pytest.mark.parametrize("sim", SIMS)
def test_every_access(sim: str) -> None:
    """Each word of the register map, read and written, at rest and at work."""
    bench(sim, "access_tests")


@pytest.mark.tier(nightly=["icarus"])
@pytest.mark.parametrize("sim", SIMS)
def test_every_error(sim: str) -> None:
    """Each error by each way of running on each kind of bus; a handful under Icarus."""
    bench(sim, "error_tests")


@pytest.mark.tier(nightly=["icarus"])
@pytest.mark.check
@pytest.mark.parametrize("sim", SIMS)
def test_several_errors(sim: str) -> None:
    """Bad words of several streams at once, on a build with a small weight buffer."""
    bench(sim, "several_error_tests", wbuf_rows=64)
