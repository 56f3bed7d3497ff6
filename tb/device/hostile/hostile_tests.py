# SPDX-License-Identifier: Apache-2.0
"""A host that starts, resets, flushes, pushes and clears in the one unlucky cycle."""

from collections.abc import Iterable

from openkpu_tb.core.registers import (
    AI,
    FIFO_THRESHOLD,
    INTERRUPT_CLEAR,
    INTERRUPT_RAW,
    Ctrl,
    Int,
    Kpu,
)
from openkpu_tb.device.device import Device
from openkpu_tb.device.simulation import SLOW, rng
from tb.device.checked import checked
from tb.device.hostile import timeline
from tb.device.hostile.timeline import Findings, burst, merged, read, write
from tb.device.hostile.tiny_jobs import (
    DEFAULT_THRESHOLDS,
    LayerJob,
    StreamJob,
    at_rest,
    moments,
    tidy,
)

NEAR = range(-1, 2) if SLOW else range(-6, 7)  # cycles around an event
CTRL = AI["AI_CTRL"]
LAYER_WRITES = 24  # that push a layer
ELSEWHERE = 0x4000  # where the list job lies when there are host layers too


def share(cases: Iterable, most: int = 10_000) -> list:
    """All of the cases, or ``most`` of them by the seed; a handful on the slow simulator."""
    cases = list(cases)
    most = min(most, 6) if SLOW else most
    if len(cases) <= most:
        return cases
    return [cases[i] for i in sorted(rng(len(cases)).choice(len(cases), most, replace=False))]


async def stream_job(device: Device, count: int, base: int = 0, images: int = 8) -> StreamJob:
    job = StreamJob(device, rng(), count, images=images, base=base)
    await job.place()
    return job


async def layer_job(device: Device, count: int) -> LayerJob:
    job = LayerJob(device, rng(1), count, row=2048)  # no list uses these
    await job.place()
    return job


async def clear_against_set(
    device: Device, found: Findings, name: str, script: dict, event: int, bit: int, clear
) -> None:
    """A clear in the cycles around an event: the bit is lost for a later clear only.

    Of almost_empty the cycle behind the event is left open, in which no host can have seen it: the
    number of layers that the clear silences is looked at a cycle later.
    """
    look, acknowledge = clear
    for k in NEAR:
        at = event + k
        whole = merged(script, {at: acknowledge})
        shown = read(look)
        whole[max(at, event) + 1] = shown
        await timeline.play(device, whole)
        want = int(k <= 0)
        got = shown.data >> bit & 1
        left_open = k == 1 and name.startswith("almost_empty")
        found.check(got == want or left_open, f"{name}, cleared {k:+}: {got}, expected {want}")
        await tidy(device, not await at_rest(device))


@checked()
async def set_wins_over_clear(device: Device) -> None:
    """An interrupt that is raised in the cycle in which the host clears it stands."""
    job, stream = await layer_job(device, 5), await stream_job(device, 1, ELSEWHERE)
    found = Findings("set against clear")
    await job.arm()
    pushed = 5 * LAYER_WRITES
    silence = write(INTERRUPT_CLEAR, int(Kpu.ALMOST_EMPTY))
    thresholds = [write(FIFO_THRESHOLD, DEFAULT_THRESHOLDS)]
    base = burst(0, thresholds + job.pushes())
    script = merged(base, timeline.watching(INTERRUPT_RAW, pushed + 1, pushed + 600))
    await timeline.play(device, script)
    raw = timeline.values(script, INTERRUPT_RAW)
    first = timeline.rises(raw, 1)[-1]
    calc_done = timeline.rises(raw, 0)[0]
    await tidy(device, not await at_rest(device))
    clear = INTERRUPT_RAW, write(INTERRUPT_CLEAR, 7)
    await clear_against_set(device, found, "almost_empty", base, first, 1, clear)
    await clear_against_set(device, found, "calc_done", base, calc_done, 0, clear)
    # silenced, then raised again by the last layer
    base = merged(base, {first + 9: silence})
    script = merged(base, timeline.watching(INTERRUPT_RAW, first + 10, first + 500))
    await timeline.play(device, script)
    again = timeline.rises(timeline.values(script, INTERRUPT_RAW), 1)
    await tidy(device, not await at_rest(device))
    for event in again:
        await clear_against_set(device, found, "almost_empty again", base, event, 1, clear)
    seen = await moments(stream)
    start = {0: write(CTRL, Ctrl.START)}
    done = seen.done[0]
    for name, addr in (("AI_INT_STATUS", "AI_INT_STATUS"), ("AI_CNN_DONE", "AI_CNN_DONE")):
        script = merged(start, timeline.watching(AI[addr], 1, seen.rest + 4))
        await timeline.play(device, script)
        (event,) = timeline.rises(timeline.values(script, AI[addr]), 0)
        assert abs(event - done) < 4
        await tidy(device, not await at_rest(device))
        clear = AI[addr], write(AI[addr], int(Int.DONE))
        await clear_against_set(device, found, name, start, event, 0, clear)
    found.verdict()
