# SPDX-License-Identifier: Apache-2.0
"""Sweeps: every register that a host can write, in every cycle around every event of a job.

OKPU_SWEEP=whole tries all of them, otherwise a number of them chosen by the seed. A trial is one
write, or two back to back, with reads before and behind them. What was read, the job's results and
its registers must be those of a history (tb/device/actions/control_model.py), which takes what a
write does from write_rules; every few trials an undisturbed job must be exact.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from openkpu.layer.regmap import OFFSETS
from openkpu.network.kept import spare_register
from openkpu_tb.core.registers import AI, FIFO_CTRL, Ctrl, Err
from openkpu_tb.device.device import Device
from openkpu_tb.device.simulation import SLOW, rng
from openkpu_tb.device.write_rules import RULES
from tb.device.actions.control_model import (
    FIELDS,
    SEEN,
    Histories,
    State,
    Watcher,
    spare_stored,
)
from tb.device.checked import checked
from tb.device.hostile import timeline
from tb.device.hostile.timeline import Findings, Script, burst, merged, read, write
from tb.device.hostile.tiny_jobs import (
    FLUSH_OFF,
    LAYERS_DONE,
    UNTOUCHED,
    LayerJob,
    StreamJob,
    heavy_network,
    layer_job,
    moments,
    stream_job,
    tidy,
)

WHOLE = os.environ.get("OKPU_SWEEP") == "whole"
SHARE = 6 if SLOW else 400  # trials of each sweep, unless it is whole
CLEAN_EVERY = 6  # trials, and after each bad one
REACH = 6  # cycles on either side of an event
ANY = -3  # a slot that may hold anything: its inference was cut off
# a network run with these would be another network
SPOILS = {"AI_LIST_ADR", "AI_LIST_LEN", "AI_WGT_ADR", "AI_BIAS_ADR", "eight_bit_mode"}
COMMANDS = {"AI_CTRL", "AI_CNN_DONE", "AI_INT_STATUS", "AI_ERR_CODE", "interrupt_clear"}
# a share has these more often than the others
STEERING, OFTEN = {"AI_NPIX_ADR", "AI_RES_ADR", "AI_RES_STRIDE", "AI_INF_LEFT", "AI_CNN_MODE"}, 4
START, RESET = int(Ctrl.START), int(Ctrl.SOFT_RESET)
EXTEND = (("AI_CNN_MODE", 2), ("AI_INF_LEFT", 2))
SWEPT = {name.partition(".")[0] for name in RULES} - {"layer_argument_fifo"}
PLAIN = {OFFSETS[name] for name in SWEPT - SEEN.keys() - COMMANDS}  # they hold what was written
# read around the writes: in which cycle the device decided something follows from them
PINS = [AI[name] for name in ("AI_INF_LEFT", "AI_NPIX_ADR", "AI_STATUS", "AI_ERR_CODE")]


@dataclass(frozen=True)
class Trial:
    """Writes in successive cycles, the first in ``at``."""

    at: int
    writes: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        text = ", ".join(f"{name} = {value:#x}" for name, value in self.writes)
        return f"cycle {self.at}: {text}"

    def script(self, base: Script) -> Script:
        """The accesses among those of ``base``: reads, writes, the last one read back, reads."""
        writes = [write(OFFSETS[name], value) for name, value in self.writes]
        script = merged(base, burst(self.at, writes))
        last = self.at + len(self.writes)
        back = [OFFSETS[n] for n, _ in self.writes[-1:] if n not in COMMANDS]
        around = {self.at - 1 - i: pin for i, pin in enumerate(PINS)}
        around |= {last + i: pin for i, pin in enumerate([*back, *PINS])}
        return script | {c: read(at) for c, at in around.items() if c not in script}


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
    values["AI_SPARE_ROWS"] = [spare_register(rows) for rows in spare_parts(job)]
    assert set(values) == SWEPT, "a register of the table is left out"
    return values


def spare_parts(job: StreamJob) -> list[tuple[int, int]]:
    """Rows in which weights may wait: none, many, few, and some that do not exist."""
    first, rows = job.network.spare_rows(job.device.back.ram_rows)
    middle, end = first + rows // 2, job.device.back.ram_rows
    return [(0, 0), (middle, rows // 2), (first + 8192, 3), (end - 1, 2)]


def trials(values: dict[str, list[int]], cycles: Iterable[int]) -> Iterator[Trial]:
    """Single writes, the same register twice, and both that extend a stream."""
    for at in cycles:
        if at not in (-1, 0):
            yield from (Trial(at, EXTEND), Trial(at, EXTEND[::-1]))
        for name, some in values.items():
            for value in some:
                if at == 0 or (at < 0 and name in SPOILS):
                    continue
                yield Trial(at, ((name, value),))
                if at == -1:
                    continue  # the second one would meet the start
                yield from (Trial(at, ((name, v), (name, value))) for v in some if v != value)


def around(events: Iterable[int], least: int) -> list[int]:
    """Cycles near events."""
    near = {e + k for e in events for k in range(-REACH, REACH + 1)}
    return sorted(c for c in near if c >= least)


def chosen(everything: Iterator[Trial], more: int, part: int = 1) -> list[Trial]:
    """All trials, or a share of them by the seed."""
    whole = list(everything)
    count = len(whole) if WHOLE and not SLOW else max(4, SHARE // part)
    if count >= len(whole):
        return whole
    weights = [OFTEN if {n for n, _ in trial.writes} & STEERING else 1 for trial in whole]
    share = [weight / sum(weights) for weight in weights]
    return [whole[i] for i in sorted(rng(more).choice(len(whole), count, False, share))]


@dataclass
class Sweep:
    """The jobs that writes meet, and what of them is wrong."""

    device: Device
    stream: StreamJob
    layers: LayerJob | None = None
    refused: dict[int, int] = field(default_factory=dict)  # layer: its code
    spare: int = 0  # AI_SPARE_ROWS before each trial

    async def run(self, what: str, cases: Iterable[tuple[Trial, Script]]) -> None:
        """Each trial among the accesses of a script; AssertionError with what was wrong."""
        found = Findings(f"sweep, {what}")
        whole = self.stream if self.refused or not self.layers else self.layers
        for number, (trial, base) in enumerate(cases):
            text = await self.trial(trial.script(base))
            clean = await whole.clean_run() if text or number % CLEAN_EVERY == 0 else ""
            if clean:
                await tidy(self.device, True)
            found.check(not text and not clean, f"{trial}: {text}; {clean}")
        found.verdict()
        self.device.check_rules()

    async def trial(self, script: Script) -> str:
        """Perform a script; what no history explains, or nothing."""
        stream, layers, maps = self.stream, self.layers, []
        await stream.arm()
        waits = bool(int(self.device.tb.weights_wait.value))
        most = self.device.back.ram_rows if waits else None
        await self.device.write(AI["AI_SPARE_ROWS"], self.spare)
        if layers is None:
            outcome = await stream.trial(script, start=False, keep=True)
            slots = outcome.slots
        else:
            outcome = await layers.trial(script, keep=True)
            slots, maps = await stream.slots(), outcome.slots
        await tidy(self.device, outcome.hung)
        if outcome.hung:
            return outcome.brief
        numbers = {tuple(w): n for n, w in enumerate(layers.words)} if layers else {}
        watcher = Watcher(numbers, Histories(bad_layers=self.refused, spare_most=most))
        for name in FIELDS.keys() & stream.registers:
            watcher.histories.wrote(AI[name], stream.registers[name])
        held: dict[int, int] = {AI["AI_SPARE_ROWS"]: self.spare}
        for _, access in sorted(script.items()):
            if wrong := watcher.see(access):
                return wrong
            spared = access.addr == AI["AI_SPARE_ROWS"]
            if spared and access.write and not spare_stored(access.data, most):
                continue
            if access.addr in PLAIN and access.write:
                held[access.addr] = access.data
            elif held.get(access.addr, access.data) != access.data:
                return f"{access} of a register that was written {held[access.addr]:#x}"
        for name in SEEN:
            if name in outcome.regs:
                back = read(AI[name])
                back.data = outcome.regs[name]
                if wrong := watcher.see(back):
                    return f"{outcome.brief}: {wrong}"
        calc = outcome.regs["interrupt_raw"] & 1

        def fits(s: State) -> bool:
            ran = dict(s.layers)
            want = [(n if ran[n] else ANY) if n in ran else UNTOUCHED for n in range(len(maps))]
            pairs = zip([*self.leaves(s), *want], [*slots, *maps], strict=True)
            idle = not s.occupied and not s.acked
            return idle and s.calc == calc and all(w in (ANY, got) for w, got in pairs)

        if watcher.histories.keep(fits):
            return ""
        some = min(map(repr, watcher.histories.states), key=len)
        return f"{outcome.brief}: slots {slots}, maps {maps}, no history leaves them: {some}"

    def leaves(self, s: State) -> list[int]:
        """What is in the slots after a history."""
        job, found = self.stream, [UNTOUCHED] * len(self.stream.images)
        for (_, pixels, result), whole in s.inferences:
            slot = (result - job.first_slot) // job.stride
            image = (pixels - job.image(0)) // job.registers["AI_PIX_STRIDE"]
            if 0 <= slot < len(found):
                found[slot] = image if whole else ANY
        return found


@checked()
async def sweep_waiting(device: Device) -> None:
    """Writes of AI_SPARE_ROWS, and some others, at any time of a stream whose weights wait."""
    assert int(device.tb.weights_wait.value), "a build without rows for weights"
    job = StreamJob(device, rng(), 2, make=heavy_network)
    await job.place()
    _, part, *_ = spare_parts(job)
    await device.back.load_ram(part[0], np.zeros(64 * part[1], np.uint8))
    await device.spare(part)
    rest = (await moments(job)).rest
    assert (await device.back.read_ram(*part))[0].any(), "no weights waited"
    values, random = offered(job), rng(7)
    many = [(name, value) for name in values for value in values[name] if name not in SPOILS]
    rows = [("AI_SPARE_ROWS", value) for value in values["AI_SPARE_ROWS"]]
    cases = []
    for _ in range(10 * SHARE if WHOLE else SHARE // 4 + 1):
        at = int(random.integers(1, rest))
        some = [rows[int(random.integers(len(rows)))] for _ in range(int(random.integers(1, 4)))]
        if random.random() < 0.3:
            some.append(many[int(random.integers(len(many)))])
        cases.append(Trial(at, tuple(some)))
    base = {0: write(AI["AI_CTRL"], START)}
    sweep = Sweep(device, job, spare=spare_register(part))
    await sweep.run("weights that wait", ((trial, base) for trial in cases))


async def sweep_list(device: Device, count: int, images: int, what: str, more: int) -> None:
    """Every write around every event of a run of a task list."""
    job = await stream_job(device, count, images=images)
    cycles = around((await moments(job)).all.values(), -REACH)
    batch = chosen(trials(offered(job), cycles), more)
    base = {0: write(AI["AI_CTRL"], START)}
    await Sweep(device, job).run(what, ((trial, base) for trial in batch))


@checked()
async def sweep_stream(device: Device) -> None:
    """Four inferences: from before the start, through changes, to behind the end."""
    await sweep_list(device, 4, 12, "stream", 1)


@checked()
async def sweep_single(device: Device) -> None:
    """One inference."""
    await sweep_list(device, 1, 8, "single list", 2)


@checked()
async def sweep_reset(device: Device) -> None:
    """Every write in the cycles after a soft reset of a running stream, a start behind it too."""
    job = await stream_job(device, 3, images=12)
    rest = (await moments(job)).rest
    begun = [int(c) for c in rng(3).integers(2, rest, 40 if WHOLE else 6)]
    cases = []
    for number, trial in enumerate(chosen(trials(offered(job), range(1, 12)), 3)):
        at = begun[number % len(begun)]
        base = {0: write(AI["AI_CTRL"], START), at: write(AI["AI_CTRL"], RESET)}
        cases.append((Trial(at + trial.at, trial.writes), base))
    await Sweep(device, job).run("reset pending", cases)


async def pushed_layers(job: LayerJob, addr: int, first: int) -> tuple[Script, list]:
    """The pushes, and a register in every cycle from ``first`` on while the layers run."""
    script = merged(burst(0, job.pushes()), timeline.watching(addr, first, first + 600))
    await job.trial(script)
    return burst(0, job.pushes()), timeline.values(script, addr)


@checked()
async def sweep_host_layers(device: Device) -> None:
    """Every write around every event of three layers that the host pushed."""
    stream, job = await stream_job(device, 1, 0x4000), await layer_job(device, 3)
    pushed = len(job.pushes())
    base, done = await pushed_layers(job, LAYERS_DONE, pushed)
    _, status = await pushed_layers(job, AI["AI_STATUS"], pushed)
    over, rest = timeline.changes(done), timeline.falls(status, 0)[-1]
    assert len(over) == 3
    cycles = around([pushed + REACH, *over, rest - REACH], pushed)
    cases = chosen(trials(offered(stream), cycles), 4)
    bases = (base | {trial.at + 9: write(FIFO_CTRL, FLUSH_OFF)} for trial in cases)
    await Sweep(device, stream, job).run("host layers", zip(cases, bases, strict=True))


@checked()
async def sweep_error_hold(device: Device) -> None:
    """Every write around a refused layer: the ones behind it run only after an acknowledgement.

    One in the cycle in which the error is recorded, or before, is none.
    """
    stream, job = await stream_job(device, 1, 0x4000), await layer_job(device, 4)
    words = job.words[1]
    job.words[1] = [int(w) for w in job.layers[1].arg.replace(pool_type=12).encode()]
    base, codes = await pushed_layers(job, AI["AI_ERR_CODE"], 100)
    (event,) = timeline.changes(codes)
    cases = chosen(trials(offered(stream), around([event], 100)), 5)
    bases = (base | {trial.at + 9: write(FIFO_CTRL, FLUSH_OFF)} for trial in cases)
    sweep = Sweep(device, stream, job, {1: int(Err.BAD_POOL)})
    await sweep.run("error hold", zip(cases, bases, strict=True))
    job.words[1] = words
    assert not await job.clean_run()


@checked()
async def sweep_pushes(device: Device) -> None:
    """A layer pushed around every event of a stream waits and runs; the stream is exact."""
    stream, job = await stream_job(device, 2, 0x4000), await layer_job(device, 1)
    cycles = around((await moments(stream)).all.values(), -30)
    cases = (Trial(c) for c in cycles if not -len(job.pushes()) <= c <= 0)
    start = {0: write(AI["AI_CTRL"], START)}
    pushes = [(t, merged(start, burst(t.at, job.pushes()))) for t in chosen(cases, 6, part=4)]
    await Sweep(device, stream, job).run("pushes", pushes)
