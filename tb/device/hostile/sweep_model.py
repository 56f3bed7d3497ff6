# SPDX-License-Identifier: Apache-2.0
"""What a run of a task list must leave when the host writes registers in given cycles.

The model knows registers and the order of events, nothing of the data path. What a write does it
takes from write_rules. The cycles of events are those of an undisturbed run; in which cycle the
device decides something is seen from outside to a cycle or a few only, so a write that close may
fall on either side of it: each such reading is a Variant, and one of them must fit exactly.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

from openkpu_tb.core.registers import Ctrl, Err
from openkpu_tb.device.write_rules import Rule, State, rule

from tb.device.hostile.tiny_jobs import UNTOUCHED, Moments, Outcome, StreamJob

ANY = -3  # a slot that may hold anything: its inference was cut off
NEVER = 1 << 40
RESET_LASTS = 40  # cycles, at most, with a bus that answers
CHECKED = ("AI_CNN_MODE", "AI_INF_LEFT", "AI_PIX_ADR", "AI_NPIX_ADR", "AI_RES_ADR")
ALIGNED = ("AI_RES_ADR", "AI_RES_STRIDE")
Write = tuple[int, str, int]  # cycle, register, value


@dataclass(frozen=True)
class Variant:
    """Cycles by which a decision is made before what the host sees of it, and rest after."""

    decide: int
    take: int

    @staticmethod
    def all() -> list["Variant"]:
        return [Variant(d, t) for d, t in product(range(-3, 3), (-1, 0, 1))]


@dataclass
class Model:
    """Registers and slots of a job as the host's writes come in."""

    job: StreamJob
    seen: Moments
    variant: Variant
    regs: dict[str, int] = field(init=False)
    slots: list[int] = field(init=False)
    error: int = 0
    done: bool = False
    begins: int | None = None  # a start was accepted in that cycle
    stop: bool = False
    reset: bool = False  # one came while a run was on
    reset_at: int = -NEVER  # the last one
    either: bool = False  # START_BUSY, or no error

    def __post_init__(self) -> None:
        self.regs = dict(self.job.registers)
        self.slots = [UNTOUCHED] * len(self.job.images)

    # ------------------------------------------------------------------ writes
    def run(self, writes: Iterable[Write]) -> "Model":
        """All writes in order, runs included."""
        queue = deque(sorted(writes))
        while queue or self.begins is not None:
            if self.begins is None:
                self.write(queue.popleft(), State.IDLE)
            else:
                start, self.begins = self.begins, None
                self.stream(start, queue)
        return self

    def write(self, write: Write, state: State) -> None:
        """One write in a state."""
        _, name, value = write
        if name == "AI_CTRL":
            self.control(write, state)
            return
        if name not in self.regs:
            self.clear(name, value)
            return
        if name in ALIGNED and value % 16 and state is not State.IDLE:
            self.fail(Err.BAD_CONFIG)
            return
        self.regs[name] = value
        what = rule(name, state)
        self.pix_kept |= name == "AI_PIX_ADR" and what is Rule.NEXT_START
        self.npix_kept |= what is Rule.NEXT_IMAGE and self.taken is not None
        self.res_kept |= what is Rule.NEXT_RESULT

    def clear(self, name: str, value: int) -> None:
        """Registers that no run depends on."""
        if name == "AI_ERR_CODE":
            self.error = 0
        if name == "AI_CNN_DONE" and value & 1:
            self.done = False

    def control(self, write: Write, state: State) -> None:
        """AI_CTRL: reset before start, stop with either."""
        cycle, _, value = write
        if value & Ctrl.SOFT_RESET:
            self.error, self.done, self.reset_at, self.either = 0, False, cycle, False
            self.reset = state is not State.IDLE
            self.stop = False
        elif value & Ctrl.STOP and rule("AI_CTRL.stop", state) is Rule.STEERS:
            self.stop = True
        if not value & Ctrl.START:
            return
        idle = state is State.IDLE or value & Ctrl.SOFT_RESET
        what = rule("AI_CTRL.start", State.IDLE if idle else state)
        if what is Rule.BUSY:
            # a second start while the first one waits for the end of a reset: refused or the same
            self.either |= not self.error and cycle - self.reset_at < RESET_LASTS
            self.fail(Err.START_BUSY)
            return
        regs = self.regs
        odd = any(regs[name] % 16 for name in ALIGNED)
        if not regs["AI_CNN_MODE"] or not regs["AI_LIST_LEN"] or odd:
            self.fail(Err.BAD_CONFIG)
            return
        self.error, self.done, self.begins = 0, False, cycle
        self.stop = bool(value & Ctrl.STOP)

    def fail(self, code: int) -> None:
        self.error = self.error or code

    # -------------------------------------------------------------------- runs
    @property
    def more(self) -> bool:
        """Another inference follows as things are."""
        return self.regs["AI_CNN_MODE"] == 2 and self.regs["AI_INF_LEFT"] > 0 and not self.stop

    pix_kept = npix_kept = res_kept = False
    taken: int | None = None

    def stream(self, start: int, queue: deque[Write]) -> None:
        """A run from its start to rest; takes the writes that fall into it out of the queue."""
        regs, seen = self.regs, self.seen
        self.pix_kept = self.npix_kept = self.res_kept = self.reset = False
        self.taken, single = None, not self.more
        if regs["AI_CNN_MODE"] == 2 and not regs["AI_INF_LEFT"]:
            regs["AI_CNN_MODE"] = 1
        pixels, result = regs["AI_PIX_ADR"], regs["AI_RES_ADR"]
        number = 0
        while True:
            state = State.LIST if single else State.STREAM if self.more else State.LAST

            def until(cycle: int, state: State = state) -> bool:
                """Writes before a cycle; False when one of them was a reset."""
                while queue and queue[0][0] < cycle:
                    self.write(queue.popleft(), state)
                    if self.reset:
                        return False
                return True

            follows = number < len(seen.changes)
            last = number == len(seen.changes)
            take = seen.taken[number + 1] + self.variant.take if follows else NEVER
            ends = seen.changes[number] if follows else seen.done[-1] + 1 if last else NEVER
            self.taken = None
            alive = until(start + min(take, ends))
            if alive and self.more and follows:
                self.taken = regs["AI_NPIX_ADR"]
            alive = alive and until(start + ends + min(0, self.variant.decide))
            goes_on = alive and self.more
            alive = alive and until(start + ends + (max(0, self.variant.decide) if last else 0))
            goes_on = goes_on or (alive and self.variant.decide > 0 and self.more)
            slot = self.slot_of(result)
            if not alive:
                self.reset, self.taken = False, None
                self.slots[slot] = ANY
                return
            self.slots[slot] = self.image_at(pixels)
            self.done = True
            if not goes_on:
                # a run that ends before its time is at rest when what was fetched ahead is dropped
                until(start + (seen.rest if last else ends + 1) + self.variant.take)
                self.taken = None
                return
            pixels, result = self.change()
            number += 1

    def change(self) -> tuple[int, int]:
        """The registers move on; pixels and result of the next inference."""
        regs = self.regs
        pixels = regs["AI_NPIX_ADR"] if self.taken is None else self.taken
        if not self.pix_kept:
            regs["AI_PIX_ADR"] = pixels
        if not self.npix_kept:
            regs["AI_NPIX_ADR"] += regs["AI_PIX_STRIDE"]
        if not self.res_kept:
            regs["AI_RES_ADR"] += regs["AI_RES_STRIDE"]
        self.npix_kept = self.res_kept = False
        if regs["AI_INF_LEFT"]:
            regs["AI_INF_LEFT"] -= 1
        if not regs["AI_INF_LEFT"]:
            regs["AI_CNN_MODE"] = 1
        return pixels, regs["AI_RES_ADR"]

    def slot_of(self, address: int) -> int:
        return (address - self.job.first_slot) // self.job.stride

    def image_at(self, address: int) -> int:
        return (address - self.job.image(0)) // self.job.registers["AI_PIX_STRIDE"]

    # ----------------------------------------------------------------- verdict
    def differs(self, outcome: Outcome) -> str:
        """What of an outcome is not as this says; nothing when it fits."""
        if outcome.hung:
            return "hangs"
        pairs = zip(self.slots, outcome.slots, strict=True)
        if any(want not in (ANY, got) for want, got in pairs):
            return f"slots {outcome.slots}, expected {self.slots}"
        if outcome.error != self.error and not (self.either and not outcome.error):
            return f"error {outcome.error}, expected {self.error}"
        if outcome.regs["AI_CNN_DONE"] != self.done:
            return f"AI_CNN_DONE {outcome.regs['AI_CNN_DONE']}, expected {int(self.done)}"
        for name in CHECKED:
            if outcome.regs[name] != self.regs[name]:
                return f"{name} {outcome.regs[name]:#x}, expected {self.regs[name]:#x}"
        return ""


def verdict(job: StreamJob, seen: Moments, writes: list[Write], outcome: Outcome) -> str:
    """Nothing when a variant fits; else what the most plausible one says."""
    texts = []
    for variant in sorted(Variant.all(), key=lambda v: (abs(v.decide), abs(v.take))):
        text = Model(job, seen, variant).run(writes).differs(outcome)
        if not text:
            return ""
        texts.append(text)
    return texts[0]
