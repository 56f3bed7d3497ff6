# SPDX-License-Identifier: Apache-2.0
"""dma_fault, cycle by cycle: which channels fail, are mute, and what is reported of it."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

from openkpu_tb.core.descriptor import layout
from openkpu_tb.core.pipeline_bench import start_clock
from openkpu_tb.simrun import SIMS, run_bench

OWNER = 11  # bits


class Bench:
    def __init__(self, dut) -> None:
        self.dut = dut
        start_clock(dut)
        ow = (int(dut.AHB_W.value) // 8).bit_length() - 1
        self.tag = layout("dma_tag", OW=ow, OWNER_BITS=OWNER)
        self.fault = layout("fault", OWNER_BITS=OWNER)
        self.reset()

    def reset(self) -> None:
        """No channel has failed and nothing is to report."""
        self.failed = self.mute = 0
        self.report: dict[str, int] | None = None

    def drive(self, kind: str) -> tuple[int, int, int, int]:
        """An ERROR, a refused burst, both or neither, with noise beside it.

        Channel, address and owner of the fault that is to be reported, the ERROR where there are
        both; bits of the channels that fail.
        """
        low = {name: at for name, (at, _) in self.tag.items()}
        found, failing = (0, 0, 0), 0
        for name, kinds in (("refuse", ("refuse", "both")), ("err", ("error", "both"))):
            chan, addr = random.randrange(5), random.getrandbits(32)
            owner, bytes_ = random.getrandbits(OWNER), random.getrandbits(low["chan"])
            getattr(self.dut, f"{name}_addr").value = addr
            getattr(self.dut, f"{name}_tag").value = (
                chan << low["chan"] | owner << low["owner"] | bytes_
            )
            if kind in kinds:
                found, failing = (chan, addr, owner), failing | 1 << chan
        self.dut.err_valid.value = int(kind in ("error", "both"))
        self.dut.refuse.value = int(kind in ("refuse", "both"))
        return *found, failing

    async def check(self, failing: int, when: str) -> None:
        """The outputs of this cycle."""
        dut = self.dut
        await ReadOnly()
        assert int(dut.failing.value) == failing, when
        assert int(dut.failed.value) == self.failed, when
        assert int(dut.mute.value) == self.mute, when
        assert int(dut.bus_err.value) == (self.report is not None), when
        if self.report:
            value = int(dut.bus_fault.value)
            for name, (low, width) in self.fault.items():
                assert value >> low & (1 << width) - 1 == self.report[name], f"{name}, {when}"


@cocotb.test()
async def every_cycle(dut) -> None:
    """Errors, refusals, flushes and aborts at random, a reset right behind a fault among them; in
    one cycle an ERROR goes before a refusal (docs/programming.md 3)."""
    bench, seen = Bench(dut), dict.fromkeys(("first", "again", "aborted", "refused", "both"), 0)
    dut.flush.value = dut.run.value = 0
    bench.drive("nothing")
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    for cycle in range(1500):
        rst, flush = int(random.random() < 0.02), int(random.random() < 0.05)
        running = int(random.random() < 0.7)
        kind = random.choice(("error", "refuse", "both", "nothing"))
        chan, addr, owner, failing = bench.drive(kind)
        # a channel that has failed proposes nothing; beside a refusal the ERROR is a new one
        while kind in ("refuse", "both") and bench.failed & failing:
            kind = "nothing" if bench.failed == 31 else kind
            chan, addr, owner, failing = bench.drive(kind)
        dut.rst.value, dut.flush.value, dut.run.value = rst, flush, running
        here = 1 << chan if kind in ("error", "both") else 0
        await bench.check(bench.failed | here, f"cycle {cycle}: {kind} of channel {chan}")
        await RisingEdge(dut.clk)
        first = kind in ("refuse", "both") or (kind == "error" and not bench.failed >> chan & 1)
        seen["again"] += kind == "error" and not first
        seen["first"] += first and running
        seen["aborted"] += first and not running
        seen["refused"] += kind == "refuse" and running
        seen["both"] += kind == "both" and running
        bench.report = None
        if first and running and not rst:
            refused = int(kind == "refuse")
            bench.report = {"addr": addr, "chan": chan, "owner": owner, "refused": refused}
        bench.failed |= failing
        bench.mute |= here
        if rst or flush:
            bench.failed = bench.mute = 0
    assert min(seen.values()) >= 20, seen


@pytest.mark.tier(check=["verilator"])
@pytest.mark.parametrize("sim", SIMS)
def test_dma_fault(sim: str) -> None:
    run_bench(sim, "dma_fault", ["rtl/storage/dma_fault.v"], "tb.dma_fault.test_dma_fault")
