# SPDX-License-Identifier: Apache-2.0
"""The whole device behind AXI4-Lite and AXI4, and behind APB3, with the bench of AHB around it."""

import dataclasses

import numpy as np
import pytest

from openkpu import configs, digits
from openkpu.generators.generate import random_layer
from openkpu_tb.runs import launch
from openkpu_tb.runs.requests import NetworkRequest, VectorsRequest
from openkpu_tb.simrun import SIMS

NANO, K210 = configs.load_config("nano"), configs.load_config("k210")
CASES = {
    "verilator-nano": ("verilator", "nano", 32),
    "icarus-nano": ("icarus", "nano", 32),
    "verilator-small-64-bit": ("verilator", "small", 64),
    "verilator-k210-128-bit": ("verilator", "k210", 128),
}


def device(sim: str, name: str, width: int, module: str, case: list[str] | None = None) -> None:
    """A module of cocotb tests on openkpu_axi."""
    config = dataclasses.replace(configs.load_config(name), ahb_width=width)
    params = launch.parameters(config, 1 << 20)
    launch.run_device(
        sim,
        module,
        params,
        axi=True,
        env={"OKPU_WBUF": str(params["WBUF_ROWS"]), "OKPU_CONFIG": name},
        testcase=case,
    )


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus-nano", "verilator-k210-128-bit"])
@pytest.mark.parametrize(("sim", "name", "width"), CASES.values(), ids=CASES.keys())
def test_axi(sim: str, name: str, width: int) -> None:
    """Recorded layers and streams on rough buses, errors, a dead bus, the host's window."""
    device(sim, name, width, "tb.device.buses.axi_tests")


@pytest.mark.check
def test_streams() -> None:
    """The streams that run on AHB: hurried, cut short, hurt."""
    cases = ["networks_in_turn", "wide_images", "reset_in_a_stream", "weights_that_do_not_fit"]
    device("verilator", "nano", 32, "tb.device.streams.stream_tests", cases)


def cycles(request, *, axi: bool) -> list[int]:
    """What each layer or image takes; all of it must be exact."""
    events: list[dict] = []
    launch.run_job("verilator", NANO, request, events.append, storage_bytes=1 << 20, axi=axi)
    found = [event for event in events if event["event"] in ("layer", "image")]
    assert found and not any(event["failure"] or event["mismatching_bytes"] for event in found)
    return [event["cycles"] if "cycles" in event else event["counters"]["total"] for event in found]


@pytest.mark.check
def test_cycles_of_ahb() -> None:
    """A 3x3 layer of 64 channels and digits from a list take within 2 % what they take on AHB."""
    kind = {"kernel": 3, "depthwise": False, "pool": 0, "eight_bit": True, "fc": False}
    kind |= {"signed_in": False, "signed_out": False, "src": 0, "plain": True}
    small = random_layer(np.random.default_rng(1), c=64, h=16, w=16, o=64, **kind)
    requests = [
        VectorsRequest([small], [5_000_000]),
        NetworkRequest(digits.load_network(), digits.load_data()[1].pixels[:3], 200_000),
    ]
    for request in requests:
        ahb, axi = np.array(cycles(request, axi=False)), np.array(cycles(request, axi=True))
        assert (axi <= 1.02 * ahb + 1).all(), f"AXI {axi}, AHB {ahb}"


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus"])
@pytest.mark.parametrize("sim", SIMS)
def test_apb(sim: str) -> None:
    """Registers, window, recorded layers, streams, errors; PSLVERR and cycles of each access."""
    params, env = launch.parameters(NANO, 1 << 20), {"OKPU_CONFIG": NANO.name}
    launch.run_device(sim, "tb.device.buses.apb_tests", params, apb=True, env=env)
