# SPDX-License-Identifier: Apache-2.0
"""dmac with ahb_master: every channel, every alignment, back-pressure, rate, errors, abort."""

import random
from collections import deque
from dataclasses import dataclass, field

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from openkpu.tb.ahb.monitor import AhbMonitor
from openkpu.tb.ahb.responder import ERROR, AhbResponder, Faults
from openkpu.tb.core.descriptor import layout
from openkpu.tb.core.packed_ports import View
from openkpu.tb.simrun import run

CHANNELS = ("list", "bias", "weight", "pixel")  # err_chan 0..3
WRITE_CHANNEL = 4


@dataclass
class Reader:
    """One read channel: requests to give, requests to be answered, bytes seen so far."""

    todo: deque[tuple[int, int]] = field(default_factory=deque)
    waiting: deque[tuple[int, int]] = field(default_factory=deque)
    got: bytearray = field(default_factory=bytearray)
    given: tuple[int, int] | None = None
    speed: float = 1.0  # probability of ready per cycle
    words: int = 0
    first_word: int = 0  # cycles of the first and the last word
    last_word: int = 0


def fields(dut, lanes: int) -> View:
    """The port's bundles field by field."""
    sizes = {"AHB_W": 8 * lanes, "OW": lanes.bit_length() - 1, "CW": lanes.bit_length()}
    packed = {f"{c}_req": (layout("req"), f"{c}_req_") for c in (*CHANNELS, "store")}
    packed |= {f"{c}_beat": (layout("beat", **sizes), f"{c}_") for c in CHANNELS}
    packed |= {"bus_fault": (layout("fault"), "err_"), "traffic": (layout("traffic"), "")}
    return View(dut, packed, {"err_valid": "bus_err", "dma_idle": "idle"})


