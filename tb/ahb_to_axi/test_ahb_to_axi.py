# SPDX-License-Identifier: Apache-2.0
"""ahb_to_axi behind the device's AHB master, against the AXI4 memory of cocotbext-axi."""

import logging
import random
from types import SimpleNamespace
from typing import Any

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiBus, AxiRam, AxiResp

from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.simrun import run_bench
from tb.ahb_master.test_ahb_master import Bench, Command, row

logging.getLogger("cocotb.ahb_to_axi_bench").setLevel(logging.ERROR)
SIZE = 1 << 18  # bytes of the memory
CHANNELS = ("aw", "w", "b", "ar", "r")


class Memory:
    """Storage interface of the AHB master's bench, backed by a memory of cocotbext-axi.

    ``bad``: addresses whose beats fail, with SLVERR or DECERR from ``answer``.
    """

    def __init__(self, dut, rng: random.Random) -> None:
        self.ram: Any = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=SIZE)
        self.first = rng.randbytes(SIZE)
        self.ram.write(0, self.first)
        self.faults = SimpleNamespace(one_cycle=False)
        self.bad: set[int] = set()
        self.answer = lambda: rng.choice([AxiResp.SLVERR, AxiResp.DECERR])
        self.lanes = len(dut.m_axi_wdata) // 8
        self.channels = {
            "aw": self.ram.write_if.aw_channel,
            "w": self.ram.write_if.w_channel,
            "b": self.ram.write_if.b_channel,
            "ar": self.ram.read_if.ar_channel,
            "r": self.ram.read_if.r_channel,
        }
        read, write = self.ram.read_if._read, self.ram.write_if._write

        async def reads(address: int, length: int) -> bytes:
            if self.bad & set(range(address, address + length)):
                raise OSError("planned")
            return await read(address, length)

        async def writes(address: int, data: bytes) -> None:
            if self.bad & set(range(address, address + len(data))):
                raise OSError("planned")
            await write(address, data)

        self.ram.read_if._read, self.ram.write_if._write = reads, writes
        for name, field in (("b", "bresp"), ("r", "rresp")):
            self._vary(self.channels[name], field)

    def _vary(self, channel, field: str) -> None:
        """Replace SLVERR, the only error of the model, by ``answer``."""
        send = channel.send

        async def varied(item) -> None:
            if getattr(item, field) == AxiResp.SLVERR:
                setattr(item, field, self.answer())
            await send(item)

        channel.send = varied

    def default(self, addr: int) -> int:
        return self.first[addr]

    def pause(self, probability: float, rng: random.Random, names=CHANNELS) -> None:
        """Stall each named channel with this probability in every cycle."""

        def draws():
            while True:
                yield rng.random() < probability

        for name in names:
            self.channels[name].set_pause_generator(draws())

    def hold(self, names: tuple[str, ...], held: bool) -> None:
        """Stop channels, or let them continue."""
        for name in names:
            self.channels[name].clear_pause_generator()
            self.channels[name].pause = held


class AxiBench(Bench):
    """Commands to the AHB master; every answer is checked against a model of the memory."""

    def connect(self, faults: object) -> None:
        self.dut.rst.value = 1
        self.bus, self.most = Memory(self.dut, self.rng), 0
        self.monitor = SimpleNamespace(given_up=False)
        self.monitor.abandon = lambda: setattr(self.monitor, "given_up", True)
        cocotb.start_soon(self._count())

    async def _count(self) -> None:
        """Count the outstanding read bursts; ``most`` is their maximum."""
        dut, now = self.dut, 0
        while True:
            await RisingEdge(dut.clk)
            if int(dut.rst.value):
                now = 0
                continue
            now += bool(int(dut.m_axi_arvalid.value) and int(dut.m_axi_arready.value))
            ends = ("m_axi_rvalid", "m_axi_rready", "m_axi_rlast")
            now -= all(int(getattr(dut, name).value) for name in ends)
            self.most = max(self.most, now)

    async def reset(self) -> None:
        await BlockBench.reset(self)

    def _error(self) -> None:
        command = self.expected[0][0]
        if command.write:  # the response does not identify the beat that failed
            for index in range(command.beats):
                self.open.update(self.lanes(command, index))
        super()._error()

    async def settle(self) -> None:
        await self.wait_for("mst_idle", 2000)
        self.words_over()
        await self.steps(20)
        now = self.bus.ram.read(0, SIZE)
        known = bytearray(self.bus.first)
        for addr, value in self.model.items():
            known[addr] = value
        if now != known:
            wrong = {a for a in range(SIZE) if now[a] != known[a]}
            assert wrong <= self.open, f"not what the commands wrote: {sorted(wrong)[:8]}"
        self.bus.first, self.model = bytes(now), {}
        self.open.clear()
        assert not int(self.dut.axi_errors.value)

    def narrow(self) -> Command:
        """A burst of beats that are narrower than the bus."""
        size = self.rng.randrange(self.full)
        beats = self.rng.randint(2, 16)
        addr = self.rng.randrange(SIZE >> 10) << 10 | self.rng.randrange(64) << size
        write = self.rng.random() < 0.5
        data = [self.rng.getrandbits(self.width) for _ in range(beats)] if write else []
        return Command(write, addr, beats, size, data=data)

    def commands(self, count: int) -> list[Command]:
        words = SIZE // (self.width // 8)
        return [
            self.narrow() if self.rng.random() < 0.2 else self.command(min(words, 1 << 8))
            for _ in range(count)
        ]


