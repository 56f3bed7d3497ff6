# SPDX-License-Identifier: Apache-2.0
"""host_port: what controller, array and storage port report is counted under its own cause.

Counters are read over the bus, as the host does. What they count is written here from the table of
causes in docs/programming.md, apart from perf's own bench.
"""

import random

import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from openkpu_tb.ahb.host import OKAY, AhbHost, Transfer
from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.core.descriptor import layout
from openkpu_tb.core.packed_ports import PackedView
from openkpu_tb.core.pipeline_bench import join_words
from openkpu_tb.simrun import SIMS, run_bench
from tb.perf.test_perf import NAMES, STALLS
from tb.reg_block.bench import R

PORTS = {"status": "status", "events": "event", "work": "work", "traffic": "traffic"}
FLAGS = ("status_busy", "status_waiting_drain", "status_waiting_bus", "work_issued")
FLAGS += ("work_wait_tile", "work_wait_weight", "work_wait_output", "traffic_reading")
FLAGS += ("traffic_read_beat", "traffic_write_beat")
EVENTS = ("events_layer_done", "events_inf_done", "events_inf_kept")
UNSEEN = ("status_kept", "status_fc_layer", "traffic_weight_quiet", "traffic_idle", "work_moves")


def cause(now: dict[str, int]) -> str:
    """Why a busy cycle without an issue was lost."""
    if now["work_wait_tile"]:
        return "input"
    if now["work_wait_weight"]:
        return "bus" if now["traffic_reading"] else "weights"
    if now["work_wait_output"] or now["status_waiting_drain"]:  # nothing is waited for: it drains
        return "output"
    # between layers a read that is outstanding is what the device waits for
    return "bus" if now["status_waiting_bus"] or now["traffic_reading"] else "control"


class Bench(BlockBench):
    inputs = *PORTS, "err", "arg_ready", "result_valid", "result_data", "window_ack", "window_rdata"

    def __init__(self, dut) -> None:
        super().__init__(PackedView(dut, {p: (layout(name), f"{p}_") for p, name in PORTS.items()}))
        self.host = AhbHost(dut, "s_ahb", dut.clk, feedback=True)
        self.count: dict[str, int] = dict.fromkeys(NAMES, 0)

    async def write(self, addr: int, data: int) -> None:
        transfer = Transfer(addr, True, data=data)
        await self.host.run([transfer])
        assert transfer.resp == OKAY, f"write to {addr:#x}"

    async def counters(self) -> dict[str, int]:
        """All counters, low word first."""
        reads = [Transfer(R.PERF_TOTAL + 4 * i) for i in range(2 * len(NAMES))]
        await self.host.run(reads)
        assert {t.resp for t in reads} == {OKAY}
        words = [t.data for t in reads]
        return {n: words[2 * i] | words[2 * i + 1] << 32 for i, n in enumerate(NAMES)}

    def there(self) -> dict[str, int]:
        """What the counters hold; a device without them has that of inferences alone."""
        every = bool(int(self.dut.PERF.value))
        return {n: c if every or n == "inferences" else 0 for n, c in self.count.items()}

    async def drive(self, cycles: int) -> None:
        """Reports at random, counted in ``count``; then none."""
        dut, count = self.dut, self.count
        chance = dict.fromkeys((*FLAGS, *EVENTS, *UNSEEN), 0.5)
        for cycle in range(cycles):
            if cycle % 50 == 0:  # another mix
                chance = {name: random.choice((0.1, 0.5, 0.9)) for name in chance}
            now = {name: int(random.random() < p) for name, p in chance.items()}
            lanes = int(dut.N_Y.value) * int(dut.N_Z.value)
            issued = [random.choice((random.randint(0, lanes), lanes)) for _ in range(9)]
            gated = [random.randint(0, n) for n in issued]
            for name, value in now.items():
                getattr(dut, name).value = value
            dut.work_macs_issued.value = join_words(issued, 8)
            dut.work_macs_gated.value = join_words(gated, 8)
            await RisingEdge(dut.clk)
            count["total"] += now["status_busy"]
            count["array_busy"] += now["status_busy"] and now["work_issued"]
            if now["status_busy"] and not now["work_issued"]:
                count[cause(now)] += 1
            count["macs_issued"] += sum(issued)
            count["macs_gated"] += sum(gated)
            count["layers"] += now["events_layer_done"]
            count["inferences"] += now["events_inf_done"]
            count["kept"] += now["events_inf_kept"]
            count["rd_beats"] += now["traffic_read_beat"]
            count["store_beats"] += now["traffic_write_beat"]
        for port in PORTS:
            getattr(dut.dut, port).value = 0
        dut.driven.clear()
        await ClockCycles(dut.clk, 4)


@block_test(Bench)
async def causes(bench: Bench, dut) -> None:
    """Each report is counted where it belongs; a start and a soft reset clear the counters."""
    assert not any((await bench.counters()).values())
    seen: set[str] = set()
    for turn in range(40):  # four at least, more until every cause was there
        await bench.drive(600)
        found = await bench.counters()
        assert found == bench.there(), turn
        seen |= {name for name in STALLS if bench.count[name]}
        if turn % 2:  # a list run begins
            await bench.write(R.AI_CNN_MODE, 1)
            await bench.write(R.AI_LIST_LEN, 1)
        # the read is in the data phase in the cycle behind the write
        behind = Transfer(R.PERF_INFERENCES if turn < 2 else R.PERF_TOTAL)
        await bench.host.run([Transfer(R.AI_CTRL, True, data=1 if turn % 2 else 2), behind])
        assert (behind.resp, behind.data) == (OKAY, 0), f"of the former run, turn {turn}"
        await ClockCycles(dut.clk, 4)
        bench.count = dict.fromkeys(NAMES, 0)
        assert not any((await bench.counters()).values()), f"not cleared, turn {turn}"
        await bench.write(R.AI_CNN_DONE, 1)
        await bench.write(R.AI_INT_STATUS, 3)
        if turn >= 3 and seen == set(STALLS):
            break
    assert seen == set(STALLS)


@pytest.mark.tier(check=["verilator-*", "icarus-16-8-1", "icarus-2-2-0"])
# few lanes, and so many that a column's count has all of its bits; a device without counters
@pytest.mark.parametrize(("n_y", "n_z", "perf"), [(2, 2, 1), (16, 8, 1), (2, 2, 0)])
@pytest.mark.parametrize("sim", SIMS)
def test_host_port(sim: str, n_y: int, n_z: int, perf: int) -> None:
    sources = ["rtl/host/*.v", *(f"rtl/lib/{n}.v" for n in ("fifo_sync", "fifo_ram"))]
    sources += ["rtl/lib/ram_1r1w.v", "rtl/lib/ram_1r1w_async.v"]
    params = {"N_Y": n_y, "N_Z": n_z} | ({} if perf else {"PERF": 0})
    run_bench(sim, "host_port", sources, "tb.host_port.test_host_port", params=params)
