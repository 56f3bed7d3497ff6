# SPDX-License-Identifier: Apache-2.0
"""Sweeps: every register that a host can write, in every cycle around every event of a job.

OKPU_SWEEP=whole tries all of them, otherwise a number of them chosen by the seed. A trial is one
write, or two back to back, and a read behind them; the job's results, registers and error must be
what write_rules says (sweep_model), and every few trials an undisturbed job must be exact.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from openkpu.layer.regmap import OFFSETS
from openkpu_tb.core.registers import AI, FIFO_CTRL, Ctrl, Err
from openkpu_tb.device.device import Device
from openkpu_tb.device.write_rules import RULES

from tb.device.checked import checked
from tb.device.hostile import timeline
from tb.device.hostile.hostile_tests import CTRL, LAYER_WRITES, SLOW, begin, rng, stream_job
from tb.device.hostile.sweep_model import ALIGNED, Write, verdict
from tb.device.hostile.timeline import Findings, Script, burst, merged, read, write
from tb.device.hostile.tiny_jobs import (
    FLUSH_OFF,
    LAYERS_DONE,
    UNTOUCHED,
    WIDEST,
    WRONG,
    LayerJob,
    Moments,
    Outcome,
    StreamJob,
    moments,
    tidy,
)

WHOLE = timeline.environment("OKPU_SWEEP") == "whole"
SHARE = 6 if SLOW else 160  # trials of each sweep, unless it is whole
CLEAN_EVERY = 6  # trials, and after each bad one
REACH = 6  # cycles on either side of an event
# a network run with these would be another network
SPOILS = {"AI_LIST_ADR", "AI_LIST_LEN", "AI_WGT_ADR", "AI_BIAS_ADR", "eight_bit_mode"}
START, RESET = int(Ctrl.START), int(Ctrl.SOFT_RESET)


def is_unaligned(name: str, value: int) -> bool:
    """A result address or stride that a busy device refuses."""
    return name in ALIGNED and value % WIDEST != 0


@dataclass(frozen=True)
class Trial:
    """Writes in successive cycles, the first in ``at``."""

    at: int
    writes: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        text = ", ".join(f"{name} = {value:#x}" for name, value in self.writes)
        return f"cycle {self.at}: {text}"

    @property
    def unaligned(self) -> bool:
        """Is any of them refused by a busy device?"""
        return any(is_unaligned(name, value) for name, value in self.writes)

    def timed(self) -> list[Write]:
        return [(self.at + i, name, value) for i, (name, value) in enumerate(self.writes)]

    def script(self) -> tuple[Script, list[tuple[str, int, timeline.Transfer]]]:
        """The accesses; (register, value, read) for each write that is read back at once."""
        script = burst(self.at, [write(OFFSETS[name], value) for name, value in self.writes])
        name, value = self.writes[-1]
        back = read(OFFSETS[name])
        script[self.at + len(self.writes)] = back
        return script, [(name, value, back)]


def offered(job: StreamJob) -> dict[str, list[int]]:
    """Values for every register; AI_CTRL with all its bits."""
    values = {
        "interrupt_mask": [7],
        "interrupt_clear": [7],
        "fifo_threshold": [0x55],
        "fifo_ctrl": [0, FLUSH_OFF],
        "eight_bit_mode": [0],
        "AI_CNN_MODE": [0, 1, 2, 3],
        "AI_CNN_DONE": [1],
        "AI_PIX_ADR": [job.image(6)],
        "AI_NPIX_ADR": [job.image(5), job.image(4)],
        "AI_WGT_ADR": [job.registers["AI_WGT_ADR"] + 8],
        "AI_BIAS_ADR": [job.registers["AI_BIAS_ADR"] + 8],
        "AI_LIST_ADR": [job.registers["AI_LIST_ADR"] + 96],
        "AI_LIST_LEN": [0, 2, 5],
        "AI_RES_ADR": [job.slot(5), job.slot(4), job.slot(5) + 1],
        "AI_INF_LEFT": [0, 1, 2],
        "AI_PIX_STRIDE": [2 * job.registers["AI_PIX_STRIDE"]],
        "AI_RES_STRIDE": [2 * job.stride, job.stride + 1],
        "AI_CTRL": [1, 2, 3, 4, 5],
        "AI_INT_STATUS": [3],
        "AI_INT_MASK": [3],
        "AI_ERR_CODE": [0],
    }
    # windows around all that the job has, no lock, a watchdog that must not bark: guard_tests and
    # watchdog_tests have values that act
    end = job.device.back.storage_bytes
    values |= {"AI_READ_FIRST": [0], "AI_READ_LAST": [end - 1024]}
    values |= {"AI_WRITE_FIRST": [0], "AI_WRITE_LAST": [end - 1024]}
    values |= {"AI_LOCK": [0], "AI_WATCHDOG": [0, 1, 1 << 20]}
    swept = {name.partition(".")[0] for name in RULES}
    assert set(values) | {"layer_argument_fifo"} == swept, "a register of the table is left out"
    return values


def trials(values: dict[str, list[int]], cycles: list[int]) -> Iterator[Trial]:
    """Single writes, and the same register twice."""
    for at in cycles:
        for name, some in values.items():
            for value in some:
                if at == 0 or (at < 0 and name in SPOILS):
                    continue
                yield Trial(at, ((name, value),))
                if at == -1:
                    continue  # the second one would meet the start
                yield from (Trial(at, ((name, v), (name, value))) for v in some if v != value)


def around(events: list[int], least: int) -> list[int]:
    """Cycles near events."""
    near = {e + k for e in events for k in range(-REACH, REACH + 1)}
    return sorted(c for c in near if c >= least)


def chosen(everything: Iterator[Trial], more: int, part: int = 1) -> list[Trial]:
    """All trials, or a share of them by the seed."""
    whole = list(everything)
    count = len(whole) if WHOLE and not SLOW else max(4, SHARE // part)
    if count >= len(whole):
        return whole
    return [whole[i] for i in sorted(rng(more).choice(len(whole), count, replace=False))]


def read_back(trial: Trial, busy: Callable[[int], bool], reads: list) -> str:
    """A write is seen by a read in the next cycle, unless it is refused or a command."""
    for name, value, back in reads:
        plain = name not in ("AI_CTRL", "AI_CNN_DONE", "AI_INT_STATUS", "AI_ERR_CODE")
        plain = plain and name not in ("interrupt_clear", "layer_argument_fifo")
        plain = plain and not (
            name == "AI_CNN_MODE" and trial.at < 0
        )  # 2 may become 1 at the start
        refused = name.startswith("AI_RES") and value % 16 and busy(trial.at)
        if plain and not refused and back.data != value:
            return f"; read back as {back.data:#x}"
    return ""


async def sweep_list(device: Device, job: StreamJob, what: str, more: int) -> None:
    """Every write around every event of a run of a task list."""
    seen: Moments = await moments(job)
    cycles = around(list(seen.all.values()), -REACH)
    found = Findings(f"sweep, {what}")
    batch = chosen(trials(offered(job), cycles), more)
    print(f"{what}: {len(batch)} trials in {len(cycles)} cycles, rest in {seen.rest}")

    def busy(at: int) -> bool:
        return 0 <= at <= seen.rest + 1

    for number, trial in enumerate(batch):
        script, reads = trial.script()
        # two starts in successive cycles are one script
        whole = merged({0: write(CTRL, START)}, script)
        outcome = await job.trial(whole, start=False)
        text = verdict(job, seen, [*trial.timed(), (0, "AI_CTRL", START)], outcome)
        text += read_back(trial, busy, reads)
        clean = ""
        if text or number % CLEAN_EVERY == 0:
            clean = await job.clean_run()
        if clean:
            await tidy(device, True)
        found.check(not text and not clean, f"{trial}: {text}; {outcome.brief}; {clean}")
    found.verdict()
    device.check_rules()


@checked()
async def sweep_stream(tb) -> None:
    """Four inferences: from before the start, through changes, to behind the end."""
    device = await begin(tb)
    await sweep_list(device, await stream_job(device, 4, images=12), "stream", 1)


@checked()
async def sweep_single(tb) -> None:
    """One inference."""
    device = await begin(tb)
    await sweep_list(device, await stream_job(device, 1), "single list", 2)


@checked()
async def sweep_reset(tb) -> None:
    """Every write in the cycles after a soft reset of a running stream, a start behind it too."""
    device = await begin(tb)
    job = await stream_job(device, 3)
    seen = await moments(job)
    found = Findings("sweep, reset pending")
    begun = [int(c) for c in rng(3).integers(2, seen.rest, 40 if WHOLE else 6)]
    everything = trials(offered(job), list(range(1, 12)))
    for number, trial in enumerate(chosen(everything, 3)):
        at = begun[number % len(begun)]
        script, reads = trial.script()
        script = {at + cycle: transfer for cycle, transfer in script.items()}
        script = merged({0: write(CTRL, START), at: write(CTRL, RESET)}, script)
        outcome = await job.trial(script, start=False)
        name = trial.writes[-1][0]
        commands = [value for n, value in trial.writes if n == "AI_CTRL"]
        kept = 0  # starts since the last reset
        for value in commands:
            kept = (0 if value & RESET else kept) + (value & START)
        regs = outcome.regs
        text = "hangs" if outcome.hung else ""
        if kept:
            # the stream goes on from where the registers are, or its last inference runs again;
            # of two starts the second one is refused, or the same
            wanted = (0, Err.START_BUSY) if kept > 1 else (0,)
            first = [s for s in outcome.slots if s != UNTOUCHED]
            good = regs["AI_CNN_DONE"] == 1 and first and first == job.clean[: len(first)]
            text = text or ("" if good else "the start after the reset did not run")
            text = text or ("" if outcome.error in wanted else f"error {outcome.error}")
        else:
            events = regs["AI_CNN_DONE"] | regs["AI_INT_STATUS"] | regs["interrupt_raw"] & 1
            # the reset may be over by the time of the write
            wrong = outcome.error not in ((0, Err.BAD_CONFIG) if trial.unaligned else (0,))
            events &= ~2 if trial.unaligned else ~0
            text = text or ("an event of before shows" if events or wrong else "")
            if name in ("AI_PIX_ADR", "AI_NPIX_ADR", "AI_RES_ADR", "AI_INF_LEFT", "AI_CNN_MODE"):
                value = trial.writes[-1][1]
                stored = regs[name] == value or trial.unaligned
                text = text or ("" if stored else f"{name} is {regs[name]:#x}")
            text = text or read_back(trial, lambda _: True, reads)
        clean = await job.clean_run()
        if clean:
            await tidy(device, True)
        found.check(
            not text and not clean, f"reset in {at}, {trial}: {text}; {outcome.brief}; {clean}"
        )
    found.verdict()


def commands(trial: Trial, bit: int) -> list[int]:
    """Cycles of the writes of AI_CTRL with that bit."""
    return [c for c, name, value in trial.timed() if name == "AI_CTRL" and value & bit]


def host_text(
    job: LayerJob, outcome: Outcome, listed: bool, trial: Trial, over: list[int], rest: int
) -> str:
    """What is wrong after writes while three layers run.

    ``listed``: the list of a start has run, whole.
    """
    count = len(job.layers)
    resets, starts = commands(trial, RESET), commands(trial, START)
    flushes = [c for c, name, v in trial.timed() if name == "fifo_ctrl" and not v & 4]
    if outcome.hung:
        return "hangs"
    # a start behind the last reset, or in the same write, happens when the reset is over
    kept = bool(resets and starts and max(starts) >= max(resets))
    if kept != listed and (kept or resets):
        return "the start after the reset" if kept else "a start that a reset drops"
    if resets or flushes:
        at = min(resets or flushes)
        least = sum(e < at for e in over) + (0 if resets or at >= rest else 1)
        done = 0
        while done < count and outcome.slots[done] == done:
            done += 1
        tail = outcome.slots[done:]
        good = done >= min(least, count) and all(s == UNTOUCHED for s in tail[1:])
        # a reset may cut a layer in two
        good = good and all(s == UNTOUCHED or (resets and s == WRONG) for s in tail[:1])
        if not good:
            return f"at least {least} layers and nothing of those behind"
        busy = len(starts) > 1 and kept  # the second start, while the first one is kept
        return "" if outcome.error in ((0, Err.START_BUSY) if busy else (0,)) else "an error"
    if outcome.slots != list(range(count)):
        return "not all layers ran"
    if starts:  # in which cycle it ends decides
        wanted = {int(Err.START_BUSY)} if max(starts) < rest - 1 else {0, int(Err.START_BUSY)}
        late = min(starts) > rest + 1 and len(starts) == 1
        wanted = {0} if late else wanted
        # of two starts the second one may meet the list of the first
        again = len(starts) > 1 and max(starts) >= rest - 1
        if listed != (not outcome.error) and not (again and outcome.error):
            return f"error {outcome.error}, the list {'runs' if listed else 'does not run'}"
    else:
        wanted = {0}
    if trial.unaligned:
        wanted = {0, int(Err.BAD_CONFIG)} if trial.at > rest - 4 else {int(Err.BAD_CONFIG)}
    return "" if outcome.error in wanted else f"error {outcome.error}"


@checked()
async def sweep_host_layers(tb) -> None:
    """Every write around every event of three layers that the host pushed."""
    device = await begin(tb)
    stream, job = await stream_job(device, 1, 0x4000), await apart(device, 3)
    pushed = len(job.pushes())
    script = merged(burst(0, job.pushes()), timeline.watching(LAYERS_DONE, pushed, pushed + 500))
    await job.trial(script)
    over = timeline.changes(timeline.values(script, LAYERS_DONE))
    script = merged(
        burst(0, job.pushes()), timeline.watching(AI["AI_STATUS"], pushed, pushed + 600)
    )
    await job.trial(script)
    rest = timeline.falls(timeline.values(script, AI["AI_STATUS"]), 0)[-1]
    assert len(over) == 3
    found = Findings("sweep, host layers")
    cycles = around([pushed + REACH, *over, rest - REACH], pushed)
    for number, trial in enumerate(chosen(trials(offered(stream), cycles), 4)):
        script, _ = trial.script()
        last = max(script)
        await stream.arm()
        outcome = await job.trial(
            merged(burst(0, job.pushes()), script, {last + 2: write(FIFO_CTRL, FLUSH_OFF)})
        )
        slots = await stream.slots()
        text = host_text(job, outcome, slots == stream.clean, trial, over, rest)
        if slots != stream.clean and set(slots) != {UNTOUCHED}:
            text = text or f"the list left {slots}"
        clean = await job.clean_run() if text or number % CLEAN_EVERY == 0 else ""
        if clean:
            await tidy(device, True)
        found.check(not text and not clean, f"{trial}: {text}; {outcome.brief}; {clean}")
    found.verdict()


async def apart(device: Device, count: int) -> LayerJob:
    """Layers on rows that no list uses."""
    job = LayerJob(device, rng(1), count, row=2048)
    await job.place()
    return job


def hold_text(outcome: Outcome, listed: bool, trial: Trial, event: int) -> str:
    """What is wrong after writes around the error of layer 1, recorded in cycle ``event``.

    ``listed``: the list of a start has run, whole.
    """
    if outcome.hung:
        return "hangs"
    resets, starts = commands(trial, RESET), commands(trial, START)
    acks = [c for c, name, _ in trial.timed() if name == "AI_ERR_CODE"]
    first = (0, UNTOUCHED, WRONG) if resets else (0,)
    if outcome.slots[0] not in first or outcome.slots[1] != UNTOUCHED:
        return "the first two"
    acknowledged = any(c > event for c in acks)
    allowed = [(n, UNTOUCHED) if acknowledged else (UNTOUCHED,) for n in (2, 3)]
    if any(s not in some for s, some in zip(outcome.slots[2:], allowed, strict=True)):
        return "a layer behind it"
    if resets:
        # a start behind the last one happens afterwards
        kept = bool(starts) and max(starts) >= max(resets)
        busy = kept and len(starts) > 1
        wanted = {0, Err.START_BUSY} if busy else {0}
        if listed != kept:
            return "the start after the reset" if kept else "a start that the reset drops"
    elif acknowledged:
        wanted = {0}
    elif starts:
        # the first error stays; a start is refused until what is going on has ended, and the one
        # that is accepted clears the error
        early = min(starts) < event
        wanted = {Err.START_BUSY} if early else {Err.BAD_POOL}
        if listed:
            wanted = {0, Err.START_BUSY} if len(starts) > 1 else {0}
            if max(starts) <= event:
                return "a start is accepted while a layer runs"
    else:
        wanted = {Err.BAD_POOL}
        if any(c < event and is_unaligned(name, v) for c, name, v in trial.timed()):
            wanted = {Err.BAD_CONFIG}
    return "" if outcome.error in wanted else f"error {outcome.error}, expected {sorted(wanted)}"


@checked()
async def sweep_error_hold(tb) -> None:
    """Every write around a refused layer: the ones behind it run only after an acknowledgement.

    One in the cycle in which the error is recorded, or before, is none.
    """
    device = await begin(tb)
    stream, job = await stream_job(device, 1, 0x4000), await apart(device, 4)
    words = job.words[1]
    bad = job.layers[1].arg.replace(pool_type=12)
    job.words[1] = [int(w) for w in bad.encode()]
    script = merged(burst(0, job.pushes()), timeline.watching(AI["AI_ERR_CODE"], 100, 800))
    await job.trial(script)
    (event,) = timeline.changes(timeline.values(script, AI["AI_ERR_CODE"]))
    found = Findings("sweep, error hold")
    for number, trial in enumerate(chosen(trials(offered(stream), around([event], 100)), 5)):
        script, _ = trial.script()
        await stream.arm()
        whole = merged(
            burst(0, job.pushes()), script, {max(script) + 2: write(FIFO_CTRL, FLUSH_OFF)}
        )
        outcome = await job.trial(whole, keep=True)
        slots = await stream.slots()
        text = hold_text(outcome, slots == stream.clean, trial, event)
        if slots != stream.clean and set(slots) != {UNTOUCHED}:
            text = text or f"the list left {slots}"
        await tidy(device, outcome.hung)
        clean = await stream.clean_run() if text or number % CLEAN_EVERY == 0 else ""
        if clean:
            await tidy(device, True)
        found.check(
            not text and not clean, f"{trial} (error in {event}): {text}; {outcome.brief}; {clean}"
        )
    job.words[1] = words
    assert not await job.clean_run()
    found.verdict()


@checked()
async def sweep_pushes(tb) -> None:
    """A layer pushed around every event of a stream waits and runs; the stream is exact."""
    device = await begin(tb)
    stream, job = await stream_job(device, 2, 0x4000), LayerJob(device, rng(1), 1, row=4096)
    await job.place()
    seen = await moments(stream)
    found = Findings("sweep, pushes")
    cycles = [c for c in around(list(seen.all.values()), -30) if not -LAYER_WRITES <= c <= 0]
    for trial in chosen((Trial(c, (("layer_argument_fifo", 0),)) for c in cycles), 6, part=4):
        await stream.arm()
        script = merged({0: write(CTRL, START)}, burst(trial.at, job.pushes()))
        outcome = await job.trial(script, keep=True)
        slots = await stream.slots()
        before = trial.at < 0  # the layer is there first: the start is refused
        good = outcome.slots == [0] and not outcome.hung
        good = good and outcome.error == (Err.START_BUSY if before else 0)
        good = good and (set(slots) == {UNTOUCHED} if before else slots == stream.clean)
        await tidy(device, outcome.hung)
        found.check(good, f"{trial}: {outcome.brief}, stream {slots}")
    found.verdict()
