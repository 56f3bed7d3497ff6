# SPDX-License-Identifier: Apache-2.0
"""Accesses of the host, for the diagram: registers, AI RAM, and an address that does not exist."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from openkpu_tb.ahb.host import ERROR, NONSEQ, OKAY, SEQ, AhbHost, Transfer
from openkpu_tb.handle import Handle
from openkpu_tb.timing.recorder import Recorder, number_text

RAM = 0x200000
WORD = 0x44332211


async def serve(dut: Handle) -> None:
    """The AI RAM at rest: it acknowledges in the cycle after the request."""
    dut.window_ack.value = dut.window_rdata.value = 0
    while True:
        await RisingEdge(dut.clk)
        new = int(dut.window_req.value) and not int(dut.window_ack.value)
        dut.window_ack.value, dut.window_rdata.value = int(new), WORD if new else 0


@cocotb.test()
async def record(dut: Handle) -> None:
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    host = AhbHost(dut, "s_ahb", dut.clk)
    dut.rst.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    cocotb.start_soon(serve(dut))

    def addressed() -> bool:
        return int(dut.s_ahb_htrans.value) >= NONSEQ

    def answers() -> bool:
        return data["write"] is False and int(dut.s_ahb_hready_out.value) == 1

    data: dict[str, bool | None] = {"write": None}

    async def follow() -> None:
        """What the data phase is of: write, read or nothing."""
        while True:
            await RisingEdge(dut.clk)
            if int(dut.s_ahb_hready_in.value):
                data["write"] = bool(int(dut.s_ahb_hwrite.value)) if addressed() else None

    cocotb.start_soon(follow())
    recorder = Recorder(
        dut.clk,
        {
            "htrans": number_text(dut.s_ahb_htrans, lambda: True, "{}"),
            "haddr": number_text(dut.s_ahb_haddr, addressed),
            "hwrite": number_text(dut.s_ahb_hwrite, addressed, "{}"),
            "hwdata": number_text(dut.s_ahb_hwdata, lambda: data["write"] is True),
            "hready": dut.s_ahb_hready_out,
            "hresp": number_text(dut.s_ahb_hresp, lambda: data["write"] is not None, "{}"),
            "hrdata": number_text(
                dut.s_ahb_hrdata, lambda: answers() and int(dut.s_ahb_hresp.value) == OKAY
            ),
            "reg_wr": dut.u_slave.reg_wr,
            "reg_rd": dut.u_slave.reg_rd,
            "window_req": dut.window_req,
            "window_ack": dut.window_ack,
        },
    )
    transfers = [
        Transfer(0x10, True, data=0x5A),
        Transfer(0x14, True, data=0xA5, trans=SEQ),
        Transfer(0x10),
        Transfer(RAM + 0x40),
        Transfer(RAM + 0x44, True, data=0x77),
        Transfer(0x80),
    ]
    await host.run(transfers)
    await RisingEdge(dut.clk)
    assert [t.resp for t in transfers] == [OKAY] * 5 + [ERROR]
    assert (transfers[2].data, transfers[3].data) == (0x5A, WORD)
    assert [t.waits for t in transfers] == [0, 0, 0, 1, 1, 1]
    first = recorder.first("htrans", str(NONSEQ))
    recorder.save(first, len(recorder.rows["htrans"]) - 1)
