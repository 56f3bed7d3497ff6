# SPDX-License-Identifier: Apache-2.0
"""weight_buffer: layers read the data of their streams, which stay valid until they are released.

Layers arrive in sequence on both streams. Meanwhile every column reads rows that are filled,
parameters are read, tables are copied, and all of them are released at random.
"""

import random
from collections import Counter
from dataclasses import dataclass

import cocotb
from cocotb.triggers import RisingEdge

from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.params import ActTable
from openkpu_tb.core.block_bench import BlockBench
from openkpu_tb.core.byte_stream import ByteStream
from openkpu_tb.core.descriptor import TOTAL, layout, pack_descriptor
from openkpu_tb.core.packed_ports import PackedView
from openkpu_tb.core.pipeline_bench import join_words
from openkpu_tb.core.post_tables import entries, pack_entry
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes
from tb.weight_buffer.expected import Work, layers, param_rows, wide_layer

COLUMNS = 9
QUEUED = 4  # layers that are decoded ahead without descriptors waiting for the loaders
COPY, EARLY = 22, 13  # cycles from a load and from act_ready to the last entry of a table
CONSTANT = 13  # cycles from a row that is counted to the constants of the channels that end in it
GROUP = 25  # rows of a group at most
PATIENCE = 150  # cycles in which nothing moves, then nothing is held back any more
STUCK = 1000  # cycles in which something has to move
INPUTS = (
    "weight_load_start",
    "param_load_start",
    "table_only",
    "desc",
    "weight_piece",
    "bias_beat",
)
INPUTS += ("wrow_freed", "prow_freed", "re", "wrow", "load", "param_re", "param_row")


def bits_of(port) -> int:
    """A port that may have unknown bits; an unknown bit reads as 1."""
    return int("".join(c if c in "01" else "1" for c in str(port.value)), 2)


@dataclass
class Ring:
    """Rows in order: how many are released, looked at, complete; ``size`` there are."""

    size: int
    total: int
    freed: int = 0
    filled: int = 0
    most: int = 0
    hoard: bool = False  # nothing is released until nothing moves any more

    def update(self, count: int, modulo: int) -> bool:
        """The count of complete rows, modulo ``modulo``; has it moved?"""
        now = self.freed + (count - self.freed) % modulo
        assert now >= self.filled, f"{now} rows are complete, {self.filled} were"
        assert now - self.freed <= self.size, f"{now - self.freed} rows in a ring of {self.size}"
        moved, self.filled = now != self.filled, now
        self.most = max(self.most, now - self.freed)
        return moved

    def may_free(self, p: float) -> bool:
        return random.random() < p and not self.hoard

    def pick(self, seen: int) -> int | None:
        """A row to look at: the next one, the oldest one, any; None when there is none."""
        if self.freed == self.filled:
            return None
        new = min(seen, self.filled - 1)
        return random.choice((new, new, self.freed, random.randrange(self.freed, self.filled)))