@block_test(AxiBench)
async def rate_of_reads(bench: AxiBench, dut) -> None:
    """Bursts follow each other without a pause: the next ones are requested in time."""
    await bench.run(row(bench, [16] * 2, [False] * 2))  # the memory's own start
    began = bench.cycle
    await bench.run(row(bench, [16] * 40, [False] * 40))
    cycles = bench.cycle - began
    most = int(dut.OUTSTANDING.value)
    assert bench.most <= most
    if most > 1:
        assert cycles <= 40 * 16 * 1.02 + 12, f"{cycles} cycles for {40 * 16} beats"
        assert bench.most > 1
    await bench.settle()


@block_test(AxiBench)
async def random_commands(bench: AxiBench, dut) -> None:
    """Reads and writes, narrow ones among them, without pauses and with stalled channels."""
    for part in range(6):
        bench.bus.pause((0.0, 0.3, 0.7)[part % 3], bench.rng)
        await bench.run(bench.commands(60), p_valid=(1.0, 0.3)[part & 1])
        await bench.settle()
    assert bench.most <= int(dut.OUTSTANDING.value)


@block_test(AxiBench)
async def reads_behind_writes(bench: AxiBench) -> None:
    """A read right after a write returns the new data, however slow the write channels are."""
    for slow in (("w",), ("aw",), ("b",), ()):
        for name in CHANNELS:
            bench.bus.hold((name,), False)
        bench.bus.pause(0.8, bench.rng, slow)
        for beats in (1, 4, 16):
            writes = row(bench, [beats] * 4, [True] * 4)
            pairs = [(w, Command(False, w.addr, w.beats, w.size)) for w in writes]
            await bench.run([command for pair in pairs for command in pair])
        await bench.settle()


@block_test(AxiBench)
async def addresses_and_data_apart(bench: AxiBench) -> None:
    """Data are accepted long before their address, or the address before the data; late
    responses."""
    for slow in CHANNELS:
        for name in CHANNELS:
            bench.bus.hold((name,), False)
        bench.bus.pause(0.9, bench.rng, (slow,))
        await bench.run(bench.commands(25))
        await bench.settle()


