# SPDX-License-Identifier: Apache-2.0
"""Runs requests on all channels of storage_port at once and checks every word."""

import random
from collections import deque
from dataclasses import dataclass, field

import cocotb
from cocotb.triggers import RisingEdge

from openkpu_tb.ahb.monitor import AhbMonitor
from openkpu_tb.ahb.responder import AhbResponder, Faults
from openkpu_tb.core.block_bench import BlockBench
from openkpu_tb.core.descriptor import layout
from openkpu_tb.core.packed_ports import PackedView

CHANNELS = ("list", "bias", "weight", "pixel")  # err_chan 0..3
WRITE_CHANNEL = 4
OWNER = {"OWNER_BITS": sum(width for _, width in layout("owner").values())}
GUARDS = ("read_first", "read_last", "write_first", "write_last")
LAST_BLOCK = (1 << 22) - 1


@dataclass(frozen=True)
class Fault:
    """A report of bus_fault."""

    chan: int
    addr: int
    owner: int
    refused: int  # by a window, not by the bus


@dataclass
class Reader:
    """One read channel: requests to give, requests to be answered, bytes seen so far."""

    todo: deque[tuple[int, int, int]] = field(default_factory=deque)
    waiting: deque[tuple[int, int, int]] = field(default_factory=deque)
    got: bytearray = field(default_factory=bytearray)
    given: tuple[int, int, int] | None = None
    total: int = 0  # bytes of all requests
    speed: float = 1.0  # probability of ready per cycle
    words: int = 0
    first_word: int = 0  # cycles of the first and the last word
    last_word: int = 0


def fields(dut, lanes: int) -> PackedView:
    """The port's bundles field by field."""
    sizes = {"AHB_W": 8 * lanes, "OW": lanes.bit_length() - 1, "CW": lanes.bit_length()}
    packed = {f"{c}_req": (layout("req", **OWNER), f"{c}_req_") for c in (*CHANNELS, "store")}
    packed |= {f"{c}_beat": (layout("beat", **sizes), f"{c}_") for c in CHANNELS}
    packed |= {"bus_fault": (layout("fault", **OWNER), "err_"), "traffic": (layout("traffic"), "")}
    packed |= {"waiting": (layout("waiting", **OWNER), "wait_"), "guard": (layout("guard"), "")}
    return PackedView(dut, packed, {"err_valid": "bus_err", "dma_idle": "idle"})