class Bench(BlockBench):
    """Streams, readers and the release of their data, a cycle at a time."""

    inputs = INPUTS

    def __init__(self, dut, todo: list[Work], rates: tuple[float, float, float]) -> None:
        lanes = int(dut.AHB_W.value) // 8
        sizes = {"AHB_W": 8 * lanes, "OW": lanes.bit_length() - 1, "CW": lanes.bit_length()}
        beat = layout("beat", **sizes)
        ports = {"weight_piece": (layout("kept"), "weight_"), "bias_beat": (beat, "bias_")}
        super().__init__(PackedView(dut, ports))
        self.n_z, self.wb = int(dut.N_Z.value), int(dut.WEIGHT_BITS.value)
        self.most_tables = int(dut.LOOK_AHEAD.value)
        self.at_once_only = self.most_tables == QUEUED  # busy until a layer is loaded
        self.streams = [ByteStream(self.dut, "weight"), ByteStream(self.dut, "bias")]
        self.streams[0].lanes = int(dut.WEIGHT_W.value) // 8  # the lower bytes of a piece
        self.p_in, self.p_free, self.p_load = rates
        self.todo = todo
        self.rows = [row for item in todo if item.weights for row in item.weights.rows]
        self.params = param_rows(todo, self.n_z)
        self.ring = Ring(int(dut.WBUF_ROWS.value), len(self.rows))
        self.par_ring = Ring(int(dut.PAR_ROWS.value), len(self.params))
        self.waiting = {"weight": [w for w in todo if w.weights], "param": list(todo)}
        self.started = {"weight": 0, "param": 0}  # rows of the layers that were begun
        self.just = {"weight": False, "param": False}
        self.seen = [0] * COLUMNS
        self.reads: list[int | None] = [None] * COLUMNS  # rows whose data come next
        self.shown: list[tuple[int, list[int] | None]] = []  # data that are offered, by column
        self.param_seen = 0
        self.params_shown: tuple[int, int] | None = None  # that are offered
        self.param_read: tuple[int, bool] | None = None  # row, are its constants there
        self.ends: dict[int, int] = {row.after: n for n, row in enumerate(self.params)}
        self.at_once: dict[int, int] = {}  # cycle -> parameter row whose constants are just there
        self.due: list[int] = []  # cycle from which on the constants of the weight rows are there
        self.cycle = self.moved = self.copied = self.since = 0
        self.ready_at: int | None = None
        self.loading = self.there = False
        self.waited = 0  # cycles for which the next table is there
        self.written: list[tuple[int, int]] = []
        self.tables = self.full = 0
        self.hoard_tables = False
        self.met: Counter[str] = Counter()
        for item in todo:
            whole = item.biases()
            self.streams[1].add(whole, random.choice((len(whole), 8, 37)))
            if item.weights:
                data = item.weights.stream
                self.streams[0].add(data, random.choice((len(data), 7, 50)))

    # ---- what goes in
    def _starts(self) -> None:
        """At most one descriptor in a cycle; both loaders may take it if it is the next of both."""
        dut, ready = self.dut, []
        for name, left in self.waiting.items():
            busy = int(getattr(dut, f"{name}_load_busy").value)
            if left and not self.just[name] and not busy:
                ready.append(name)
            self.just[name] = False
        if random.random() < 0.5:
            ready = []
        heads = [self.waiting[name][0] for name in ready]
        if len(heads) == 2 and (heads[0] is not heads[1] or random.random() < 0.3):
            ready = [random.choice(ready)]
        self.met["both at once"] += len(ready) == 2
        desc, dut.table_only.value = random.getrandbits(TOTAL), random.getrandbits(1)
        for name in ("weight", "param"):
            getattr(dut, f"{name}_load_start").value = int(name in ready)
        for name in ready:
            item = self.waiting[name].pop(0)
            desc = pack_descriptor(item.weights.desc) if item.weights else random.getrandbits(TOTAL)
            self.just[name] = True
            if name == "weight":
                assert item.weights is not None
                self.started[name] += len(item.weights.rows)
            else:
                self.started[name] += ceil_div(len(item.norms), self.n_z)
                dut.table_only.value = int(item.weights is None)
                self.met["kept"] += item.weights is None
        dut.desc.value = desc

    def _stream(self) -> None:
        for stream in self.streams:
            stream.drive(self.p_in)
            if not stream.on:
                stream.data.value = random.getrandbits(8 * stream.lanes)
                stream.off.value = random.randrange(stream.lanes)

    def _read(self) -> None:
        """Each column reads a row, or none; its address is noise then."""
        width = len(self.dut.wrow) // COLUMNS
        rows, re = [], 0
        self.reads = [None] * COLUMNS
        for t in range(COLUMNS):
            row = self.ring.pick(self.seen[t]) if random.random() < 0.8 else None
            rows.append(random.getrandbits(width) if row is None else row % self.ring.size)
            re |= (row is not None) << t
            self.reads[t] = row
        self.dut.re.value, self.dut.wrow.value = re, join_words(rows, width)
        row = self.par_ring.pick(self.param_seen) if random.random() < 0.8 else None
        now = self.at_once.pop(self.cycle, -1)
        row = now if self.par_ring.freed <= now < self.par_ring.filled else row
        self.dut.param_re.value = int(row is not None)
        noise = random.getrandbits(len(self.dut.param_row))
        self.dut.param_row.value = noise if row is None else row % self.par_ring.size
        self.param_read = None if row is None else (row, self._constants(row))

    def _constants(self, row: int) -> bool:
        """The constants of a parameter row are in the buffer by now."""
        after = self.params[row].after
        return after < len(self.due) and self.cycle >= self.due[after]

    def _release(self) -> None:
        done = min(self.seen)
        if self.ring.freed < done and self.ring.may_free(self.p_free):
            self.ring.freed = random.choice((self.ring.freed + 1, done))
            self.dut.wrow_freed.value = self.ring.freed % (1 << len(self.dut.wrow_freed))
            self.moved = self.cycle
        par = self.par_ring
        if par.freed < self.param_seen and par.may_free(self.p_free):
            par.freed = random.choice((par.freed + 1, self.param_seen))
            self.dut.prow_freed.value = par.freed % (1 << len(self.dut.prow_freed))
            self.moved = self.cycle

    def _load(self) -> None:
        """Begin the next copy, when the one before is over."""
        free = not self.loading and self.tables < len(self.todo)
        go = free and random.random() < self.p_load and not self.hoard_tables
        self.dut.load.value = int(go)
        if go:
            self.loading, self.ready_at, self.written, self.since = True, None, [], self.cycle
            # a table that is complete, its first word read
            self.there, self.waited = self.waited > 3, 0
            self.moved = self.cycle

    # ---- what comes out
    def _check_weights(self, reads: list[int | None]) -> None:
        value, per = bits_of(self.dut.weights), self.n_z * self.wb
        for t, row in enumerate(reads):
            word = value >> (t * per) & ((1 << per) - 1)
            got = [word >> (z * self.wb) & ((1 << self.wb) - 1) for z in range(self.n_z)]
            if row is None:
                if t < len(self.shown):
                    assert got == self.shown[t][1], f"column {t} moved without a read"
                continue
            for z, nine in self.rows[row].items():
                assert got[z] == nine[t], (
                    f"row {row} column {t} bank {z}: {got[z]:#x}, expected {nine[t]:#x}"
                )
            self.met["read again"] += row < self.seen[t]
            self.seen[t] = max(self.seen[t], row + 1)
            if len(self.shown) == t:
                self.shown.append((row, got))
            elif t < len(self.shown):
                self.shown[t] = (row, got)

    def _check_params(self, read: tuple[int, bool] | None) -> None:
        norms, constants = shown = bits_of(self.dut.bn), bits_of(self.dut.kc)
        if read is None:
            assert self.params_shown in (None, shown), "parameters moved without a read"
            return
        row, whole = read
        self.params_shown = shown
        for z, want in enumerate(self.params[row].norms):
            got = norms >> (71 * z) & ((1 << 71) - 1)
            assert got == want, f"batch norm of row {row} bank {z}: {got:#x}, expected {want:#x}"
        if whole:
            for z, want in enumerate(self.params[row].constants):
                got = constants >> (36 * z) & ((1 << 36) - 1)
                assert got == want, f"constant of row {row} bank {z}: {got:#x}, expected {want:#x}"
            self.met["constants at once"] += self.cycle - 1 == self.due[self.params[row].after]
            self.param_seen = max(self.param_seen, min(row, self.param_seen) + 1)

    def _check_table(self) -> None:
        dut = self.dut
        if int(dut.table_we.value):
            assert self.loading, "an entry without a load"
            self.written.append((int(dut.table_addr.value), int(dut.table_data.value)))
            last = self.ready_at is not None and self.cycle == self.ready_at + EARLY
            assert last == (len(self.written) == 16), (
                f"entry {len(self.written)} of table {self.tables}"
            )
            assert not last or not self.there or self.cycle == self.since + COPY, "a slow copy"
            self.met["copied at once"] += last and self.there
        ready = int(dut.act_ready.value)
        if self.loading and self.cycle > self.since + 1:
            if self.ready_at is None and ready:
                assert self.cycle > self.since + 2, "ready as soon as it is asked for"
                self.ready_at = self.cycle
            assert self.ready_at is None or ready, "no longer ready"
            if self.ready_at is not None and self.cycle == self.ready_at + EARLY:
                want = [(i, pack_entry(e)) for i, e in enumerate(entries(self._table()))]
                assert self.written == want[::-1], f"table {self.tables}: {self.written}"
                self.tables += 1
                self.loading, self.moved = False, self.cycle
        modulo = 1 << len(dut.tables_filled)
        held = (int(dut.tables_filled.value) - int(dut.tables_freed.value)) % modulo
        assert held <= self.most_tables, f"{held} tables"
        self.waited = self.waited + 1 if held and not self.loading else 0
        self.full += held == self.most_tables
        self.hoard_tables = self.hoard_tables and self.full < 60

    def _table(self) -> ActTable:
        return self.todo[self.tables].table

    def _check_counts(self) -> None:
        dut = self.dut
        rings = {"weight": (self.ring, dut.wrow_filled), "param": (self.par_ring, dut.prow_filled)}
        for name, (ring, port) in rings.items():
            if ring.update(int(port.value), 1 << len(port)):
                self.moved = self.cycle
            begun = self.started[name]
            assert ring.filled <= begun, f"{name}: {ring.filled} rows, {begun} are asked for"
            busy = int(getattr(dut, f"{name}_load_busy").value)
            if self.at_once_only and not self.just[name] and not busy:
                assert ring.filled == begun, f"{name}: not busy, {ring.filled} of {begun} rows"
        while len(self.due) < self.ring.filled:
            if len(self.due) in self.ends:
                self.at_once[self.cycle + CONSTANT] = self.ends[len(self.due)]
            self.due.append(self.cycle + CONSTANT)

    async def step(self) -> None:
        """One cycle."""
        pending, param = self.reads, self.param_read
        self.cycle += 1
        begun = dict(self.just)
        self._release()
        self._starts()
        self._stream()
        self._read()
        self._load()
        await RisingEdge(self.dut.clk)
        for stream in self.streams:
            before = len(stream.words)
            stream.sample()
            self.moved = self.cycle if len(stream.words) != before else self.moved
        for name, was in begun.items():
            busy = int(getattr(self.dut, f"{name}_load_busy").value)
            late = not self.at_once_only
            assert busy or not was or late, f"{name}: not busy after its start"
        self._check_weights(pending)
        self._check_params(param)
        self._check_table()
        self._check_counts()
        assert self.over() or self.cycle - self.moved < STUCK, (
            f"nothing moves: rows {self.ring}, parameters {self.par_ring}, {self.tables} tables"
        )
        if self.cycle - self.moved > PATIENCE:
            # rows of a group are complete with its last channel, for which there may be no room
            busy = int(self.dut.weight_load_busy.value) or not self.at_once_only
            blocked = self.streams[0].on and busy
            self.met["no room"] += self.ring.hoard and blocked
            self.ring.hoard = self.par_ring.hoard = self.hoard_tables = False

    def hold_back(self, *, rows: bool = False, params: bool = False, tables: bool = False) -> None:
        """Release nothing of these until they are full and nothing moves."""
        self.ring.hoard, self.par_ring.hoard, self.hoard_tables = rows, params, tables

    def over(self) -> bool:
        rings = all(ring.freed == ring.total for ring in (self.ring, self.par_ring))
        return rings and self.tables == len(self.todo) and not any(s.words for s in self.streams)

    async def play(self) -> None:
        """Until all layers are done; then nothing moves any more. Bounded."""
        words = sum(len(stream.words) for stream in self.streams)
        limit = 2000 + int(12 * (words + 4 * len(self.rows)) / self.p_in / self.p_free)
        await self.run_until(self.over, limit)
        await self.steps(40)
        assert self.over() and not self.waiting["weight"] and not self.waiting["param"]
        for name in ("weight", "param"):
            assert not int(getattr(self.dut, f"{name}_load_busy").value), f"{name}: still busy"


