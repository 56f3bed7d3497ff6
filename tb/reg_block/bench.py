# SPDX-License-Identifier: Apache-2.0
"""Common part of the tests of reg_block: register accesses and the core's side of the ports."""

import random
from collections.abc import Iterable
from types import SimpleNamespace

from cocotb.triggers import ReadOnly, RisingEdge

from openkpu.layer.regmap import OFFSETS
from openkpu_tb.core.block_bench import BlockBench
from openkpu_tb.core.descriptor import layout
from openkpu_tb.core.packed_ports import PackedView
from openkpu_tb.core.registers import Kpu

INPUTS = ("reg_wr", "reg_rd", "reg_next", "reg_command", "reg_wdata", "arg_ready", "result_valid")
INPUTS += ("result_data", "state", "events", "err", "perf_value", "perf_carry", "weight_bias_full")
PORTS = {"state": "status_", "events": "ev_", "err": "err_", "cfg": "cfg_", "host": "host_"}
LAYOUTS = {"state": "status", "events": "event"}  # where the port's name is another
NAMES = {"start_pulse": "host_start", "ev_err": "ev_error", "soft_reset_pulse": "host_soft_reset"}
R = SimpleNamespace(**OFFSETS)
FIELDS = {"mode": R.AI_CNN_MODE, "length": R.AI_LIST_LEN, "left": R.AI_INF_LEFT}
FIELDS |= {
    "res": R.AI_RES_ADR,
    "pix": R.AI_PIX_ADR,
    "npix": R.AI_NPIX_ADR,
    "pix_stride": R.AI_PIX_STRIDE,
}
FIELDS |= {"res_stride": R.AI_RES_STRIDE}
WINDOWS = R.AI_READ_FIRST, R.AI_READ_LAST, R.AI_WRITE_FIRST, R.AI_WRITE_LAST
CALC, EMPTY, FULL = Kpu


class Bench(BlockBench):
    inputs = INPUTS
    addressed: int | None = None  # address of an access that may come now

    def __init__(self, dut) -> None:
        dut = dut.dut if isinstance(dut, PackedView) else dut
        packed = {p: (layout(LAYOUTS.get(p, p)), prefix) for p, prefix in PORTS.items()}
        super().__init__(PackedView(dut, packed, NAMES))

    async def _access(
        self, strobe, addr: int, data: int, then: int | None = None
    ) -> tuple[int, int]:
        """A read or write; with ``then`` an access of that address may follow in the next cycle."""
        dut = self.dut
        if self.addressed != addr:
            await self.address(addr)
        self.addressed = None
        dut.reg_next.value = random.getrandbits(10)
        if then is not None:
            self.next_address(then)
        strobe.value, dut.reg_wdata.value = 1, data
        dut.reg_command.value = int(strobe is dut.reg_wr and addr & ~3 == R.AI_CTRL)
        await ReadOnly()
        value, error = dut.reg_rdata.value, int(dut.reg_err.value)
        await RisingEdge(dut.clk)
        # without a strobe they mean nothing
        strobe.value = dut.reg_command.value = 0
        dut.reg_wdata.value = random.getrandbits(32)
        return value, error

    def next_address(self, addr: int) -> None:
        """Drive the address of the access that follows, up to the cycle before it."""
        self.dut.reg_next.value, self.addressed = addr >> 2, addr

    async def address(self, addr: int) -> None:
        """The cycle before an access, which has its address."""
        self.next_address(addr)
        await RisingEdge(self.dut.clk)

    async def write(self, addr: int, data: int, then: int | None = None) -> None:
        _, error = await self._access(self.dut.reg_wr, addr, data, then)
        assert not error, f"write to {addr:#x} refused"

    async def read(self, addr: int, then: int | None = None) -> int:
        value, error = await self._access(self.dut.reg_rd, addr, 0, then)
        assert not error, f"read of {addr:#x} refused"
        return int(value)

    async def push_word(self, word: int) -> None:
        await self.write(R.layer_argument_fifo, word & 0xFFFFFFFF)
        await self.write(R.layer_argument_fifo + 4, word >> 32)

    async def push_words(self, words: Iterable[int]) -> None:
        for word in words:
            await self.push_word(word)

    async def error(self, code: int) -> None:
        """This is the error that the host reads; it acknowledges it."""
        assert await self.read(R.AI_ERR_CODE) == code
        await self.write(R.AI_ERR_CODE, 0)

    async def settled(self, output: str) -> int:
        """An output in this cycle, whose inputs are driven; the next one begins."""
        await ReadOnly()
        value = int(getattr(self.dut, output).value)
        await RisingEdge(self.dut.clk)
        return value

    async def push_layer(self) -> list[int]:
        words = [random.getrandbits(64) for _ in range(12)]
        await self.push_words(words)
        return words

    async def pop(self, count: int) -> list[int]:
        """The core accepts ``count`` words."""
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
        for name, value in values.items():
            await self.write(FIELDS[name], value)

    async def compare(self, model: dict[str, int], when: str) -> None:
        """Registers and what the core sees of them."""
        for name in ("pix", "npix", "res", "left", "mode"):
            assert await self.read(FIELDS[name]) == model[name], f"{name} {when}"
        assert int(self.dut.cfg_res_adr.value) == model["res"], when
        more = int(model["mode"] == 2 and model["left"] > 0)
        assert int(self.dut.cfg_more.value) == more, when

    async def start(self) -> bool:
        """Write start; True when start_pulse came."""
        await self.write(R.AI_CTRL, 1)
        pulse = await self.settled("start_pulse")
        assert not await self.settled("start_pulse")
        return bool(pulse)
