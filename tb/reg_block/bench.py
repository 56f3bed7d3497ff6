# SPDX-License-Identifier: Apache-2.0
"""What the tests of reg_block share: register accesses and the core's side of the ports."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge

from openkpu_tb.core.descriptor import layout
from openkpu_tb.core.packed_ports import PackedView

INPUTS = ("reg_wr", "reg_rd", "reg_addr", "reg_wdata", "arg_ready", "result_valid", "result_data")
INPUTS += ("state", "events", "err", "perf_value", "perf_carry", "weight_bias_full")
PORTS = {"state": "status_", "events": "ev_", "err": "err_", "cfg": "cfg_", "host": "host_"}
LAYOUTS = {"state": "status", "events": "event"}  # where the port's name is another
NAMES = {"start_pulse": "host_start", "ev_err": "ev_error", "soft_reset_pulse": "host_soft_reset"}
LAYER_LO, LAYER_HI, RAW, STATUS, MASK, CLEAR = 0x00, 0x04, 0x10, 0x08, 0x18, 0x20
THRESHOLD, DATA_LO, DATA_HI, FIFO_CTRL, EIGHT_BIT = 0x28, 0x30, 0x34, 0x38, 0x40
MODE, DONE, PIX, NPIX, LIST_LEN, RES, LEFT = 0x100, 0x104, 0x108, 0x10C, 0x11C, 0x120, 0x124
PIX_STRIDE, RES_STRIDE, CTRL, AI_STATUS, INT_STATUS = 0x128, 0x12C, 0x130, 0x134, 0x138
INT_MASK, ERR_CODE, ERR_INFO, ERR_ADDR, PERF = 0x13C, 0x140, 0x144, 0x148, 0x180
TAKEN, WINDOWS, LOCK, WATCHDOG = 0x14C, (0x150, 0x154, 0x158, 0x15C), 0x160, 0x164
OVERRUN, START_BUSY, UNDERRUN, BAD_CONFIG, LOCKED = 8, 9, 10, 11, 15
CALC, EMPTY, FULL = 1, 2, 4


class Bench:
    def __init__(self, dut) -> None:
        dut = dut.dut if isinstance(dut, PackedView) else dut
        packed = {p: (layout(LAYOUTS.get(p, p)), prefix) for p, prefix in PORTS.items()}
        self.dut = PackedView(dut, packed, NAMES)
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for n in INPUTS:
            getattr(dut, n).value = 0

    async def reset(self) -> None:
        self.dut.rst.value = 1
        for _ in range(3):
            await RisingEdge(self.dut.clk)
        self.dut.rst.value = 0
        await RisingEdge(self.dut.clk)

    async def _access(self, strobe, addr: int, data: int) -> tuple[int, int]:
        dut = self.dut
        strobe.value, dut.reg_addr.value, dut.reg_wdata.value = 1, addr, data
        await ReadOnly()
        value, error = dut.reg_rdata.value, int(dut.reg_err.value)
        await RisingEdge(dut.clk)
        # without a strobe they mean nothing
        strobe.value, dut.reg_addr.value = 0, random.getrandbits(12)
        dut.reg_wdata.value = random.getrandbits(32)
        return value, error

    async def write(self, addr: int, data: int) -> None:
        _, error = await self._access(self.dut.reg_wr, addr, data)
        assert not error, f"write to {addr:#x} refused"

    async def read(self, addr: int) -> int:
        value, error = await self._access(self.dut.reg_rd, addr, 0)
        assert not error, f"read of {addr:#x} refused"
        return int(value)

    async def pulse(self, **signals: int) -> None:
        """Inputs for one cycle."""
        for name, value in signals.items():
            getattr(self.dut, name).value = value
        await RisingEdge(self.dut.clk)
        for name in signals:
            getattr(self.dut, name).value = 0

    async def push_word(self, word: int) -> None:
        await self.write(LAYER_LO, word & 0xFFFFFFFF)
        await self.write(LAYER_HI, word >> 32)

    async def push_layer(self) -> list[int]:
        words = [random.getrandbits(64) for _ in range(12)]
        for word in words:
            await self.push_word(word)
        return words

    async def pop(self, count: int) -> list[int]:
        """The core takes ``count`` words."""
        dut, out = self.dut, []
        for _ in range(count * 4 + 20):
            dut.arg_ready.value = int(len(out) < count and random.random() < 0.7)
            await ReadOnly()
            take = int(dut.arg_valid.value) and int(dut.arg_ready.value)
            if take:
                out.append(int(dut.arg_data.value))
            await RisingEdge(dut.clk)
            if len(out) == count:
                break
        dut.arg_ready.value = 0
        await RisingEdge(dut.clk)
        assert len(out) == count
        return out

    async def configure(self, **values: int) -> None:
        names = {"mode": MODE, "length": LIST_LEN, "res": RES, "left": LEFT, "pix": PIX}
        names |= {"npix": NPIX, "pix_stride": PIX_STRIDE, "res_stride": RES_STRIDE}
        for name, value in values.items():
            await self.write(names[name], value)

    async def compare(self, model: dict[str, int], when: str) -> None:
        """Registers and what the core sees of them."""
        names = {"pix": PIX, "npix": NPIX, "res": RES, "left": LEFT, "mode": MODE}
        for name, addr in names.items():
            assert await self.read(addr) == model[name], f"{name} {when}"
        assert int(self.dut.cfg_res_adr.value) == model["res"], when
        more = int(model["mode"] == 2 and model["left"] > 0)
        assert int(self.dut.cfg_more.value) == more, when

    async def start(self) -> bool:
        """Write start; True when start_pulse came."""
        await self.write(CTRL, 1)
        await ReadOnly()
        pulse = int(self.dut.start_pulse.value)
        await RisingEdge(self.dut.clk)
        await ReadOnly()
        assert not int(self.dut.start_pulse.value)
        await RisingEdge(self.dut.clk)
        return bool(pulse)
