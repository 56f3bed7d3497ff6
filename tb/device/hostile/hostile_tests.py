# SPDX-License-Identifier: Apache-2.0
"""A host that starts, resets, flushes, pushes and clears in the one unlucky cycle."""

from collections.abc import Iterable
from itertools import product

import cocotb
import numpy as np
from openkpu_tb.core.registers import (
    AI,
    FIFO_CTRL,
    FIFO_THRESHOLD,
    INTERRUPT_CLEAR,
    INTERRUPT_RAW,
    Ctrl,
    Err,
    Int,
    Kpu,
)
from openkpu_tb.device.device import Device

from tb.device.checked import checked
from tb.device.hostile import timeline
from tb.device.hostile.timeline import Findings, burst, merged, read, write
from tb.device.hostile.tiny_jobs import (
    DEFAULT_THRESHOLDS,
    FLUSH_LAYERS,
    FLUSH_OFF,
    LAYERS_DONE,
    UNTOUCHED,
    LayerJob,
    StreamJob,
    at_rest,
    moments,
    tidy,
)

SLOW = "icarus" in cocotb.SIM_NAME.lower()
NEAR = range(-1, 2) if SLOW else range(-6, 7)  # cycles around an event
CTRL, STATUS = AI["AI_CTRL"], AI["AI_STATUS"]
LAYER_WRITES = 24  # that push a layer
ELSEWHERE = 0x4000  # where the list job lies when there are host layers too


def rng(more: int = 0) -> np.random.Generator:
    return np.random.default_rng([cocotb.RANDOM_SEED & 0xFFFFFFFF, more])


def share(cases: Iterable, most: int = 10_000) -> list:
    """All of the cases, or ``most`` of them by the seed; a handful on the slow simulator."""
    cases = list(cases)
    most = min(most, 6) if SLOW else most
    if len(cases) <= most:
        return cases
    return [cases[i] for i in sorted(rng(len(cases)).choice(len(cases), most, replace=False))]


async def begin(tb) -> Device:
    print(f"seed {cocotb.RANDOM_SEED}")
    device = Device(tb, cocotb.RANDOM_SEED)
    await device.reset()
    return device


async def stream_job(device: Device, count: int, base: int = 0, images: int = 8) -> StreamJob:
    job = StreamJob(device, rng(), count, images=images, base=base)
    await job.place()
    return job


async def layer_job(device: Device, count: int) -> LayerJob:
    job = LayerJob(device, rng(1), count)
    await job.place()
    return job


@checked()
async def flush_while_layers_run(tb) -> None:
    """fifo_ctrl empties the layer FIFO in every cycle of three layers: what was collected runs.

    The layers that run are the first ones, never fewer for a later flush, each exact; the next
    layers are exact too.
    """
    device = await begin(tb)
    job = await layer_job(device, 3)
    assert not await job.clean_run()
    pushed = 3 * LAYER_WRITES
    last = pushed + 330
    script = merged(burst(0, job.pushes()), timeline.watching(LAYERS_DONE, pushed, last))
    await job.trial(script)
    over = dict(timeline.values(script, LAYERS_DONE))
    script = merged(burst(0, job.pushes()), timeline.watching(STATUS, pushed, last))
    await job.trial(script)
    running = {c: s >> 8 & 255 for c, s in timeline.values(script, STATUS)}
    found, most = Findings("flush of the layer FIFO"), 0
    for at in share(range(pushed, last), 250):
        flush = burst(at, [write(FIFO_CTRL, FLUSH_LAYERS), write(FIFO_CTRL, FLUSH_OFF)])
        outcome = await job.trial(merged(burst(0, job.pushes()), flush))
        count = sum(slot >= 0 for slot in outcome.slots)
        prefix = [n if n < count else UNTOUCHED for n in range(3)]
        # layers over or at work when the flush came, and as many as ran for an earlier one
        least = max(over[at] - over[pushed], running[at] + 1, most)
        most = max(most, count)
        good = outcome.slots == prefix and count >= least and not outcome.hung
        good = good and not outcome.error
        bad = await job.clean_run()
        found.check(good and not bad, f"cycle {at}, at least {least}: {outcome.brief}; {bad}")
    assert SLOW or most == 3, "no flush came late"
    taken = LAYER_WRITES + 5  # by then an idle device has taken all words of a layer
    for at in share(range(LAYER_WRITES, LAYER_WRITES + 64)):
        flush = burst(at, [write(FIFO_CTRL, FLUSH_LAYERS), write(FIFO_CTRL, FLUSH_OFF)])
        outcome = await job.trial(merged(burst(0, job.pushes(0, 1)), flush))
        good = outcome.slots[0] == 0 or (at < taken and outcome.slots[0] == UNTOUCHED)
        good = good and not outcome.hung and not outcome.error
        bad = await job.clean_run()
        found.check(good and not bad, f"one layer, cycle {at}: {outcome.brief}; {bad}")
    found.verdict()


