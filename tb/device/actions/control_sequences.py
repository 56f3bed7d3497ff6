# SPDX-License-Identifier: Apache-2.0
"""Sequences of single host actions, and the one that mixes them at random moments.

An action is an item of a few transfers without a gap between them; so the predictor sees the effect
of a command by a read right before and right after it. Actions leave no half-written job behind:
the registers of a network are written together.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from cocotb.triggers import Timer
from pyuvm import uvm_sequence

from openkpu_tb.ahb.host_agent import Transfer
from openkpu_tb.core.registers import AI, AI_RAM, EIGHT_BIT_MODE, INTERRUPT_CLEAR, Ctrl, Int
from openkpu_tb.uvm.sequences.transfers import TransferSequence
from tb.device.actions.control_env import FIRST, LAYER_ROWS, RESULTS, SCRATCH_ROWS, SLOT, Library
from tb.device.actions.control_model import FIFO_CTRL

START, RESET, STOP = int(Ctrl.START), int(Ctrl.SOFT_RESET), int(Ctrl.STOP)
TOP = 0xFFFFFC00  # the last block of a window
OPEN = 0x1F  # fifo_ctrl: every FIFO keeps what it has
CLOCK = 10  # ns, as in tb_top
ADDRESSES = ("next_job", "next_image", "result_address", "extend_stream", "end_stream")


def write(name: str, value: int) -> Transfer:
    return Transfer(AI[name], True, value)


def read(*names: str) -> list[Transfer]:
    return [Transfer(AI[name], False) for name in names]


def push(words: list[int]) -> list[Transfer]:
    halves = [(4 * half, word >> 32 * half & 0xFFFFFFFF) for word in words for half in (0, 1)]
    return [Transfer(at, True, value) for at, value in halves]


@dataclass
class Episode:
    """What a round has used up, and what it must not do."""

    by_list: bool
    faulty: bool  # some words are answered with ERROR: no layers of the host besides
    fresh: list[int] = field(default_factory=list)  # layers not pushed yet
    refused: list[int] = field(default_factory=list)
    longer: int = 1  # times that a stream may still be extended
    writes: int = 4  # addresses that may still be written: each multiplies the histories


class Actions:
    """Library of actions: transfers of each kind, drawn at random."""

    def __init__(self, library: Library, rng: np.random.Generator) -> None:
        self.library, self.rng = library, rng
        self.tasks = list(library.networks)
        self.images = list(library.images)[:FIRST]
        self.kinds: dict[str, tuple[int, Callable[[Episode], list[Transfer]]]] = {
            "start": (3, lambda e: self.command(START)),
            "start_single": (1, lambda e: self.command(START | STOP)),
            "soft_reset": (1, lambda e: self.command(RESET)),
            "reset_start": (1, lambda e: self.command(RESET | START)),
            "reset_then_start": (1, self.reset_then_start),
            "stop": (1, lambda e: [write("AI_CTRL", STOP)]),
            "poll": (4, self.poll),
            "acknowledge": (1, self.acknowledge),
            "interrupt_clear": (1, self.interrupt_clear),
            "flush": (1, self.flush),
            "window": (4, self.window),
            "next_job": (2, self.next_job),
            "next_image": (4, self.next_image),
            "result_address": (2, self.result_address),
            "unaligned_result": (
                1,
                lambda e: [write("AI_RES_ADR", RESULTS + 2), *read("AI_RES_ADR")],
            ),
            "end_stream": (1, self.end_stream),
            "extend_stream": (2, self.extend_stream),
            "empty_list": (1, self.empty_list),
            "closed_window": (2, self.closed_window),
            "layer": (4, self.layer),
            "two_layers": (2, lambda e: self.layer(e) + self.layer(e)),
            "refused_layer": (1, self.refused_layer),
            "cut_layer": (1, self.cut_layer),
            "start_in_layer": (1, self.start_in_layer),
        }

    def choose(self, episode: Episode) -> tuple[str, list[Transfer]]:
        """A random action that the episode allows."""
        while True:
            names, weights = zip(*((n, w) for n, (w, _) in self.kinds.items()), strict=True)
            name = str(self.rng.choice(names, p=np.array(weights) / sum(weights)))
            transfers = self.kinds[name][1](episode)
            if transfers and name in ADDRESSES:  # excludes most histories: fewer to track
                return name, [*transfers, *read("AI_INF_LEFT", "AI_NPIX_ADR", "AI_RES_ADR")]
            if transfers:
                return name, transfers

    def n(self, least: int, most: int) -> int:
        return int(self.rng.integers(least, most))

    def pick(self, values: list[int]) -> int:
        return values[self.n(0, len(values))]

    # -------------------------------------------------------------- commands
    def command(self, value: int) -> list[Transfer]:
        """How the device took it follows from the error before and after."""
        around = read("AI_STATUS", "AI_ERR_CODE")
        return [*around, write("AI_CTRL", value), *read("AI_ERR_CODE", "AI_STATUS")]

    def reset_then_start(self, _: Episode) -> list[Transfer]:
        gap = read(*["AI_STATUS"] * self.n(0, 3))
        return [write("AI_CTRL", RESET), *gap, write("AI_CTRL", START), *read("AI_STATUS")]

    def poll(self, _: Episode) -> list[Transfer]:
        names = ("AI_STATUS", "AI_ERR_CODE", "AI_NPIX_ADR", "AI_INF_LEFT", "AI_PIX_ADR")
        return read(*(names[self.n(0, 5)] for _ in range(self.n(1, 6))))

    def acknowledge(self, _: Episode) -> list[Transfer]:
        return [*read("AI_ERR_CODE"), write("AI_ERR_CODE", 0), *read("AI_ERR_CODE")]

    def interrupt_clear(self, _: Episode) -> list[Transfer]:
        done = write("AI_INT_STATUS", int(Int.DONE | Int.ERROR))
        return [
            *read("AI_ERR_CODE"),
            Transfer(INTERRUPT_CLEAR, True, 7),
            done,
            *read("AI_ERR_CODE"),
        ]

    def flush(self, _: Episode) -> list[Transfer]:
        return [Transfer(FIFO_CTRL, True, OPEN & ~4), Transfer(FIFO_CTRL, True, OPEN)]

    def window(self, _: Episode) -> list[Transfer]:
        """Rows that nothing else uses; also between the others' rows."""
        assert SCRATCH_ROWS < LAYER_ROWS
        at = AI_RAM + 64 * SCRATCH_ROWS + 4 * self.n(0, 16)
        values = [Transfer(at, True, self.n(0, 1 << 32)), Transfer(at, False)]
        return [Transfer(at, False), *values] if self.n(0, 2) else values

    # ------------------------------------------------------------- addresses
    def next_job(self, episode: Episode) -> list[Transfer]:
        """Another network's registers, while this one may be at work."""
        if episode.writes < 2:
            return []
        episode.writes -= 2
        return [*self.job(self.pick(self.tasks)), *self._first_image()]

    def job(self, tasks: int) -> list[Transfer]:
        names = ("AI_LIST_ADR", "AI_LIST_LEN", "AI_WGT_ADR", "AI_BIAS_ADR")
        registers = self.library.networks[tasks].registers
        return [Transfer(EIGHT_BIT_MODE, True, 1)] + [write(n, registers[n]) for n in names]

    def _first_image(self) -> list[Transfer]:
        return [write("AI_PIX_ADR", self.pick(self.images))]

    def next_image(self, episode: Episode) -> list[Transfer]:
        if not episode.writes:
            return []
        episode.writes -= 1
        return [
            write("AI_NPIX_ADR", self.pick(self.images)),
            *read(*["AI_NPIX_ADR"] * self.n(0, 2)),
        ]

    def slot(self) -> int:
        return RESULTS + SLOT * self.n(0, 20)

    def result_address(self, episode: Episode) -> list[Transfer]:
        if not episode.writes:
            return []
        episode.writes -= 1
        return [write("AI_RES_ADR", self.slot()), *read(*["AI_RES_ADR"] * self.n(0, 2))]

    def end_stream(self, _: Episode) -> list[Transfer]:
        return [write("AI_INF_LEFT", 0) if self.n(0, 2) else write("AI_CNN_MODE", 1)]

    def extend_stream(self, episode: Episode) -> list[Transfer]:
        if not episode.longer:
            return []
        episode.longer -= 1
        return [write("AI_CNN_MODE", 2), write("AI_INF_LEFT", self.n(1, 3)), *read("AI_STATUS")]

    def empty_list(self, _: Episode) -> list[Transfer]:
        """A start that cannot be; the list is whole again before anything else happens."""
        start = self.command(START)
        length = self.library.networks[self.tasks[0]].registers["AI_LIST_LEN"]
        return [write("AI_LIST_LEN", 0), *start, *self.job(self.tasks[0])] if length else []

    def closed_window(self, episode: Episode) -> list[Transfer]:
        """Nothing may be read any more; for a few cycles, or to the end of the round."""
        if not episode.faulty:
            return []
        first = bool(self.n(0, 2))
        shut, name = (TOP, "AI_READ_FIRST") if first else (0, "AI_READ_LAST")
        again = [write(name, 0 if first else TOP)] if self.n(0, 3) else []
        return [write(name, shut), *read(*["AI_STATUS"] * self.n(1, 20)), *again]

    # ---------------------------------------------------------------- layers
    def layer(self, episode: Episode, kept: int = 0) -> list[Transfer]:
        """A layer; the width of the weights is the next one's right after its last word."""
        if episode.faulty or len(episode.fresh) <= kept:
            return []
        return self._pushed(episode.fresh.pop())

    def _pushed(self, number: int) -> list[Transfer]:
        width = int(self.library.eight_bit[number])
        words = [int(w) for w in self.library.layers[number].encode()]
        before, after = (Transfer(EIGHT_BIT_MODE, True, value) for value in (width, 1))
        return [before, *push(words), after]

    def refused_layer(self, episode: Episode) -> list[Transfer]:
        if episode.faulty or not episode.refused:
            return []
        return self._pushed(episode.refused.pop())

    def cut_layer(self, episode: Episode) -> list[Transfer]:
        """A few words, then what forgets them."""
        if episode.faulty:
            return []
        words = [int(w) for w in self.library.layers[0].encode()][: self.n(1, 12)]
        end = self.flush(episode) if self.n(0, 2) else [write("AI_CTRL", RESET)]
        return [*push(words), *end]

    def start_in_layer(self, episode: Episode) -> list[Transfer]:
        """A start behind some words of a layer is refused; the layer runs."""
        if episode.faulty or len(episode.refused) < 2 or not episode.fresh:
            return []  # behind a refused layer words may be discarded
        transfers = self._pushed(episode.fresh.pop())
        at = 1 + 2 * self.n(1, 12)
        return [*transfers[:at], write("AI_CTRL", START), *read("AI_ERR_CODE"), *transfers[at:]]


