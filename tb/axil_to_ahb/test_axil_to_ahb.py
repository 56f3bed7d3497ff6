# SPDX-License-Identifier: Apache-2.0
"""axil_to_ahb between the AXI4-Lite master of cocotbext-axi and the device's AHB slave."""

import logging
import random
from typing import Any

import cocotb
import pytest
from cocotb.triggers import ClockCycles, Combine, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiProt, AxiResp
from cocotbext.axi import axil_channels as channels

from openkpu_tb.core.block_bench import block_test
from openkpu_tb.simrun import run_bench
from tb.ahb_slave.host_side import BRIDGE_SOURCES, RAM, HostSide

logging.getLogger("cocotb.bridge_bench").setLevel(logging.ERROR)
KINDS = ("aw", "w", "b", "ar", "r")


def fresh() -> random.Random:
    return random.Random(random.getrandbits(32))


class Raw:
    """The five channels one by one: writes of any strobes, answers in their own time."""

    def __init__(self, dut) -> None:
        self.rng = fresh()
        self.channel: dict[str, Any] = {}
        for kind in KINDS:
            name = f"AxiLite{kind.upper()}"
            bus = getattr(channels, f"{name}Bus").from_prefix(dut, "s_axil")
            side = "Sink" if kind in ("b", "r") else "Source"
            self.channel[kind] = getattr(channels, name + side)(bus, dut.clk, dut.rst)

    def pause(self, chances: dict[str, float]) -> None:
        """Stall each channel with this probability in every cycle."""

        def draws(chance: float):
            while True:
                yield self.rng.random() < chance

        for kind in KINDS:
            self.channel[kind].set_pause_generator(draws(chances.get(kind, 0.0)))

    async def write(self, addr: int, data: int, strobes: int, prot: int = 1) -> AxiResp:
        request = channels.AxiLiteAWTransaction(awaddr=addr, awprot=prot)
        await self.channel["aw"].send(request)
        await self.channel["w"].send(channels.AxiLiteWTransaction(wdata=data, wstrb=strobes))
        return AxiResp(int((await self.channel["b"].recv()).bresp))

    async def read(self, addr: int, prot: int = 1) -> tuple[AxiResp, int]:
        await self.channel["ar"].send(channels.AxiLiteARTransaction(araddr=addr, arprot=prot))
        answer = await self.channel["r"].recv()
        return AxiResp(int(answer.rresp)), int(answer.rdata)


class Side(HostSide):
    """The slave behind the bridge, and the channels in front of it."""

    def __init__(self, dut) -> None:
        self.raw = Raw(dut)
        super().__init__(dut, fresh())


@block_test(Side)
async def every_strobe(side: Side, dut) -> None:
    """All sixteen strobes on AI RAM and registers, channels at their own pace."""
    raw = side.raw
    writes = 0
    for slow in (None, "aw", "w", "b"):
        raw.pause({slow: 0.8} if slow else {})
        for strobes in range(16):
            for addr in (RAM + 4 * strobes, 4 * (strobes % 8)):
                data = side.rng.getrandbits(32)
                good = side.good(addr, strobes)
                resp = await raw.write(addr, data, strobes)
                assert resp == (AxiResp.OKAY if good else AxiResp.SLVERR), (addr, strobes)
                if good:
                    side.wrote(addr, data, strobes)
                    writes += addr < RAM and strobes == 15
                resp, found = await raw.read(addr)
                assert (resp, found) == (AxiResp.OKAY, side.word(addr)), (addr, strobes)
    await RisingEdge(dut.clk)
    assert int(dut.reg_writes.value) == writes
    side.check()


@block_test(Side)
async def random_accesses(side: Side, dut) -> None:
    """Accesses of every kind, errors among them, with stalled channels."""
    raw = side.raw
    privileged = bool(int(dut.PRIVILEGED.value))
    for part in range(6):
        side.speed = (1.0, 0.3)[part & 1]
        raw.pause({kind: side.rng.choice([0.0, 0.4, 0.8]) for kind in KINDS})
        for _ in range(60):
            addr, prot = side.address(), side.rng.getrandbits(3)
            top = side.rng.getrandbits(10) << 22  # the decoder's
            if side.rng.random() < 0.5:
                data, strobes = side.rng.getrandbits(32), side.rng.choice([15, 15, 1, 3, 6, 13])
                good = side.good(addr, strobes) and (not privileged or bool(prot & 1))
                resp = await raw.write(top | addr | side.rng.randrange(4), data, strobes, prot)
                if good:
                    side.wrote(addr, data, strobes)
            else:
                good = side.good(addr)
                resp, found = await raw.read(top | addr | side.rng.randrange(4), prot)
                assert not good or found == side.word(addr), hex(addr)
            assert resp == (AxiResp.OKAY if good else AxiResp.SLVERR), hex(addr)
    side.check()


