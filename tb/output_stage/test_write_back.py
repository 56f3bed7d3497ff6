# SPDX-License-Identifier: Apache-2.0
"""collector and write_back: stripes of activated maps arrive pooled in the AI RAM's layout."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from cocotb.triggers import RisingEdge

from openkpu.arithmetic.pooling import PICKS, pool_map
from openkpu.layer import airam
from openkpu.layer.argument import LayerArg
from openkpu.layer.decoded import DWROW, Sizes
from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.core.descriptor import (
    describe_layer,
    flattened,
    join_fields,
    layout,
    origin,
    pack_descriptor,
    stripes,
)
from openkpu_tb.core.packed_ports import PackedView
from openkpu_tb.core.pipeline_bench import join_words
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

RAM_ROWS = 4096
INPUTS = ("start", "desc", "in_valid", "in_byte", "in_pos", "in_end", "take", "writeback_gnt")
# by depthwise and pool, shapes: borders of the layouts, lines that cross the end of a row
SHAPES = {
    False: {
        0: ((5, 3, 5), (3, 4, 40), (3, 5, 64), (1, 2, 150)),
        **{1: ((5, 7, 23), (2, 9, 140)), 2: ((3, 4, 70), (5, 2, 2))},
        **{3: ((5, 9, 31), (3, 8, 64)), 4: ((2, 4, 150), (9, 4, 4))},
        **{5: ((5, 10, 33),), 6: ((3, 6, 140),), 7: ((2, 9, 70),)},
        8: ((2, 9, 70), (5, 1, 1), (2, 5, 33), (1, 7, 129)),
        9: ((3, 6, 17), (1, 5, 150), (3, 3, 16)),
    },
    True: {
        0: ((5, 4, 5), (3, 3, 30), (2, 3, 64), (3, 2, 150)),
        **{1: ((5, 7, 23),), 4: ((3, 8, 40),), 5: ((3, 5, 33),), 9: ((2, 6, 70),)},
    },
}
CASES = [
    (shape, pool, depthwise)
    for depthwise, pools in SHAPES.items()
    for pool, shapes in pools.items()
    for shape in shapes
]


@dataclass
class Write:
    """A cycle of the post lanes; ``job`` is set in the last cycle of a group or row."""

    pos: int
    values: list[int]
    job: dict[str, int]
    end: bool = False


class Layer:
    """A layer's activated map, in the pieces that the array delivers."""

    def __init__(
        self,
        arg: LayerArg,
        sizes: Sizes,
        rng: np.random.Generator,
        pairs: bool = False,
        flat: bool = False,
    ) -> None:
        self.arg, self.sizes, self.pairs = arg, sizes, pairs
        desc = describe_layer(arg, sizes)
        self.desc = flattened(desc) if flat else desc
        shape = arg.out_shape[0], self.desc["kh"], self.desc["kw"]
        self.a = rng.integers(0, 256, shape).astype(np.uint8)

    def result(self) -> np.ndarray:
        if self.arg.pool_type in PICKS:  # picked before the array
            return self.a
        if self.desc["flat"]:
            return self.a.reshape(self.arg.out_shape)
        signed = self.a.view(np.int8) if self.arg.signed_out else self.a
        return pool_map(self.arg.pool_type, signed).view(np.uint8)

    def _pixels(self, chan: int, y: int, x: int, count: int, width: int) -> list[int]:
        """``count`` pixels; random bytes beyond ``width`` and beyond the channels."""
        noise = [random.randrange(256) for _ in range(count)]
        if chan < self.a.shape[0] and y < self.a.shape[1]:
            row = self.a[chan, y, x : x + max(0, min(count, width))]
            noise[: len(row)] = (int(p) for p in row)
        return noise

    def groups(self) -> Iterator[list[Write]]:
        """Groups of a convolution, or rows of a depthwise layer, as lists of writes."""
        if self.desc["mode"] == DWROW:
            yield from self._rows()
            return
        *_, final = stripes(self.desc)
        for x, y, width, lines in stripes(self.desc):
            ends = int((x, y, width, lines) == tuple(final))
            if self.desc["dw"]:
                for chan in range(self.arg.o_ch_num):
                    yield self._stacked(chan, x, y, width, lines, ends)
                continue
            for chan in range(0, self.arg.o_ch_num, self.sizes.n_z):
                nz = min(self.sizes.n_z, self.arg.o_ch_num - chan)
                gx, gy = origin(self.desc, x, y)
                job = {"chan": chan, "nz": nz, "gx": gx, "gy": gy, "width": width, "lines": lines}
                planes = 4 if self.arg.out32 else 1
                for plane in range(planes):
                    whole = ends * int(plane == planes - 1)
                    yield list(self._group({**job, "plane": plane, "whole": whole}, x, y))

    def _group(self, job: dict[str, int], x: int, y: int) -> Iterator[Write]:
        """A stripe at (x, y) of a group of channels, or of one plane when each channel has four."""
        n_y, planes = self.sizes.n_y, 4 if self.arg.out32 else 1
        for line in range(job["lines"]):
            for at in range(0, job["width"], n_y):
                values = []
                for z in range(self.sizes.n_z):
                    chan = planes * (job["chan"] + z) + job["plane"]
                    here = y + line, x + at
                    values += self._pixels(chan, *here, n_y, job["width"] - at)
                yield Write((line << self.desc["swl"]) + at, values, job)

    def _lanes(self, swl: int, slots: list[tuple[int, int, int]], width: int, job) -> list[Write]:
        """Depthwise: lanes along one 64-byte row whose slots hold (channel, y, x).

        A byte arrives on the lane of its place in the row; at most a path's width at a time.
        """
        row = []
        for chan, y, x in slots:
            row += self._pixels(chan, y, x, 1 << swl, width)
        lanes = self.sizes.n_y * self.sizes.n_z
        row += [random.randrange(256) for _ in range(lanes)]
        step, slot = min(lanes, self.sizes.tile_word), 1 << swl
        starts = []
        for base in range(0, len(slots) * slot, max(slot, step)):
            starts += range(base, base + (slot if step >= slot else width), step)
        writes = []
        for p in (p for p in starts if p < len(slots) * slot):
            values = [random.randrange(256) for _ in range(lanes)]
            values[p % lanes : p % lanes + step] = row[p : p + step]
            writes.append(Write(p, values, job))
        return writes

    def _stacked(
        self, chan: int, x: int, y: int, width: int, lines: int, whole: int
    ) -> list[Write]:
        job = {"chan": chan, "nz": self.sizes.n_z, "gx": x, "gy": y, "width": width, "lines": lines}
        job["whole"] = whole
        slots = [(chan, y + line, x) for line in range(lines)]
        return self._lanes(self.desc["swl"], slots, width, job)

    def _rows(self) -> Iterator[list[Write]]:
        per_row = 4 >> self.desc["ip"]
        for chan in range(0, self.arg.i_ch_num, per_row):
            chans = min(per_row, self.arg.i_ch_num - chan)
            for y in range(self.arg.i_col_high):
                if self._second(chan, y):
                    continue
                for x in range(0, self.arg.i_row_wid, 64):
                    width = min(64, self.arg.i_row_wid - x)
                    both = y + 1 < self.arg.i_col_high and self._second(chan, y + 1)
                    job = {
                        "chan": chan,
                        "nz": 1 + int(both),  # rows
                        "gx": x,
                        "gy": y,
                        "width": width,
                        "lines": chans,
                        "whole": int(
                            x + width == self.arg.i_row_wid
                            and y + 1 + int(both) == self.arg.i_col_high
                        ),
                    }
                    slots = [(chan + i, y, x) for i in range(chans)]
                    (write, *more) = self._lanes(4 + self.desc["ip"], slots, width, job)
                    if both:
                        write.values[64:] = self._pixels(chan, y + 1, x, 64, width)
                    yield [write, *more]

    def _second(self, chan: int, y: int) -> bool:
        """True if the line arrives with the one above it: one word of the output has both."""
        if not self.pairs or y == 0 or not 32 < self.arg.i_row_wid <= 64:
            return False
        return (self.arg.image_dst_addr + chan * self.arg.i_col_high + y) % 2 == 1


