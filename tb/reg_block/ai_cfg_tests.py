# SPDX-License-Identifier: Apache-2.0
"""Starts, resets, streams, errors and windows: the AI_CFG part of reg_block."""

import random

from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

from openkpu.layer.regmap import Err
from openkpu_tb.core.block_bench import block_test
from tb.reg_block.bench import EMPTY, FIELDS, WINDOWS, Bench, R


@block_test(Bench)
async def starts(bench: Bench, dut) -> None:
    """Starts that are accepted or refused, and the state that a start clears."""
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
        assert await bench.read(R.AI_ERR_CODE) == Err.BAD_CONFIG
        assert await bench.read(R.AI_STATUS) & 3 == 2
        await bench.write(R.AI_ERR_CODE, 0xFF)
        assert await bench.read(R.AI_ERR_CODE) == 0 and await bench.read(R.AI_INT_STATUS) == 0
    # mode 2 without a following inference is a single inference
    await bench.configure(mode=2, left=0, res_stride=0)
    await bench.pulse(ev_inf_done=1)
    first = {"err_code": 7, "err_layer": 300, "err_stream": 2, "err_waits": 5}
    await bench.pulse(ev_err=1, err_addr=0xABCD0123, **first)
    await bench.pulse(ev_err=1, err_code=3, err_layer=1, err_addr=1)
    assert await bench.read(R.AI_ERR_CODE) == 7, "the first error stays"
    assert await bench.read(R.AI_ERR_INFO) == 300 | 2 << 16 | 5 << 20
    assert await bench.read(R.AI_ERR_ADDR) == 0xABCD0123
    assert await bench.read(R.AI_INT_STATUS) == 3 and await bench.read(R.AI_CNN_DONE) == 1
    assert int(dut.irq.value) == 0
    await bench.write(R.AI_INT_MASK, 2)
    assert int(dut.irq.value) == 0
    await ReadOnly()
    assert int(dut.irq.value) == 1
    await RisingEdge(dut.clk)
    assert await bench.start()
    assert await bench.read(R.AI_CNN_MODE) == 1 and int(dut.cfg_more.value) == 0
    for addr in (R.AI_ERR_CODE, R.AI_ERR_INFO, R.AI_ERR_ADDR, R.AI_INT_STATUS, R.AI_CNN_DONE):
        assert await bench.read(addr) == 0, f"{addr:#x} must be cleared by a start"
    dut.status_busy.value = 1
    await RisingEdge(dut.clk)  # work counts from the next cycle on
    assert not await bench.start()
    assert (
        await bench.read(R.AI_ERR_CODE) == Err.START_BUSY and await bench.read(R.AI_ERR_INFO) == 0
    )
    await bench.write(R.AI_CTRL, 2)
    await ReadOnly()
    assert int(dut.soft_reset_pulse.value) and not int(dut.start_pulse.value)
    await RisingEdge(dut.clk)
    dut.status_busy.value = 0
    assert await bench.read(R.AI_ERR_CODE) == 0
    # two starts in successive cycles: one
    await bench.address(R.AI_CTRL)
    dut.reg_wr.value = dut.reg_wdata.value = dut.reg_command.value = 1
    pulses = 0
    for _ in range(4):
        await RisingEdge(dut.clk)
        await ReadOnly()
        pulses += int(dut.start_pulse.value)
        await RisingEdge(dut.clk)
        dut.reg_wr.value = dut.reg_command.value = 0
    assert pulses == 1 and await bench.read(R.AI_ERR_CODE) == Err.START_BUSY


