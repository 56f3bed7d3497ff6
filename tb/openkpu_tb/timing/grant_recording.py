# SPDX-License-Identifier: Apache-2.0
"""A burst that loses the grant, for the diagram: eight beats, taken away after the third."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from openkpu_tb.ahb.monitor import AhbMonitor
from openkpu_tb.ahb.responder import AhbResponder
from openkpu_tb.handle import Handle
from openkpu_tb.timing.recorder import Recorder, number_text

BEATS, AWAY_AFTER, AWAY_FOR = 8, 3, 4
BASE = 0x100
BURSTS = {0: "SINGLE", 1: "INCR", 3: "INCR4", 5: "INCR8", 7: "INCR16"}


@cocotb.test()
async def record(dut: Handle) -> None:
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    for name in ("cmd_valid", "cmd_write", "cmd_wpop", "cmd_tag", "wd_data", "mst_abandon"):
        getattr(dut, name).value = 0
    dut.cmd_addr.value, dut.cmd_beats.value, dut.cmd_size.value = BASE, BEATS, 2
    bus = AhbResponder(dut, "m_ahb", dut.clk, random.Random(1))
    monitor = AhbMonitor(dut, "m_ahb", dut.clk)
    dut.rst.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    bus.reset()
    cocotb.start_soon(bus.start())

    def on_bus() -> bool:
        return int(dut.m_ahb_htrans.value) >= 2

    recorder = Recorder(
        dut.clk,
        {
            "cmd_valid": dut.cmd_valid,
            "hbusreq": dut.m_ahb_hbusreq,
            "hgrant": dut.m_ahb_hgrant,
            "htrans": number_text(dut.m_ahb_htrans, lambda: True, "{}"),
            "haddr": number_text(dut.m_ahb_haddr, on_bus),
            "hburst": lambda: BURSTS[int(dut.m_ahb_hburst.value)] if on_bus() else "",
            "hready": dut.m_ahb_hready,
            "rsp_valid": dut.rsp_valid,
            "rsp_last": lambda: str(int(dut.rsp_valid.value and dut.rsp_last.value)),
        },
    )
    await RisingEdge(dut.clk)
    dut.cmd_valid.value = 1
    await RisingEdge(dut.clk)
    dut.cmd_valid.value = 0
    while bus.beats < AWAY_AFTER - 2:  # one beat in each phase besides
        await RisingEdge(dut.clk)
    bus.granted = False
    for _ in range(AWAY_FOR):
        await RisingEdge(dut.clk)
    bus.granted = True
    while bus.beats < BEATS:
        await RisingEdge(dut.clk)
    for _ in range(3):
        await RisingEdge(dut.clk)
    assert bus.reads == list(range(BASE, BASE + 4 * BEATS))
    monitor.check()
    assert sum(v == "1" for v in recorder.rows["rsp_valid"]) == BEATS
    recorder.save(recorder.first("cmd_valid"))