class Bench(BlockBench):
    """Runs requests on all channels at once and checks every word."""

    inputs = (*(f"{c}_{n}" for c in CHANNELS for n in ("req_valid", "req", "ready")),)
    inputs += (
        "store_req_valid",
        "store_req",
        "store_valid",
        "store_data",
        "dma_abort",
        "dma_abandon",
    )

    def __init__(self, dut, faults: Faults | None = None) -> None:
        dut = dut.dut if isinstance(dut, PackedView) else dut
        self.lanes = int(dut.AHB_W.value) // 8
        super().__init__(fields(dut, self.lanes))
        self.rng = random.Random(random.getrandbits(32))
        self.guard(0, LAST_BLOCK, 0, LAST_BLOCK)
        self.bus = AhbResponder(dut, "m_ahb", dut.clk, self.rng, faults)
        self.monitor = AhbMonitor(dut, "m_ahb", dut.clk)
        self.readers = {c: Reader() for c in CHANNELS}
        self.writes: deque[tuple[int, bytes, int]] = deque()
        self.write_speed = 1.0
        self.offer_rate = 0.9  # of a request, in each cycle
        self.cycle = 0
        self.rd_beats = self.store_beats = 0
        self.full_seen = 0
        self.errors: list[Fault] = []
        self.fault_cycles: list[int] = []
        self.stored: dict[int, int] = {}  # what all writes together write
        self.last_owner = self.rng.getrandbits(8)
        self.history: list[tuple[int, bytes]] = []  # all writes
        self.writes_done = 0
        self.orphans = False  # a bus was given up: beats may have ended without a report
        self.clear()

    def clear(self) -> None:
        """Forget what was under way (after reset and abort)."""
        for reader in self.readers.values():
            reader.todo.clear()
            reader.waiting.clear()
            reader.got.clear()
            reader.given = None
            reader.total = 0
        self.writes.clear()
        self.write_given: tuple[int, bytes, int] | None = None
        self.write_open: deque[tuple[int, bytes, int]] = deque()
        self.write_words: deque[int] = deque()
        self.write_word: int | None = None
        self.allowed: set[int] = set()

    def anew(self) -> None:
        """Count from here on, in an empty storage."""
        self.fault_cycles.clear()
        self.history.clear()
        self.stored.clear()
        self.bus.memory.clear()
        self.count_anew()

    def count_anew(self) -> None:
        """Count errors, writes and bytes from here on."""
        self.errors.clear()
        self.writes_done = 0
        for reader in self.readers.values():
            reader.total = 0

    async def reset(self) -> None:
        await super().reset()
        self.bus.reset()
        cocotb.start_soon(self.bus.start())

    def guard(self, *blocks: int) -> None:
        """First and last block that may be read, and that may be written."""
        for name, block in zip(GUARDS, blocks, strict=True):
            getattr(self.dut, name).value = block

    def owner(self) -> int:
        """One that no request of the last thousand had."""
        self.last_owner = (self.last_owner + 0x2B5) % (1 << OWNER["OWNER_BITS"])
        return self.last_owner

    def read(self, channel: str, addr: int, length: int, owner: int | None = None) -> None:
        owner = self.owner() if owner is None else owner
        self.readers[channel].todo.append((addr, length, owner))
        if length:
            first, last = addr // self.lanes, (addr + length - 1) // self.lanes
            self.allowed.update(range(first * self.lanes, (last + 1) * self.lanes))

    def write(self, addr: int, data: bytes, owner: int | None = None) -> None:
        self.writes.append((addr, data, self.owner() if owner is None else owner))
        self.history.append((addr, data))
        self.stored.update({addr + i: byte for i, byte in enumerate(data)})

    def reads_left(self, channel: str) -> bool:
        r = self.readers[channel]
        return bool(r.todo or r.given or r.waiting)

    def writes_left(self) -> bool:
        return bool(self.writes or self.write_given or self.write_open)

    def busy(self, but: tuple[int, ...] = ()) -> bool:
        """Something is not answered, on other channels than these."""
        reading = any(self.reads_left(c) for i, c in enumerate(CHANNELS) if i not in but)
        return reading or (WRITE_CHANNEL not in but and self.writes_left())

    def _drive(self) -> None:
        dut, rng = self.dut, self.rng
        for c, r in self.readers.items():
            if r.given is None and r.todo and rng.random() < self.offer_rate:
                r.given = r.todo.popleft()
                getattr(dut, f"{c}_req_addr").value = r.given[0]
                getattr(dut, f"{c}_req_len").value = r.given[1]
                getattr(dut, f"{c}_req_owner").value = r.given[2]
            getattr(dut, f"{c}_req_valid").value = int(r.given is not None)
            getattr(dut, f"{c}_ready").value = int(rng.random() < r.speed)
        if self.write_given is None and self.writes:
            self.write_given = self.writes.popleft()
            addr, data, owner = self.write_given
            dut.store_req_addr.value, dut.store_req_len.value = addr, len(data)
            dut.store_req_owner.value = owner
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
        addr, length, _ = r.waiting[0]
        off = int(getattr(dut, f"{name}_off").value)
        count = int(getattr(dut, f"{name}_cnt").value)
        data = int(getattr(dut, f"{name}_data").value).to_bytes(self.lanes, "little")
        assert count >= 1 and off + count <= self.lanes
        assert off == ((addr + len(r.got)) % self.lanes), f"{name}: wrong offset"
        here = addr + len(r.got)
        assert data[off : off + count] == self.bus.read_bytes(here, count), f"{name}: wrong bytes"
        r.got += data[off : off + count]
        r.total += count
        assert len(r.got) <= length, f"{name}: byte {len(r.got)} of {length}"
        r.first_word = r.first_word or self.cycle
        r.last_word = self.cycle
        r.words += 1
        if len(r.got) == length:
            r.got.clear()
            r.waiting.popleft()

    async def step(self) -> None:
        """One cycle."""
        dut = self.dut
        self._drive()
        await RisingEdge(dut.clk)
        self.cycle += 1
        if int(dut.dma_abandon.value):
            self.monitor.abandon()
        for c, r in self.readers.items():
            if r.given and int(getattr(dut, f"{c}_req_ready").value):
                if r.given[1]:  # a request of no bytes is taken and has no answer
                    r.waiting.append(r.given)
                r.given = None
            self._take_word(c, r)
        if self.write_given and int(dut.store_req_ready.value):
            self.write_open.append(self.write_given)
            self.write_given = None
        if self.write_word is not None and int(dut.store_ready.value):
            self.write_word = None
        if int(dut.store_done.value):
            addr, data, _ = self.write_open.popleft()
            self.writes_done += 1
            assert self.bus.read_bytes(addr, len(data)) == data, "done, but the bytes are not there"
        if int(dut.read_beat.value):
            self.rd_beats += 1
            assert int(dut.reading.value), "a beat of a read while nothing is read"
        self.store_beats += int(dut.write_beat.value)
        self.full_seen += int(dut.weight_bias_full.value)
        if int(dut.err_valid.value):
            self.fault_cycles.append(self.cycle)
            names = ("chan", "addr", "owner", "refused")
            self.errors.append(Fault(*(int(getattr(dut, f"err_{n}").value) for n in names)))

    async def run(self, limit: int = 40_000, but: tuple[int, ...] = ()) -> None:
        """Until everything is answered, on other channels than these."""
        if self.busy(but):
            await self.run_until(lambda: not self.busy(but), limit)

    async def stop(self) -> None:
        """Another bench follows in the same test."""
        self.dut.rst.value = 1
        self.monitor.kill()
        await RisingEdge(self.dut.clk)

    async def settle(self) -> None:
        await self.wait_for("dma_idle", 300)
        self.monitor.check()
        assert not set(self.bus.reads) - self.allowed, "read outside what was asked for"
        assert self.orphans or self.rd_beats + self.store_beats == self.bus.beats

    def random_work(self, reads: int, writes: int) -> None:
        rng = self.rng
        for c in CHANNELS:
            for _ in range(reads):
                length = rng.choice([0, 1, 2, 3, 8, rng.randint(1, 40), rng.randint(1, 900)])
                self.read(c, rng.randrange(0x8000), length)
        for i in range(writes):
            length = rng.choice([1, 3, 7, self.lanes, rng.randint(1, 60), rng.randint(1, 700)])
            self.write(0x1_0000 + i * 0x400, rng.randbytes(length))


async def abort(bench: Bench, hold: int, limit: int = 400) -> None:
    """Abort for ``hold`` cycles, wait until idle; nothing may come out meanwhile."""
    dut = bench.dut
    bench.errors.clear()
    allowed = set(bench.allowed)
    bench.clear()
    bench.allowed = allowed
    bench._drive()
    dut.dma_abort.value = 1
    for i in range(hold):
        await bench.step()
        if i == 0:  # a report may come together with the abort, none later
            bench.errors.clear()
    dut.dma_abort.value = 0
    await bench.wait_for("dma_idle", limit)
    await bench.step()
    assert not bench.errors, "an error of what was dropped"
