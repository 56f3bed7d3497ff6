# SPDX-License-Identifier: Apache-2.0
"""reg_block against openkpu.rdl (every register walked), and what the description cannot say."""

import random

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from openkpu.models.regdesc import access, compile_map, reset
from openkpu.tb.core.descriptor import layout
from openkpu.tb.core.packed_ports import View
from openkpu.tb.simrun import run

INPUTS = ("reg_wr", "reg_rd", "reg_addr", "reg_wdata", "arg_ready", "result_valid", "result_data")
INPUTS += ("state", "events", "err", "perf_flat", "weight_bias_full")
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
        dut = dut.dut if isinstance(dut, View) else dut
        packed = {p: (layout(LAYOUTS.get(p, p)), prefix) for p, prefix in PORTS.items()}
        self.dut = View(dut, packed, NAMES)
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
        strobe.value = 0
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


def words(register) -> list[int]:
    return list(range(register.address_offset, register.address_offset + register.size, 4))


@cocotb.test()
async def reset_values(dut) -> None:
    """Every word of the description reads its reset value, every other address is refused."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    registers = list(compile_map("openkpu").registers())
    assert len(registers) > 40
    mapped = set()
    for r in registers:
        for i, addr in enumerate(words(r)):
            mapped.add(addr)
            want = reset(r) >> 32 * i & 0xFFFFFFFF
            assert await bench.read(addr) == want, f"{r.inst_name} after reset"
            if addr in (DATA_LO, DATA_HI):  # reading the empty FIFO is an error
                assert await bench.read(ERR_CODE) == UNDERRUN
                await bench.write(ERR_CODE, 0)
    for addr in range(0, 0x1000, 4):
        if addr not in mapped:
            for strobe in (dut.reg_rd, dut.reg_wr):
                _, error = await bench._access(strobe, addr, random.getrandbits(32))
                assert error, f"{addr:#x} is not refused"
    assert int(dut.irq.value) == 0


@cocotb.test()
async def access_types(dut) -> None:
    """RW keeps what is written, RO and reserved bits do not, W1C clears what a pulse set."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    registers = list(compile_map("openkpu").registers())
    commands = {"layer_argument_fifo", "AI_CTRL", "interrupt_clear", "fifo_data_out", "AI_LOCK"}
    quiet = [r for r in registers if r.inst_name not in commands]
    for r in quiet:
        fields = r.fields()
        writable = sum(((1 << f.width) - 1) << f.low for f in fields if access(f) == "RW")
        for pattern in (0xFFFFFFFFFFFFFFFF, 0, random.getrandbits(64)):
            others = [(o, await bench.read(o.address_offset)) for o in quiet if o is not r]
            for i, addr in enumerate(words(r)):
                await bench.write(addr, pattern >> 32 * i & 0xFFFFFFFF)
            for i, addr in enumerate(words(r)):
                want = (pattern & writable | reset(r) & ~writable) >> 32 * i & 0xFFFFFFFF
                assert await bench.read(addr) == want, f"{r.inst_name} after {pattern:#x}"
            for o, value in others:
                now = await bench.read(o.address_offset)
                assert now == value, f"{r.inst_name} written, {o.inst_name} changed"
    # sticky bits: set by a pulse, cleared as the description says
    await bench.reset()
    for r in registers:
        for f in r.fields():
            setter = f.get_property("set_by")
            if setter is None:
                assert access(f) not in ("W1C", "WC"), f"{f.inst_name}: nothing sets it"
                continue
            await bench.pulse(**{setter: 1, "err_code": 5, "err_layer": 77, "err_addr": 0x1234})
            mask = ((1 << f.width) - 1) << f.low
            want = 5 << f.low if setter == "ev_err" and access(f) == "WC" else 1 << f.low
            assert await bench.read(r.address_offset) & mask == want
            if access(f) == "RO":  # interrupt_raw: cleared through interrupt_clear
                await bench.write(CLEAR, mask)
            else:
                await bench.write(r.address_offset, 0 if access(f) == "W1C" else mask)
                if access(f) == "W1C":
                    assert await bench.read(r.address_offset) & mask == want, "cleared by a 0"
                    await bench.write(r.address_offset, mask)
            assert await bench.read(r.address_offset) & mask == 0, f"{r.inst_name} not cleared"
            await bench.write(ERR_CODE, 0)
            await bench.write(INT_STATUS, 3)
            await bench.write(DONE, 1)