async def fresh(dut, todo: list[Work], rates: tuple[float, float, float]) -> Bench:
    bench = Bench(dut, todo, rates)
    await bench.reset()
    return bench


def widths(dut) -> tuple[int, int]:
    return int(dut.N_Z.value), int(dut.WEIGHT_BITS.value)


@cocotb.test()
async def random_layers(dut) -> None:
    """Layers of all kinds at several paces; the rings of weights and of tables get full."""
    for rates in ((1.0, 1.0, 0.3), (0.5, 0.5, 0.1), (1.0, 0.3, 0.05)):
        rows = 2 * int(dut.WBUF_ROWS.value)
        bench = await fresh(dut, layers(*widths(dut), 8, rows), rates)
        bench.hold_back(rows=rates[1] < 1.0, tables=rates[1] < 0.4)
        await bench.play()
        full = bench.ring.most == bench.ring.size or bench.met["no room"]
        assert full or rates[1] == 1.0, "the ring never got full"
        assert bench.ring.most > bench.ring.size - GROUP or rates[1] == 1.0, "room is left"
        many = bench.most_tables > len(bench.todo)
        assert bench.full or rates[1] > 0.4 or many, "the tables never filled their ring"
        at_once = bench.met["copied at once"] or rates[1] > 0.4
        assert at_once, "no table was there when its copy began"
        assert bench.met["constants at once"], "constants never read as soon as they were there"
        assert bench.met["kept"] == 3 and bench.met["read again"], f"{bench.met}"


