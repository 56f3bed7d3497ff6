# SPDX-License-Identifier: Apache-2.0
"""The bench of test_ahb_master: commands, their data, and what the bus must show of them."""

import random
from collections import Counter, deque
from dataclasses import dataclass, field

import cocotb
from cocotb.triggers import RisingEdge

from openkpu_tb.ahb.monitor import AhbMonitor
from openkpu_tb.ahb.responder import AhbResponder, Faults
from openkpu_tb.core.block_bench import BlockBench


@dataclass
class Command:
    """One burst command and the data it writes (bus words, one per beat that pops)."""

    write: bool
    addr: int
    beats: int
    size: int
    wpop: bool = True
    data: list[int] = field(default_factory=list)
    tag: int = 0


class Bench(BlockBench):
    """Feeds commands and write data, checks every answer against the responder's storage.

    An ERROR must be reported for the oldest beat that waits for its answer, and takes what is left
    of its command with it; all other beats must be answered, in order.
    """

    inputs = "cmd_valid", "cmd_write", "cmd_addr", "cmd_beats", "cmd_size", "cmd_wpop", "cmd_tag"
    inputs += "wd_data", "mst_abandon"

    def __init__(self, dut, faults: Faults | None = None) -> None:
        super().__init__(dut)
        self.rng = random.Random(random.getrandbits(32))
        self.width = int(dut.AHB_W.value)
        self.full = (self.width // 8).bit_length() - 1
        self.connect(faults)
        self.cycle = 0
        self.errors: list[int] = []
        self.model: dict[int, int] = {}  # commands act in order, so this is exact
        self.open: set[int] = set()  # bytes whose writes may have happened or not
        self.waits: Counter[int] = Counter()
        self.forget()

    def connect(self, faults: Faults | None) -> None:
        """A storage behind the port, and who watches it."""
        self.bus = AhbResponder(self.dut, "m_ahb", self.dut.clk, self.rng, faults)
        self.monitor = AhbMonitor(self.dut, "m_ahb", self.dut.clk)

    def forget(self) -> None:
        """No command is under way."""
        self.queue: deque[Command] = deque()
        # words in the write FIFO, with the command of each; so many of the first ones are taken
        self.data: deque[tuple[Command, int]] = deque()
        self.taken = 0
        self.freed: Command | None = None  # command of the word that was written in the last cycle
        self.failed: list[Command] = []
        self.expected: deque[tuple[Command, int]] = deque()
        self.given: Command | None = None

    async def reset(self) -> None:
        await super().reset()
        self.bus.reset()
        cocotb.start_soon(self.bus.start())

    def command(self, words: int = 1 << 14, first: int = 0) -> Command:
        """A random legal command: bursts of whole words, or one narrow beat."""
        rng, step = self.rng, self.width // 8
        beats = rng.choice([1, 2, 3, 4, 5, 8, 11, 16, 16])
        word = first + rng.randrange(words)
        per_kb = 1024 // step
        beats = min(beats, per_kb - word % per_kb)
        write = rng.random() < 0.5
        if rng.random() < 0.2:
            size = rng.randrange(self.full + 1)
            addr = word * step + rng.randrange(step) // (1 << size) * (1 << size)
            command = Command(write, addr, 1, size)
        else:
            command = Command(write, word * step, beats, self.full)
        if write:
            command.data = [rng.getrandbits(self.width) for _ in range(command.beats)]
        command.tag = rng.getrandbits(len(self.dut.cmd_tag))
        return command

    def give(self, commands: list[Command]) -> None:
        self.queue.extend(commands)
        self.expected.extend((c, i) for c in commands for i in range(c.beats))

    def lanes(self, command: Command, index: int) -> dict[int, int]:
        """Place in the bus word of each byte address of a beat."""
        addr = command.addr + index * (1 << command.size)
        low = addr % (self.width // 8)
        return {addr + i: low + i for i in range(1 << command.size)}

    def _answer(self) -> None:
        dut, step = self.dut, self.width // 8
        command, index = self.expected.popleft()
        assert int(dut.rsp_tag.value) == command.tag
        assert int(dut.rsp_write.value) == command.write
        assert int(dut.rsp_first.value) == (index == 0)
        assert int(dut.rsp_last.value) == (index == command.beats - 1)
        assert self.freed is (command if command.write and command.wpop else None)
        if command.write:
            word = command.data[index].to_bytes(step, "little")
            lanes = self.lanes(command, index).items()
            self.model.update({addr: word[lane] for addr, lane in lanes})
        else:
            word = int(dut.rsp_data.value).to_bytes(step, "little")
            for addr, lane in self.lanes(command, index).items():
                known = self.model.get(addr, self.bus.default(addr))
                assert word[lane] == known or addr in self.open, hex(addr)

    def _error(self) -> None:
        dut = self.dut
        command, index = self.expected[0]
        addr = command.addr + index * (1 << command.size)
        assert int(dut.mst_err_addr.value) == addr
        assert int(dut.mst_err_tag.value) == command.tag
        assert not int(dut.rsp_valid.value), "a beat that failed is answered"
        self.errors.append(addr)
        self.failed.append(command)
        if self.bus.faults.one_cycle and command.write and index + 1 < command.beats:
            self.open.update(self.lanes(command, index + 1))  # its address phase was over
        while self.expected and self.expected[0][0] is command:
            self.expected.popleft()

    def _words(self) -> None:
        """Write data that are taken, taken back, and written."""
        dut = self.dut
        self.taken += int(dut.wd_pop.value) - int(dut.wd_back.value)
        assert 0 <= self.taken <= len(self.data)
        self.freed = None
        if int(dut.wd_free.value):
            self._drop_failed()
            self.freed, _ = self.data.popleft()
            self.taken -= 1

    def _drop_failed(self) -> None:
        """Words of failed commands were taken, or the master passes over them; none is written."""
        while self.taken and any(self.data[0][0] is command for command in self.failed):
            self.data.popleft()
            self.taken -= 1

    def words_over(self) -> None:
        """All words are written, or of commands that failed."""
        self._drop_failed()
        self.failed.clear()
        assert not self.data, "write data of dropped beats are left"

    def _waiting(self) -> None:
        """What it says it waits for is the oldest beat without an answer."""
        dut = self.dut
        why = int(dut.wait_why.value)
        self.waits[why] += 1
        ready, grant = int(dut.m_ahb_hready.value), int(dut.m_ahb_hgrant.value)
        if why:
            command, index = self.expected[0]
            assert int(dut.wait_addr.value) == command.addr + index * (1 << command.size)
            assert int(dut.wait_tag.value) == command.tag
            assert not ready if why == 2 else not (ready and grant)
        elif int(dut.m_ahb_htrans.value):
            assert ready or self.monitor.given_up

    async def step(self, p_valid: float = 1.0) -> None:
        """One cycle."""
        dut = self.dut
        if self.given is None and self.queue and self.rng.random() < p_valid:
            given = self.given = self.queue.popleft()
            self.data.extend((given, word) for word in given.data)
            dut.cmd_write.value, dut.cmd_addr.value = int(given.write), given.addr
            dut.cmd_beats.value, dut.cmd_size.value = given.beats, given.size
            dut.cmd_wpop.value, dut.cmd_tag.value = int(given.wpop), given.tag
        dut.cmd_valid.value = int(self.given is not None)
        noise = self.rng.getrandbits(self.width)
        dut.wd_data.value = self.data[self.taken][1] if self.taken < len(self.data) else noise
        await RisingEdge(dut.clk)
        self.cycle += 1
        if self.given and int(dut.cmd_ready.value):
            self.given = None
        if int(dut.mst_err_valid.value):
            self._error()
        if int(dut.rsp_valid.value):
            self._answer()
        self._words()
        self._waiting()

    async def run(self, commands: list[Command], p_valid: float = 1.0, limit: int = 60_000) -> None:
        """Give all commands, wait for all answers; answers are checked as they come."""
        self.give(commands)
        await self.run_until(lambda: not self.expected, limit, p_valid)
        self.dut.cmd_valid.value = 0

    async def settle(self) -> None:
        await self.wait_for("mst_idle", 200)
        self.words_over()
        memory = self.bus.memory
        wrong = {a for a in {*memory, *self.model} if memory.get(a) != self.model.get(a)}
        assert wrong <= self.open, "the storage is not what the commands wrote"
        self.model = dict(memory)
        self.open.clear()
        self.monitor.check()

    async def stop(self) -> None:
        """Another bench follows in the same test."""
        self.dut.rst.value = 1
        self.monitor.kill()
        await RisingEdge(self.dut.clk)

    async def abandon(self, cycles: int) -> None:
        """Drop everything; idle at once, and no answer any more."""
        self.dut.cmd_valid.value = 0
        self.dut.mst_abandon.value = 1
        for command, index in self.expected:
            if command.write:
                self.open.update(self.lanes(command, index))
        self.forget()
        for i in range(cycles):
            await RisingEdge(self.dut.clk)
            self.monitor.abandon()
            if i:  # the first edge still shows what was before
                self._silent()
        self.dut.mst_abandon.value = 0

    def _silent(self) -> None:
        dut = self.dut
        assert int(dut.mst_idle.value), "not idle after it was abandoned"
        assert not int(dut.rsp_valid.value) and not int(dut.mst_err_valid.value)
        assert not int(dut.wait_why.value)


def spread(count: int, beats: int, step: int, write: bool, rng: random.Random) -> list[Command]:
    """Commands of equal length at ascending addresses."""
    return [
        Command(
            write,
            0x4000 + i * beats * step,
            beats,
            step.bit_length() - 1,
            data=[rng.getrandbits(8 * step) for _ in range(beats)] if write else [],
        )
        for i in range(count)
    ]
