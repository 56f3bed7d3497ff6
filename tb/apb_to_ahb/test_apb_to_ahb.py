# SPDX-License-Identifier: Apache-2.0
"""apb_to_ahb between the APB master of cocotbext-axi and the device's AHB slave."""

import logging
import random
from typing import Any

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge
from cocotbext.axi import ApbBus, ApbMaster

from openkpu_tb.simrun import run_bench
from tb.ahb_slave.host_side import BRIDGE_SOURCES, RAM, HostSide

logging.getLogger("cocotb.bridge_bench").setLevel(logging.ERROR)
LIMIT = 200  # cycles of an access
PRIVILEGED_DATA = 0b0011  # HPROT


async def started(dut) -> tuple[Any, HostSide]:
    master = ApbMaster(ApbBus.from_prefix(dut, "s_apb"), dut.clk, dut.rst)
    side = HostSide(dut, random.Random(random.getrandbits(32)))
    await side.reset()
    return master, side


@cocotb.test()
async def random_accesses(dut) -> None:
    """Words of registers and AI RAM, and of what is not there; in a row and with gaps."""
    master, side = await started(dut)
    writes = reads = 0
    for part in range(6):
        side.speed = (1.0, 0.4, 0.1)[part % 3]
        for _ in range(60):
            addr = side.address()
            good = side.good(addr)
            if side.rng.random() < 0.5:
                data = side.rng.getrandbits(32)
                answer = await master.write(addr, data.to_bytes(4, "little"))
                if good:
                    side.wrote(addr, data)
                    writes += addr < RAM
            else:
                answer = await master.read(addr, 4)
                assert not good or answer.data == side.word(addr).to_bytes(4, "little"), hex(addr)
                reads += good and addr < RAM
            assert bool(answer.resp) is not good, hex(addr)
            await ClockCycles(dut.clk, side.rng.choice([0, 0, 1, 3]))
    await RisingEdge(dut.clk)  # the counters follow a cycle later
    await RisingEdge(dut.clk)
    assert (int(dut.reg_writes.value), int(dut.reg_reads.value)) == (writes, reads)
    side.check()


async def access(dut, addr: int, write: bool, data: int = 0) -> tuple[int, int, int]:
    """By hand, right behind the access before: cycles, PSLVERR and PRDATA of the last one."""
    dut.s_apb_psel.value, dut.s_apb_penable.value = 1, 0
    dut.s_apb_paddr.value, dut.s_apb_pwrite.value = addr, int(write)
    dut.s_apb_pwdata.value = data
    await FallingEdge(dut.clk)
    assert not int(dut.s_apb_pslverr.value), "PSLVERR in the setup phase"
    assert int(dut.hprot.value) == PRIVILEGED_DATA
    dut.s_apb_penable.value = 1
    for cycle in range(2, LIMIT):
        await RisingEdge(dut.clk)
        if int(dut.s_apb_pready.value):
            found = cycle, int(dut.s_apb_pslverr.value), int(dut.s_apb_prdata.value)
            await FallingEdge(dut.clk)
            dut.s_apb_psel.value = dut.s_apb_penable.value = 0
            return found
        assert not int(dut.s_apb_pslverr.value), "PSLVERR before PREADY"
    raise AssertionError(f"no answer for {addr:#x} after {LIMIT} cycles")


@cocotb.test()
async def cycles(dut) -> None:
    """A register takes the two cycles of APB, an error three; back to back and apart."""
    side = HostSide(dut, random.Random(random.getrandbits(32)))
    for name in ("psel", "penable", "paddr", "pwrite", "pwdata"):
        getattr(dut, f"s_apb_{name}").value = 0
    await side.reset()
    await FallingEdge(dut.clk)
    for number in range(64):
        write = bool(number & 1)
        addr = 4 * (number // 2 % 16)
        took, error, found = await access(dut, addr, write, number)
        assert (took, error) == (2, 0)
        assert write or found == side.word(addr)
        side.wrote(addr, number) if write else None
        took, error, _ = await access(dut, 0x40 if number & 2 else 0x1000, write)
        assert (took, error) == (3, 1)
        for _ in range(number % 3):
            await FallingEdge(dut.clk)
            assert not int(dut.htrans.value), "a transfer without an access"
    side.check()


@pytest.mark.parametrize("rows", [16384])
def test_apb_to_ahb(rows: int) -> None:
    params = {"APB": 1, "AI_RAM_ROWS": rows, "PRIVILEGED": 1}  # which refuses writes of others
    sources = [*BRIDGE_SOURCES, "rtl/bus/apb_to_ahb.v"]
    run_bench("icarus", "bridge_bench", sources, "tb.apb_to_ahb.test_apb_to_ahb", params=params)