class Bench(BlockBench):
    inputs = INPUTS

    def __init__(self, dut) -> None:
        self.path = int(dut.PATH.value)
        port = layout("rowwrite", PATH=self.path, PB=int(dut.PB.value))
        super().__init__(PackedView(dut, {"writeback": (port, "writeback_")}))
        self.job = layout("job", ZW=int(dut.ZW.value))
        self.rng = np.random.default_rng(random.getrandbits(32))
        n_y, n_z, flat = (int(getattr(dut, name).value) for name in ("N_Y", "N_Z", "FLAT_MAPS"))
        self.sizes = Sizes(n_y, n_z, tile_word=min(self.path, 64), flat=bool(flat))
        self.ram = self.rng.integers(0, 256, RAM_ROWS * 64).astype(np.uint8)
        # depthwise lines in pairs
        self.pairs = self.path == 128 and self.sizes.n_y * self.sizes.n_z == 128

    def _store(self) -> None:
        word, be = int(self.dut.writeback_word.value), int(self.dut.writeback_be.value)
        bits = str(self.dut.writeback_data.value)[::-1]
        for i in range(self.path):
            if be >> i & 1:  # a byte that is written is known
                at = word * self.path + i
                self.ram[at] = int(bits[8 * i : 8 * i + 8][::-1], 2)
                self.writes[at] += 1
        self.whole += int(self.dut.writeback_chans.value)
        if int(self.dut.writeback_chans.value):  # reported channels are complete
            self.reported += 1
            count = min(self.whole, len(self.last_write))
            assert self.writes[self.last_write[:count]].all(), f"{self.whole} channels reported"

    async def play(self, layer: Layer, p_in: float, p_gnt: float) -> int:
        """Deliver the layer; groups are accepted only when there is room. Bounded; its cycles."""
        dut = self.dut
        dut.desc.value = pack_descriptor(layer.desc)
        await self.pulse(start=1)
        groups = list(layer.groups())
        limit = 200 + int(60 * sum(len(g) + 8 for g in groups) * self.sizes.n_z / p_gnt)
        group: list[Write] = []
        held, taken = None, 0
        for cycle in range(limit):
            dut.writeback_gnt.value = int(random.random() < p_gnt)
            dut.take.value = dut.in_valid.value = 0
            if not group and groups and cycle > 2 and int(dut.room.value) and not taken:
                group = groups.pop(0)
                group[-1].end = True
                dut.take.value = 1
            elif group and random.random() < p_in:
                write = group.pop(0)
                dut.in_valid.value, dut.in_pos.value = 1, write.pos
                dut.in_byte.value, dut.in_end.value = join_words(write.values, 8), int(write.end)
                dut.in_job.value = join_fields(self.job, write.job)
            await RisingEdge(dut.clk)
            taken = int(dut.take.value)
            port = str(dut.writeback_word.value), str(dut.writeback_be.value)
            assert held in (None, port), "word and enables stay until the grant"
            if int(dut.writeback_req.value) and int(dut.writeback_gnt.value):
                self._store()
            waits = int(dut.writeback_req.value) and not int(dut.writeback_gnt.value)
            held = port if waits else None
            quiet = int(dut.idle.value)
            if not groups and not group and not int(dut.in_valid.value) and quiet and not taken:
                return cycle
        raise AssertionError("the write-back never became idle")

    async def check(self, arg: LayerArg, p_in: float, p_gnt: float, flat: bool = False) -> int:
        """The map is exact, and no other byte changes; returns the cycles."""
        layer = Layer(arg, self.sizes, self.rng, self.pairs, flat)
        want = self.ram.copy()
        airam.pack_map(want, arg.image_dst_addr, layer.result())
        before = self.ram.copy()
        self.writes = np.zeros(self.ram.size, dtype=int)
        # bytes of each channel of the map (of four planes), to check the reported channels
        places = airam.unpack_map(np.arange(self.ram.size), arg.image_dst_addr, arg.out_shape)
        self.last_write = places.reshape(arg.o_ch_num, -1)
        self.whole = self.reported = 0
        cycles = await self.play(layer, p_in, p_gnt)
        assert self.whole >= arg.o_ch_num, f"{self.whole} of {arg.o_ch_num} channels reported"
        wrong = np.flatnonzero(self.ram != want)
        if wrong.size:
            y = airam.unpack_map(self.ram, arg.image_dst_addr, arg.out_shape)
            bad = np.argwhere(y != layer.result())
            text = f"pixels (c, y, x) {bad[:4].tolist()}" if bad.size else "bytes beside the map"
            raise AssertionError(f"{arg.in_shape} pool {arg.pool_type}: {wrong.size}, {text}")
        assert (before != want).any()
        assert self.writes.max() == 1, "a byte is written once, also where stripes overlap"
        return cycles


