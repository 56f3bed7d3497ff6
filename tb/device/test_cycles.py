# SPDX-License-Identifier: Apache-2.0
"""Cycles against their record: a stream of digits, a model each way; and the comparison itself."""

from pathlib import Path

import numpy as np
import pytest

from models.tests.kmodel.test_kmodel_containers import CONTAINERS, X
from openkpu import configs, digits
from openkpu_tb.claims import run_claims
from openkpu_tb.device import cycles
from openkpu_tb.runs import launch
from openkpu_tb.runs.requests import RequestedRun, StreamRequest
from openkpu_tb.simrun import SIMS
from tb.device.test_models import WAYS, device_run

pytestmark = pytest.mark.fixed  # the same with every seed


@pytest.mark.tier(nightly=["small"])
@pytest.mark.parametrize("config", ["nano", "small"])
def test_stream(config: str) -> None:
    """Ten digits in one continuous run: the cycle in which each result was complete."""
    events: list[dict] = []
    images = digits.load_data()[1].pixels[:10]
    request = StreamRequest([RequestedRun(digits.load_network(), images)], limit=50_000, seed=1)
    launch.run_job("verilator", configs.load_config(config), request, events.append)
    (found,) = [event for event in events if event["event"] == "stream"]
    assert not found["failure"] and not np.any(found["wrong"])
    ends = {f"result {number}": [int(end[0])] for number, end in enumerate(found["ends"])}
    cycles.check_cycles(f"stream of digits on {config}", ends)


@pytest.mark.check
@pytest.mark.tier(nightly=["burst"])
@pytest.mark.parametrize("via", WAYS)
def test_model(via: str, tmp_path: Path) -> None:
    """A model of four layers: cycles of each, of the whole, and those of the host's copies."""
    ran = device_run(
        *("verilator", CONTAINERS["v3"], [[[X]]], tmp_path),
        via=via,
        config="k210",
        map_moves="window",
    )
    causes = [f"stall_{cause}" for cause in cycles.CAUSES]
    figures = {
        f"layer {number}": [event["counters"]["total"], *(event["counters"][c] for c in causes)]
        for number, event in enumerate(ran.layers)
    }
    figures["run"] = [ran.runs[0]["cycles"]]
    figures["host"] = [ran.runs[0]["host_cycles"]]
    cycles.check_cycles(f"model v3 on k210, {via}", figures)


def test_a_difference_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cycles.RECORD, raising=False)
    file = tmp_path / "cycles.json"
    kept = {"one": [10, 1, 2, 3, 0, 0], "two": [20]}
    cycles.record_cycles("a", kept, file)
    cycles.record_cycles("b", {"three": [30]}, file)
    cycles.check_cycles("a", kept, file)
    cycles.check_cycles("b", {"three": [30]}, file)
    with pytest.raises(AssertionError, match=r"one: \[10, 2, 1, 3, 0, 0\], recorded \[10, 1, 2"):
        cycles.check_cycles("a", {**kept, "one": [10, 2, 1, 3, 0, 0]}, file)
    with pytest.raises(AssertionError, match="two: not measured"):
        cycles.check_cycles("a", {"one": kept["one"]}, file)
    with pytest.raises(AssertionError, match=r"four: \[1\], recorded nothing"):
        cycles.check_cycles("a", {**kept, "four": [1]}, file)
    with pytest.raises(AssertionError, match="make cycles RECORD=1"):
        cycles.check_cycles("of no group", {"one": [1]}, file)


@pytest.mark.check
@pytest.mark.tier(nightly=["icarus"])
@pytest.mark.parametrize("sim", SIMS)
def test_stalls(sim: str) -> None:
    """The device's counters of stalls are those of the bench, in the build of the claims."""
    launch.run_device(
        sim,
        "tb.device.streams.stall_tests",
        {**launch.parameters(configs.load_config("nano")), **run_claims.PARAMS},
    )
