# SPDX-License-Identifier: Apache-2.0
"""Host and agent on a slave whose signals have other names than this project's."""

import os
import random

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, ValueChange
from openkpu_tb.ahb import host_agent
from openkpu_tb.ahb.host import ERROR, IDLE, OKAY, AhbHost, Transfer
from openkpu_tb.ahb.host_agent import AhbHostDriver, AhbHostMonitor
from openkpu_tb.ahb.signals import Signals

NAMES = Signals("s_", hsel="hselx", hready_in="hready", hready_out="hreadyout", hprot=None)
WAITS = int(os.environ.get("WAITS", 0))
BROKEN = bool(int(os.environ.get("BROKEN", 0)))


async def reset(dut) -> None:
    cocotb.start_soon(Clock(dut.hclk, 10, "ns").start())
    dut.hresetn.value = 0
    await ClockCycles(dut.hclk, 3)
    dut.hresetn.value = 1
    await ClockCycles(dut.hclk, 1)


@cocotb.test(skip=BROKEN)
async def pipelined_transfers(dut):
    """A list of transfers of every size; data, wait states and answers are right."""
    host = AhbHost(dut, NAMES, dut.hclk, feedback=True)
    await reset(dut)
    rng = random.Random(cocotb.RANDOM_SEED)
    memory = bytearray(64)
    todo = [Transfer(4 * i, True, 2, 0) for i in range(16)]
    for _ in range(200):
        size, write = rng.randrange(3), rng.random() < 0.5
        addr = rng.randrange(64 >> size) << size
        if rng.random() < 0.2:
            todo.append(Transfer(addr, write, size, trans=IDLE))
        elif rng.random() < 0.1:
            todo.append(Transfer(addr + 64, write, size))
        else:
            todo.append(Transfer(addr, write, size, rng.getrandbits(8 << size)))
    wanted = []
    for t in todo:
        bad = t.trans != IDLE and t.addr >= 64
        value = t.data
        if t.trans != IDLE and not bad:
            where = slice(t.addr, t.addr + (1 << t.size))
            if t.write:
                memory[where] = t.data.to_bytes(1 << t.size, "little")
            value = int.from_bytes(memory[where], "little")
        wanted.append(
            (ERROR if bad else OKAY, value, 0 if t.trans == IDLE else 1 if bad else WAITS)
        )
    await host.run(todo)
    assert [(t.resp, t.data, t.waits) for t in todo] == wanted


@cocotb.test(skip=BROKEN)
async def agent_and_monitor(dut):
    """The falling-edge driver reads what it wrote, and its monitor sees the same transfers."""
    names = Signals("s_", hsel="hselx", hready="hreadyout")
    driver, seen = AhbHostDriver(dut, names, dut.hclk), []
    AhbHostMonitor(dut, names, dut.hclk, None, seen.append)
    dut.s_htrans.value = dut.s_hselx.value = 0
    cocotb.start_soon(follow(dut))
    await reset(dut)
    todo = [host_agent.Transfer(4 * i, True, 0x11111111 * i) for i in range(16)]
    todo += [host_agent.Transfer(2 * i, False, size=1) for i in range(32)]
    todo += [host_agent.Transfer(64, False)]
    await driver.send(todo)
    await ClockCycles(dut.hclk, 2)
    assert [t.data for t in todo[16:48]] == [0x1111 * (i // 2) for i in range(32)]
    assert [t.resp for t in todo] == [OKAY] * 48 + [ERROR]
    assert seen == todo


async def follow(dut) -> None:
    """The slave is alone on its bus."""
    while True:
        dut.s_hready.value = dut.s_hreadyout.value
        await ValueChange(dut.s_hreadyout)


@cocotb.test(skip=not BROKEN)
async def wrong_answer_is_seen(dut):
    """A slave that answers ERROR in one cycle fails the transfer."""
    host = AhbHost(dut, NAMES, dut.hclk, feedback=True)
    await reset(dut)
    assert await host.write(0, 1) == OKAY
    with pytest.raises(AssertionError, match="ERROR takes two cycles"):
        await host.write(64, 1)


@cocotb.test(skip=BROKEN)
async def names_are_checked(dut):
    """A signal that is not there is named; one that may lack reads as a constant."""
    await ReadOnly()
    with pytest.raises(AttributeError, match="no signal 's_hsel' for hsel"):
        Signals("s_", hready_out="hreadyout", hready_in="hready").connect(dut, ["haddr", "hsel"])
    with pytest.raises(ValueError, match="unknown signal 'hreadyout'"):
        Signals(hreadyout="ready")
    with pytest.raises(ValueError, match="haddr is None"):
        Signals(haddr=None)
    pins = Signals("S_", hprot=None).connect(dut, ["haddr", "hprot"])
    assert pins.haddr is dut.s_haddr
    assert int(pins.hprot.value) == 3 and len(pins.hprot) == 4
