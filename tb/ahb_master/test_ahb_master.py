# SPDX-License-Identifier: Apache-2.0
"""ahb_master alone: rate, bursts, grant loss, RETRY, SPLIT, ERROR, against a Python bus."""

import random
from collections import deque
from dataclasses import dataclass, field

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from openkpu.tb.ahb.monitor import AhbMonitor
from openkpu.tb.ahb.responder import ERROR, OKAY, RETRY, SPLIT, AhbResponder, Faults
from openkpu.tb.simrun import run


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
    """Feeds commands and write data, checks every answer against the responder's storage."""

    def __init__(self, dut, faults: Faults) -> None:
        self.dut, self.rng = dut, random.Random(random.getrandbits(32))
        self.width = int(dut.AHB_W.value)
        self.full = (self.width // 8).bit_length() - 1
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for name in ("cmd_valid", "cmd_write", "cmd_addr", "cmd_beats", "cmd_size", "cmd_wpop"):
            getattr(dut, name).value = 0
        dut.cmd_tag.value = dut.wd_data.value = dut.mst_clear.value = 0
        self.bus = AhbResponder(dut, "m_ahb", dut.clk, self.rng, faults)
        self.monitor = AhbMonitor(dut, "m_ahb", dut.clk)
        self.cycle = 0
        self.errors: list[int] = []
        self.model: dict[int, int] = {}  # commands act in order, so this is exact

    async def reset(self) -> None:
        self.dut.rst.value = 1
        for _ in range(3):
            await RisingEdge(self.dut.clk)
        self.dut.rst.value = 0
        self.bus.reset()
        cocotb.start_soon(self.bus.start())

    def command(self, words: int = 1 << 14) -> Command:
        """A random legal command: bursts of whole words, or one narrow beat."""
        rng, step = self.rng, self.width // 8
        beats = rng.choice([1, 2, 3, 4, 5, 8, 11, 16, 16])
        word = rng.randrange(words)
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

    async def run(self, commands: list[Command], p_valid: float = 1.0, limit: int = 60_000) -> None:
        """Give all commands, wait for all answers; answers are checked as they come."""
        dut, step = self.dut, self.width // 8
        queue, data = deque(commands), deque[int]()
        expected: deque[tuple[Command, int]] = deque(
            (c, i) for c in commands for i in range(c.beats)
        )
        given: Command | None = None
        for _ in range(limit):
            if given is None and queue and self.rng.random() < p_valid:
                given = queue.popleft()
                data.extend(given.data)
                dut.cmd_write.value, dut.cmd_addr.value = int(given.write), given.addr
                dut.cmd_beats.value, dut.cmd_size.value = given.beats, given.size
                dut.cmd_wpop.value, dut.cmd_tag.value = int(given.wpop), given.tag
            dut.cmd_valid.value = int(given is not None)
            dut.wd_data.value = data[0] if data else self.rng.getrandbits(self.width)
            await RisingEdge(dut.clk)
            self.cycle += 1
            if given and int(dut.cmd_ready.value):
                given = None
            if int(dut.wd_pop.value):
                data.popleft()
            if int(dut.mst_err_valid.value):
                self.errors.append(int(dut.mst_err_addr.value))
                break
            if int(dut.rsp_valid.value):
                command, index = expected.popleft()
                assert int(dut.rsp_tag.value) == command.tag
                assert int(dut.rsp_write.value) == command.write
                assert int(dut.rsp_first.value) == (index == 0)
                assert int(dut.rsp_last.value) == (index == command.beats - 1)
                addr = command.addr + index * (1 << command.size)
                low = addr % step
                lanes = range(low, low + (1 << command.size))
                if command.write:
                    word = command.data[index].to_bytes(step, "little")
                    self.model.update({addr - low + i: word[i] for i in lanes})
                else:
                    word = int(dut.rsp_data.value).to_bytes(step, "little")
                    for i in lanes:
                        here = addr - low + i
                        assert word[i] == self.model.get(here, self.bus.default(here))
                if not expected:
                    break
        else:
            raise AssertionError(f"{len(expected)} beats missing after {limit} cycles")
        dut.cmd_valid.value = 0

    async def settle(self) -> None:
        for _ in range(200):
            await RisingEdge(self.dut.clk)
            if int(self.dut.mst_idle.value):
                break
        else:
            raise AssertionError("the master does not become idle")
        assert self.bus.memory == self.model, "the storage is not what the commands wrote"
        self.monitor.check()


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


@cocotb.test()
async def error_halts(dut) -> None:
    """ERROR on any beat: one report with its address, IDLE until clear, then all is well."""
    bench = Bench(dut, Faults())
    await bench.reset()
    step = bench.width // 8
    for trial in range(12):
        bad = 0x4000 + bench.rng.randrange(40) * step
        bench.bus.faults = Faults(
            wait=0.3,
            lose=0.1,
            answer=lambda addr, write, bad=bad: ERROR if addr == bad else None,
        )
        bench.errors.clear()
        before = len(bench.bus.writes)
        await bench.run(spread(4, 16, step, bool(trial & 1), bench.rng))
        assert bench.errors == [bad]
        assert bad not in bench.bus.writes[before:]
        for _ in range(20):
            await RisingEdge(dut.clk)
            assert int(dut.m_ahb_htrans.value) == 0 and int(dut.m_ahb_hbusreq.value) == 0
            assert int(dut.cmd_ready.value) == 0 and int(dut.mst_err_valid.value) == 0
        await bench.settle()
        dut.mst_clear.value = 1
        await RisingEdge(dut.clk)
        dut.mst_clear.value = 0
        bench.bus.faults = Faults()
        await bench.run([bench.command() for _ in range(5)])
        await bench.settle()


@pytest.mark.parametrize(
    ("sim", "width"), [("icarus", 32), ("icarus", 64), ("icarus", 128), ("verilator", 128)]
)
def test_ahb_master(sim: str, width: int) -> None:
    sources = ["rtl/storage/ahb_master.v", "rtl/lib/fifo_sync.v", "rtl/lib/ram_1r1w_async.v"]
    run(sim, "ahb_master", sources, "tb.ahb_master.test_ahb_master", params={"AHB_W": width})