@block_test(Bench)
async def starts_in_a_row(bench: Bench, dut) -> None:
    """The second of two starts is refused at any distance: the core is busy from the cycle after
    the pulse on."""
    await bench.configure(mode=1, length=1)
    for distance in range(1, 8):
        pulses = 0
        await bench.address(R.AI_CTRL)
        for cycle in range(12):
            write = cycle in (0, distance)
            dut.reg_wr.value, dut.reg_wdata.value = int(write), 1
            dut.reg_command.value = int(write)
            dut.status_busy.value = int(pulses > 0)
            await ReadOnly()
            pulses += int(dut.start_pulse.value)
            await RisingEdge(dut.clk)
        dut.reg_wr.value = dut.reg_command.value = 0
        assert pulses == 1, f"{pulses} starts of two that are {distance} cycles apart"
        assert await bench.read(R.AI_ERR_CODE) == Err.START_BUSY, f"{distance} cycles apart"
        dut.status_busy.value = 0
        await RisingEdge(dut.clk)
        await bench.write(R.AI_ERR_CODE, 0)


@block_test(Bench)
async def starts_and_resets(bench: Bench, dut) -> None:
    """A start after a reset is pending until the controller's flush ends; another reset cancels it;
    events of the controller are ignored meanwhile; busy from the write on."""
    await bench.configure(mode=1, length=1)
    for order, expected in (((2, 1), 1), ((3,), 1), ((2, 1, 2), 0), ((3, 2, 1), 1), ((2,), 0)):
        dut.status_busy.value = 1
        starts, resets = 0, 0
        await bench.address(R.AI_CTRL)
        for i in range(40):
            if i < len(order):
                dut.reg_wr.value = dut.reg_command.value = 1
                dut.reg_wdata.value = order[i]
            else:
                dut.reg_wr.value = dut.reg_command.value = 0
            # the controller flushes from the cycle after the pulse on
            dut.status_flushing.value = int(resets > 0 and i < 20)
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
        for addr in (R.AI_CNN_DONE, R.AI_INT_STATUS, R.AI_ERR_CODE, R.interrupt_raw):
            assert await bench.read(addr) & 0xFF & ~EMPTY == 0, f"{order}: {addr:#x} was set"
        assert await bench.read(R.AI_STATUS) & 1 == 0
    # busy in the cycle after the write
    for value in (1, 2):
        await bench.write(R.AI_CTRL, value, then=R.AI_STATUS)
        assert await bench.read(R.AI_STATUS) & 1, value
        await ClockCycles(dut.clk, 3)
        assert await bench.read(R.AI_STATUS) & 1 == 0
    await bench.push_word(5)
    assert await bench.read(R.AI_STATUS) & 1
    assert not await bench.start()
    assert await bench.read(R.AI_ERR_CODE) == Err.START_BUSY
    assert await bench.pop(1) == [5]
    # words that are being discarded do not make the device busy; an accepted start empties the FIFO
    await bench.push_word(6)
    dut.status_hold.value = 1
    assert await bench.read(R.AI_STATUS) & 1 == 0
    assert await bench.start()
    dut.status_hold.value = 0
    assert not await bench.settled("arg_valid")
    # a stop with the start applies to it, one before does not
    await bench.configure(mode=2, left=3)
    for value, more in ((5, 0), (1, 1), (4, 0), (1, 1)):
        await bench.write(R.AI_CTRL, value)
        await ReadOnly()
        assert int(dut.cfg_more.value) == more, value
        await ClockCycles(dut.clk, 3)


