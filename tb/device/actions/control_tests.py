# SPDX-License-Identifier: Apache-2.0
"""pyuvm test: a host that does anything at any time; test_control_random.py runs it.

Rounds of random actions on a busy device. After each the device must become idle in bounded time,
and a history of control_model.py must explain every answer and every byte of results and maps.
"""

import os
from collections import Counter

import cocotb
import numpy as np
import pyuvm
from cocotb.triggers import FallingEdge, Timer
from pyuvm import ConfigDB, uvm_test

from openkpu_tb.ahb.host_agent import Transfer
from openkpu_tb.core.backdoor import Backdoor
from openkpu_tb.core.registers import AI, INTERRUPT_CLEAR
from openkpu_tb.device.device import Device
from openkpu_tb.handle import Handle
from openkpu_tb.runs.run_stream import DISTURBED
from openkpu_tb.uvm.agents import Memory
from openkpu_tb.uvm.sequences.transfers import TransferSequence
from tb.device.actions.control_env import (
    LAYER_ROWS,
    RESULTS,
    SCRATCH_ROWS,
    SLOT,
    SLOTS,
    ControlEnv,
    Library,
)
from tb.device.actions.control_model import FIFO_CTRL
from tb.device.actions.control_sequences import (
    CLOCK,
    OPEN,
    TOP,
    Actions,
    ControlSequence,
    Episode,
    read,
    write,
)

PATIENCE = 40_000  # cycles until the device must be idle
GIVE_UP = 3  # rounds that may fail before the rest is left out
WINDOWS = ("err", "err1", "err2")  # of words that the storage answers with ERROR
POLL = 40  # cycles between two looks