@checked()
async def busy_at_once(tb) -> None:
    """AI_STATUS.busy is 1 in the cycle after a start, a soft reset, the first word of a layer."""
    device = await begin(tb)
    stream, layers = await stream_job(device, 1, ELSEWHERE), await layer_job(device, 1)
    found = Findings("busy in the cycle after")
    causes = {
        "start": [write(CTRL, Ctrl.START)],
        "soft reset": [write(CTRL, Ctrl.SOFT_RESET)],
        "first word": layers.pushes()[:2],
        "reset and start": [write(CTRL, Ctrl.SOFT_RESET | Ctrl.START)],
    }
    for name, writes in causes.items():
        await stream.arm()
        look = [read(STATUS) for _ in range(4)]
        await timeline.play(device, burst(0, [*writes, *look]))
        idle = [n for n, t in enumerate(look) if not t.data & 1]
        # a reset of an idle device may be over after a cycle or two, the others take longer
        checked = idle[:1] == [0] if name == "soft reset" else bool(idle)
        found.check(not checked, f"{name}: idle in the reads {idle} after it")
        await tidy(device, not await at_rest(device))
    found.verdict()


@checked()
async def start_after_reset(tb) -> None:
    """A start in any cycle after a soft reset, or in the same write, happens after the reset."""
    device = await begin(tb)
    job = await stream_job(device, 2)
    assert not await job.clean_run()
    reset, start = write(CTRL, Ctrl.SOFT_RESET), write(CTRL, Ctrl.START)
    found = Findings("start after soft reset")
    change = (await moments(job)).changes[0]
    cases = {"both in one write": {0: write(CTRL, Ctrl.SOFT_RESET | Ctrl.START)}}
    cases |= {f"start {k} cycles later": {0: reset, k: start} for k in range(1, 13)}
    for busy in share(range(20, 700), 12):
        for k in range(1, 9):
            cases[f"reset in cycle {busy} of a run, start {k} later"] = {
                0: start,
                busy: reset,
                busy + k: start,
            }
    for name, script in share(cases.items()):
        outcome = await job.trial(dict(script), start=False)
        good = outcome.slots == job.clean and not outcome.error and not outcome.hung
        # the registers had moved on when the reset came in the second inference
        at = max((c for c, t in script.items() if t.data & Ctrl.SOFT_RESET), default=0)
        counts = (2,) if at < change - 2 else (1,) if at > change + 2 else (1, 2)
        good = good and outcome.regs["AI_CNN_DONE"] == 1 and outcome.inferences in counts
        found.check(good, f"{name}: {outcome.brief}, {outcome.inferences} inferences")
    for k in range(1, 4):
        outcome = await job.trial({0: reset, 1: start, 1 + k: reset}, start=False)
        good = set(outcome.slots) == {UNTOUCHED} and not outcome.error and not outcome.hung
        good = good and not outcome.regs["AI_INT_STATUS"]
        found.check(good, f"reset, start, reset {k} later: {outcome.brief}")
    found.verdict()