@cocotb.test()
async def layer_fifo(dut) -> None:
    """Order of the words; 16 layers fit; the 17th is dropped whole; flush; soft reset."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    for by_control in (False, True):
        pushed = [await bench.push_layer() for _ in range(16)]
        status = await bench.read(AI_STATUS)
        assert status >> 24 & 0x1F == 16 and status >> 5 & 1
        assert await bench.read(ERR_CODE) == 0
        # a dropped layer stays dropped although room comes while its words are pushed
        await bench.push_word(1)
        assert await bench.pop(12) == pushed.pop(0)
        for _ in range(11):
            await bench.push_word(2)
        assert await bench.read(ERR_CODE) == OVERRUN
        assert await bench.read(INT_STATUS) == 2 and await bench.read(AI_STATUS) & 2
        await bench.write(ERR_CODE, 0)
        pushed.append(await bench.push_layer())
        assert await bench.read(ERR_CODE) == 0
        flat = [w for layer in pushed for w in layer]
        assert await bench.pop(len(flat)) == flat
        assert await bench.read(AI_STATUS) >> 24 & 0x1F == 0
        # part of a layer, then empty it: the next layer is whole again
        await bench.push_layer()
        await bench.push_word(3)
        if by_control:
            await bench.write(FIFO_CTRL, 0x1B)
            await ReadOnly()
            assert int(dut.arg_flush.value)
            await RisingEdge(dut.clk)
            await bench.write(FIFO_CTRL, 0x1F)
        else:
            await bench.write(CTRL, 2)
            await RisingEdge(dut.clk)
        assert await bench.read(AI_STATUS) >> 24 & 0x1F == 0
        await ReadOnly()
        assert not int(dut.arg_valid.value)
        await RisingEdge(dut.clk)
        layer = await bench.push_layer()
        assert await bench.pop(12) == layer


@cocotb.test()
async def driver_whole_network(dut) -> None:
    """docs/kpu.md section 3, sequence 1: refill on almost_empty until all layers are through."""
    for order in ("clear_push", "slow"):
        bench = Bench(dut)
        dut = bench.dut
        await bench.reset()
        await bench.write(CLEAR, 7)
        await bench.write(THRESHOLD, 0x1C)
        todo, given, taken = 30, [], []
        for _ in range(12):
            given += await bench.push_layer()
            todo -= 1
        assert await bench.read(RAW) & FULL, "12 layers are almost full"
        await bench.write(MASK, 0b101)
        await ReadOnly()
        assert not int(dut.irq.value), "nothing stale when the mask opens"
        await RisingEdge(dut.clk)
        interrupts = 0
        while len(taken) < 30 * 12:
            taken += await bench.pop(12)
            await ReadOnly()
            pending = int(dut.irq.value)
            await RisingEdge(dut.clk)
            if not pending:
                continue
            assert await bench.read(STATUS) == EMPTY
            interrupts += 1
            assert interrupts < 60, "an interrupt storm"
            await bench.write(CLEAR, 7)
            if order == "slow" and len(given) > len(taken):
                taken += await bench.pop(12)  # the core is faster than the handler
            if todo:
                given += await bench.push_layer()
                todo -= 1
        assert todo == 0 and taken == given
        await bench.write(CLEAR, 7)
        for _ in range(5):
            await RisingEdge(dut.clk)
            assert not int(dut.irq.value), "an idle device with an empty FIFO must be quiet"


@cocotb.test()
async def driver_layer_by_layer(dut) -> None:
    """docs/kpu.md section 3, sequence 2: calc_done alone, cleared for each layer."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    for _ in range(4):
        await bench.write(CLEAR, 7)
        await bench.write(MASK, 0b110)
        layer = await bench.push_layer()
        assert await bench.pop(12) == layer
        assert not int(dut.irq.value)
        await bench.pulse(ev_calc_done=1)
        await RisingEdge(dut.clk)
        assert int(dut.irq.value) and await bench.read(STATUS) == CALC
    await bench.write(MASK, 7)
    assert await bench.read(STATUS) == 0 and await bench.read(RAW) & CALC
    assert not int(dut.irq.value)


