# SPDX-License-Identifier: Apache-2.0
"""fp16_task against the golden model: every layout, numbers of all kinds, waits, rate, ring."""

import random
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from cocotb.triggers import RisingEdge

from openkpu.arithmetic import fp16
from openkpu.arithmetic.integers import ceil_div
from openkpu.generators.generate_fp16 import fp16_numbers
from openkpu.layer import airam
from openkpu.layer.argument import LayerArg
from openkpu.layer.decoded import Sizes
from openkpu.products.matmul_fp16 import layer_of
from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.core.descriptor import describe_layer, layout, pack_descriptor
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

ROWS = 4096  # of the AI RAM
TAPS = 9
LAYOUTS = (1, 3, 4, 7, 8, 9, 13, 16, 17, 24, 31, 32, 33, 64, 96, 100)  # columns of B


@dataclass
class Work:
    """What a product cost."""

    cycles: int = 0
    steps: int = 0
    reads: int = 0
    macs: int = 0
    waits: dict[str, int] = field(default_factory=dict)


class Ring:
    """The weight buffer: rows come one after the other, and are overwritten once given back."""

    def __init__(self, bench: "Bench", arg: LayerArg, a: np.ndarray, pace: float) -> None:
        self.bench, self.pace = bench, pace
        self.steps = ceil_div(arg.i_ch_num, TAPS)
        groups = ceil_div(arg.o_ch_num, bench.n_z)
        full = bench.noise.integers(0, 1 << 16, (groups * bench.n_z, self.steps * TAPS))
        full[: arg.o_ch_num, : arg.i_ch_num] = a.view(np.uint16)
        split = full.reshape(groups, bench.n_z, self.steps, TAPS)
        self.rows = split.transpose(0, 2, 3, 1).reshape(groups * self.steps, TAPS, bench.n_z)
        self.base, self.filled, self.freed = bench.ring_row, 0, 0

    def fill(self) -> None:
        """Another row, where there is room for it."""
        bench = self.bench
        room = self.filled - self.freed < bench.wbuf_rows
        if room and self.filled < len(self.rows) and random.random() < self.pace:
            bench.memory[(self.base + self.filled) % bench.wbuf_rows] = self.rows[self.filled]
            self.filled += 1
        bench.dut.wrow_filled.value = (self.base + self.filled) % (4 * bench.wbuf_rows)

    def skip(self, to: int) -> None:
        """Rows come back group by group, the last one at the end."""
        self.freed += self.steps
        assert to == (self.base + self.freed) % (4 * self.bench.wbuf_rows), (to, self.freed)
        assert self.freed <= self.filled
        # what is given back is not read any more
        for row in range(self.freed - self.steps, self.freed):
            place = (self.base + row) % self.bench.wbuf_rows
            self.bench.memory[place] = self.bench.noise.integers(0, 1 << 16, (TAPS, self.bench.n_z))


