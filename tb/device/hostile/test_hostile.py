# SPDX-License-Identifier: Apache-2.0
"""Hosts that act in the unlucky cycle: single cases and sweeps, on both simulators.

`make sweep` tries every write of the sweeps (OKPU_SWEEP=whole); here it is a share by the seed.
"""

import dataclasses

import pytest

from openkpu import configs
from openkpu_tb.runs import launch
from openkpu_tb.simrun import SIMS

SWEEPS = ["stream", "single", "reset", "host_layers", "error_hold", "pushes"]
MODULES = [f"{name}_tests" for name in ("hostile_stream", "guard", "watchdog", "access", "error")]


def bench(sim: str, module: str, case: str | None = None) -> None:
    """One module of cocotb tests on nano."""
    params = launch.parameters(configs.load_config("nano"))
    launch.run_device(sim, f"tb.device.hostile.{module}", params, testcase=case)


@pytest.mark.tier(
    nightly=["icarus-*"], check=[f"verilator-{name}" for name in MODULES if name != "error_tests"]
)
@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("sim", SIMS)
def test_hostile(sim: str, module: str) -> None:
    """Every case; Icarus runs a share of the cycles, and a handful of the errors."""
    bench(sim, module)


@pytest.mark.tier(nightly=["icarus-*"], check=["verilator-nano_fp16"])
@pytest.mark.parametrize("config", ["nano_fp16", "medium"])
@pytest.mark.parametrize("sim", SIMS)
def test_reset_of_a_layer(sim: str, config: str) -> None:
    """A soft reset in any cycle, with the narrow and with the wide write-back."""
    params = launch.parameters(configs.load_config(config))
    launch.run_device(sim, "tb.device.hostile.reset_tests", params)


# weights wait in the AI RAM
WAITS = dataclasses.replace(
    configs.load_config("nano"), wbuf_rows=64, look_ahead=16, weight_ahead=1
)


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus-*", "verilator-sweep_reset", "verilator-sweep_stream"])
@pytest.mark.parametrize("case", ["sweep_waiting", "sweep_stream", "sweep_reset"])
@pytest.mark.parametrize("sim", SIMS)
def test_weights_that_wait(sim: str, case: str) -> None:
    """A build in which weights wait: the register that names rows for them has an effect."""
    params = launch.parameters(WAITS)
    launch.run_device(sim, "tb.device.hostile.sweep_tests", params, testcase=case)


# the loader fills a row of 72 weights, and the array uses it up at once
LOADS = dataclasses.replace(
    configs.load_config("nano"),
    n_z=8,
    path_bytes=32,
    wbuf_rows=512,
    flat_maps=0,
    look_ahead=16,
    keep_weights=1,
    weight_ahead=1,
)


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus"])
@pytest.mark.parametrize("sim", SIMS)
def test_watchdog_of_resting_weights(sim: str) -> None:
    """Weights in the AI RAM, and the least limit of the watchdog."""
    params = launch.parameters(LOADS)
    launch.run_device(sim, "tb.device.hostile.resting_weights_tests", params)


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus-*"])
@pytest.mark.parametrize("sweep", SWEEPS)
@pytest.mark.parametrize("sim", SIMS)
def test_sweep(sim: str, sweep: str) -> None:
    """One sweep."""
    bench(sim, "sweep_tests", case=f"sweep_{sweep}")