@cocotb.test()
async def many_channels(dut) -> None:
    """Layers that fill the parameter ring and go around it, small ones behind them."""
    n_z, wb = widths(dut)
    outputs = [1024, random.randint(600, 1000), random.randint(600, 1000)]
    todo = [wide_layer(n_z, wb, o) for o in outputs]
    bench = await fresh(dut, [*todo, *layers(n_z, wb, 4)], (1.0, 0.7, 0.3))
    bench.hold_back(params=True)
    await bench.play()
    assert bench.par_ring.total > bench.par_ring.size, "not around the ring"
    assert bench.par_ring.most == bench.par_ring.size, "the parameter ring never got full"


@cocotb.test()
async def reset_in_between(dut) -> None:
    """A reset at any time: what was on its way is gone, the next layers are whole."""
    for cycles in (random.randint(5, 400), random.randint(400, 1500)):
        bench = await fresh(dut, layers(*widths(dut), 4), (1.0, 0.5, 0.2))
        await bench.steps(cycles)
    bench = await fresh(dut, layers(*widths(dut), 4), (0.8, 0.8, 0.3))
    assert not any(int(port.value) for port in (dut.wrow_filled, dut.prow_filled, dut.act_ready))
    await bench.play()


@sizes(
    "sim n_z bus wb chans ahead",
    test="icarus-2-32-16-1024-4 icarus-2-64-16-1024-8",
    check="verilator-4-32-16-1024-4",
    nightly="icarus-16-32-16-1024-4 icarus-4-64-8-1024-16 icarus-8-128-8-2048-8 "
    "verilator-16-64-16-2048-16",
)
def test_weight_buffer(sim: str, n_z: int, bus: int, wb: int, chans: int, ahead: int) -> None:
    """Look-ahead of more than four layers: descriptors wait for the loaders, and weights of 16
    bytes come in a cycle."""
    sources = ["rtl/weight/*.v", "rtl/lib/byte_*.v", "rtl/lib/ram_*.v", "rtl/lib/fifo_ram.v"]
    sources += ["rtl/control/desc_ahead.v"]
    params = {"N_Z": n_z, "AHB_W": bus, "WEIGHT_BITS": wb, "WBUF_ROWS": 64}
    params |= {"PAR_ROWS": chans // n_z, "LOOK_AHEAD": ahead}
    params |= {"WEIGHT_W": 128} if ahead > QUEUED else {}
    run_bench(sim, "weight_buffer", sources, "tb.weight_buffer.test_weight_buffer", params=params)