class Bench(BlockBench):
    inputs = "start", "desc", "fill_gnt", "fill_data", "writeback_gnt", "ring_row", "wrow_filled"
    inputs += "weights", "products"

    def __init__(self, dut) -> None:
        super().__init__(dut)
        self.path, self.lanes = int(dut.PATH.value), int(dut.LANES.value)
        self.cols, self.rows = int(dut.COLS.value), int(dut.ROWS.value)
        self.n_y, self.n_z = int(dut.N_Y.value), int(dut.N_Z.value)
        self.wbuf_rows = int(dut.WBUF_ROWS.value)
        self.write = layout("rowwrite", PATH=self.path, PB=self.path.bit_length() - 1)
        self.noise = np.random.default_rng(random.getrandbits(32))
        self.ram = self.noise.integers(0, 256, ROWS * 64, dtype=np.uint8)
        self.memory = self.noise.integers(0, 1 << 16, (self.wbuf_rows, TAPS, self.n_z))
        self.ring_row = random.randrange(4 * self.wbuf_rows)

    async def reset(self) -> None:
        """Behind it nothing is lent, counted or asked for until a product starts."""
        dut = self.dut
        await super().reset()
        for _ in range(12):
            await RisingEdge(dut.clk)
            assert not int(dut.lend_valid.value) and not int(dut.macs.value)
            assert not int(dut.writeback_req.value) and not int(dut.fill_req.value)
            assert not int(dut.busy.value) and not int(dut.issued.value)

    async def start(self, arg: LayerArg) -> None:
        sizes = Sizes(n_y=self.n_y, n_z=self.n_z, wbuf_rows=self.wbuf_rows)
        self.dut.desc.value = pack_descriptor(describe_layer(arg, sizes))
        self.dut.ring_row.value = self.ring_row
        self.dut.wrow_filled.value = self.ring_row
        await self.pulse(start=1)
        self.dut.ring_row.value = random.randrange(4 * self.wbuf_rows)  # of the start alone

    def multiplied(self) -> int:
        """Products of the lanes, of the mantissas that are lent in this cycle."""
        if not int(self.dut.lend_valid.value):
            return 0
        a, b = (str(getattr(self.dut, f"lend_{x}").value)[::-1] for x in "ab")
        total = 0
        for lane in range(self.lanes):
            of_a = a[11 * (lane // self.cols) :][:11][::-1]
            of_b = b[11 * (lane % self.cols) :][:11][::-1]
            if set(of_a + of_b) <= {"0", "1"}:
                left, right = int(of_a, 2), int(of_b, 2)
                total |= ((right & 255) * left | (right >> 8) * left << 19) << 33 * lane
        return total

    def read_weights(self) -> int:
        """The column that is read; noise in the others."""
        enabled = int(self.dut.column_re.value)
        words = self.noise.integers(0, 1 << 16, (TAPS, self.n_z))
        assert enabled.bit_count() <= 1
        if enabled:
            column = enabled.bit_length() - 1
            words[column] = self.memory[int(self.dut.wrow.value)][column]
        return int.from_bytes(words.astype("<u2").tobytes(), "little")

    async def serve(self, limit: int, ring: Ring, p_read: float, p_write: float) -> Work:
        """Memories and array until the last word is written."""
        dut, path, work = self.dut, self.path, Work()
        granted = deque[int | None]([None] * int(dut.READ.value))
        products, begun, done = 0, False, 0
        for cycle in range(limit):
            at = granted.popleft()
            data = self.noise.bytes(path) if at is None else self.ram[at * path :][:path]
            dut.fill_data.value = int.from_bytes(bytes(data), "little")
            reads, writes = random.random() < p_read, random.random() < p_write
            dut.fill_gnt.value, dut.writeback_gnt.value = int(reads), int(writes)
            ring.fill()
            await RisingEdge(dut.clk)
            read = bool(reads and int(dut.fill_req.value))
            granted.append(int(dut.fill_word.value) if read else None)
            work.reads += read
            if writes and int(dut.writeback_req.value):
                self.put(str(dut.writeback.value))
            dut.products.value, products = products, self.multiplied()
            dut.weights.value = self.read_weights()
            if int(dut.skip.value):
                ring.skip(int(dut.skip_to.value))
            issued = int(dut.issued.value)
            waits = [
                n for n in ("tile", "weight", "output") if int(getattr(dut, f"wait_{n}").value)
            ]
            assert issued + len(waits) <= 1, (issued, waits)
            for name in waits:
                work.waits[name] = work.waits.get(name, 0) + 1
            work.steps += issued
            macs = int(dut.macs.value)
            work.macs += sum(macs >> 8 * n & 255 for n in range(TAPS))
            done += int(dut.done.value)
            begun |= bool(int(dut.busy.value))
            if begun and not int(dut.busy.value):
                assert done == 1 and not int(dut.writeback_req.value)
                work.cycles = cycle
                return work
        raise AssertionError(f"not done after {limit} cycles")

    def put(self, bits: str) -> None:
        """A word as it comes; bytes that are not written may be unknown."""

        def part(low: int, width: int) -> str:
            return bits[len(bits) - low - width : len(bits) - low]

        (data, _), (enable, _) = self.write["data"], self.write["be"]
        at = int(part(*self.write["word"]), 2) * self.path
        for i in range(self.path):
            if int(part(enable + i, 1), 2):
                self.ram[at + i] = int(part(data + 8 * i, 8), 2)

    async def product(
        self,
        a: np.ndarray,
        b: np.ndarray,
        wide: bool,
        rates: tuple[float, float, float] = (1, 1, 1),
    ) -> Work:
        """Multiply; the whole AI RAM is compared. ``rates``: reads, writes, rows of weights."""
        (m, k), n = a.shape, b.shape[1]
        arg = layer_of(m, k, n, wide=wide, ram_rows=ROWS)
        spare = ROWS - arg.out_layout.base - arg.out_layout.rows
        src = random.randrange(spare + 1)
        dst = arg.image_dst_addr + random.randrange(src, spare + 1)
        arg = arg.replace(image_src_addr=src, image_dst_addr=dst)
        airam.pack_map(self.ram, src, b.view(np.uint8).reshape(arg.in_shape))
        c = fp16.multiply(a, b, wide)
        want = self.ram.copy()
        airam.pack_map(want, dst, c.view(np.uint8).reshape(arg.out_shape))
        ring = Ring(self, arg, a, rates[2])
        await self.start(arg)
        steps = ceil_div(m, self.rows) * ceil_div(n, self.cols) * k
        drains = ceil_div(m, self.rows) * ceil_div(n, self.cols) * 90
        work = await self.serve(
            int((2000 + steps + drains + 20 * k * m) / min(rates) ** 2), ring, *rates[:2]
        )
        wrong = np.flatnonzero(self.ram != want)
        assert not wrong.size, (
            f"{wrong.size} bytes, the first at {wrong[0]}: "
            f"{self.ram[wrong[0]]} not {want[wrong[0]]}: {arg}"
        )
        assert ring.freed == len(ring.rows), "rows of weights were kept"
        self.ring_row = (self.ring_row + ring.freed) % (4 * self.wbuf_rows)
        assert (work.steps, work.reads) == (steps, steps), (work, steps)
        assert work.macs == m * k * n, (work, m, k, n)
        return work


@block_test(Bench)
async def any_product(bench: Bench) -> None:
    """Random sizes, layouts and numbers, granted at once or late."""
    for turn in range(36):
        n = random.choice(LAYOUTS)
        m, k = random.randrange(1, 3 * bench.n_z + 2), random.randrange(1, 40)
        if turn % 6 == 5:
            m, k = 1, random.randrange(1, 4)
        a, b = fp16_numbers(bench.noise, (m, k)), fp16_numbers(bench.noise, (k, n))
        rates = random.choice(((1, 1, 1), (1, 1, 1), (0.5, 1, 1), (1, 0.2, 1), (1, 1, 0.1)))
        await bench.product(a, b, bool(turn & 1), rates)


@block_test(Bench)
async def extremes(bench: Bench) -> None:
    """Largest sums, cancellation to the last bit, ties, infinities and NaN in every place."""
    least, most = 2.0**-24, 65504.0
    rows = [
        [most, most, least, 1.0],
        [most, -most, least, -1.0],
        [-least, least, 0.5, 2048.0],
        [least, 1.5, 2049.0, -0.0],
        [np.inf, 1.0, 2.0, 3.0],
        [-np.inf, np.inf, 1.0, 0.0],
        [np.nan, 0.0, 1.0, 2.0],
        [65504.0, 16.0, least, 0.0],
        [0.0, 2.0, 1.0, 1.0],  # and zeros of A those of B
        [1.0, -0.0, 1.0, 1.0],
    ]
    a = np.array(rows, dtype=np.float16)
    more = [
        [most, -most, least, 1.0],
        [1.0, 1.0, 1.0, 1.0],
        [0.5, 1.5, 1.0, 0.5],
        [-1.0, -1.0, -1.0, -1.0],
    ]
    zeros = [[0.0, 1.0], [1.0, -0.0], [1.0, 1.0], [1.0, 1.0]]  # they meet infinities
    b = np.concatenate([a.T, np.array(more), np.array(zeros)], axis=1).astype(np.float16)
    for wide in (True, False):
        await bench.product(a, b, wide)
        await bench.product(a[:1], b[:, :1], wide)
    k = 300
    for left in (most, -most, least):
        a = np.full((2, k), left, dtype=np.float16)
        b = np.full((k, 5), most, dtype=np.float16)
        b[-1] = -most
        b[:, 4] = least
        await bench.product(a, b, True)
        await bench.product(a, b, False)


@block_test(Bench)
async def long_sums(bench: Bench) -> None:
    """As many numbers in a row of A as the weight buffer holds; and a few less."""
    most = TAPS * bench.wbuf_rows
    for k in (most, most - random.randrange(1, 60)):
        a, b = (
            fp16_numbers(bench.noise, (1, k)),
            fp16_numbers(bench.noise, (k, random.randrange(1, 8))),
        )
        await bench.product(a, b, bool(k & 1))


@block_test(Bench)
async def rate(bench: Bench, dut) -> None:
    """Memory that grants at once: a step a cycle, while sums leave in the background."""
    k = 120
    m, n = 2 * bench.n_z, 4 * bench.cols
    for wide in (True, False):
        a, b = fp16_numbers(bench.noise, (m, k)), fp16_numbers(bench.noise, (k, n))
        work = await bench.product(a, b, wide)
        dut._log.info(f"{work}")
        first = bench.n_z * 0 + 2 * ceil_div(k, TAPS)  # rows of weights come one a cycle
        assert work.cycles <= work.steps + first + min(bench.lanes, 64) + 40, work
        assert "output" not in work.waits, work


@block_test(Bench)
async def ended_and_begun(bench: Bench, dut) -> None:
    """A reset in the middle of a product: nothing is written any more, the next one is right."""
    for _ in range(6):
        a, b = fp16_numbers(bench.noise, (bench.n_z, 20)), fp16_numbers(bench.noise, (20, 24))
        arg = layer_of(bench.n_z, 20, 24, ram_rows=ROWS)
        airam.pack_map(bench.ram, 0, b.view(np.uint8).reshape(arg.in_shape))
        ring = Ring(bench, arg, a, 1)
        await bench.start(arg)
        dut.fill_gnt.value = dut.writeback_gnt.value = 1
        for _ in range(random.randrange(3, 200)):
            ring.fill()
            await RisingEdge(dut.clk)
            dut.weights.value = bench.read_weights()
        await bench.pulse(rst=1)
        for _ in range(40):
            await RisingEdge(dut.clk)
            assert not int(dut.writeback_req.value) and not int(dut.fill_req.value)
            assert not int(dut.busy.value) and not int(dut.issued.value)
        await bench.product(a[:3], b, True)


@sizes(
    "sim lanes path n_y n_z wbuf_rows",
    test="icarus-8-16-2-2-64",
    check="verilator-8-16-2-2-64",
    nightly="verilator-128-128-4-16-64 verilator-4-64-2-4-1024 verilator-64-64-4-8-64",
)
def test_fp16_task(sim: str, lanes: int, path: int, n_y: int, n_z: int, wbuf_rows: int) -> None:
    sources = [*(f"rtl/fp16/fp16_{part}.v" for part in PARTS), *LIBRARY]
    run_bench(sim, "fp16_task", sources, "tb.fp16_task.test_fp16_task", params={
        "LANES": lanes, "PATH": path, "N_Y": n_y, "N_Z": n_z, "WBUF_ROWS": wbuf_rows,
        "READ": 3 if path == 16 else 1,
    })  # fmt: skip


PARTS = ("task", "walk", "steps", "number", "lane", "round", "write")
LIBRARY = ["rtl/lib/fifo_sync.v", "rtl/lib/fifo_regs.v", "rtl/lib/ram_1r1w_async.v"]