async def quiet_after(device: Device, origin: int, reset: int) -> list[str]:
    """Registers that show an event in the cycles after a soft reset in cycle ``reset``."""
    names = {AI["AI_INT_STATUS"]: "AI_INT_STATUS", AI["AI_CNN_DONE"]: "AI_CNN_DONE"}
    names |= {INTERRUPT_RAW: "interrupt_raw", AI["AI_ERR_CODE"]: "AI_ERR_CODE"}
    shown = []
    for _ in range(12):
        for addr, name in names.items():
            mask = int(Kpu.CALC_DONE) if addr == INTERRUPT_RAW else 0xFF
            value = await device.read(addr) & mask
            if value:
                cycle = int(device.tb.cycle.value) - origin - reset
                shown.append(f"{name} {value} at +{cycle}")
    return shown[:2]


@checked()
async def nothing_survives_a_reset(tb) -> None:
    """A soft reset in the cycles around done, calc_done, an error: nothing of them shows after."""
    device = await begin(tb)
    stream, layers = await stream_job(device, 2, ELSEWHERE), await layer_job(device, 1)
    seen = await moments(stream)
    found = Findings("events after a soft reset")

    async def around(name: str, events: list[int], script: dict) -> None:
        for event in events:
            for k in NEAR:
                at = event + k
                whole = merged({c: t for c, t in script.items() if c != at})
                whole[at] = write(CTRL, Ctrl.SOFT_RESET)
                origin = await timeline.play(device, whole)
                shown = await quiet_after(device, origin, at)
                found.check(not shown, f"{name} in cycle {event}, reset {k:+}: {shown}")
                await tidy(device, not await at_rest(device))

    await stream.arm()
    for event in seen.done:
        await stream.arm()
        await around("done", [event], {0: write(CTRL, Ctrl.START)})
    await layers.arm()
    pushes = burst(0, layers.pushes())
    script = merged(pushes, timeline.watching(INTERRUPT_RAW, LAYER_WRITES, 400))
    await layers.trial(script)
    calc_done = timeline.rises(timeline.values(script, INTERRUPT_RAW), 0)
    assert len(calc_done) == 1
    await around("calc_done", calc_done, pushes)
    # a refused layer
    bad = layers.layers[0].arg.replace(pool_type=12)
    layers.words = [[int(w) for w in bad.encode()]]
    pushes = burst(0, layers.pushes())
    script = merged(pushes, timeline.watching(AI["AI_ERR_CODE"], LAYER_WRITES, 200))
    await layers.trial(script)
    errors = timeline.changes(timeline.values(script, AI["AI_ERR_CODE"]))
    assert len(errors) == 1
    await around("error", errors, pushes)
    found.verdict()


@checked()
async def start_behind_words(tb) -> None:
    """A start in the cycles after words of a layer: START_BUSY, the layer runs, no list does."""
    device = await begin(tb)
    stream, layers = await stream_job(device, 1, ELSEWHERE), await layer_job(device, 2)
    assert not await stream.clean_run() and not await layers.clean_run()
    found = Findings("start behind words")
    for words, k in share(product((1, 2, 11, 12, 13, 24), range(1, 25))):
        pushes = layers.pushes()
        first, rest = pushes[: 2 * words], pushes[2 * words :]
        script = merged(burst(0, first), {2 * words - 1 + k: write(CTRL, Ctrl.START)})
        script = merged(script, burst(2 * words + k + 10, rest))
        await stream.arm()
        outcome = await layers.trial(script)
        slots = await stream.slots()
        good = outcome.slots == [0, 1] and outcome.error == Err.START_BUSY
        good = good and not outcome.hung and set(slots) == {UNTOUCHED}
        bad = await stream.clean_run() or await layers.clean_run()
        text = f"{words} words, start {k} later: {outcome.brief}, {slots}; {bad}"
        found.check(good and not bad, text)
    for k in range(1, 5):  # words pushed after a reset are there when the start behind them comes
        script = burst(0, [write(CTRL, Ctrl.SOFT_RESET), *layers.pushes()[:LAYER_WRITES]])
        script[LAYER_WRITES + k] = write(CTRL, Ctrl.START)
        await stream.arm()
        outcome = await layers.trial(script)
        good = outcome.slots == [0, UNTOUCHED] and outcome.error == Err.START_BUSY
        found.check(good, f"reset, a layer, start {k} later: {outcome.brief}")
    found.verdict()


