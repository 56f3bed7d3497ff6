# SPDX-License-Identifier: Apache-2.0
"""ahb_master alone: rate, bursts, grant loss, RETRY, SPLIT, ERROR, against a Python bus."""

import random
from collections import Counter, deque
from dataclasses import dataclass, field, replace

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from openkpu_tb.ahb.monitor import AhbMonitor
from openkpu_tb.ahb.responder import ERROR, OKAY, RETRY, SPLIT, AhbResponder, Faults
from openkpu_tb.simrun import run_bench


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


class Bench:
    """Feeds commands and write data, checks every answer against the responder's storage.

    An ERROR must be reported for the oldest beat that waits for its answer, and takes what is left
    of its command with it; all other beats must be answered, in order.
    """

    def __init__(self, dut, faults: Faults) -> None:
        self.dut, self.rng = dut, random.Random(random.getrandbits(32))
        self.width = int(dut.AHB_W.value)
        self.full = (self.width // 8).bit_length() - 1
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for name in ("cmd_valid", "cmd_write", "cmd_addr", "cmd_beats", "cmd_size", "cmd_wpop"):
            getattr(dut, name).value = 0
        dut.cmd_tag.value = dut.wd_data.value = dut.mst_abandon.value = 0
        self.bus = AhbResponder(dut, "m_ahb", dut.clk, self.rng, faults)
        self.monitor = AhbMonitor(dut, "m_ahb", dut.clk)
        self.cycle = 0
        self.errors: list[int] = []
        self.model: dict[int, int] = {}  # commands act in order, so this is exact
        self.open: set[int] = set()  # bytes whose writes may have happened or not
        self.waits: Counter[int] = Counter()
        self.forget()

    def forget(self) -> None:
        """No command is under way."""
        self.queue: deque[Command] = deque()
        self.data: deque[int] = deque()
        self.expected: deque[tuple[Command, int]] = deque()
        self.given: Command | None = None

    async def reset(self) -> None:
        self.dut.rst.value = 1
        for _ in range(3):
            await RisingEdge(self.dut.clk)
        self.dut.rst.value = 0
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
        assert int(dut.mst_err_beats.value) == command.beats - index
        assert not int(dut.rsp_valid.value), "a beat that failed is answered"
        self.errors.append(addr)
        if self.bus.faults.one_cycle and command.write and index + 1 < command.beats:
            self.open.update(self.lanes(command, index + 1))  # its address phase was over
        while self.expected and self.expected[0][0] is command:
            self.expected.popleft()

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
            self.data.extend(given.data)
            dut.cmd_write.value, dut.cmd_addr.value = int(given.write), given.addr
            dut.cmd_beats.value, dut.cmd_size.value = given.beats, given.size
            dut.cmd_wpop.value, dut.cmd_tag.value = int(given.wpop), given.tag
        dut.cmd_valid.value = int(self.given is not None)
        dut.wd_data.value = self.data[0] if self.data else self.rng.getrandbits(self.width)
        await RisingEdge(dut.clk)
        self.cycle += 1
        if self.given and int(dut.cmd_ready.value):
            self.given = None
        if int(dut.wd_pop.value):
            self.data.popleft()
        if int(dut.mst_err_valid.value):
            self._error()
        if int(dut.rsp_valid.value):
            self._answer()
        self._waiting()

    async def run(self, commands: list[Command], p_valid: float = 1.0, limit: int = 60_000) -> None:
        """Give all commands, wait for all answers; answers are checked as they come."""
        self.give(commands)
        for _ in range(limit):
            await self.step(p_valid)
            if not self.expected:
                break
        else:
            raise AssertionError(f"{len(self.expected)} beats missing after {limit} cycles")
        self.dut.cmd_valid.value = 0

    async def settle(self) -> None:
        for _ in range(200):
            await self.step()
            if int(self.dut.mst_idle.value):
                break
        else:
            raise AssertionError("the master does not become idle")
        memory = self.bus.memory
        wrong = {a for a in {*memory, *self.model} if memory.get(a) != self.model.get(a)}
        assert wrong <= self.open, "the storage is not what the commands wrote"
        self.model = dict(memory)
        self.open.clear()
        self.monitor.check()

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


@cocotb.test()
async def back_to_back(dut) -> None:
    """0 wait states, permanent grant: every bus cycle between first and last beat carries data."""
    bench = Bench(dut, Faults())
    await bench.reset()
    step = bench.width // 8
    for beats in (16, 8, 4, 3, 1):
        for write in (False, True):
            start = len(bench.monitor.done)
            await bench.run(spread(12, beats, step, write, bench.rng))
            await bench.settle()
            done = bench.monitor.done[start:]
            assert len(done) == 12 * beats
            cycles = done[-1].cycle - done[0].cycle + 1
            assert cycles == 12 * beats, f"{12 * beats} beats of {beats} took {cycles} cycles"
    mixed = [bench.command() for _ in range(60)]
    start = len(bench.monitor.done)
    await bench.run(mixed)
    await bench.settle()
    done = bench.monitor.done[start:]
    assert done[-1].cycle - done[0].cycle + 1 == len(done), "reads and writes in turn lost cycles"
    assert {"SINGLE", "INCR", "INCR4", "INCR8", "INCR16"} <= set(bench.monitor.bursts)


@cocotb.test()
async def random_bus(dut) -> None:
    """Waits, grant loss, RETRY, SPLIT, alone and together; slow and fast commands."""
    for faults in (
        Faults(wait=0.4),
        Faults(lose=0.3, regain=0.4),
        Faults(retry=0.2),
        Faults(split=0.1),
        Faults(wait=0.3, lose=0.2, regain=0.5, retry=0.1, split=0.05),
    ):
        bench = Bench(dut, faults)
        await bench.reset()
        await bench.run([bench.command() for _ in range(60)], p_valid=0.8)
        await bench.settle()
        if faults.lose:
            assert bench.monitor.broken > 5, "no burst lost the grant: the test tests nothing"
        assert bool(bench.bus.answers[RETRY]) == bool(faults.retry)
        assert bool(bench.bus.answers[SPLIT]) == bool(faults.split)
        dut.rst.value = 1
        bench.monitor.kill()
        await RisingEdge(dut.clk)


@cocotb.test()
async def retry_every_beat(dut) -> None:
    """RETRY and SPLIT once on each beat of a 16-beat burst, read and write."""
    bench = Bench(dut, Faults())
    await bench.reset()
    step = bench.width // 8
    for write in (False, True):
        for answer in (RETRY, SPLIT):
            for beat in range(16):
                wanted = {0x4000 + beat * step: 1}

                def plan(addr, w, wanted=wanted, answer=answer):
                    return answer if wanted.pop(addr, 0) else OKAY

                bench.bus.faults.answer = plan
                await bench.run(spread(2, 16, step, write, bench.rng))
                await bench.settle()
                assert not wanted


@cocotb.test()
async def grant_lost_at_every_beat(dut) -> None:
    """The grant goes away after each number of beats, for a while: the rest is rebuilt."""
    bench = Bench(dut, Faults())
    await bench.reset()
    step = bench.width // 8
    for beats in range(1, 17):

        async def arbiter(count=beats):
            goal = bench.bus.beats + count
            for _ in range(5000):
                if bench.bus.beats >= goal:
                    break
                await RisingEdge(dut.clk)
            else:
                raise AssertionError(f"{bench.bus.beats} beats, expected {goal}")
            bench.bus.granted = False
            for _ in range(5):
                await RisingEdge(dut.clk)
            bench.bus.granted = True

        task = cocotb.start_soon(arbiter())
        await bench.run(spread(2, 16, step, bool(beats & 1), bench.rng))
        await task
        await bench.settle()
    assert bench.monitor.broken >= 14


def row(bench: Bench, lengths: list[int], kinds: list[bool], at: int = 0x4000) -> list[Command]:
    """Commands of whole words one behind the other, of these lengths and directions."""
    step, commands = bench.width // 8, []
    for beats, write in zip(lengths, kinds, strict=True):
        at += -at % 1024 if at % 1024 + beats * step > 1024 else 0
        data = [bench.rng.getrandbits(bench.width) for _ in range(beats)] if write else []
        tag = bench.rng.getrandbits(len(bench.dut.cmd_tag))
        commands.append(Command(write, at, beats, bench.full, data=data, tag=tag))
        at += beats * step
    return commands


async def each_beat_fails(dut, lengths: tuple[int, ...], faults: Faults) -> Bench:
    """ERROR on each beat of commands of these lengths, between others, as reads and as writes."""
    bench = Bench(dut, Faults())
    await bench.reset()
    for beats in lengths:
        for beat in range(beats):
            for write in (False, True):
                others = [bench.rng.choice([1, 2, 4, 16]) for _ in range(3)]
                kinds = [bench.rng.random() < 0.5 for _ in range(3)]
                commands = row(
                    bench,
                    [others[0], beats, others[1], others[2]],
                    [kinds[0], write, kinds[1], kinds[2]],
                )
                bad = commands[1].addr + beat * bench.width // 8

                def answer(addr, write, bad=bad):
                    return ERROR if addr == bad else None

                bench.bus.faults = replace(faults, answer=answer)
                bench.errors.clear()
                await bench.run(commands)
                assert bench.errors == [bad]
                await bench.settle()
                assert not bench.data, "write data of dropped beats are left"
    return bench


@cocotb.test()
async def error_ends_its_command(dut) -> None:
    """ERROR on each beat of each length: the rest of the command is dropped, nothing else is."""
    await each_beat_fails(dut, (1, 2, 3, 4, 8, 11, 16), Faults())


@cocotb.test()
async def error_on_a_rough_bus(dut) -> None:
    """The same with wait states, lost grants, RETRY and SPLIT around it."""
    rough = Faults(wait=0.3, lose=0.2, regain=0.5, retry=0.1, split=0.05)
    bench = await each_beat_fails(dut, (1, 2, 4, 5, 16), rough)
    assert bench.bus.answers[RETRY] and bench.bus.answers[SPLIT] and bench.monitor.broken


@cocotb.test()
async def error_in_one_cycle(dut) -> None:
    """ERROR with HREADY high at once: a beat of another command behind it goes on."""
    await each_beat_fails(dut, (1, 2, 3, 4, 8, 16), Faults(one_cycle=True))
    rough = Faults(one_cycle=True, wait=0.4, lose=0.2, regain=0.5, retry=0.1)
    await each_beat_fails(dut, (1, 2, 4), rough)


@cocotb.test()
async def error_next_to_retry(dut) -> None:
    """RETRY or SPLIT on a beat, ERROR when it comes again or on one of the two after it."""
    bench = Bench(dut, Faults())
    await bench.reset()
    step = bench.width // 8
    for lengths in ([1, 1, 1, 1, 1], [2, 2, 2, 2], [4, 4, 1, 4], [1, 3, 1, 3]):
        for beat in range(sum(lengths) - 2):
            for after in range(3):
                for again in (RETRY, SPLIT):
                    write = bench.rng.random() < 0.5
                    commands = row(bench, lengths, [write] * len(lengths))
                    first = commands[0].addr + beat * step
                    bad = first + after * step
                    todo = {first}

                    def answer(addr, write, todo=todo, first=first, bad=bad, again=again):
                        if addr in todo:
                            todo.clear()
                            return again
                        return ERROR if addr == bad else None

                    lose = bench.rng.choice([0.0, 0.4])
                    bench.bus.faults = Faults(answer=answer, lose=lose, regain=0.5, wait=lose)
                    bench.errors.clear()
                    await bench.run(commands)
                    assert bench.errors == [bad] and not todo
                    await bench.settle()


@cocotb.test()
async def random_errors(dut) -> None:
    """Random commands, each beat fails with some probability, several at once under way."""
    for rough in (
        Faults(),
        Faults(one_cycle=True),
        Faults(wait=0.3, lose=0.2, regain=0.5, retry=0.1, split=0.05),
    ):
        bench = Bench(dut, rough)
        rough.answer = lambda addr, write, rng=bench.rng: ERROR if rng.random() < 0.04 else None
        await bench.reset()
        await bench.run([bench.command() for _ in range(200)], p_valid=0.8)
        await bench.settle()
        assert len(bench.errors) > 20 and not bench.data
        dut.rst.value = 1
        bench.monitor.kill()
        await RisingEdge(dut.clk)


HANGS = ("stuck", "no grant", "split", "retry", "alive")


async def hang(bench: Bench, kind: str) -> None:
    """The bus stops answering, in one of these ways, after some beats."""
    bus, rng = bench.bus, bench.rng
    for _ in range(rng.randint(1, 60)):
        await bench.step()
    bus.stuck = kind == "stuck"
    bus.granted = kind not in ("no grant", "retry")
    if kind in ("split", "retry"):
        bus.faults.split_cycles = 1_000_000
        bus.faults.answer = lambda addr, write: SPLIT if kind == "split" else RETRY
    for _ in range(0 if kind == "alive" else rng.choice([0, 1, 2, 3, 20])):
        await bench.step()


@cocotb.test()
async def abandon(dut) -> None:
    """A bus that does not answer is given up; the next commands wait until it answers again."""
    recovered = orphans = 0
    bench = Bench(dut, Faults())
    await bench.reset()
    for trial in range(100):
        kind = HANGS[trial % len(HANGS)]
        bench.bus.faults = Faults(wait=0.2, lose=0.1, regain=0.6, retry=0.05)
        bench.give([bench.command(words=1 << 10) for _ in range(30)])
        await hang(bench, kind)
        await bench.abandon(cycles=bench.rng.choice([2, 3, 20]))
        recovered += int(dut.m_ahb_htrans.value) == 0
        orphans += int(dut.m_ahb_htrans.value) != 0
        beats = bench.bus.beats
        bench.give([bench.command(words=1 << 10, first=1 << 12) for _ in range(6)])
        for _ in range(0 if kind == "alive" else bench.rng.choice([1, 4, 30])):
            await bench.step()
            assert not int(dut.rsp_valid.value) or bench.bus.granted
        ends = bench.rng.choice([OKAY, ERROR, RETRY])
        bus = bench.bus
        if bus.stuck and bus.beat and not bus.beat.second:
            bus.beat.answer = ends  # how the orphan ends is nobody's business
        bus.faults, bus.stuck, bus.granted, bus.away = Faults(wait=0.1), False, True, 0
        await bench.run([])
        await bench.settle()
        assert not bench.errors and bus.beats > beats
    assert recovered > 20 and orphans > 5, (recovered, orphans)


@cocotb.test()
async def what_it_waits_for(dut) -> None:
    """Grant, answer, grant after SPLIT, nothing: told with the address and tag of the beat."""
    bench = Bench(dut, Faults())
    bench.bus.granted = False
    await bench.reset()
    for _ in range(4):
        await bench.step()
    assert set(bench.waits) == {0}, "nothing to do, nothing to wait for"

    async def expect(why: int, beat: int) -> None:
        for _ in range(12):
            await bench.step()
        assert int(dut.wait_why.value) == why
        command, index = bench.expected[0]
        assert int(dut.wait_addr.value) == commands[0].addr + beat * bench.width // 8
        assert (command, index) == (commands[0], beat)

    commands = row(bench, [4, 4], [False, True])
    bench.give(commands)
    await expect(1, 0)
    bench.bus.stuck = bench.bus.granted = True
    await expect(2, 0)
    bench.bus.granted = False
    assert bench.bus.beat is not None
    bench.bus.beat.answer, bench.bus.stuck = SPLIT, False
    await expect(3, 0)
    bench.bus.granted = True
    await bench.run([])
    await bench.settle()
    assert int(dut.wait_why.value) == 0


@pytest.mark.tier(nightly=["icarus-64", "icarus-128", "icarus-32"])
@pytest.mark.parametrize(
    ("sim", "width"), [("icarus", 32), ("icarus", 64), ("icarus", 128), ("verilator", 128)]
)
def test_ahb_master(sim: str, width: int) -> None:
    sources = ["rtl/storage/ahb_master.v", "rtl/lib/fifo_regs.v"]
    run_bench(sim, "ahb_master", sources, "tb.ahb_master.test_ahb_master", params={"AHB_W": width})