@pyuvm.test()
class ControlTest(uvm_test):
    """Random control: ACTIONS of them; counts by kind at the end."""

    def build_phase(self) -> None:
        self.tb: Handle = cocotb.top
        self.rng = np.random.default_rng(cocotb.RANDOM_SEED)
        self.library = Library.draw(self.rng)
        ConfigDB().set(None, "*", "TB", self.tb)
        ConfigDB().set(None, "*", "LIBRARY", self.library)
        self.env = ControlEnv("env", self)

    async def run_phase(self) -> None:
        self.raise_objection()
        self.actions = Actions(self.library, self.rng)
        self.back = Backdoor(self.tb)
        self.used: Counter[str] = Counter()
        self.wrong: list[str] = []
        await self.power_up()
        rounds, wanted = 0, int(os.environ["ACTIONS"])
        while self.used.total() < wanted and len(self.wrong) < GIVE_UP:
            await self.round(rounds)
            rounds += 1
        exact = self.env.judge.exact
        self.logger.info(f"{rounds} rounds, {self.used.total()} actions: {dict(self.used)}")
        self.logger.info(f"{exact}, {self.env.control.reads} answers explained")
        Device(self.tb).check_rules()
        assert not self.wrong, "\n".join(self.wrong)
        missing = set(self.actions.kinds) - set(self.used)
        assert wanted < 2000 or not missing, f"never happened: {missing}"
        assert exact["inferences"] + exact["layers"] > rounds // 2, exact
        self.drop_objection()

    async def power_up(self) -> None:
        """Hardware reset, all tables and images in place."""
        await self.hard_reset()
        for at, data in self.library.storage:
            await self.back.load_storage(at, np.ascontiguousarray(data))
        for row, data in self.library.ram:
            await self.back.load_ram(row, data)
        await self.back.load_ram(SCRATCH_ROWS, np.zeros(64, dtype=np.uint8))

    async def hard_reset(self) -> None:
        self.tb.cfg_seed.value = int(self.rng.integers(1, 1 << 32))
        await FallingEdge(self.tb.clk)
        self.tb.rst.value = 1
        for _ in range(4):
            await FallingEdge(self.tb.clk)
        self.tb.rst.value = 0
        await FallingEdge(self.tb.clk)
        self.env.control.forget()

    async def send(self, name: str, transfers: list[Transfer]) -> list[Transfer]:
        await TransferSequence(name, transfers).start(self.env.host.sequencer)
        return transfers

    async def round(self, number: int) -> None:
        """An idle device, a job, random actions, a verdict."""
        control, rng = self.env.control, self.rng
        by_list = bool(rng.random() < 0.6)
        bad, lists = self.disturb(by_list)
        good = [n for n in range(len(self.library.layers)) if n not in self.library.refused]
        fresh = [int(n) for n in rng.permutation(good)]
        empty = await self.empty()
        control.begin(bad, lists)
        episode = Episode(by_list, bool(bad or lists), fresh, list(self.library.refused))
        sequence = ControlSequence("control", self.actions, episode, int(rng.integers(3, 16)))
        title = f"round {number}"
        try:
            await sequence.start(self.env.host.sequencer)
            await self.settle()
        except AssertionError as error:
            control.wrong.append(f"{error}; last seen: {control.histories.seen()}")
        self.used += sequence.used
        if not control.wrong:
            await self.judge(empty)
        wrong = control.wrong[:2] + self.env.judge.wrong
        if wrong:
            self.wrong += [
                f"{title} ({'list' if by_list else 'layers'}, bad {bad}, {lists}): {w}"
                for w in wrong
            ]
            control.wrong, self.env.judge.wrong = [], []
            await self.hard_reset()

    def disturb(self, by_list: bool) -> tuple[list[int], list[int]]:
        """How unfriendly the bus is in this round; images and lists with a word that it answers
        with ERROR, up to three words, each of any stream."""
        tb, rng = self.tb, self.rng
        on = bool(rng.random() < 0.6)
        for name, value in DISTURBED.items():
            getattr(tb, f"cfg_{name}").value = int(rng.integers(0, 2 * value)) if on else 0
        for name in ("rd", "seq", "wr"):
            getattr(tb, f"cfg_{name}_wait").value = int(rng.integers(0, 3)) if on else 0
        images, lists, words = [], [], []
        if by_list and rng.random() < 0.3:
            for _ in range(int(rng.integers(1, len(WINDOWS) + 1))):
                if rng.random() < 0.6:
                    images.append(self.actions.images[int(rng.integers(len(self.actions.images)))])
                    words.append(images[-1])
                else:
                    lists.append(self.actions.pick(self.actions.tasks))
                    words.append(self.word_of(lists[-1]))
        for name, at in zip(WINDOWS, [*words, *[0] * len(WINDOWS)], strict=False):
            getattr(tb, f"cfg_{name}_lo").value = at & ~3
            getattr(tb, f"cfg_{name}_hi").value = (at & ~3) + 4 if at else 0
        return images, lists

    def word_of(self, tasks: int) -> int:
        """A word that every inference of a network reads: of its list, a table or weights."""
        registers = self.library.networks[tasks].registers
        layers = self.library.networks[tasks].network.layers
        arg = layers[int(self.rng.integers(len(layers)))]
        bias, weights = registers["AI_BIAS_ADR"], registers["AI_WGT_ADR"]
        places = [tasks + 4 * int(self.rng.integers(24 * len(layers)))]
        places += [bias + arg.active_addr, bias + arg.bwsx_base_addr, weights + arg.para_start_addr]
        return int(self.rng.choice(places))

    async def empty(self) -> Memory:
        """New random bytes where results and maps will be; the inputs of the layers stay."""
        results = self.rng.integers(0, 256, SLOT * SLOTS, dtype=np.uint8)
        maps = self.rng.integers(0, 256, 64 * self.library.rows, dtype=np.uint8)
        for row, data in self.library.ram:
            maps[64 * (row - LAYER_ROWS) : 64 * (row - LAYER_ROWS) + data.size] = data
        await self.back.load_storage(RESULTS, results)
        await self.back.load_ram(LAYER_ROWS, maps)
        return Memory("both", 0, np.concatenate([results, maps]))

    async def settle(self) -> None:
        """Wait until the device is idle and its FIFO empty; then read all registers with state."""
        for _ in range(PATIENCE // POLL):
            (status,) = await self.send("settle", read("AI_STATUS"))
            if not status.data & 1 and not status.data >> 24 & 31:
                break
            await Timer(CLOCK * POLL, "ns")
        else:
            names = ("AI_ERR_CODE", "AI_INF_LEFT", "AI_CNN_MODE", "AI_PIX_ADR", "AI_NPIX_ADR")
            await self.send("hang", read(*names, "AI_TAKEN_ADR"))
            raise AssertionError(f"busy after {PATIENCE} cycles: status {status.data:#x}")
        await Timer(CLOCK * POLL, "ns")
        names = ("AI_STATUS", "AI_ERR_CODE", "AI_PIX_ADR", "AI_NPIX_ADR", "AI_RES_ADR")
        await self.send("settle", read(*names, "AI_INF_LEFT", "AI_CNN_MODE"))

    async def judge(self, empty: Memory) -> None:
        """The verdict, then whatever is pending is cleared."""
        results, unknown = await self.back.read_storage(RESULTS, SLOT * SLOTS)
        maps, doubtful = await self.back.read_ram(LAYER_ROWS, self.library.rows)
        self.env.judge.judge(
            self.env.control.histories,
            Memory("storage", RESULTS, results, unknown, written=False),
            Memory("ai_ram", 64 * LAYER_ROWS, maps, doubtful, written=False),
            empty,
        )
        flush = [Transfer(FIFO_CTRL, True, value) for value in (OPEN & ~4, OPEN)]
        windows = [write("AI_READ_FIRST", 0), write("AI_READ_LAST", TOP)]
        clear = [*windows, write("AI_ERR_CODE", 0), Transfer(INTERRUPT_CLEAR, True, 7)]
        await self.send("clear", [*flush, *clear, Transfer(AI["AI_INT_STATUS"], True, 3)])
