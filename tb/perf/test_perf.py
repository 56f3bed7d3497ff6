# SPDX-License-Identifier: Apache-2.0
"""perf: every busy cycle has one cause, causes add up to the total; sums, events, carries."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from openkpu_tb.core.pipeline_bench import join_words, reset
from openkpu_tb.simrun import SIMS, run_bench

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


async def count_all(
    dut,
    cycles: int,
    chances: tuple[float, ...],
    clear: float,
    start: dict[str, int] | None = None,
) -> dict[str, int]:
    """Random causes and events, counted a cycle later; a counter chosen each cycle is right."""
    count = dict(start or dict.fromkeys(NAMES, 0))
    lanes = int(dut.LANES.value)
    nothing = dict.fromkeys(FLAGS, 0), [0] * 9, [0] * 9
    late = nothing
    seen: set[str] = set()
    chance = dict.fromkeys(FLAGS, 0.5)
    dut.clear.value = int(start is None)
    await RisingEdge(dut.clk)
    for cycle in range(cycles):
        if cycle % 100 == 0:  # another mix
            chance = {n: random.choice(chances) for n in FLAGS} | {"clear": clear}
        now = {n: int(random.random() < chance[n]) for n in FLAGS}
        top = random.choice((lanes, lanes, min(5, lanes)))
        issued = [random.randint(0, top) for _ in range(9)]
        gated = [random.randint(0, n) for n in issued]
        for name, value in now.items():
            getattr(dut, name).value = value
        dut.macs_issued.value, dut.macs_gated.value = join_words(issued, 8), join_words(gated, 8)
        index = random.randrange(len(NAMES))
        dut.index.value = index
        await RisingEdge(dut.clk)
        got = int(dut.value.value) + (int(dut.carry.value) << 32)
        want = 0 if now["clear"] else count[NAMES[index]]
        assert got == want, f"cycle {cycle}: {NAMES[index]} is {got}, expected {want}"
        assert start or count["array_busy"] + sum(count[s] for s in STALLS) == count["total"]
        if now["busy"] and not now["issued"]:
            seen.add(cause(now))
        step(count, late[0] | {"clear": now["clear"]}, *late[1:])
        late = nothing if now["clear"] else (now, issued, gated)
    assert seen == set(STALLS)
    return count


@cocotb.test()
async def adds_up(dut) -> None:
    await reset(dut, *FLAGS, "macs_issued", "macs_gated", "index")
    await count_all(dut, 4000, (0.1, 0.5, 0.9), 0.004)


@cocotb.test()
async def carries(dut) -> None:
    """Without a clear all counters go past their lowest bits, at full rate and at once."""
    await reset(dut, *FLAGS, "macs_issued", "macs_gated", "index")
    count = await count_all(dut, 3000, (0.15, 0.6), 0.0)
    assert min(count.values()) > 32 and count["macs_gated"] > 1 << 14


@cocotb.test()
async def carries_far(dut) -> None:
    """Counters close to a carry into their high word and into the higher half of the memory."""
    await reset(dut, *FLAGS, "macs_issued", "macs_gated", "index")
    # each counter has a place of its own
    await ClockCycles(dut.clk, 40)
    upper, macs = (1 << 29) - 1, (9 * int(dut.LANES.value)).bit_length() + 5
    for _ in range(2):  # what was added before is written once more
        for place in range(len(NAMES)):
            dut.u_turns.mem[place].value = upper
            dut.u_copy.mem[place].value = 1 << 59 | upper  # its low bits are ones
        await RisingEdge(dut.clk)
    start = {n: upper << (macs if n.startswith("macs") else 5) for n in NAMES}
    count = await count_all(dut, 3000, (0.15, 0.6), 0.0, start)
    for name in NAMES:
        assert count[name] >> 32 > start[name] >> 32, name


@pytest.mark.tier(check=["verilator-128", "verilator-4", "icarus-16"])
@pytest.mark.parametrize(
    ("sim", "lanes"), [*((sim, 128) for sim in SIMS), ("verilator", 4), ("icarus", 16)]
)
def test_perf(sim: str, lanes: int) -> None:
    sources = ["rtl/host/perf.v", "rtl/lib/ram_1r1w_async.v"]
    public = "tb/perf/public.vlt"  # the memories, which carries_far fills
    run_bench(sim, "perf", sources, "tb.perf.test_perf", params={"LANES": lanes}, public=public)