@block_test(Side)
async def both_at_once(side: Side) -> None:
    """Reads and writes that wait at the same time take turns; neither starves."""
    raw = side.raw
    order, count = [], 30
    for number in range(count):  # all of them wait in their channels
        request = channels.AxiLiteAWTransaction(awaddr=RAM + 4 * number, awprot=1)
        raw.channel["aw"].send_nowait(request)
        raw.channel["w"].send_nowait(channels.AxiLiteWTransaction(wdata=number, wstrb=15))
        raw.channel["ar"].send_nowait(channels.AxiLiteARTransaction(araddr=0, arprot=1))
        side.wrote(RAM + 4 * number, number)

    async def answers(kind: str) -> None:
        for _ in range(count):
            await raw.channel[kind].recv()
            order.append(kind)

    await Combine(cocotb.start_soon(answers("b")), cocotb.start_soon(answers("r")))
    side.check()
    text = "".join(order)
    assert "bb" not in text and "rr" not in text, text


@block_test(Side)
async def protection(side: Side, dut) -> None:
    """AxPROT comes out as HPROT: privileged on bit 1, data on bit 0."""
    raw = side.raw
    seen = []

    async def watch() -> None:
        while True:
            await RisingEdge(dut.clk)
            if int(dut.htrans.value):
                seen.append((bool(int(dut.hwrite.value)), int(dut.hprot.value)))

    cocotb.start_soon(watch())
    for prot in range(8):
        await raw.write(RAM, 0, 15, prot)
        await raw.read(RAM, prot)
    wanted = [(prot & 1) << 1 | (not prot & 4) for prot in range(8)]
    assert seen == [(write, prot) for prot in wanted for write in (True, False)]
    assert side.ram_bytes


@cocotb.test()
async def somebody_elses_master(dut) -> None:
    """Blocks of bytes of any length and place, by the master of cocotbext-axi."""
    master: Any = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
    side = HostSide(dut, fresh())
    await side.reset()
    prot = AxiProt.PRIVILEGED
    for _ in range(30):
        start, length = RAM + side.rng.randrange(64), side.rng.randint(1, 40)
        data = side.rng.randbytes(length)
        assert (await master.write(start, data, prot=prot)).resp == AxiResp.OKAY
        side.model.update({start + i: byte for i, byte in enumerate(data)})
        first = side.rng.randrange(64)
        found = await master.read(RAM + first, 24)
        assert found.resp == AxiResp.OKAY
        assert found.data == bytes(side.model.get(RAM + first + i, 0) for i in range(24))
    words = [side.rng.getrandbits(32) for _ in range(16)]
    await master.write_dwords(0, words, prot=prot)
    assert list(await master.read_dwords(0, 16)) == words
    assert (await master.read(0x1000, 4)).resp == AxiResp.SLVERR
    side.check()


@block_test(Side)
async def reset_in_an_access(side: Side, dut) -> None:
    """A reset in any cycle of an access leaves no answer behind, and all works."""
    raw = side.raw
    side.speed = 0.2
    for cycles in range(1, 14):
        access = raw.write(RAM, 1, 6) if cycles & 1 else raw.read(RAM)
        task = cocotb.start_soon(access)
        await ClockCycles(dut.clk, cycles)
        task.cancel()
        dut.rst.value = 1
        await ClockCycles(dut.clk, 2)
        assert not int(dut.s_axil_bvalid.value) and not int(dut.s_axil_rvalid.value)
        dut.rst.value = 0
        await RisingEdge(dut.clk)
        for kind in KINDS:
            raw.channel[kind].clear()
        assert await raw.write(4, cycles, 15) == AxiResp.OKAY
        assert await raw.read(4) == (AxiResp.OKAY, cycles)


@pytest.mark.tier(check=["1-*"])
@pytest.mark.parametrize(("privileged", "rows"), [(0, 16384), (1, 32768)])
def test_axil_to_ahb(privileged: int, rows: int) -> None:
    params = {"PRIVILEGED": privileged, "AI_RAM_ROWS": rows}
    sources = [*BRIDGE_SOURCES, "rtl/bus/axil_to_ahb.v"]
    run_bench("icarus", "bridge_bench", sources, "tb.axil_to_ahb.test_axil_to_ahb", params=params)