@block_test(AxiBench)
async def errors(bench: AxiBench) -> None:
    """SLVERR and DECERR on each beat: a read fails at that beat, a write at its last beat."""
    for probability in (0.0, 0.4):
        bench.bus.pause(probability, bench.rng)
        for beats in (1, 2, 3, 4, 8, 11, 16):
            for beat in {0, 1, beats // 2, beats - 1} & set(range(beats)):
                for write in (False, True):
                    others = [bench.rng.choice([1, 2, 5, 16]) for _ in range(3)]
                    kinds = [bench.rng.random() < 0.5 for _ in range(3)]
                    commands = row(
                        bench,
                        [others[0], beats, others[1], others[2]],
                        [kinds[0], write, kinds[1], kinds[2]],
                    )
                    step = bench.width // 8
                    bench.bus.bad = {commands[1].addr + beat * step}
                    expected = commands[1].addr + (beats - 1 if write else beat) * step
                    bench.errors.clear()
                    await bench.run(commands)
                    assert bench.errors == [expected]
                    await bench.settle()


@block_test(AxiBench)
async def errors_in_a_row(bench: AxiBench) -> None:
    """Every command fails, each before the previous one has completed."""
    step = bench.width // 8
    for part in range(12):
        bench.bus.pause((0.0, 0.3)[part & 1], bench.rng)
        lengths = [bench.rng.randint(1, 16) for _ in range(6)]
        commands = row(bench, lengths, [bench.rng.random() < 0.4 for _ in lengths])
        where = [bench.rng.randrange(n) for n in lengths]
        bench.bus.bad = {c.addr + n * step for c, n in zip(commands, where, strict=True)}
        expected = [
            c.addr + (c.beats - 1 if c.write else n) * step
            for c, n in zip(commands, where, strict=True)
        ]
        bench.errors.clear()
        await bench.run(commands)
        assert bench.errors == expected
        await bench.settle()


@block_test(AxiBench)
async def abandoned(bench: AxiBench, dut) -> None:
    """All commands are dropped in any cycle, with live or dead channels; later ones are exact."""
    for part in range(40):
        dead = bench.rng.sample(CHANNELS, bench.rng.choice([0, 0, 1, 2, 5]))
        bench.bus.pause(bench.rng.choice([0.0, 0.0, 0.4]), bench.rng)
        bench.give(bench.commands(12))
        stops = bench.rng.randrange(60)
        for cycle in range(60):
            if cycle == stops:
                bench.bus.hold(tuple(dead), True)
            await bench.step()
            if cycle > stops and bench.rng.random() < 0.1:
                break
        await bench.abandon(bench.rng.choice([1, 1, 2, 5]))
        bench.bus.hold(CHANNELS, False)
        # later commands use other addresses, as abandoned writes may still reach the memory
        commands = [bench.command(1 << 8, 1 << 10) for _ in range(10)]
        await bench.run(commands)
        await bench.settle()
        assert bench.most <= int(dut.OUTSTANDING.value), part


@block_test(AxiBench)
async def abandoned_again_and_again(bench: AxiBench) -> None:
    """Commands are issued and abandoned on a bus that answers nothing; then the bus recovers."""
    for _ in range(3):
        bench.bus.hold(CHANNELS, True)
        for _ in range(6):
            bench.give([bench.command(1 << 8) for _ in range(3)])
            await bench.steps(30)
            await bench.abandon(2)
        bench.bus.hold(CHANNELS, False)
        await bench.run([bench.command(1 << 8, 1 << 10) for _ in range(10)])
        await bench.settle()


@block_test(AxiBench)
async def reset_in_a_burst(bench: AxiBench, dut) -> None:
    """A reset in any cycle of a burst: no valid after it, and later commands are exact."""
    for _ in range(12):
        bench.bus.pause(bench.rng.choice([0.0, 0.5]), bench.rng)
        bench.give(bench.commands(8))
        await bench.steps(bench.rng.randrange(3, 50))
        dut.rst.value = 1
        dut.cmd_valid.value = 0
        for command in {id(c): c for c, _ in bench.expected}.values():
            if command.write:
                for index in range(command.beats):
                    bench.open.update(bench.lanes(command, index))
        bench.forget()
        await ClockCycles(dut.clk, 3)
        dut.rst.value = 0
        await RisingEdge(dut.clk)
        commands = [bench.command(1 << 8, 1 << 10) for _ in range(10)]
        await bench.run(commands)
        await bench.settle()


SOURCES = [
    "tb/ahb_to_axi/ahb_to_axi_bench.v",
    "tb/openkpu_tb/axi/axi_checker.v",
    "rtl/bus/ahb_to_axi.v",
    "rtl/storage/ahb_*.v",
    "rtl/lib/fifo_regs.v",
    "rtl/lib/ram_1r1w_async.v",
]


@pytest.mark.tier(check=["64-*", "128-*", "*-1"])
@pytest.mark.parametrize("outstanding", [4, 1])
@pytest.mark.parametrize("width", [32, 64, 128])
def test_ahb_to_axi(width: int, outstanding: int) -> None:
    params = {"AHB_W": width, "OUTSTANDING": outstanding}
    run_bench("icarus", "ahb_to_axi_bench", SOURCES, "tb.ahb_to_axi.test_ahb_to_axi", params=params)
