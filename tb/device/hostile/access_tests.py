# SPDX-License-Identifier: Apache-2.0
"""Every word of the register map, read and written, at rest and at work.

The bins of the cross `register`. At work means a list whose bus gives no grant: nothing moves while
all words are accessed, then the bus goes on, and the result is exact.
"""

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge

from openkpu_tb.ahb.host_agent import ERROR, Transfer
from openkpu_tb.core.registers import AI, AI_RAM, FIFO_CTRL, FIFO_DATA_OUT, PERF, Ctrl
from openkpu_tb.coverage.model import Word, register_words
from openkpu_tb.device.device import Device
from openkpu_tb.device.simulation import rng
from tb.device.checked import checked
from tb.device.hostile.tiny_jobs import FLUSH_LAYERS, FLUSH_OFF, StreamJob, at_rest, tidy

# taken over by a start: a job at work does not see what is written later
NEXT_JOB = (
    "AI_PIX_ADR",
    "AI_WGT_ADR",
    "AI_BIAS_ADR",
    "AI_LIST_ADR",
    "AI_LIST_LEN",
    "AI_PIX_STRIDE",
)
# written as they are: they hold what was written, and mean something to the job at work
SAME = (
    *("interrupt_mask", "interrupt_mask_hi", "fifo_threshold", "fifo_threshold_hi"),
    *("eight_bit_mode", "eight_bit_mode_hi", "AI_CNN_MODE", "AI_NPIX_ADR", "AI_RES_ADR"),
    *("AI_INF_LEFT", "AI_RES_STRIDE", "AI_INT_MASK", "AI_READ_FIRST", "AI_READ_LAST"),
    *("AI_WRITE_FIRST", "AI_WRITE_LAST", "AI_WATCHDOG", "AI_SPARE_ROWS"),
    *("fifo_ctrl", "fifo_ctrl_hi"),
)
# bits that take any value, whatever the device does; and while it is idle
AT_WORK = dict.fromkeys(NEXT_JOB, 0xFFFFFFFF) | {"AI_LIST_LEN": 0x3FF}
AT_REST = AT_WORK | dict.fromkeys(("AI_NPIX_ADR", "AI_INF_LEFT", "AI_WATCHDOG"), 0xFFFFFFFF)
AT_REST |= dict.fromkeys(("AI_RES_ADR", "AI_RES_STRIDE"), 0xFFFFFFF0)
AT_REST |= {"AI_CNN_MODE": 3, "fifo_threshold": 0xFF, "AI_INT_MASK": 3, "interrupt_mask": 7}
CLEARING = ("interrupt_clear", "interrupt_clear_hi", "AI_CNN_DONE", "AI_INT_STATUS", "AI_ERR_CODE")
NO_EFFECT = ("AI_CTRL", "AI_LOCK")  # a 0 does nothing
PUSH = ("layer_argument_fifo", "layer_argument_fifo_hi")


async def everything(
    device: Device, found: list[str], rng: np.random.Generator, masks: dict[str, int]
) -> None:
    """Read and write every word; what was wrong goes to ``found``. ``masks``: bits of the registers
    that may get any value now."""
    # a pushed word makes the device busy: last
    for addr, word in sorted(register_words().items(), key=lambda entry: entry[1].name in PUSH):
        before = await device.read(addr)
        await write(device, addr, word, before, found, rng, masks)
    await device.write(FIFO_CTRL, FLUSH_LAYERS)  # the word that was pushed
    await device.write(FIFO_CTRL, FLUSH_OFF)


async def write(
    device: Device,
    addr: int,
    word: Word,
    before: int,
    found: list[str],
    rng: np.random.Generator,
    masks: dict[str, int],
) -> None:
    """Write a word as its kind allows, and look at what it holds then."""
    name = word.name
    if name in masks:
        value = int(rng.integers(0, 1 << 32)) & masks[name]
        values = [value, value ^ masks[name], *([before] if name in SAME else [])]
    elif name in SAME:
        values = [before]
    elif name in CLEARING or name in PUSH or name in NO_EFFECT:
        await device.write(addr, 0)
        return
    else:  # not to be written: counters, states, constants, what lies behind a narrow field
        await device.write(addr, ~before & 0xFFFFFFFF)
        counts = (addr >= PERF and addr < AI["AI_ID"]) or name in ("AI_STATUS", "interrupt_raw")
        now = await device.read(addr)
        if now != before and not (counts and now >= before):
            found.append(f"{name} was {before:#x}, written it is {now:#x}")
        return
    for value in values:
        await device.write(addr, value)
        now = await device.read(addr)
        if now != value:
            found.append(f"{name} is {now:#x}, {value:#x} was written")


@checked()
async def every_access(tb) -> None:
    """Reset values first, then every word at rest, then at work."""
    random, device, found = rng(), Device(tb, cocotb.RANDOM_SEED), list[str]()
    tb.rst.value = 1
    for _ in range(4):
        await FallingEdge(tb.clk)
    tb.rst.value = 0
    await FallingEdge(tb.clk)
    for addr, word in register_words().items():
        if addr & ~7 == FIFO_DATA_OUT:
            continue  # its read is an error: last
        value = await device.read(addr)
        if word.has_reset and value != word.reset:
            found.append(f"{word.name} after reset {value:#x}, expected {word.reset:#x}")
    for addr in (FIFO_DATA_OUT, FIFO_DATA_OUT + 4):
        assert await device.read(addr) == 0
    await device.clear()
    await device.unmask()
    await everything(device, found, random, AT_REST)
    assert await at_rest(device)
    await tidy(device, hung=False)
    await device.reset()
    job = StreamJob(device, random, 1)
    await job.place()
    await job.arm()
    tb.cfg_dead.value = 1
    await device.write(AI["AI_CTRL"], Ctrl.START)
    busy = [await device.read(AI["AI_STATUS"]) & 1]
    await everything(device, found, random, AT_WORK)
    busy.append(await device.read(AI["AI_STATUS"]) & 1)
    tb.cfg_dead.value = 0
    assert busy == [1, 1], f"not at work all the time: {busy}"
    assert await at_rest(device), "the job hangs"
    slots = await job.slots()
    assert slots == job.clean, f"results {slots} of a job during which everything was accessed"
    assert not found, "; ".join(found)


@checked({12})
async def refused_accesses(device: Device) -> None:
    """Addresses of nothing, registers in part, words of the AI RAM that are none: all are answered
    ERROR, nothing is recorded, and registers and AI RAM stay as they were (docs/programming.md 1).

    Misaligned accesses break rule 12 of the bus.
    """
    words, row = register_words(), rng().integers(0, 256, 64, np.uint8)
    await device.back.load_ram(0, row)
    shown = [addr for addr in words if addr & ~7 != FIFO_DATA_OUT]
    before = [await device.read(addr) for addr in shown]
    bad = [(addr, 2) for addr in (*range(0, 0x400, 4), 0x1000, 0x1FFFFC) if addr not in words]
    bad += [
        (addr + lane, size) for addr in words for size in (0, 1) for lane in range(0, 4, 1 << size)
    ]
    bad += [(AI_RAM + at, size) for size in (1, 2) for at in range(8) if at % (1 << size)]
    tried = [Transfer(at, write, 0xFFFFFFFF, size) for at, size in bad for write in (False, True)]
    done = await device.attempt(*tried)
    assert all(t.resp == ERROR for t in done), [t for t in done if not t.resp][:4]
    assert [await device.read(addr) for addr in shown] == before
    assert np.array_equal((await device.back.read_ram(0, 1))[0], row)