def make(shape, pool: int, depthwise: bool, words: int | None = None) -> LayerArg:
    """``words``: four planes a channel; None: random where that is legal."""
    if words is None:
        words = int(not pool and not depthwise and random.random() < 0.5)
    return LayerArg.make(
        *shape,
        kernel=3 if pool in PICKS else random.choice((1, 3)),
        pool=pool,
        depthwise=depthwise,
        src=4 * RAM_ROWS,  # out of the way
        dst=random.randrange(RAM_ROWS // 2),
        out32=words,
        signed_out=random.getrandbits(1),
    )


@block_test(Bench)
async def chosen_maps(bench: Bench) -> None:
    """Every layout and pool; bytes that belong to no pixel keep their value."""
    for shape, pool, depthwise in CASES:
        arg = make(shape, pool, depthwise)
        await bench.check(arg, *random.choice(((1.0, 1.0), (1.0, 0.3), (0.5, 0.9))))


@block_test(Bench)
async def planes(bench: Bench) -> None:
    """Four planes a channel: every layout, channels that end in a group and at its end."""
    n_z = bench.sizes.n_z
    for o, h, w in ((1, 1, 1), (n_z + 1, 5, 7), (3, 3, 16), (n_z, 4, 17), (3, 3, 32), (2, 3, 33)):
        await bench.check(make((o, h, w), 0, False, 1), 1.0, random.choice((0.4, 1.0)))
    for shape in ((n_z + 1, 2, 64), (1, 2, 150), (2 * n_z, 1, 70)):
        await bench.check(make(shape, 0, False, 1), 1.0, 1.0)


@block_test(Bench)
async def flat_maps(bench: Bench) -> None:
    """Maps that are computed as one line: each width, lines that cross words and stripes."""
    n_z = bench.sizes.n_z
    for w in range(1, 16):
        for h in (1, random.choice((2, 64 // w, 64 // w + 1, 150 // w))):
            shape = random.choice((1, n_z, n_z + 1)), h, w
            arg = make(shape, 0, False, 0).replace(kernel_type=0)
            rates = random.choice((0.4, 1.0)), random.choice((0.3, 1.0))
            await bench.check(arg, *rates, flat=bench.sizes.flat)


@block_test(Bench)
async def keeps_pace(bench: Bench) -> None:
    """Without a pool a word per cycle: full rate when the path is as wide as the array."""
    for width, depthwise in ((64, False), (64, True), (32, False), (32, True), (16, True)):
        channels = 8 if depthwise else 2 * bench.sizes.n_z
        arg = make((channels, 4, width), 0, depthwise, 0)
        groups = list(Layer(arg, bench.sizes, bench.rng, bench.pairs).groups())
        # 32 pixels of each of two lines: written line by line
        words = 64 // min(bench.path, 64, 64 if depthwise else width)
        words *= 1 if depthwise else bench.sizes.n_z
        # narrow: four bytes at a time, and the first job waits for its first row
        if bench.sizes.n_y * bench.sizes.n_z < 8 and bench.path == 16:
            words *= 4
        # the bench checks for room in one cycle and sends in the next
        limit = sum(max(len(group) + 2, words) for group in groups) + 2 * words + 20
        cycles = await bench.check(arg, 1.0, 1.0)
        assert cycles <= limit, f"{arg.in_shape}: {cycles} cycles, not {limit}"


@block_test(Bench)
async def random_maps(bench: Bench) -> None:
    for _ in range(20):
        pool = random.randrange(10)
        shape = random.randint(1, 6), random.randint(4, 10), random.randint(4, 80)
        arg = make(shape, pool, random.random() < 0.3)
        await bench.check(arg, random.choice((0.4, 1.0)), random.choice((0.2, 1.0)))


# 2-2-128, 8-16-16 and 16-2-16 are arrays that do not match the path
@sizes(
    "sim n_y n_z path",
    test="icarus-2-2-16",
    check="verilator-2-2-16 verilator-4-2-16 verilator-4-4-16",
    nightly="icarus-2-4-16 icarus-4-16-64 icarus-4-4-16 icarus-4-8-32 icarus-8-16-64 "
    "verilator-16-2-16 verilator-2-2-128 verilator-2-2-64 verilator-2-32-32 "
    "verilator-2-64-128 verilator-2-64-16 verilator-4-16-128 verilator-4-16-16 "
    "verilator-4-16-64 verilator-4-4-64 verilator-4-8-32 verilator-8-16-128 "
    "verilator-8-16-16 verilator-8-16-64",
)
def test_write_back(sim: str, n_y: int, n_z: int, path: int) -> None:
    sources = ["rtl/output/*.v", "rtl/lib/*.v"]
    test = "tb.output_stage.test_write_back"
    params = {"N_Y": n_y, "N_Z": n_z, "PATH": path}
    params |= {"FLAT_MAPS": 1} if n_y * n_z >= 16 else {}
    run_bench(sim, "output_stage", sources, test, params=params)