class Bench:
    """Runs requests on all channels at once and checks every word."""

    def __init__(self, dut, faults: Faults | None = None) -> None:
        dut = dut.dut if isinstance(dut, View) else dut
        self.lanes = int(dut.AHB_W.value) // 8
        self.dut, self.rng = fields(dut, self.lanes), random.Random(random.getrandbits(32))
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for c in CHANNELS:
            for n in ("req_valid", "req", "ready"):
                getattr(dut, f"{c}_{n}").value = 0
        for n in (
            "store_req_valid",
            "store_req",
            "store_valid",
            "store_data",
            "dma_abort",
        ):
            getattr(dut, n).value = 0
        self.bus = AhbResponder(dut, "m_ahb", dut.clk, self.rng, faults)
        self.monitor = AhbMonitor(dut, "m_ahb", dut.clk)
        self.readers = {c: Reader() for c in CHANNELS}
        self.writes: deque[tuple[int, bytes]] = deque()
        self.write_speed = 1.0
        self.cycle = 0
        self.rd_beats = self.store_beats = 0
        self.full_seen = 0
        self.errors: list[tuple[int, int]] = []
        self.clear()

    def clear(self) -> None:
        """Forget what was under way (after reset and abort)."""
        for reader in self.readers.values():
            reader.todo.clear()
            reader.waiting.clear()
            reader.got.clear()
            reader.given = None
        self.writes.clear()
        self.write_given: tuple[int, bytes] | None = None
        self.write_open: deque[tuple[int, bytes]] = deque()
        self.write_words: deque[int] = deque()
        self.write_word: int | None = None
        self.allowed: set[int] = set()

    async def reset(self) -> None:
        self.dut.rst.value = 1
        for _ in range(3):
            await RisingEdge(self.dut.clk)
        self.dut.rst.value = 0
        self.bus.reset()
        cocotb.start_soon(self.bus.start())

    def read(self, channel: str, addr: int, length: int) -> None:
        self.readers[channel].todo.append((addr, length))
        first, last = addr // self.lanes, (addr + length - 1) // self.lanes
        self.allowed.update(range(first * self.lanes, (last + 1) * self.lanes))

    def write(self, addr: int, data: bytes) -> None:
        self.writes.append((addr, data))

    def busy(self) -> bool:
        reading = any(r.todo or r.given or r.waiting for r in self.readers.values())
        return bool(reading or self.writes or self.write_given or self.write_open)

    def _drive(self) -> None:
        dut, rng = self.dut, self.rng
        for c, r in self.readers.items():
            if r.given is None and r.todo and rng.random() < 0.9:
                r.given = r.todo.popleft()
                getattr(dut, f"{c}_req_addr").value = r.given[0]
                getattr(dut, f"{c}_req_len").value = r.given[1]
            getattr(dut, f"{c}_req_valid").value = int(r.given is not None)
            getattr(dut, f"{c}_ready").value = int(rng.random() < r.speed)
        if self.write_given is None and self.writes:
            self.write_given = self.writes.popleft()
            addr, data = self.write_given
            dut.store_req_addr.value, dut.store_req_len.value = addr, len(data)
            for i in range(0, len(data), self.lanes):
                piece = data[i : i + self.lanes]
                piece += rng.randbytes(self.lanes - len(piece))
                self.write_words.append(int.from_bytes(piece, "little"))
        dut.store_req_valid.value = int(self.write_given is not None)
        if self.write_word is None and self.write_words and rng.random() < self.write_speed:
            self.write_word = self.write_words.popleft()
            dut.store_data.value = self.write_word
        dut.store_valid.value = int(self.write_word is not None)

    def _take_word(self, name: str, r: Reader) -> None:
        dut = self.dut
        if not (
            int(getattr(dut, f"{name}_valid").value) and int(getattr(dut, f"{name}_ready").value)
        ):
            return
        assert r.waiting, f"{name}: a word nobody asked for"
        addr, length = r.waiting[0]
        off = int(getattr(dut, f"{name}_off").value)
        count = int(getattr(dut, f"{name}_cnt").value)
        data = int(getattr(dut, f"{name}_data").value).to_bytes(self.lanes, "little")
        assert count >= 1 and off + count <= self.lanes
        assert off == ((addr + len(r.got)) % self.lanes), f"{name}: wrong offset"
        r.got += data[off : off + count]
        last = int(getattr(dut, f"{name}_last").value)
        assert last == (len(r.got) == length), f"{name}: last at byte {len(r.got)} of {length}"
        r.first_word = r.first_word or self.cycle
        r.last_word = self.cycle
        r.words += 1
        if last:
            assert bytes(r.got) == self.bus.read_bytes(addr, length), f"{name}: wrong bytes"
            r.got.clear()
            r.waiting.popleft()

    async def step(self) -> None:
        """One cycle."""
        dut = self.dut
        self._drive()
        await RisingEdge(dut.clk)
        self.cycle += 1
        for c, r in self.readers.items():
            if r.given and int(getattr(dut, f"{c}_req_ready").value):
                r.waiting.append(r.given)
                r.given = None
            self._take_word(c, r)
        if self.write_given and int(dut.store_req_ready.value):
            self.write_open.append(self.write_given)
            self.write_given = None
        if self.write_word is not None and int(dut.store_ready.value):
            self.write_word = None
        if int(dut.store_done.value):
            addr, data = self.write_open.popleft()
            assert self.bus.read_bytes(addr, len(data)) == data, "done, but the bytes are not there"
        self.rd_beats += int(dut.read_beat.value)
        self.store_beats += int(dut.write_beat.value)
        self.full_seen += int(dut.weight_bias_full.value)
        if int(dut.err_valid.value):
            self.errors.append((int(dut.err_chan.value), int(dut.err_addr.value)))

    async def run(self, limit: int = 40_000) -> None:
        """Until everything is answered."""
        for _ in range(limit):
            if not self.busy():
                break
            await self.step()
        else:
            raise AssertionError(f"not finished after {limit} cycles")

    async def settle(self) -> None:
        for _ in range(300):
            await self.step()
            if int(self.dut.dma_idle.value):
                break
        else:
            raise AssertionError("dma_idle stays low")
        self.monitor.check()
        assert not set(self.bus.reads) - self.allowed, "read outside what was asked for"
        assert self.rd_beats + self.store_beats == self.bus.beats

    def random_work(self, reads: int, writes: int) -> None:
        rng = self.rng
        for c in CHANNELS:
            for _ in range(reads):
                length = rng.choice([1, 2, 3, 8, rng.randint(1, 40), rng.randint(1, 900)])
                self.read(c, rng.randrange(0x8000), length)
        for i in range(writes):
            length = rng.choice([1, 3, 7, self.lanes, rng.randint(1, 60), rng.randint(1, 700)])
            self.write(0x1_0000 + i * 0x400, rng.randbytes(length))


