# SPDX-License-Identifier: Apache-2.0
"""The example of tb/openkpu_tb/ahb/README.md, run by test_kit.py on the slave of mailbox.v."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from openkpu_tb.ahb.host import AhbHost
from openkpu_tb.ahb.signals import Signals


@cocotb.test()
async def mailbox_keeps_a_word(dut):
    names = Signals("s_", hsel="hselx", hready_in="hready", hready_out="hreadyout", hprot=None)
    host = AhbHost(dut, names, dut.hclk, feedback=True)
    cocotb.start_soon(Clock(dut.hclk, 10, "ns").start())
    dut.hresetn.value = 0
    await ClockCycles(dut.hclk, 3)
    dut.hresetn.value = 1
    await host.write(0x10, 0xCAFE)
    assert await host.read(0x10) == 0xCAFE
