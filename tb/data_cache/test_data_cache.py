# SPDX-License-Identifier: Apache-2.0
"""data_cache: fill, write-back, host window, load and unload at once, against an array of bytes.

A load may write its pixels at any time until it is done: until then its bytes have the old or the
new values. No other user writes them, nor the bytes of a map that is being unloaded; bytes between
the pixels of such a map, in the same words, may be written by all.
"""

import random
from collections import Counter, deque

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from openkpu.layer import airam
from openkpu.layer.layout import Layout
from openkpu_tb.core.block_bench import BlockBench
from openkpu_tb.core.byte_stream import ByteStream
from openkpu_tb.core.descriptor import layout
from openkpu_tb.core.packed_ports import PackedView
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes
from tb.data_cache.requesters import (
    LEAD,
    Move,
    Port,
    Weights,
    check_early,
    check_weights,
    drive_early,
    drive_weights,
)
from tb.map_mover.test_map_mover import (
    BANDS,
    MAP,
    OWNER_BITS,
    a_shape,
    in_bands,
    packed,
    packed_load,
)

WAYS = ("to the storage", "to the host")
LARGEST = 40  # rows of a map
# address of bytes, and their values before and after the load, and whether it writes them
Snapshot = tuple[int, np.ndarray, np.ndarray, np.ndarray]
INPUTS = ("stop", "fill_req", "fill_word", "writeback_req", "writeback", "window_req", "window")
INPUTS += ("load_start", "load", "pixel_valid", "pixel_beat", "unload_start", "unload")
INPUTS += ("weight_wanted", "weight_kept", "weight_req", "weight_req_ready", "kept_ready")
INPUTS += ("early_valid", "early_beat", "weight_ready", "spare")
SPARE = 4  # rows at the end of the AI RAM in which weights of the bus wait
INPUTS += ("result_ready", "store_req_ready", "store_ready", "store_done")