@cocotb.test()
async def random_streams(dut) -> None:
    """All channels at once, any alignment and length, fast and slow consumers, a rough bus."""
    rough = Faults(wait=0.2, lose=0.1, regain=0.5, retry=0.05, split=0.02)
    for faults, speeds in (
        (Faults(), (1, 1, 1, 1)),
        (Faults(wait=0.3), (0.3, 0.9, 0.1, 0.5)),
        (rough, (1, 0.2, 0.7, 0.1)),
    ):
        bench = Bench(dut, faults)
        dut = bench.dut
        await bench.reset()
        for reader, speed in zip(bench.readers.values(), speeds, strict=True):
            reader.speed = speed
        bench.write_speed = speeds[1]
        bench.random_work(reads=8, writes=6)
        await bench.run()
        await bench.settle()
        written = {a for a, _ in bench.bus.memory.items()}
        assert written == set(bench.bus.writes), "a write touched a neighbour"
        dut.rst.value = 1
        bench.monitor.kill()
        await RisingEdge(dut.clk)


@cocotb.test()
async def every_alignment(dut) -> None:
    """Reads of each offset and length, writes of each length, around a 1 KB boundary."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    lanes = bench.lanes
    for off in range(lanes):
        for length in [*range(1, lanes + 2), 3 * lanes - 1]:
            bench.read(CHANNELS[(off + length) % 4], 0x400 - lanes + off, length)
    for i in range(1, 3 * lanes + 1):
        bench.write(0x1_0400 * i - lanes * (i % 3), bench.rng.randbytes(i))
    await bench.run()
    await bench.settle()
    lengths = sum(range(1, 3 * lanes + 1))
    assert len(bench.bus.writes) == len(set(bench.bus.writes)) == lengths, "a neighbour was touched"


@cocotb.test()
async def full_rate(dut) -> None:
    """0 wait states: a stream takes one cycle per word, over request borders and both ways."""
    for channel, lengths in (
        ("weight", [2000]),
        ("pixel", [1500, 1500]),
        ("bias", [64] * 20),
        ("pixel", [64] * 20),
        ("weight", [700, 3, 900, 65]),
    ):
        depth = {
            "weight": dut.WGT_FIFO_DEPTH,
            "pixel": dut.PIX_FIFO_DEPTH,
            "bias": dut.BIAS_FIFO_DEPTH,
        }
        if int(depth[channel].value) < 16:
            continue  # half a FIFO does not cover the way to the storage and back
        bench = Bench(dut)
        dut = bench.dut
        await bench.reset()
        addr = 0x1000
        for length in lengths:
            bench.read(channel, addr, length)
            addr += length + -length % bench.lanes
        await bench.run()
        await bench.settle()
        reader = bench.readers[channel]
        cycles = reader.last_word - reader.first_word + 1
        limit = reader.words
        if reader.words < 24 or bench.lanes == 16:
            limit += 4  # very short requests cannot hide the queue
        assert cycles <= limit, f"{channel} {lengths[:3]}: {reader.words} words, {cycles} cycles"
        if len(lengths) == 1 and int(depth[channel].value) >= 32:
            assert bench.monitor.bursts["INCR16"] >= reader.words // 16 - 2, "bursts are too short"
        dut.rst.value = 1
        bench.monitor.kill()
        await RisingEdge(dut.clk)
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    for i in range(4):
        bench.read("weight", 0x2000 + 0x400 * i, 0x400)
    bench.write(0x1_0000, bench.rng.randbytes(0x1000))
    await bench.run()
    await bench.settle()
    done = bench.monitor.done
    cycles = done[-1].cycle - done[0].cycle + 1
    share = len(done) / cycles
    assert share >= 0.97, f"reads and writes together used {share:.3f} of the bus"
    half = [b.write for b in done[len(done) // 4 : len(done) // 2]]
    assert 0.3 <= sum(half) / len(half) <= 0.7, "reads and writes do not share the bus"


@cocotb.test()
async def priorities(dut) -> None:
    """With all channels asking, list goes before pixel, bias, weight."""
    bench = Bench(dut)
    dut = bench.dut
    bench.bus.granted = False
    await bench.reset()
    for i in range(2):  # fill the queue of the master, which takes what comes first
        bench.read("pixel", 0x5000 + 0x400 * i, bench.lanes)
    for _ in range(12):
        await bench.step()
    base = {"pixel": 0x1000, "weight": 0x2000, "bias": 0x3000, "list": 0x4000}
    for c in base:
        bench.read(c, base[c], bench.lanes)
    for _ in range(12):
        await bench.step()
    bench.bus.granted = True
    await bench.run()
    await bench.settle()
    order = [a >> 12 for a in bench.bus.reads[:: bench.lanes]]
    assert order == [5, 5, 4, 1, 3, 2]


@cocotb.test()
async def back_pressure(dut) -> None:
    """A consumer that stops stops its own channel only; nothing is lost; WB_FIFO_FULL is an AND."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    for stopped in CHANNELS:
        for c, r in bench.readers.items():
            r.speed = 0.0 if c == stopped else 1.0
            bench.read(c, 0x1000 * CHANNELS.index(c), 100 * bench.lanes)
        for _ in range(700):
            await bench.step()
        for c, r in bench.readers.items():
            assert bool(r.waiting) == (c == stopped)
        assert not bench.full_seen, "WB_FIFO_FULL with only one FIFO full"
        bench.readers[stopped].speed = 1.0
        await bench.run()
    for c in ("weight", "bias"):
        bench.readers[c].speed = 0.0
        bench.read(c, 0x5000, 100 * bench.lanes)
    for _ in range(300):
        await bench.step()
    assert int(dut.weight_bias_full.value), "both FIFOs are full"
    for r in bench.readers.values():
        r.speed = 0.6
    await bench.run()
    await bench.settle()
    assert not int(dut.weight_bias_full.value) and not int(dut.reading.value)