@cocotb.test()
async def result_fifo(dut) -> None:
    """16 words deep, back-pressure, popped by the read of the high word; underrun; flush."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    sent = [random.getrandbits(64) for _ in range(16)]
    for word in sent:
        dut.result_valid.value, dut.result_data.value = 1, word
        await ReadOnly()
        assert int(dut.result_ready.value)
        await RisingEdge(dut.clk)
    await ReadOnly()
    assert not int(dut.result_ready.value), "the 17th word must wait"
    await RisingEdge(dut.clk)
    dut.result_valid.value = 0
    assert await bench.read(AI_STATUS) >> 16 & 0x1F == 16
    for word in sent:
        assert await bench.read(DATA_LO) == word & 0xFFFFFFFF
        assert await bench.read(DATA_LO) == word & 0xFFFFFFFF, "the low word must not pop"
        assert await bench.read(DATA_HI) == word >> 32
    for addr in (DATA_LO, DATA_HI):
        assert await bench.read(ERR_CODE) == 0
        assert await bench.read(addr) == 0
        assert await bench.read(ERR_CODE) == UNDERRUN
        await bench.write(ERR_CODE, 0)
    await bench.pulse(result_valid=1, result_data=5)
    await bench.write(FIFO_CTRL, 0x1D)
    await bench.write(FIFO_CTRL, 0x1F)
    assert await bench.read(AI_STATUS) & 0x1F0010 == 0


@cocotb.test()
async def starts(dut) -> None:
    """What starts, what is refused, and what a start clears."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    bus = int(dut.AHB_W.value) // 8
    refused = [
        {"mode": 0, "length": 1},
        {"mode": 1, "length": 0},
        {"mode": 1, "length": 3, "res": bus // 2},
        {"mode": 2, "length": 3, "res": 0, "left": 1, "res_stride": bus // 2},
        {"mode": 1},
    ]
    for values in refused:
        await bench.configure(**values)
        assert not await bench.start(), values
        assert await bench.read(ERR_CODE) == BAD_CONFIG
        assert await bench.read(AI_STATUS) & 3 == 2
        await bench.write(ERR_CODE, 0xFF)
        assert await bench.read(ERR_CODE) == 0 and await bench.read(INT_STATUS) == 0
    # mode 2 with nothing to follow is a single inference
    await bench.configure(mode=2, left=0, res_stride=0)
    await bench.pulse(ev_inf_done=1)
    told = {"err_code": 7, "err_layer": 300, "err_stream": 2, "err_waits": 5}
    await bench.pulse(ev_err=1, err_addr=0xABCD0123, **told)
    await bench.pulse(ev_err=1, err_code=3, err_layer=1, err_addr=1)
    assert await bench.read(ERR_CODE) == 7, "the first error stays"
    assert await bench.read(ERR_INFO) == 300 | 2 << 16 | 5 << 20
    assert await bench.read(ERR_ADDR) == 0xABCD0123
    assert await bench.read(INT_STATUS) == 3 and await bench.read(DONE) == 1
    assert int(dut.irq.value) == 0
    await bench.write(INT_MASK, 2)
    assert int(dut.irq.value) == 0
    await ReadOnly()
    assert int(dut.irq.value) == 1
    await RisingEdge(dut.clk)
    assert await bench.start()
    assert await bench.read(MODE) == 1 and int(dut.cfg_more.value) == 0
    for addr in (ERR_CODE, ERR_INFO, ERR_ADDR, INT_STATUS, DONE):
        assert await bench.read(addr) == 0, f"{addr:#x} must be cleared by a start"
    dut.status_busy.value = 1
    assert not await bench.start()
    assert await bench.read(ERR_CODE) == START_BUSY and await bench.read(ERR_INFO) == 0
    await bench.write(CTRL, 2)
    await ReadOnly()
    assert int(dut.soft_reset_pulse.value) and not int(dut.start_pulse.value)
    await RisingEdge(dut.clk)
    dut.status_busy.value = 0
    assert await bench.read(ERR_CODE) == 0
    # two starts in successive cycles: one
    dut.reg_wr.value, dut.reg_addr.value, dut.reg_wdata.value = 1, CTRL, 1
    pulses = 0
    for _ in range(4):
        await RisingEdge(dut.clk)
        await ReadOnly()
        pulses += int(dut.start_pulse.value)
        await RisingEdge(dut.clk)
        dut.reg_wr.value = 0
    assert pulses == 1 and await bench.read(ERR_CODE) == START_BUSY


@cocotb.test()
async def starts_and_resets(dut) -> None:
    """A start behind a reset is kept until the controller has dropped everything; another reset
    forgets it; nothing that the controller says meanwhile is heard; busy from the write on."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    await bench.configure(mode=1, length=1)
    for order, expected in (((2, 1), 1), ((3,), 1), ((2, 1, 2), 0), ((3, 2, 1), 1), ((2,), 0)):
        dut.status_busy.value = 1
        starts, resets = 0, 0
        for i in range(40):
            if i < len(order):
                dut.reg_wr.value, dut.reg_addr.value, dut.reg_wdata.value = 1, CTRL, order[i]
            else:
                dut.reg_wr.value = 0
            # the controller drops everything from the cycle after the pulse on
            dut.status_flushing.value = int(0 < resets and i < 20)
            dut.status_busy.value = int(i < 20)
            for event in ("ev_inf_done", "ev_calc_done", "ev_error", "ev_inf_next"):
                getattr(dut, event).value = int(i < 20)
            dut.err_code.value = 7
            await ReadOnly()
            resets += int(dut.soft_reset_pulse.value)
            if int(dut.start_pulse.value):
                assert i >= 20, f"{order}: a start while everything is dropped"
                starts += 1
            if 0 < i < 20:
                assert int(dut.host_pending.value), f"{order}, cycle {i}"
            await RisingEdge(dut.clk)
        assert (starts, resets) == (expected, sum(w >> 1 & 1 for w in order)), order
        for addr in (DONE, INT_STATUS, ERR_CODE, RAW):
            assert await bench.read(addr) & 0xFF & ~EMPTY == 0, f"{order}: {addr:#x} was set"
        assert await bench.read(AI_STATUS) & 1 == 0
    # busy in the cycle after the write
    for value in (1, 2):
        await bench.write(CTRL, value)
        assert await bench.read(AI_STATUS) & 1, value
        for _ in range(3):
            await RisingEdge(dut.clk)
        assert await bench.read(AI_STATUS) & 1 == 0
    await bench.push_word(5)
    assert await bench.read(AI_STATUS) & 1
    assert not await bench.start()
    assert await bench.read(ERR_CODE) == START_BUSY
    assert await bench.pop(1) == [5]
    # while words are being discarded they do not count, and an accepted start empties the FIFO
    await bench.push_word(6)
    dut.status_hold.value = 1
    assert await bench.read(AI_STATUS) & 1 == 0
    assert await bench.start()
    dut.status_hold.value = 0
    await ReadOnly()
    assert not int(dut.arg_valid.value)
    await RisingEdge(dut.clk)
    # a stop with the start counts for it, one before does not
    await bench.configure(mode=2, left=3)
    for value, more in ((5, 0), (1, 1), (4, 0), (1, 1)):
        await bench.write(CTRL, value)
        await ReadOnly()
        assert int(dut.cfg_more.value) == more, value
        for _ in range(3):
            await RisingEdge(dut.clk)


@cocotb.test()
async def taken_over(dut) -> None:
    """A run has the values of its start; the host's later ones wait for the next."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    bus = int(dut.AHB_W.value) // 8
    registers = {"wgt_adr": 0x110, "bias_adr": 0x114, "list_adr": 0x118, "list_len": LIST_LEN}
    registers |= {"res_adr": RES, "taken_adr": PIX, "eight_bit": EIGHT_BIT}
    await bench.write(MODE, 1)
    before: dict[str, int] = {}
    for _ in range(5):
        values = {n: 64 * random.randrange(1, 15) for n in registers}
        values["eight_bit"] = random.getrandbits(1)
        for name, addr in registers.items():
            await bench.write(addr, values[name])
        for name, value in before.items():
            assert int(getattr(dut, f"cfg_{name}").value) == value, f"{name} changed in a run"
        dut.status_busy.value = 0
        assert await bench.start()
        dut.status_busy.value = 1
        for name, value in values.items():
            assert int(getattr(dut, f"cfg_{name}").value) == value, name
        before = values
    # unaligned while busy: refused, and the register stays
    for addr in (RES, RES_STRIDE):
        was = await bench.read(addr)
        await bench.write(addr, bus // 2)
        assert await bench.read(addr) == was and await bench.read(ERR_CODE) == BAD_CONFIG
        await bench.write(ERR_CODE, 0)
    # the weight width goes with a layer's words
    dut.status_busy.value = 0
    for width in (1, 0):
        await bench.write(EIGHT_BIT, width)
        await bench.push_word(width)
    await bench.write(EIGHT_BIT, 1)
    for width in (1, 0):
        await ReadOnly()
        assert int(dut.arg_eight_bit.value) == width
        await RisingEdge(dut.clk)
        assert await bench.pop(1) == [width]


@cocotb.test()
async def own_addresses(dut) -> None:
    """AI_PIX_ADR and AI_RES_ADR that the host writes during a stream, around the change too."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    await bench.configure(mode=2, length=1, pix=0x100, npix=0x200, pix_stride=0x100)
    await bench.configure(res=0x1000, res_stride=0x40, left=9)
    assert await bench.start()
    assert int(dut.cfg_res_adr.value) == 0x1000
    await bench.write(RES, 0x8000)
    assert int(dut.cfg_res_adr.value) == 0x1000, "the present result stays where it was"
    await bench.pulse(ev_inf_next=1)
    assert int(dut.cfg_res_adr.value) == 0x8000 and await bench.read(PIX) == 0x200
    dut.ev_inf_next.value = 1
    await bench.write(RES, 0xA000)  # in the cycle of the change: for the one after
    dut.ev_inf_next.value = 0
    assert await bench.read(RES) == 0xA000
    assert int(dut.cfg_res_adr.value) == 0x8040
    await bench.pulse(ev_inf_next=1)
    assert int(dut.cfg_res_adr.value) == 0xA000
    await bench.write(PIX, 0x7777)
    await bench.pulse(ev_inf_next=1)
    assert await bench.read(PIX) == 0x7777 and int(dut.cfg_taken_adr.value) == 0x500
    assert int(dut.cfg_res_adr.value) == 0xA040
    # AI_INF_LEFT in the cycle of the last change: the stream goes on
    await bench.write(LEFT, 1)
    dut.ev_inf_next.value = 1
    await bench.write(LEFT, 2)
    dut.ev_inf_next.value = 0
    assert await bench.read(LEFT) == 2 and await bench.read(MODE) == 2


@cocotb.test()
async def windows(dut) -> None:
    """Blocks of 1 KiB; a lock until the hardware reset; a write to a locked window is told."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    values = [random.getrandbits(32) for _ in WINDOWS]
    for addr, value in zip(WINDOWS, values, strict=True):
        await bench.write(addr, value)
        assert await bench.read(addr) == value & ~0x3FF
    guard = sum((v >> 10) << 22 * i for i, v in enumerate(values))
    assert int(dut.guard.value) == guard
    await bench.write(LOCK, 0)
    assert await bench.read(LOCK) == 0
    await bench.write(LOCK, 1)
    await bench.write(LOCK, 0)
    assert await bench.read(LOCK) == 1
    for addr in WINDOWS:
        await bench.write(addr, ~values[0] & 0xFFFFFFFF)
        assert await bench.read(ERR_CODE) == LOCKED
        await bench.write(ERR_CODE, 0)
    await bench.write(CTRL, 2)
    assert int(dut.guard.value) == guard and await bench.read(LOCK) == 1
    await bench.write(WATCHDOG, 77)
    assert int(dut.cfg_watchdog.value) == 77


@cocotb.test()
async def set_and_clear(dut) -> None:
    """An event in the cycle of its clear stays."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    for event, addr, clear in (
        ("ev_calc_done", RAW, CLEAR),
        ("ev_inf_done", INT_STATUS, INT_STATUS),
        ("ev_inf_done", DONE, DONE),
    ):
        getattr(dut, event).value = 1
        await bench.write(clear, 1)
        getattr(dut, event).value = 0
        assert await bench.read(addr) & 1, event
        await bench.write(clear, 1)
        assert not await bench.read(addr) & 1, event
    dut.err_code.value, dut.ev_err.value = 7, 1
    await bench.write(ERR_CODE, 0)
    dut.ev_err.value = 0
    assert await bench.read(ERR_CODE) == 7
    # the number of layers changes, and the clear comes in any cycle around: at most the flag of
    # a change that the host could have seen goes
    await bench.write(THRESHOLD, 0x1F)
    for after in range(4):
        await bench.push_layer()
        await bench.push_layer()
        await bench.write(CLEAR, 7)
        assert await bench.read(RAW) & EMPTY == 0
        assert len(await bench.pop(11)) == 11
        dut.arg_ready.value = 1
        await RisingEdge(dut.clk)
        dut.arg_ready.value = 0
        for _ in range(after):
            await RisingEdge(dut.clk)
        await bench.write(CLEAR, EMPTY)
        seen = await bench.read(RAW) & EMPTY
        assert bool(seen) == (after == 0), f"clear {after} cycles after the change"
        await bench.pop(12)


@cocotb.test()
async def stream(dut) -> None:
    """Step 009 of the patent against a model, with host writes in between."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    bus = int(dut.AHB_W.value) // 8
    model = {"mode": 2, "length": 4, "pix": 0x1001, "npix": 0x2003, "res": 0x8000, "left": 5}
    model |= {"pix_stride": 0x333, "res_stride": 4 * bus}
    await bench.configure(**model)
    assert await bench.start()
    for i in range(6):
        last = model["left"] <= 1
        assert int(dut.cfg_more.value) == int(model["left"] > 0)
        await bench.pulse(ev_inf_next=1)
        model["pix"] = model["npix"]
        model["res"] += model["res_stride"]
        model["npix"] += model["pix_stride"]
        model["mode"] = 1 if last else model["mode"]
        model["left"] = max(0, model["left"] - 1)
        if i == 2:
            model["npix"] = 0x777
            await bench.write(NPIX, 0x777)
        await bench.compare(model, f"after inference {i}")


@cocotb.test()
async def taken_address(dut) -> None:
    """What a prefetch took becomes AI_PIX_ADR; a later write is for the inference after it."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    seen = set()
    model = {"mode": 2, "length": 1, "pix": 0, "npix": 0x4000, "res": 0, "left": 1000}
    model |= {"pix_stride": 0x100, "res_stride": 0}
    await bench.configure(**model)
    assert await bench.start()
    for i in range(60):
        when = random.choice(("never", "before", "with", "after", "twice"))
        seen.add(when)
        write = random.getrandbits(31)
        if when == "before":
            await bench.write(NPIX, write)
            model["npix"] = write
        taken = model["npix"]
        dut.ev_npix_take.value = 1
        if when == "with":  # the write meets the take: the old address was taken
            await bench.write(NPIX, write)
        else:
            await RisingEdge(dut.clk)
        dut.ev_npix_take.value = 0
        await RisingEdge(dut.clk)
        assert await bench.read(AI_STATUS) >> 6 & 1 and await bench.read(TAKEN) == taken
        assert int(dut.cfg_taken_adr.value) == taken, "what the request carries"
        for _ in range({"after": 1, "twice": 2}.get(when, 0)):
            write = random.getrandbits(31)
            await bench.write(NPIX, write)
        await bench.pulse(ev_inf_next=1)
        assert not await bench.read(AI_STATUS) >> 6 & 1
        model["pix"], model["left"] = taken, model["left"] - 1
        later = when in ("with", "after", "twice")
        model["npix"] = write if later else taken + model["pix_stride"]
        await bench.compare(model, f"inference {i}, write {when}")
    assert len(seen) == 5


@cocotb.test()
async def end_of_stream(dut) -> None:
    """AI_INF_LEFT written 0 or AI_CNN_MODE written 1 ends a stream: nothing follows any more."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    for register, value in ((LEFT, 0), (MODE, 1)):
        await bench.configure(mode=2, length=1, left=3)
        assert await bench.start()
        assert int(dut.cfg_more.value)
        await bench.write(register, value)
        await ReadOnly()
        assert not int(dut.cfg_more.value)
        await RisingEdge(dut.clk)


@cocotb.test()
async def counters(dut) -> None:
    """Each counter at its place; the high word is that of the moment the low one was read."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    values = [random.getrandbits(64) for _ in range(14)]
    dut.perf_flat.value = sum(v << 64 * i for i, v in enumerate(values))
    for i, value in enumerate(values):
        assert await bench.read(PERF + 8 * i) == value & 0xFFFFFFFF
        dut.perf_flat.value = random.getrandbits(64 * 14)
        assert await bench.read(PERF + 8 * i + 4) == value >> 32
        dut.perf_flat.value = sum(v << 64 * i for i, v in enumerate(values))
    dut.status_busy.value, dut.status_fc_layer.value, dut.weight_bias_full.value = 1, 1, 0
    dut.status_layer.value = 0x2A5
    assert await bench.read(AI_STATUS) == 0xA509


@pytest.mark.parametrize(("sim", "width"), [("icarus", 32), ("icarus", 128), ("verilator", 32)])
def test_reg_block(sim: str, width: int) -> None:
    names = (
        "reg_block",
        "kpu_regs",
        "ai_cfg",
        "command",
        "inference_cfg",
        "guard_regs",
        "perf_regs",
    )
    sources = [f"rtl/host/{n}.v" for n in names]
    sources += ["rtl/lib/fifo_sync.v", "rtl/lib/fifo_ram.v"]
    sources += ["rtl/lib/ram_1r1w_async.v", "rtl/lib/ram_1r1w.v"]
    test = "tb.reg_block.test_reg_block"
    case = None if width == 32 else ["starts", "stream"]
    run(sim, "reg_block", sources, test, params={"AHB_W": width}, testcase=case)
