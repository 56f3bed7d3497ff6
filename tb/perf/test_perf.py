# SPDX-License-Identifier: Apache-2.0
"""perf: every busy cycle has one cause, causes add up to the total; sums, events, clear."""

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge
from openkpu.tb.core.pipeline_bench import join, reset, split
from openkpu.tb.simrun import SIMS, run

CAUSES = ("wait_input", "wait_weight", "wait_output", "wait_bus", "bus_reading")
EVENTS = ("layer_done", "inf_done", "read_beat", "write_beat", "inf_kept")
FLAGS = ("clear", "busy", "issued", *CAUSES, *EVENTS)
NAMES = ("total", "array_busy", "macs_issued", "macs_gated", "weights", "input", "output", "bus")
NAMES += ("control", "layers", "inferences", "rd_beats", "store_beats", "kept")
STALLS = NAMES[4:9]


def cause(now: dict[str, int]) -> str:
    """Why a busy cycle without an issue was lost: input, weights (or the bus), output, bus."""
    if now["wait_input"]:
        return "input"
    if now["wait_weight"]:
        return "bus" if now["bus_reading"] else "weights"
    if now["wait_output"]:
        return "output"
    return "bus" if now["wait_bus"] else "control"


def step(count: dict[str, int], now: dict[str, int], issued: list[int], gated: list[int]) -> None:
    if now["clear"]:
        count.update(dict.fromkeys(NAMES, 0))
        return
    count["total"] += now["busy"]
    count["array_busy"] += now["busy"] and now["issued"]
    if now["busy"] and not now["issued"]:
        count[cause(now)] += 1
    count["macs_issued"] += sum(issued)
    count["macs_gated"] += sum(gated)
    for name, event in zip(NAMES[9:], EVENTS, strict=True):
        count[name] += now[event]


@cocotb.test()
async def adds_up(dut) -> None:
    await reset(dut, *FLAGS, "macs_issued", "macs_gated")
    count = dict.fromkeys(NAMES, 0)
    seen: set[str] = set()
    chance = dict.fromkeys(FLAGS, 0.5)
    for cycle in range(4000):
        if cycle % 100 == 0:  # another mix
            chance = {n: random.choice((0.1, 0.5, 0.9)) for n in FLAGS} | {"clear": 0.004}
        now = {n: int(random.random() < chance[n]) for n in FLAGS}
        top = random.choice((128, 128, 5))
        issued = [random.randint(0, top) for _ in range(9)]
        gated = [random.randint(0, n) for n in issued]
        for name, value in now.items():
            getattr(dut, name).value = value
        dut.macs_issued.value, dut.macs_gated.value = join(issued, 8), join(gated, 8)
        await RisingEdge(dut.clk)
        got = dict(zip(NAMES, split(int(dut.flat.value), 64, 14), strict=True))
        assert got == count, f"cycle {cycle}: {got}, expected {count}"
        assert got["array_busy"] + sum(got[s] for s in STALLS) == got["total"]
        if now["busy"] and not now["issued"]:
            seen.add(cause(now))
        step(count, now, issued, gated)
    assert seen == set(STALLS)


@pytest.mark.parametrize("sim", SIMS)
def test_perf(sim: str) -> None:
    run(sim, "perf", ["rtl/host/perf.v"], "tb.perf.test_perf")