@block_test(Bench)
async def taken_over(bench: Bench, dut) -> None:
    """A run uses the register values of its start; later writes apply to the next run."""
    bus = int(dut.AHB_W.value) // 8
    registers = {"wgt_adr": 0x110, "bias_adr": 0x114, "list_adr": 0x118, "list_len": R.AI_LIST_LEN}
    registers |= {"res_adr": R.AI_RES_ADR, "taken_adr": R.AI_PIX_ADR, "eight_bit": R.eight_bit_mode}
    await bench.write(R.AI_CNN_MODE, 1)
    before: dict[str, int] = {}
    widths = {"list_len": 10, "eight_bit": 1}
    registers = {"watchdog": R.AI_WATCHDOG, **registers}  # the watchdog limit applies at once
    for turn in range(8):
        values = {n: random.getrandbits(widths.get(n, 32)) for n in registers}
        if turn < 2:  # every bit, in one of them
            values = {n: ((1 << widths.get(n, 32)) - 1) * turn for n in registers}
        values["res_adr"] &= ~15  # a multiple of any bus word
        values["list_len"] |= turn == 0
        for name, addr in registers.items():
            await bench.write(addr, values[name])
        before["watchdog"] = values["watchdog"]
        for name, value in before.items():
            assert int(getattr(dut, f"cfg_{name}").value) == value, f"{name} changed in a run"
        dut.status_busy.value = 0
        await RisingEdge(dut.clk)  # work counts from the next cycle on
        assert await bench.start()
        dut.status_busy.value = 1
        await RisingEdge(dut.clk)  # work counts from the next cycle on
        for name, value in values.items():
            assert int(getattr(dut, f"cfg_{name}").value) == value, name
        before = values
    # unaligned while busy: refused, and the register keeps its value
    for addr in (R.AI_RES_ADR, R.AI_RES_STRIDE):
        was = await bench.read(addr)
        await bench.write(addr, bus // 2)
        assert await bench.read(addr) == was and await bench.read(R.AI_ERR_CODE) == Err.BAD_CONFIG
        await bench.write(R.AI_ERR_CODE, 0)
    # the weight width is sampled with a layer's words
    dut.status_busy.value = 0
    for width in (1, 0):
        await bench.write(R.eight_bit_mode, width)
        await bench.push_word(width)
    await bench.write(R.eight_bit_mode, 1)
    for width in (1, 0):
        await ReadOnly()
        assert int(dut.arg_eight_bit.value) == width
        await RisingEdge(dut.clk)
        assert await bench.pop(1) == [width]


@block_test(Bench)
async def own_addresses(bench: Bench, dut) -> None:
    """The host writes AI_PIX_ADR and AI_RES_ADR during a stream, around the change, too."""
    await bench.configure(mode=2, length=1, pix=0x100, npix=0x200, pix_stride=0x100)
    await bench.configure(res=0x1000, res_stride=0x40, left=9)
    assert await bench.start()
    assert int(dut.cfg_res_adr.value) == 0x1000
    await bench.write(R.AI_RES_ADR, 0x8000)
    assert int(dut.cfg_res_adr.value) == 0x1000, "the present result stays where it was"
    await bench.pulse(ev_inf_next=1)
    assert await bench.read(R.AI_PIX_ADR) == 0x200 and int(dut.cfg_res_adr.value) == 0x8000
    await bench.address(R.AI_RES_ADR)
    dut.ev_inf_next.value = 1
    await bench.write(R.AI_RES_ADR, 0xA000)  # in the cycle of the change: for the one after
    dut.ev_inf_next.value = 0
    assert await bench.read(R.AI_RES_ADR) == 0xA000
    assert int(dut.cfg_res_adr.value) == 0x8040
    await bench.pulse(ev_inf_next=1)
    assert await bench.read(R.AI_RES_ADR) == 0xA000 and int(dut.cfg_res_adr.value) == 0xA000
    await bench.write(R.AI_PIX_ADR, 0x7777)
    await bench.pulse(ev_inf_next=1)
    assert await bench.read(R.AI_PIX_ADR) == 0x7777 and int(dut.cfg_taken_adr.value) == 0x500
    assert int(dut.cfg_res_adr.value) == 0xA040
    # AI_INF_LEFT written in the cycle of the last change is too late to extend the stream
    await bench.write(R.AI_INF_LEFT, 1)
    await bench.address(R.AI_INF_LEFT)
    dut.ev_inf_next.value = 1
    await bench.write(R.AI_INF_LEFT, 2)
    dut.ev_inf_next.value = 0
    assert await bench.read(R.AI_INF_LEFT) == 2 and await bench.read(R.AI_CNN_MODE) == 1


@block_test(Bench)
async def windows(bench: Bench, dut) -> None:
    """Blocks of 1 KiB; a lock until the hardware reset; a write to a locked window is reported."""
    values = [random.getrandbits(32) for _ in WINDOWS]
    guard = int(dut.guard.value)
    for i, (addr, value) in enumerate(zip(WINDOWS, values, strict=True)):
        await bench.write(addr, value)
        guard = guard & ~(0x3FFFFF << 22 * i) | (value >> 10) << 22 * i
        await ReadOnly()
        assert int(dut.guard.value) == guard, "a window counts from the cycle after its write on"
        await RisingEdge(dut.clk)
        assert await bench.read(addr) == value & ~0x3FF
    assert int(dut.guard.value) == guard
    await bench.write(R.AI_LOCK, 0)
    assert await bench.read(R.AI_LOCK) == 0
    await bench.write(R.AI_LOCK, 1)
    await bench.write(R.AI_LOCK, 0)
    assert await bench.read(R.AI_LOCK) == 1
    for addr in WINDOWS:
        await bench.write(addr, ~values[0] & 0xFFFFFFFF)
        await bench.error(Err.LOCKED)
    await bench.write(R.AI_CTRL, 2)
    assert int(dut.guard.value) == guard and await bench.read(R.AI_LOCK) == 1
    await bench.write(R.AI_WATCHDOG, 77)
    assert await bench.read(R.AI_WATCHDOG) == 77 and int(dut.cfg_watchdog.value) == 77


@block_test(Bench)
async def spare_rows(bench: Bench, dut) -> None:
    """Rows of the AI RAM are stored, others are refused; a device without a ring stores none."""
    most, held = int(dut.SPARE_MOST.value), 0
    top = min(most, 0x7FFF)
    rows = [(0, 1), (0, top), (most - 1, 1), (3, most - 3), (5, most - 4), (most, 1), (0, most + 1)]
    rows += [(most, 0), (0x7FFF, 0), (1, 0x8000), (0, 0x8000), (0x7FFF, 0xFFFF)]
    rows += [(random.randrange(1 << 15), random.randrange(1 << 16)) for _ in range(20)]
    for first, count in rows:
        if not 0 <= first <= 0x7FFF or count < 0:
            continue
        await bench.write(R.AI_SPARE_ROWS, count << 16 | first)
        if most and count and (count > 0x7FFF or first + count > most):
            await bench.error(Err.BAD_CONFIG)
        elif most:
            held = count << 16 | first
        assert await bench.read(R.AI_SPARE_ROWS) == held, (first, count)
        assert await bench.read(R.AI_ERR_CODE) == 0
        given = (held >> 16) << 15 | held & 0x7FFF
        assert int(dut.cfg_spare.value) == given
    await bench.write(R.AI_CTRL, 2)
    assert await bench.read(R.AI_SPARE_ROWS) == held, "a soft reset keeps the configuration"


@block_test(Bench)
async def set_and_clear(bench: Bench, dut) -> None:
    """An event in the cycle of its clear is kept."""
    for event, addr, clear in (
        ("ev_calc_done", R.interrupt_raw, R.interrupt_clear),
        ("ev_inf_done", R.AI_INT_STATUS, R.AI_INT_STATUS),
        ("ev_inf_done", R.AI_CNN_DONE, R.AI_CNN_DONE),
    ):
        await bench.address(clear)
        getattr(dut, event).value = 1
        await bench.write(clear, 1)
        getattr(dut, event).value = 0
        assert await bench.read(addr) & 1, event
        await bench.write(clear, 1)
        assert not await bench.read(addr) & 1, event
    await bench.address(R.AI_ERR_CODE)
    dut.err_code.value, dut.ev_err.value = 7, 1
    await bench.write(R.AI_ERR_CODE, 0)
    dut.ev_err.value = 0
    assert await bench.read(R.AI_ERR_CODE) == 7
    # the number of layers changes with the clear in any cycle around it: the clear only removes
    # flags of changes that the host could have seen
    await bench.write(R.fifo_threshold, 0x1F)
    for after in range(4):
        await bench.push_layer()
        await bench.push_layer()
        await bench.write(R.interrupt_clear, 7)
        assert await bench.read(R.interrupt_raw) & EMPTY == 0
        assert len(await bench.pop(11)) == 11
        bench.next_address(R.interrupt_clear)
        await bench.pulse(arg_ready=1)
        await ClockCycles(dut.clk, after)
        await bench.write(R.interrupt_clear, EMPTY, then=R.interrupt_raw)
        seen = await bench.read(R.interrupt_raw) & EMPTY
        assert bool(seen) == (after == 0), f"clear {after} cycles after the change"
        await bench.pop(12)


@block_test(Bench)
async def stream(bench: Bench, dut) -> None:
    """Step 009 of the patent against a model, with host writes in between."""
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
            await bench.write(R.AI_NPIX_ADR, 0x777)
        await bench.compare(model, f"after inference {i}")


@block_test(Bench)
async def a_stride_in_time(bench: Bench, dut) -> None:
    """A stride that is written in the cycle before the next inference counts for it."""
    bus = int(dut.AHB_W.value) // 8
    model = {"mode": 2, "length": 4, "pix": 0x1000, "npix": 0x2000, "res": 0x8000, "left": 3}
    await bench.configure(**model, pix_stride=4, res_stride=bus)
    assert await bench.start()
    for name, at in (("res_stride", "res"), ("pix_stride", "npix")):
        before = await bench.read(FIELDS[at])
        await bench.write(FIELDS[name], 64 * bus)
        await bench.pulse(ev_inf_next=1)
        assert await bench.read(FIELDS[at]) == before + 64 * bus, name


@block_test(Bench)
async def long_streams(bench: Bench, dut) -> None:
    """All 32 bits of AI_INF_LEFT count: whichever is set, an inference follows."""
    for bit in range(32):
        for left in {1 << bit, 1 << bit | 1, (1 << bit) + (1 << bit) - 1}:
            await bench.configure(mode=2, length=1, left=left)
            assert await bench.start()
            assert await bench.read(R.AI_CNN_MODE) == 2 and int(dut.cfg_more.value), f"{left:#x}"
            await bench.pulse(ev_inf_next=1)
            more = int(left > 1)
            assert await bench.read(R.AI_INF_LEFT) == left - 1, f"{left:#x}"
            assert await bench.read(R.AI_CNN_MODE) == 1 + more, f"{left:#x} falls back"
            assert int(dut.cfg_more.value) == more, f"{left:#x}"


@block_test(Bench)
async def long_numbers(bench: Bench, dut) -> None:
    """Addresses and strides have 32 bits, with carries through all of them; AI_ERR_INFO has the
    number of the inference modulo 256; any bit of AI_LIST_LEN makes a list."""
    bus = int(dut.AHB_W.value) // 8
    for bit in range(32):
        step = max(1 << bit, bus)
        start = (1 << 32) - step
        await bench.configure(mode=2, length=1 << bit % 10, left=9, pix=start, npix=start)
        await bench.configure(pix_stride=1 << bit, res=start, res_stride=step)
        dut.status_busy.value = 0
        assert await bench.start()
        dut.status_busy.value = 1
        await RisingEdge(dut.clk)  # work counts from the next cycle on
        for n in range(1, 3):
            await bench.pulse(ev_inf_next=1)
            assert await bench.read(R.AI_RES_ADR) == (start + n * step) % (1 << 32), f"bit {bit}"
            assert await bench.read(R.AI_NPIX_ADR) == (start + (n << bit)) % (1 << 32), f"bit {bit}"
    for count in range(1, 258):
        await bench.pulse(ev_inf_next=1)
        if count in (1, 2, 127, 128, 129, 253, 254, 255, 256, 257):
            await bench.pulse(ev_err=1, err_code=7, err_layer=0, err_stream=0, err_waits=0)
            assert await bench.read(R.AI_ERR_INFO) >> 24 == (count + 2) % 256, count
            await bench.write(R.AI_ERR_CODE, 0)
    dut.status_busy.value = 0
    for _ in range(3):
        await RisingEdge(dut.clk)
    await bench.pulse(ev_err=1, err_code=7, err_layer=0, err_stream=0, err_waits=0)
    assert await bench.read(R.AI_ERR_INFO) >> 24 == 0, "a layer of the host belongs to no inference"


@block_test(Bench)
async def taken_address(bench: Bench, dut) -> None:
    """The address that a prefetch latched becomes AI_PIX_ADR; a later write applies to the
    following inference."""
    seen = set()
    model = {"mode": 2, "length": 1, "pix": 0, "npix": 0x4000, "res": 0, "left": 1000}
    model |= {"pix_stride": 0x100, "res_stride": 0}
    await bench.configure(**model)
    assert await bench.start()
    dut.status_busy.value = 1
    await RisingEdge(dut.clk)
    for i in range(60):
        when = random.choice(("never", "before", "with", "after", "twice"))
        seen.add(when)
        write = random.getrandbits(31)
        if when == "before":
            await bench.write(R.AI_NPIX_ADR, write)
            model["npix"] = write
        taken = model["npix"]
        dut.ev_npix_take.value = 1
        if when == "with":  # a write in the cycle of the latch: the old address is latched
            await bench.write(R.AI_NPIX_ADR, write)
        else:
            await RisingEdge(dut.clk)
        dut.ev_npix_take.value = 0
        await RisingEdge(dut.clk)
        assert await bench.read(R.AI_STATUS) >> 6 & 1 and await bench.read(R.AI_TAKEN_ADR) == taken
        assert int(dut.cfg_taken_adr.value) == taken, "the address of the request"
        for _ in range({"after": 1, "twice": 2}.get(when, 0)):
            write = random.getrandbits(31)
            await bench.write(R.AI_NPIX_ADR, write)
        await bench.pulse(ev_inf_next=1)
        assert not await bench.read(R.AI_STATUS) >> 6 & 1
        model["pix"], model["left"] = taken, model["left"] - 1
        later = when in ("with", "after", "twice")
        model["npix"] = write if later else taken + model["pix_stride"]
        await bench.compare(model, f"inference {i}, write {when}")
    assert len(seen) == 5
    await bench.pulse(ev_npix_take=1)
    dut.status_busy.value = 0
    assert not await bench.read(R.AI_STATUS) >> 6 & 1, "nothing is read at rest"
    dut.status_busy.value = 1
    await RisingEdge(dut.clk)
    await bench.pulse(ev_npix_take=1)
    assert await bench.read(R.AI_STATUS) >> 6 & 1
    await bench.write(R.AI_CTRL, 2)
    assert not await bench.read(R.AI_STATUS) >> 6 & 1, "a soft reset forgets what was taken"


@block_test(Bench)
async def end_of_stream(bench: Bench, dut) -> None:
    """AI_INF_LEFT = 0 or AI_CNN_MODE = 1 ends a stream: no inference follows."""
    for register, value in ((R.AI_INF_LEFT, 0), (R.AI_CNN_MODE, 1)):
        await bench.configure(mode=2, length=1, left=3)
        assert await bench.start()
        assert int(dut.cfg_more.value)
        await bench.write(register, value)
        assert not await bench.settled("cfg_more")
    # a start without a following inference is a single inference from its cycle on
    await bench.configure(mode=2, left=0)
    await bench.write(R.AI_CTRL, 1)
    assert await bench.read(R.AI_CNN_MODE) == 1 and not int(dut.cfg_more.value)