def in_a_row(*periods: int) -> int:
    """Longest run of cycles that are all granted to requesters with priority once per period."""
    cycles = 0
    while cycles < sum(cycles // period + 1 for period in periods):
        cycles += 1
    return cycles


class Bench(BlockBench):
    """All requesters of the AI RAM, a cycle at a time."""

    inputs = INPUTS

    def __init__(self, dut, rates: dict[str, float]) -> None:
        lanes, path = int(dut.AHB_W.value) // 8, int(dut.PATH.value)
        sizes = {"AHB_W": 8 * lanes, "OW": lanes.bit_length() - 1, "CW": lanes.bit_length()}
        bits = {"MAP_BITS": sum(w for _, w in MAP.values()), "OWNER_BITS": OWNER_BITS}
        ports = {
            "pixel_beat": (layout("beat", **sizes), "pixel_"),
            "writeback": (layout("rowwrite", PATH=path, PB=path.bit_length() - 1), "wb_"),
            "window": (layout("window"), "host_"),
            "unload": (layout("unload", **bits), "unload_"),
            "store_req": (layout("req", OWNER_BITS=OWNER_BITS), "req_"),
            "weight_req": (layout("req", OWNER_BITS=OWNER_BITS), "weights_"),
            "kept": (layout("kept"), "kept_"),
            "early_beat": (layout("beat", **sizes), "early_"),
            "weight_piece": (layout("kept"), "weight_"),
            "spare": (layout("spare"), "spare_"),
        }
        super().__init__(PackedView(dut, ports))
        self.lanes, self.path = lanes, path
        self.ahead = int(dut.WEIGHT_AHEAD.value)
        self.rows = int(dut.ROWS.value) - (SPARE if self.ahead else 0)  # of the other users
        self.patience = int(dut.PATIENCE.value)
        self.size = 64 * self.rows
        self.pixels, self.early = ByteStream(self.dut, "pixel"), ByteStream(self.dut, "early")
        self.early_due = b""
        self.refuses = 100  # cycles for which the loader accepts nothing
        self.spare = self.rows, SPARE
        # A requester of the first rank waits for late ones only; the others wait for their patience
        # and then for late ones of lower rank. A late requester has priority once per period.
        self.keep = int(dut.KEEP_WEIGHTS.value)  # one more reader, as for weights that wait
        window, unload, load = self.patience + 2, self.patience + 1, self.patience + 1
        weights = [self.patience // 2 + 1] if self.keep or self.ahead else []
        bounds = {
            "fill": in_a_row(window, unload, *weights),
            "unload": self.patience + in_a_row(window, *weights),
            "writeback": in_a_row(window, load),
            "load": self.patience + in_a_row(window),
            "window": self.patience + 1 + int(dut.READ.value),  # until the data are there
        }
        self.ports = {name: Port(rates[name], bound) for name, bound in bounds.items()}
        self.p_take = rates.get("take", 0.8)
        self.weights: Weights | None = None
        self.rng = np.random.default_rng(random.getrandbits(32))
        self.ram = self.rng.integers(0, 256, self.size, dtype=np.uint8)
        self.new = self.ram.copy()  # with the pixels of the load
        self.flux = np.zeros(self.size, bool)  # bytes that the load writes
        self.kept = np.zeros(self.size, bool)  # bytes that no other user may write
        self.moves: dict[str, Move | None] = {"load": None, "unload": None}
        latency = int(dut.READ.value)  # cycles from a grant to the data
        self.reads: deque[Snapshot | None] = deque([None] * latency)
        # what the host finds, if it is served in these cycles
        self.host_old: deque[Snapshot | None] = deque([None] * latency)
        self.acked = False
        self.dropped = False  # behind a stop: a write-back of work that is given up
        self.held: dict[str, int] = {}
        self.met: Counter[str] = Counter()

    # ---- the array of bytes
    def _snapshot(self, at: int, count: int) -> Snapshot:
        part = slice(at, at + count)
        return at, self.ram[part].copy(), self.new[part].copy(), self.flux[part].copy()

    def _same(self, who: str, got: int, seen: Snapshot):
        at, old, new, flux = seen
        found = np.frombuffer(got.to_bytes(len(old), "little"), dtype=np.uint8)
        wrong = (found != old) & ~(flux & (found == new))
        n = int(wrong.argmax())
        assert not wrong.any(), f"{who}: byte {at + n} is {found[n]:#x}, expected {old[n]:#x}"
        self.met[f"{who} saw old"] += bool((flux & (old != new) & (found == old)).any())
        self.met[f"{who} saw new"] += bool((flux & (old != new) & (found == new)).any())
        return found

    def _write(self, at: int, data: int, be: int, count: int) -> None:
        value = np.frombuffer(data.to_bytes(count, "little"), dtype=np.uint8)
        on = np.array([be >> i & 1 for i in range(count)], bool)
        for move in self.moves.values():
            mine = move is not None and move.running and (on & move.mask[at : at + count]).any()
            assert not mine, "the bench writes into a map that moves"
        self.ram[at : at + count][on] = value[on]
        self.new[at : at + count][on] = value[on]
        self.met["beside a map"] += bool(on.any() and self.kept[at : at + count].any())

    def _enables(self, at: int, count: int) -> int:
        """Random byte enables that exclude the bytes of maps."""
        every = (1 << count) - 1
        be = random.choice((every, random.getrandbits(count), 1 << random.randrange(count)))
        return be & ~sum(1 << i for i in range(count) if self.kept[at + i])

    # ---- inputs
    def _address(self) -> int:
        """A word: any, or one of a map being moved."""
        move = random.choice(list(self.moves.values()))
        if move is None or random.random() < 0.5:
            return random.randrange(self.size // self.path)
        return int(random.choice(np.flatnonzero(move.mask))) // self.path

    def _drive_requests(self) -> None:
        dut, ports, path = self.dut, self.ports, self.path
        new = {}
        for name in ("fill", "writeback", "window"):
            port = ports[name]
            new[name] = not port.asks and random.random() < port.p
            port.asks |= new[name]
            getattr(dut, f"{name}_req").value = int(port.asks)
        if new["fill"] or not ports["fill"].asks:
            self.fill_at = self._address()
            dut.fill_word.value = self.fill_at
        if new["writeback"] or not ports["writeback"].asks:
            word = self._address()
            self.wb = word * path, random.getrandbits(8 * path), self._enables(word * path, path)
            dut.wb_word.value, dut.wb_data.value, dut.wb_be.value = word, self.wb[1], self.wb[2]
            dut.wb_chans.value = random.getrandbits(7)  # for a reader that waits for channels
        if new["window"] or not ports["window"].asks:
            at = self._address() * path + 4 * random.randrange(path // 4)
            self.host = at, random.getrandbits(32), self._enables(at, 4), random.getrandbits(1)
            dut.host_addr.value = at + random.randrange(4)
            dut.host_wdata.value, dut.host_wstrb.value, dut.host_we.value = self.host[1:]

    def choose(self, name: str) -> None:
        """Begin a load or an unload of a random map that overlaps no other."""
        for _ in range(50):
            shape, x = a_shape(), np.zeros(0, np.uint8)
            x = self.rng.integers(0, 256, shape, dtype=np.uint8)
            probe, rows = np.zeros(self.size, np.uint8), random.randrange(self.rows)
            try:
                used = airam.pack_map(probe, rows, np.full(shape, 255, np.uint8))
            except ValueError:
                continue
            mask = probe > 0
            if used.rows <= LARGEST and not (mask & self.kept).any():
                break
        else:
            return
        self.kept |= mask
        move = Move(rows, shape, x, mask)
        if name == "unload":
            move.store, move.owner = random.getrandbits(1), random.getrandbits(OWNER_BITS)
            move.address = random.getrandbits(32 - 4) * self.lanes & 0xFFFFFFFF
            self.dut.unload_map.value, self.dut.unload_adr.value = packed(rows, shape), move.address
            self.dut.unload_store.value, self.dut.unload_owner.value = move.store, move.owner
            self.dut.unload_whole.value = 1
            self.dut.unload_apart.value = Layout(*shape).channel_rows
        else:
            move.band = random.choice([0, *(lines for lines in BANDS if lines < shape[1])])
            sent = b"".join(part.tobytes() for part in in_bands(x, move.band))
            self.pixels.add(sent, random.choice((x.size, 7)))
        self.moves[name] = move

    def _drive_moves(self) -> None:
        dut = self.dut
        for name, move in self.moves.items():
            if move is None and random.random() < self.ports[name].p * 0.05:
                self.choose(name)
            move = self.moves[name]
            begun = move if move is not None and move.wait == 0 else None
            getattr(dut, f"{name}_start").value = int(begun is not None)
            if name == "load":
                some = random.getrandbits(len(dut.load))
                # stable until it is done
                now = move if move is not None and move.wait <= 0 else None
                dut.load.value = packed_load(now.base, now.shape, now.band) if now else some
            elif move is None:
                dut.unload_map.value = random.getrandbits(44)
                dut.unload_store.value = random.getrandbits(1)
            if begun and name == "load":
                self.flux = begun.mask.copy()
                airam.pack_map(self.new, begun.base, begun.data)
            elif begun:
                begun.data = airam.unpack_map(self.ram, begun.base, begun.shape).copy()
            if move is not None:
                move.wait -= 1
        for name in ("result_ready", "store_req_ready", "store_ready"):
            getattr(dut, name).value = int(random.random() < self.p_take)
        unload = self.moves["unload"]
        dut.store_done.value = int(unload is not None and unload.due == 0)
        self.pixels.drive(self.p_take)

    # ---- outputs
    def _check_requests(self) -> None:
        dut, ports, path = self.dut, self.ports, self.path
        names = ("fill_gnt", "writeback_gnt", "load_req", "load_gnt", "unload_req", "unload_gnt")
        on = {name: bool(int(getattr(dut, name).value)) for name in names}
        ack = bool(int(dut.window_ack.value))
        ports["window"].count("window", ports["window"].asks, ack)
        at, data, be, we = self.host
        if ack and we:  # written in the cycle before
            self._write(at, data, be, 4)
        elif ack:
            old = self.host_old[0]
            assert old is not None, "window: served before it was asked"
            self._same("host", int(dut.window_rdata.value), old)
        self.met[f"host {'writes' if we else 'reads'}"] += ack
        if read := self.reads.popleft():
            self._same("fill", int(dut.fill_data.value), read)
        self.reads.append(self._snapshot(self.fill_at * path, path) if on["fill_gnt"] else None)
        self.host_old.popleft()
        self.host_old.append(self._snapshot(at, 4))
        for name in ("fill", "writeback"):
            ports[name].count(name, ports[name].asks, on[f"{name}_gnt"])
        for name in ("load", "unload"):
            ports[name].count(name, on[f"{name}_req"], on[f"{name}_gnt"])
            self.met[f"{name} late"] += ports[name].waited >= self.patience
        self.met["host late"] += ports["window"].waited > self.patience
        everybody = all(ports[n].asks for n in ("fill", "writeback", "window"))
        self.met["all at once"] += everybody and on["load_req"] and on["unload_req"]
        if on["writeback_gnt"] and not self.dropped:
            self._write(self.wb[0], self.wb[1], self.wb[2], path)
        self.met["dropped write-back"] += on["writeback_gnt"] and self.dropped
        self.dropped = bool(int(dut.stop.value))
        for name, served in (("fill", on["fill_gnt"]), ("writeback", on["writeback_gnt"])):
            ports[name].asks &= not served
        ports["window"].asks &= not ack

    def _check_streams(self) -> None:
        """Check the words of the map being unloaded, and its request."""
        dut, unload = self.dut, self.moves["unload"]
        for name, width in (("result", 8), ("store", self.lanes), ("store_req", 0)):
            port = dut.store_req if name == "store_req" else getattr(dut, f"{name}_data")
            valid, taken = (int(getattr(dut, f"{name}_{n}").value) for n in ("valid", "ready"))
            value = int(port.value) if valid else None
            before = self.held.pop(name, None)
            assert before in (None, value), f"{name}: {value}, was {before}, and was not taken"
            if value is None:
                continue
            assert unload is not None and unload.running, f"{name}: a word of no map"
            assert unload.store == (name != "result"), f"{name}: the map goes elsewhere"
            if not taken:
                self.held[name] = value
            elif name == "store_req":
                addr, size, owner = dut.req_addr.value, dut.req_len.value, dut.req_owner.value
                unload.requests.append((int(addr), int(size), int(owner)))
            else:
                unload.out += value.to_bytes(width, "little")
        if unload is None or not unload.store or unload.due is not None:
            return
        if len(unload.out) >= unload.data.size and unload.requests:
            unload.due = random.randint(0, 12) + 1

    def _check_moves(self) -> None:
        for name, move in self.moves.items():
            done = bool(int(getattr(self.dut, f"{name}_done").value))
            band = name == "load" and bool(int(self.dut.load_band.value))
            assert not band or (move is not None and move.running), "a band of nothing"
            if move is not None:
                move.bands += band
            assert not done or (move is not None and move.running), f"{name}_done of nothing"
            if move is None or not move.running:
                continue
            move.age += 1
            limit = 300 + (self.patience + 4) * 4 * move.data.size / self.p_take
            assert done or move.age < limit, f"{name}: not done after {move.age} cycles"
            if done:
                self._finish(name, move)
        unload = self.moves["unload"]
        if unload is not None and unload.due is not None:
            unload.due -= 1

    def _finish(self, name: str, move: Move) -> None:
        self.kept &= ~move.mask
        self.moves[name] = None
        if name == "load":
            assert not self.pixels.words, "done before all pixels are taken"
            assert move.bands == len(in_bands(move.data, move.band)), "bands that were reported"
            self.ram[self.flux] = self.new[self.flux]
            self.flux[:] = False
            self.met["load"] += 1
            return
        size = move.data.size
        want = [(move.address, size, move.owner)] if move.store else []
        assert move.requests == want, f"requests {move.requests}, expected {want}"
        width = self.lanes if move.store else 8
        padded = move.data.tobytes() + bytes(-size % width)
        assert move.out == padded, f"unload of {move.shape} at row {move.base}: other bytes"
        assert not move.store or move.due == 0, "done before it is stored"
        self.met["to the storage" if move.store else "to the host"] += 1

    async def step(self) -> None:
        """One cycle."""
        self._drive_requests()
        self._drive_moves()
        drive_weights(self)
        drive_early(self)
        await RisingEdge(self.dut.clk)
        self.pixels.sample()
        self._check_requests()
        self._check_streams()
        self._check_moves()
        check_weights(self)
        check_early(self)

    async def fill_all(self) -> None:
        """Known contents, through the write-back port."""
        dut = self.dut
        for word in range(self.size // self.path):
            at = word * self.path
            data = int.from_bytes(self.ram[at : at + self.path].tobytes(), "little")
            dut.writeback_req.value, dut.wb_word.value = 1, word
            dut.wb_data.value, dut.wb_be.value = data, (1 << self.path) - 1
            await RisingEdge(dut.clk)
            assert int(dut.writeback_gnt.value), "nobody else asks"
        dut.writeback_req.value = 0

    async def compare_all(self) -> None:
        """Read the whole memory through the fill port; its contents are known from then on."""
        dut = self.dut
        for name in ("writeback_req", "window_req", "load_start", "unload_start"):
            getattr(dut, name).value = 0
        for port in self.ports.values():
            port.asks = False
        count, latency = self.size // self.path, len(self.reads)
        dut.fill_req.value = 1
        for word in range(count + latency):
            dut.fill_word.value = min(word, count - 1)
            await RisingEdge(dut.clk)
            if word >= latency:
                seen = self._snapshot((word - latency) * self.path, self.path)
                self.ram[seen[0] :][: self.path] = self._same(
                    "memory", int(dut.fill_data.value), seen
                )
        dut.fill_req.value = 0
        self.new = self.ram.copy()
        self.reads = deque([None] * len(self.reads))

    def drop(self) -> list[str]:
        """After a stop: forget load and unload; returns the running ones. No others begin."""
        running = [name for name, m in self.moves.items() if m is not None and m.running]
        self.moves = {"load": None, "unload": None}
        self.pixels.words, self.pixels.on = [], False
        self.held.clear()
        self.weights = None
        self.early.words, self.early.on, self.early_due = [], False, b""
        self.kept = self.flux.copy()  # unspecified: not written until they are read
        for name in ("load", "unload"):
            self.ports[name].p = 0.0
        return running

    async def drain(self) -> None:
        """No new requests; run until everything that was begun is done."""
        for port in self.ports.values():
            port.p = 0.0
        while (
            any(self.moves.values())
            or self.weights
            or self.early_due
            or any(p.asks for p in self.ports.values())
        ):
            await self.step()
        await self.steps(5)


def evenly(p: float, **others: float) -> dict[str, float]:
    return dict.fromkeys(("fill", "writeback", "window", "load", "unload"), p) | others


RATES = (
    evenly(1.0, take=1.0),
    evenly(1.0, fill=0.97, window=0.3, take=0.7),
    evenly(0.5),
    {"fill": 0.1, "writeback": 0.1, "window": 0.9, "load": 1.0, "unload": 1.0, "take": 0.5},
)


@cocotb.test()
async def all_at_once(dut) -> None:
    """Several mixes of requests; the memory holds what was written, and nothing else changed."""
    met: Counter[str] = Counter()
    for n, rates in enumerate(RATES):
        bench = Bench(dut, rates)
        await bench.reset()
        await bench.fill_all()
        for _ in range(1600):
            await bench.step()
            if n == 0 and bench.met["load"] > 3 and min(bench.met[s] for s in WAYS) > 1:
                break
        await bench.drain()
        await bench.compare_all()
        assert all(port.grants for port in bench.ports.values()), "somebody was never served"
        met += bench.met
        assert bench.met["weights"] or not bench.keep
        assert bench.met["stored"] or not bench.ahead
    wanted = ["load", *WAYS, "all at once", "load late", "unload late", "host late"]
    wanted += ["host writes", "host reads", "beside a map", "fill saw old", "fill saw new"]
    missing = [name for name in wanted if not met[name]]
    assert not missing, f"never met: {missing}"


@cocotb.test()
async def stop_any_time(dut) -> None:
    """Stop drops load and unload; the other users continue, and the next maps are whole."""
    bench = Bench(dut, evenly(0.6))
    await bench.reset()
    await bench.fill_all()
    dropped: Counter[str] = Counter()
    for _ in range(12):
        await bench.steps(random.randint(30, 250))
        for move in bench.moves.values():
            if move is not None and move.wait == 0:
                move.wait = LEAD  # none begins in this cycle
        dut.stop.value = 1
        await bench.step()
        dut.stop.value = 0
        dropped.update(bench.drop())
        bench.ports["writeback"].p = 1.0
        await bench.step()
        await bench.drain()
        await bench.compare_all()
        bench.flux[:] = bench.kept[:] = False
        for port in bench.ports.values():
            port.p = 0.6
    await bench.run_until(lambda: bench.met["load"] > 2 and all(map(bench.met.get, WAYS)), 3000)
    await bench.drain()
    await bench.compare_all()
    assert dropped["load"] and dropped["unload"], "nothing was under way at a stop"
    assert all(map(bench.met.get, ("load", *WAYS))), "no map after a stop"
    assert bench.met["dropped write-back"], "no write-back behind a stop"


@sizes(
    "sim bus path rows patience keep narrow ahead",
    test="icarus-32-64-64-4-1-0-1 verilator-32-16-64-8-0-1-0",
    check="verilator-64-32-128-8-1-0-0 verilator-64-64-68-8-1-0-1 icarus-32-16-64-4-0-1-1",
    nightly="icarus-128-128-128-8-1-0-1 icarus-32-16-128-8-0-0-0 "
    "verilator-128-16-128-4-1-0-0 verilator-32-64-128-8-0-0-1",
)
def test_data_cache(
    sim: str, bus: int, path: int, rows: int, patience: int, keep: int, narrow: int, ahead: int
) -> None:
    sources = ["rtl/cache/*.v", "rtl/lib/byte_*.v", "rtl/lib/ram_*.v", "rtl/lib/fifo_sync.v"]
    params = {"AHB_W": bus, "PATH": path, "ROWS": rows, "PATIENCE": patience}
    params |= {"KEEP_WEIGHTS": 1} if keep else {}
    params |= {"WEIGHT_AHEAD": 1} if ahead else {}
    params |= {"NARROW": 1, "READ": 3} if narrow else {}
    run_bench(sim, "data_cache", sources, "tb.data_cache.test_data_cache", params=params)