class ControlSequence(uvm_sequence):
    """Random actions at random moments on the host's sequencer."""

    def __init__(self, name: str, actions: Actions, episode: Episode, count: int) -> None:
        super().__init__(name)
        self.actions, self.episode, self.count = actions, episode, count
        self.used: Counter[str] = Counter()

    async def body(self) -> None:
        for name, transfers in self.first():
            await self.act(name, transfers)
        for _ in range(self.count):
            await self.act(*self.actions.choose(self.episode))

    def first(self) -> list[tuple[str, list[Transfer]]]:
        """The job that the others get in the way of."""
        a, e = self.actions, self.episode
        left = a.n(0, 4) if a.n(0, 3) else 0
        stride = list(a.library.images)[1] - a.images[0]
        registers = [
            *a.job(a.pick(a.tasks)),
            write("AI_PIX_ADR", a.pick(a.images)),
            write("AI_NPIX_ADR", a.pick(a.images)),
            write("AI_PIX_STRIDE", stride),
            write("AI_RES_ADR", a.slot()),
            write("AI_RES_STRIDE", SLOT * a.n(1, 3)),
            write("AI_CNN_MODE", 2 if left else 1),
            write("AI_INF_LEFT", left),
        ]
        work = a.command(START) if e.by_list else a.layer(e)
        return [("configure", registers), ("start" if e.by_list else "layer", work)]

    async def act(self, name: str, transfers: list[Transfer]) -> None:
        """An action, and then a while: none, a few cycles, or part of an inference."""
        self.used[name] += 1
        await TransferSequence(name, transfers).start(self.sequencer)
        kind = self.actions.n(0, 4)
        cycles = (0, self.actions.n(0, 8), self.actions.n(0, 60), self.actions.n(0, 500))[kind]
        if cycles:
            await Timer(CLOCK * cycles, "ns")