@cocotb.test()
async def error_stops_until_abort(dut) -> None:
    """ERROR: reported with channel and address, no burst after it, abort makes all new."""
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    for channel in range(5):
        bad = 0x2000 + 37 * bench.lanes
        bench.bus.faults = Faults(answer=lambda a, w, bad=bad: ERROR if a == bad else None)
        if channel == WRITE_CHANNEL:
            bench.write(0x2000, bench.rng.randbytes(100 * bench.lanes))
        else:
            for c in CHANNELS:
                start = 0x2000 if c == CHANNELS[channel] else 0x8000
                bench.read(c, start, 100 * bench.lanes)
        bench.errors.clear()
        for _ in range(1000):
            await bench.step()
            if bench.errors:
                break
        assert bench.errors == [(channel, bad)]
        beats = bench.bus.beats
        for _ in range(40):
            await bench.step()
        assert bench.errors == [(channel, bad)] and not int(dut.dma_idle.value)
        assert bench.bus.beats <= beats + 1, "bursts after an error"
        await abort(bench, hold=channel % 3 + 1)
        bench.bus.faults = Faults()
        bench.random_work(reads=2, writes=1)
        await bench.run()
        await bench.settle()


async def abort(bench: Bench, hold: int) -> None:
    """Abort for ``hold`` cycles, wait until idle; nothing may come out meanwhile."""
    dut = bench.dut
    allowed = set(bench.allowed)
    bench.clear()
    bench.allowed = allowed
    bench._drive()
    dut.dma_abort.value = 1
    for _ in range(hold):
        await bench.step()
    dut.dma_abort.value = 0
    for _ in range(400):
        await bench.step()
        if int(dut.dma_idle.value):
            break
    else:
        raise AssertionError("abort does not end")
    await bench.step()


@cocotb.test()
async def abort_any_time(dut) -> None:
    """Abort after a random number of cycles on a rough bus; what follows is right."""
    bench = Bench(dut, Faults(wait=0.2, lose=0.1, regain=0.5, retry=0.03, split=0.02))
    dut = bench.dut
    await bench.reset()
    for trial in range(25):
        for reader in bench.readers.values():
            reader.speed = bench.rng.choice([0.1, 0.5, 1.0])
        bench.random_work(reads=3, writes=2)
        for _ in range(bench.rng.randint(1, 120)):
            await bench.step()
        await abort(bench, hold=1 + trial % 4)
        bench.monitor.check()
        for reader in bench.readers.values():
            reader.speed = 1.0
        bench.random_work(reads=1, writes=1)
        await bench.run()
    await bench.settle()


@pytest.mark.parametrize(
    ("sim", "width", "depths"),
    [
        ("icarus", 32, (16, 64, 32)),
        ("icarus", 64, (16, 20, 3)),
        ("icarus", 128, (16, 64, 32)),
        ("verilator", 32, (16, 64, 32)),
    ],
)
def test_storage_port(sim: str, width: int, depths: tuple[int, int, int]) -> None:
    pix, wgt, bias = depths
    params = {
        "AHB_W": width,
        "PIX_FIFO_DEPTH": pix,
        "WGT_FIFO_DEPTH": wgt,
        "BIAS_FIFO_DEPTH": bias,
    }
    sources = ["rtl/storage/*.v"]
    sources += ["rtl/lib/fifo_sync.v", "rtl/lib/ram_1r1w_async.v"]
    run(sim, "storage_port", sources, "tb.storage_port.test_storage_port", params=params)
