# SPDX-License-Identifier: Apache-2.0
"""pool_task against the golden model: every kind, window and layout, waits, rate, what is left."""

import dataclasses
import itertools
import random
from collections import deque
from dataclasses import dataclass

import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge

from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import load_config
from openkpu.generators.generate import Limits
from openkpu.generators.generate_pools import map_layer, random_pool
from openkpu.layer import airam
from openkpu.layer.argument import LayerArg, LayerError
from openkpu.layer.decoded import Sizes
from openkpu.layer.pool_layer import pool_layer
from openkpu.layer.pool_tasks import (
    AVERAGE,
    AVERAGE_INSIDE,
    KINDS,
    MAXIMUM,
    MINIMUM,
    window_of,
    words_read,
)
from openkpu.layer.vectors import VectorLayer
from openkpu.prediction.cycles_pool import predict_pool_task
from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.core.descriptor import describe_layer, layout, pack_descriptor
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

ROWS = 4096
WIDTHS = (1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 80, 128, 129, 200)


@dataclass
class Work:
    """What a task cost."""

    cycles: int
    reads: int
    writes: int


class Bench(BlockBench):
    inputs = "start", "desc", "fill_gnt", "fill_data", "writeback_gnt"

    def __init__(self, dut) -> None:
        super().__init__(dut)
        self.path, self.lanes = int(dut.PATH.value), int(dut.LANES.value)
        log2 = self.path.bit_length() - 1
        self.write = layout("rowwrite", PATH=self.path, PB=log2)
        self.noise = np.random.default_rng(random.getrandbits(32))
        self.ram = self.noise.integers(0, 256, ROWS * 64, dtype=np.uint8)

    async def start(self, arg: LayerArg) -> None:
        self.dut.desc.value = pack_descriptor(describe_layer(arg, Sizes()))
        await self.pulse(start=1)

    async def serve(self, limit: int, p_read: float, p_write: float) -> Work:
        """The AI RAM until the task is over: data READ cycles after a grant, noise in others."""
        dut, path = self.dut, self.path
        granted = deque[int | None]([None] * int(dut.READ.value))
        done, work = 0, Work(0, 0, 0)
        for cycle in range(limit):
            at = granted.popleft()
            data = self.noise.bytes(path) if at is None else self.ram[at * path :][:path]
            dut.fill_data.value = int.from_bytes(bytes(data), "little")
            reads, writes = random.random() < p_read, random.random() < p_write
            dut.fill_gnt.value, dut.writeback_gnt.value = int(reads), int(writes)
            await RisingEdge(dut.clk)
            read = bool(reads and int(dut.fill_req.value))
            granted.append(int(dut.fill_word.value) if read else None)
            work.reads += read
            if writes and int(dut.writeback_req.value):
                self.put(str(dut.writeback.value))
                work.writes += 1
            done += int(dut.done.value)
            if done:
                assert not int(dut.busy.value) and not int(dut.writeback_req.value)
                work.cycles = cycle
                return work
        raise AssertionError(f"not done after {limit} cycles")

    def put(self, bits: str) -> None:
        """A word as it comes; bytes that are not written may be unknown."""

        def field(low: int, width: int) -> str:
            return bits[len(bits) - low - width : len(bits) - low]

        (data, _), (enable, _) = self.write["data"], self.write["be"]
        at = int(field(*self.write["word"]), 2) * self.path
        for i in range(self.path):
            if int(field(enable + i, 1), 2):
                self.ram[at + i] = int(field(data + 8 * i, 8), 2)
        if int(field(*self.write["chans"]), 2):  # a reported channel is complete
            done = self.want[self.whole]
            assert (self.ram[self.places[self.whole]] == done).all(), f"channel {self.whole}"
            self.whole += 1

    async def task(self, layer: VectorLayer, p_read: float = 1.0, p_write: float = 1.0) -> Work:
        """Run a task; the whole AI RAM is compared."""
        arg = layer.arg
        airam.pack_map(self.ram, arg.image_src_addr, layer.x)
        want = self.ram.copy()
        airam.pack_map(want, arg.image_dst_addr, layer.y)
        places = airam.unpack_map(np.arange(want.size), arg.image_dst_addr, arg.out_shape)
        self.places = places.reshape(arg.o_ch_num, -1)
        self.want, self.whole = want[self.places], 0
        await self.start(arg)
        w, (c, oh, ow) = window_of(arg), arg.out_shape
        pieces = c * oh * (1 + ((ow - 1) * w.sx + w.kw) // columns(self.lanes))
        limit = int((200 + pieces * (w.kh + w.kw + 20)) / min(p_read, p_write) ** 2)
        work = await self.serve(limit, p_read, p_write)
        wrong = np.flatnonzero(self.ram != want)
        assert not wrong.size, (
            f"{wrong.size} bytes, the first at {wrong[0]}: "
            f"{self.ram[wrong[0]]} not {want[wrong[0]]}: {arg}"
        )
        assert work.reads == words_read(arg), (work, arg)
        assert self.whole == arg.o_ch_num, (self.whole, arg)
        return work

    def as_predicted(self, arg: LayerArg, work: Work) -> None:
        """Memory that grants at once: the cycles of docs/architecture.md 15.9."""
        config = dataclasses.replace(
            load_config("nano"), pool_lanes=self.lanes, path_bytes=self.path
        )
        predicted, _ = predict_pool_task(config, arg, 0)
        assert abs(work.cycles - predicted) <= 4, (work, predicted, arg)


def columns(lanes: int) -> int:
    """Columns of a piece."""
    return min(4 * lanes, 16)


def line_cycles(arg: LayerArg, lanes: int) -> int:
    """Cycles of a line of windows: a piece takes its lines, its columns or its picks."""
    w, ow, cycles = window_of(arg), arg.out_shape[2], 0
    ends = np.arange(ow) * w.sx + w.kw - 1 - w.left
    for piece in range(ends[-1] // columns(lanes) + 1):
        picks = int(np.count_nonzero(ends // columns(lanes) == piece))
        cycles += max(w.kh, w.kw, ceil_div(picks, lanes))
    return cycles


def draw(**fixed) -> VectorLayer:
    """A random task that the memory holds, of widths near the corners of the layout."""
    rng = np.random.default_rng(random.getrandbits(32))
    while True:
        fixed.setdefault("c", None)
        choice = {"w": random.choice(WIDTHS)} if random.random() < 0.6 else {}
        try:
            return random_pool(rng, ram_rows=ROWS, limits=Limits(6, 40), **{**choice, **fixed})
        except LayerError:
            continue


@block_test(Bench)
async def any_window(bench: Bench) -> None:
    """Random tasks, granted at once or late; each kind, windows and whole maps."""
    for turn in range(40):
        kind, whole = 1 + turn % 4, turn % 8 > 5
        layer = draw(kind=kind, whole=whole, h=random.randrange(1, 12))
        rates = random.choice(((1, 1), (1, 1), (0.5, 1), (1, 0.3), (0.7, 0.7)))
        await bench.task(layer, *rates)


@block_test(Bench)
async def corners(bench: Bench) -> None:
    """The largest and the smallest windows, steps and paddings, in both directions."""
    tasks = [
        ((1, 1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
        ((5, 2, 2), (16, 16), (1, 1), (7, 7, 7, 7)),
        ((2, 17, 40), (16, 16), (1, 1), (7, 7, 7, 7)),
        ((2, 17, 40), (16, 16), (16, 16), (0, 7, 7, 0)),
        ((3, 5, 100), (1, 16), (1, 16), (0, 0, 0, 0)),
        ((1, 3, 100), (1, 1), (16, 16), (0, 0, 0, 0)),
        ((9, 40, 3), (16, 1), (16, 1), (7, 0, 7, 0)),
        ((5, 6, 33), (2, 8), (1, 1), (1, 7, 1, 7)),
        ((4, 3, 16), (1, 2), (1, 3), (0, 1, 0, 1)),
        ((3, 4, 65), (3, 3), (2, 2), (1, 1, 1, 1)),
        # the last bytes of a line begin a piece of the output
        ((2, 3, 17), (3, 3), (1, 1), (1, 1, 1, 1)),
        ((5, 2, 18), (1, 3), (1, 1), (0, 1, 0, 1)),
        ((1, 9, 50), (1, 2), (1, 1), (0, 1, 0, 1)),
        # of such lines that the next one's first bytes wait already
        ((5, 9, 18), (1, 2), (1, 1), (0, 0, 0, 0)),
        ((2, 9, 34), (1, 4), (1, 1), (0, 2, 0, 1)),
    ]
    for shape, kernel, stride, pads in tasks:
        for kind in KINDS:
            arg = pool_layer(
                *(shape, kind, kernel, stride, pads),
                ram_rows=ROWS,
                pad_value=255,
                signed_out=kind & 1,
            )
            x = bench.noise.integers(0, 256, shape, dtype=np.uint8)
            if random.random() < 0.3:
                x[:] = random.choice((0, 127, 128, 255))
            # late writes leave no gap between the groups of bytes
            await bench.task(map_layer(arg, x), 1.0, 0.2 if shape[2] in (17, 18, 34, 50) else 1.0)


@block_test(Bench)
async def whole_maps(bench: Bench) -> None:
    """Sums up to the largest of a narrow map, several pieces of a line, many channels."""
    for shape in ((1, 512, 1), (1, 512, 17), (2, 9, 330), (70, 2, 2), (7, 7, 7), (3, 1, 64)):
        for kind in (MAXIMUM, MINIMUM, AVERAGE, AVERAGE_INSIDE):
            arg = pool_layer(shape, kind, ram_rows=ROWS, signed_out=random.getrandbits(1))
            x = bench.noise.integers(0, 256, shape, dtype=np.uint8)
            if kind == AVERAGE:
                x[:] = 255
                x[:, :, : shape[2] // 2] = 254
            if kind == AVERAGE_INSIDE and shape[1] > 500:
                continue
            await bench.task(map_layer(arg, x))


@block_test(Bench)
async def rate(bench: Bench, dut) -> None:
    """Memory that grants at once: a piece a cycle, or as many picks as there are lanes."""
    for kernel, stride, pad in (
        (2, 2, 0), (3, 2, 1), (4, 4, 0), (3, 1, 1), (5, 1, 2), (2, 1, 0), (16, 1, 7), (1, 1, 0),
    ):  # fmt: skip
        for kind in (MAXIMUM, AVERAGE_INSIDE):
            shape = 4, 36, 64
            arg = pool_layer(
                shape,
                kind,
                (kernel, kernel),
                (stride, stride),
                (pad, pad, pad, pad),
                ram_rows=ROWS,
                dst=2000,
            )
            x = bench.noise.integers(0, 256, shape, dtype=np.uint8)
            work = await bench.task(map_layer(arg, x))
            least = shape[0] * arg.out_shape[1] * line_cycles(arg, bench.lanes)
            assert work.cycles <= least + 60, (kernel, stride, work, least)
            bench.as_predicted(arg, work)
    # a whole map: its lines or columns; of more lines in chunks, the last one the longest
    maps = (6, 9), (6, 13), (6, 16), (14, 5), (6, 33), (17, 16), (24, 24), (47, 5), (33, 20)
    for (h, w), kind in itertools.product(maps, (MAXIMUM, AVERAGE)):
        arg = pool_layer((16, h, w), kind, ram_rows=ROWS)
        x = bench.noise.integers(0, 256, (16, h, w), dtype=np.uint8)
        work = await bench.task(map_layer(arg, x))
        cols = columns(bench.lanes)
        least = 16 * ceil_div(w, cols) * max(h, min(w, cols))
        assert work.cycles <= least + 50, (h, w, work, least)
        bench.as_predicted(arg, work)


@block_test(Bench)
async def ended_and_begun(bench: Bench, dut) -> None:
    """A reset in the middle of a task: nothing is written any more, the next one is right."""
    for turn in range(40):
        layer = draw(h=9)
        airam.pack_map(bench.ram, layer.arg.image_src_addr, layer.x)
        await bench.start(layer.arg)
        dut.fill_gnt.value = dut.writeback_gnt.value = 1
        await ClockCycles(dut.clk, random.randrange(3, 90))
        await bench.pulse(rst=1)
        gap = 40 if turn % 2 else random.randrange(4)  # the next task comes late, or at once
        for _ in range(gap):
            await RisingEdge(dut.clk)
            assert not int(dut.writeback_req.value) and not int(dut.fill_req.value)
            assert not int(dut.busy.value) and not int(dut.done.value)
        await bench.task(draw(h=5))


@sizes(
    "sim lanes path",
    test="verilator-1-16",
    check="verilator-4-16",
    nightly="icarus-1-16 icarus-4-16 verilator-2-32 verilator-4-128 verilator-8-64",
)
def test_pool_task(sim: str, lanes: int, path: int) -> None:
    sources = [*(f"rtl/pool/pool_{part}.v" for part in PARTS), *LIBRARY]
    run_bench(sim, "pool_task", sources, "tb.pool_task.test_pool_task", params={
        "LANES": lanes, "PATH": path, "READ": 3 if path == 16 else 1,
    })  # fmt: skip


PARTS = ("task", "setup", "walk", "parts", "columns", "pick", "divide", "write", "pages")
LIBRARY = ["rtl/lib/fifo_sync.v", "rtl/lib/ram_1r1w_async.v"]