@checked()
async def error_stays_for_its_own_act(tb) -> None:
    """interrupt_clear serves the layer FIFO only: no layer behind a refused one runs after it.

    A write to AI_ERR_CODE ends the hold, and layers that are pushed then run; but not one up to the
    cycle in which the error is recorded, which the error outlasts.
    """
    device = await begin(tb)
    job = await layer_job(device, 5)
    assert not await job.clean_run()
    bad = job.layers[1].arg.replace(pool_type=12)
    good_words = job.words[1]
    job.words[1] = [int(w) for w in bad.encode()]
    script = merged(burst(0, job.pushes()), timeline.watching(AI["AI_ERR_CODE"], 125, 700))
    await job.trial(script)
    (event,) = timeline.changes(timeline.values(script, AI["AI_ERR_CODE"]))
    found = Findings("interrupt_clear during an error")
    clears = [int(Kpu.ALMOST_EMPTY), int(Kpu.ALMOST_EMPTY | Kpu.CALC_DONE | Kpu.ALMOST_FULL)]
    for at in [event + k for k in NEAR] + share(range(event + 7, event + 100), 10):
        for value in clears:
            late = event + 150  # pushed while the error stands
            script = merged(burst(0, job.pushes()), {at: write(INTERRUPT_CLEAR, value)})
            script = merged(script, burst(late, job.pushes(2, 4)))
            outcome = await job.trial(script, keep=True)
            good = outcome.slots == [0, *[UNTOUCHED] * 4] and outcome.error == Err.BAD_POOL
            found.check(good, f"clear {value} at the error {at - event:+}: {outcome.brief}")
            await tidy(device, outcome.hung)
    for k in NEAR:
        script = merged(burst(0, job.pushes()), {event + k: write(AI["AI_ERR_CODE"], 0)})
        script = merged(script, burst(event + 150, job.pushes(3, 5)))
        outcome = await job.trial(script, keep=True)
        held = k <= 0
        want = [0, *([UNTOUCHED] * 4 if held else [UNTOUCHED, UNTOUCHED, 3, 4])]
        behind = outcome.slots[2] in ((UNTOUCHED,) if held else (UNTOUCHED, 2))
        good = outcome.slots[:2] + outcome.slots[3:] == want[:2] + want[3:] and behind
        good = good and outcome.error == (Err.BAD_POOL if held else 0) and not outcome.hung
        found.check(good, f"acknowledged at the error {k:+}: {outcome.brief}")
        await tidy(device, outcome.hung)
    script = burst(0, job.pushes())
    script = merged(script, burst(event + 200, [write(AI["AI_ERR_CODE"], 0), *job.pushes(3, 5)]))
    outcome = await job.trial(script)
    found.check(
        outcome.slots == [0, UNTOUCHED, UNTOUCHED, 3, 4] and not outcome.error,
        f"after the acknowledgement: {outcome.brief}",
    )
    job.words[1] = good_words
    bad_text = await job.clean_run()
    found.check(not bad_text, bad_text)
    found.verdict()


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
async def set_wins_over_clear(tb) -> None:
    """An interrupt that is raised in the cycle in which the host clears it stands."""
    device = await begin(tb)
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
