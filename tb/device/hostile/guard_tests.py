# SPDX-License-Identifier: Apache-2.0
"""Address windows: nothing outside of them appears on the bus, and the run ends with BAD_ACCESS.

The bench counts the cycles in which the device drives an address outside of cfg_rd_lo..cfg_rd_hi,
cfg_wr_lo..cfg_wr_hi (strays), with no help of the device.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from openkpu_tb.core.registers import AI, Err
from openkpu_tb.device.device import Device
from tb.device.checked import checked
from tb.device.hostile import timeline
from tb.device.hostile.hostile_stream_tests import (
    BIAS,
    LIST,
    LIST_BYTES,
    PIXEL,
    RESULT,
    START,
    WEIGHT,
    prefix,
    whole,
)
from tb.device.hostile.timeline import Findings, burst, merged, read, write
from tb.device.hostile.tiny_jobs import UNTOUCHED, StreamJob, moments, share, stream_job, tidy

KIB = 1024
TOP = 1 << 32
LOW, MIDDLE, HIGH = 0x4000, 0x10000, 0x20000  # places for what is read
WINDOWS = ("AI_READ_FIRST", "AI_READ_LAST", "AI_WRITE_FIRST", "AI_WRITE_LAST")
OPEN: dict[str, int] = dict(zip(WINDOWS, (0, TOP - KIB, 0, TOP - KIB), strict=True))
FLIGHT = 80  # cycles in which bursts that were given to the master before are through


def sentinels(device: Device, windows: dict[str, int]) -> int:
    """The bench watches for these windows from now on; strays so far."""
    tb = device.tb
    tb.cfg_rd_lo.value = windows["AI_READ_FIRST"]
    tb.cfg_rd_hi.value = windows["AI_READ_LAST"] + KIB - 1
    tb.cfg_wr_lo.value = windows["AI_WRITE_FIRST"]
    tb.cfg_wr_hi.value = windows["AI_WRITE_LAST"] + KIB - 1
    return int(tb.strays.value)


def opening(windows: dict[str, int]) -> list:
    return [write(AI[name], value) for name, value in windows.items()]


@dataclass
class Piece:
    """What one stream reads or writes, and how it lies across the border of a block."""

    register: str
    stream: int
    before: int  # bytes of it before the border of a block
    size: int  # all that is used of it
    border_layer: int  # layer of the transfer that begins at the border
    begins: int = 0  # byte of it that is wanted first

    def moved(self, job: StreamJob, border: int) -> int:
        """Address that puts the border ``before`` bytes into the piece."""
        return border - self.before


def pieces(job: StreamJob) -> list[Piece]:
    """Each of the five streams."""
    layers, last = job.network.layers, len(job.network.layers) - 1
    weights = [a.para_start_addr for a in layers]
    tables = [(a.bwsx_base_addr, n) for n, a in enumerate(layers)]
    tables += [(a.active_addr, n) for n, a in enumerate(layers)]
    assert layers[0].weight_count > 16
    in_weights = 16
    in_tables = max(a.active_addr for a in layers[:2]) + 8  # within a table of layer 0 or 1
    owner = max(t for t in tables if t[0] <= in_tables)[1]
    return [
        Piece("AI_LIST_ADR", LIST, LIST_BYTES + 40, LIST_BYTES * len(layers), 1),
        Piece("AI_WGT_ADR", WEIGHT, in_weights, max(weights) + layers[-1].weight_count, 0),
        Piece("AI_BIAS_ADR", BIAS, in_tables, max(tables)[0] + 200, owner, layers[0].active_addr),
        Piece("AI_PIX_ADR", PIXEL, 32, job.images[0].size, 0),
        Piece("AI_RES_ADR", RESULT, 4, 8, last),
    ]


async def moved(job: StreamJob, piece: Piece, border: int) -> dict[str, int]:
    """Registers of the job with a piece across a border; its bytes are there."""
    device, at = job.device, piece.moved(job, border)
    if piece.stream == RESULT:
        await device.back.load_storage(at, np.full(16, 0xEE, dtype=np.uint8))
    else:
        first = job.registers[piece.register] - job.base
        data = job.storage.data[first : first + piece.size]
        # (the back door takes words)
        skip = at % 4
        await device.back.load_storage(at - skip, np.pad(data, (skip, 0)))
    return {piece.register: at}


@checked()
async def a_block_outside(device: Device) -> None:
    """Every stream with one block outside, at either end: BAD_ACCESS, and it stays off the bus.

    With the window one block larger the job is exact.
    """
    job = await stream_job(device, 1, MIDDLE)
    assert not await job.clean_run()
    found = Findings("a block outside")
    cases = [*product(pieces(job), ("first", "last"), (False, True))]
    for piece, end, inside in share(cases, 40):
        border = LOW + 4 * KIB if end == "first" else HIGH + 4 * KIB
        own = await moved(job, piece, border)
        kind = "WRITE" if piece.stream == RESULT else "READ"
        # one block more than the border, or up to the border
        bound = border - KIB if end == "last" or inside else border
        bound += KIB if end == "last" and inside else 0
        windows = OPEN | {f"AI_{kind}_{end.upper()}": bound}
        before = sentinels(device, windows)
        start, first_slot = own[piece.register], job.first_slot
        if piece.stream == RESULT:
            job.first_slot = start
        job.registers |= own
        await job.arm()
        script = burst(0, [*opening(windows), START])
        await timeline.play(device, script)
        outcome = await job.outcome()
        await device.write_many({AI[n]: v for n, v in OPEN.items()})
        strays = sentinels(device, OPEN) - before
        regs, bad = outcome.regs, []
        if inside:
            want = [0, *[UNTOUCHED] * (len(outcome.slots) - 1)]
            bad += [] if whole(outcome, want) else ["it did not run"]
        else:
            at = start + piece.begins if end == "first" else border
            layer = piece.border_layer if end == "last" else 0
            layer = len(job.network.layers) - 1 if piece.stream == RESULT else layer
            info = piece.stream << 16 | layer
            bad += [] if outcome.error == Err.BAD_ACCESS else ["no BAD_ACCESS"]
            bad += [] if regs["AI_ERR_ADDR"] & ~3 == at & ~3 else [f"{regs['AI_ERR_ADDR']:#x}"]
            bad += [] if regs["AI_ERR_INFO"] == info else [f"info {regs['AI_ERR_INFO']:#x}"]
            bad += ["a result"] if any(s >= 0 for s in outcome.slots) else []
            bad += ["hangs"] if outcome.hung else []
        bad += [f"{strays} cycles outside on the bus"] if strays else []
        await tidy(device, outcome.hung)
        job.first_slot = first_slot
        job.registers |= {piece.register: job.storage.registers[piece.register]}
        clean = await job.clean_run()
        bad += [clean] if clean else []
        name = f"{piece.register}, {end} {'inside' if inside else 'outside'}"
        found.check(not bad, f"{name}: {outcome.brief}; {', '.join(bad)}")
    found.verdict()


async def apart(job: StreamJob) -> None:
    """Images in blocks of their own from HIGH on, results from HIGH + 64 KiB on."""
    device = job.device
    for n, image in enumerate(job.images):
        await device.back.load_storage(HIGH + n * KIB, image.view(np.uint8).reshape(-1))
    job.registers |= {"AI_PIX_ADR": HIGH, "AI_NPIX_ADR": HIGH + KIB, "AI_PIX_STRIDE": KIB}
    job.registers |= {"AI_RES_ADR": HIGH + 64 * KIB, "AI_RES_STRIDE": KIB}
    job.first_slot, job.stride = HIGH + 64 * KIB, KIB


@checked()
async def window_while_busy(device: Device) -> None:
    """A window closed in any cycle of a stream acts on all bursts but those under way.

    Opened again after the error, the next job is exact.
    """
    job = await stream_job(device, 4, images=6)
    await apart(job)
    seen = await moments(job)
    found = Findings("a window closed while busy")
    cases = product(("AI_READ_LAST", "AI_WRITE_LAST"), range(1, seen.rest))
    for name, at in share(cases, 60):
        closed = OPEN | {name: 0}  # the first block: nothing of the job's images or results
        await job.arm()
        script = merged({0: START}, {at: write(AI[name], 0), at + 1: read(AI[name])})
        start = await timeline.play(device, script)
        back = script[at + 1].data
        await timeline.until(device, start + at + FLIGHT)
        before = sentinels(device, closed)
        outcome = await job.outcome()
        strays = sentinels(device, OPEN) - before
        await device.write(AI[name], OPEN[name])
        regs = outcome.regs
        stored = sum(s >= 0 for s in outcome.slots)
        good = not outcome.hung and not strays and back == 0
        good = good and outcome.slots == prefix(job, stored)
        streams = {"AI_READ_LAST": (LIST, BIAS, WEIGHT, PIXEL), "AI_WRITE_LAST": (RESULT,)}[name]
        if outcome.error:
            good = good and outcome.error == Err.BAD_ACCESS
            good = good and regs["AI_ERR_INFO"] >> 16 & 7 in streams
            good = good and regs["AI_ERR_INFO"] >> 24 == stored
        else:  # nothing more was to be read, or to be written
            good = good and outcome.slots == job.clean
            good = good and at > (seen.changes[1] if name == "AI_READ_LAST" else seen.changes[2])
        text = f"{outcome.brief}, info {regs['AI_ERR_INFO']:#x}, {strays} strays"
        await tidy(device, outcome.hung)
        bad = await job.clean_run()
        found.check(good and not bad, f"{name} in cycle {at}: {text}; {bad}")
    found.verdict()
