# SPDX-License-Identifier: Apache-2.0
"""The fill of the tile buffer: every entry holds the windows that the array needs, in order.

The consumer looks at an entry when it is complete and again before it releases it, so an entry
that is overwritten too early is seen. Grants and releases are random.
"""

import random
from collections import deque

import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge

from openkpu.arithmetic.integers import ceil_div
from openkpu.layer import airam
from openkpu.layer.argument import LayerArg
from openkpu.layer.decoded import DWROW, FC, Sizes
from openkpu.layer.layout import Layout
from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.core.descriptor import describe_layer, flattened, pack_descriptor
from openkpu_tb.core.pipeline_bench import join_words
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes
from tb.tile.expected import ANY, entries, reads

RAM_ROWS = 2048
LINES = 1023  # lines_there of a map that is there
# c, h, w, o, kernel, pool, depthwise: layouts, picks with either phase, stacked stripes
CASES = [
    *(
        (5, 6, 10, 3, 3, 0, 0),
        (3, 5, 20, 3, 3, 0, 0),
        (2, 4, 40, 3, 3, 0, 0),
        (2, 3, 140, 3, 3, 0, 0),
    ),
    *(
        (40, 3, 7, 5, 3, 0, 0),
        (3, 9, 64, 2, 3, 1, 0),
        (2, 8, 70, 2, 3, 3, 0),
        (3, 9, 33, 2, 3, 9, 0),
    ),
    *(
        (3, 9, 33, 3, 3, 5, 0),
        (2, 8, 150, 3, 3, 6, 0),
        (3, 13, 70, 3, 3, 7, 0),
        (2, 7, 9, 3, 3, 6, 0),
    ),
    *(
        (23, 5, 9, 9, 1, 0, 0),
        (11, 3, 30, 9, 1, 0, 0),
        (10, 2, 70, 9, 1, 0, 0),
        (9, 5, 130, 5, 1, 2, 0),
    ),
    *(
        (21, 9, 33, 9, 1, 5, 0),
        (10, 9, 16, 9, 1, 6, 0),
        (10, 9, 150, 3, 1, 7, 0),
        (12, 8, 40, 3, 1, 6, 0),
    ),
    *(
        (9, 6, 31, 3, 1, 8, 0),
        (18, 9, 18, 3, 1, 4, 0),
        (1, 1, 1, 1, 1, 0, 0),
        (1, 4, 1, 1, 3, 0, 0),
    ),
    *(
        (5, 6, 10, 5, 3, 0, 1),
        (3, 5, 20, 3, 3, 0, 1),
        (2, 4, 64, 2, 3, 0, 1),
        (2, 3, 150, 2, 3, 0, 1),
    ),
    *(
        (6, 4, 9, 6, 1, 0, 1),
        (3, 1, 200, 3, 3, 0, 1),
        (5, 1, 4, 5, 3, 0, 1),
        (2, 3, 65, 2, 1, 0, 1),
    ),
    *(
        (3, 6, 40, 3, 3, 1, 1),
        (3, 7, 17, 3, 1, 5, 1),
        (5, 8, 12, 5, 1, 3, 1),
        (2, 6, 80, 2, 3, 8, 1),
    ),
]


def bytes_of(dut) -> np.ndarray:
    """(9, TILE_W) bytes of the banks; -2 where a bit is not 0 or 1."""
    bits = "".join(str(getattr(dut, f"row_{t}").value) for t in reversed(range(9)))
    text = np.frombuffer(bits.encode(), dtype=np.uint8)[::-1].reshape(-1, 8)
    known = ((text == ord("0")) | (text == ord("1"))).all(axis=1)
    number = np.packbits(text == ord("1"), axis=1, bitorder="little")[:, 0]
    return np.where(known, number.astype(np.int16), -2).reshape(9, -1)


class Bench(BlockBench):
    inputs = "start", "desc", "tile_freed", "fill_gnt", "fill_data", "re", "entry", "lines_there"

    def __init__(self, dut) -> None:
        super().__init__(dut)
        self.flat = bool(int(dut.FLAT_MAPS.value))
        self.dilation = int(dut.DILATION.value)
        self.sizes = Sizes(tile_rows=int(dut.TILE_ROWS.value), wbuf_rows=256, flat=self.flat)
        self.freed = 0
        self.modulo = 1 << len(dut.tile_filled)
        self.path = int(dut.PATH.value)
        self.latency = int(dut.READ.value)  # cycles from a grant to the data
        self.wide = int(dut.TILE_W.value)  # of two entries when it is 128
        self.word = min(self.wide, 64)
        self.words = 64 // self.word  # of an entry

    def read(self, entry: int, word: int) -> None:
        """Show a word of an entry; the data are there three edges later."""
        self.dut.re.value = 0x1FF
        address = entry % self.sizes.tile_rows * self.words + word
        width = (self.sizes.tile_rows * self.words).bit_length() - 1
        self.dut.entry.value = join_words([address] * 9, width)

    async def play(
        self,
        arg: LayerArg,
        p_gnt: float,
        p_use: float,
        hoard: bool = False,
        single: bool = False,
        p_line: float = 0.0,
        at_once: int = 1,
        flat: bool = False,
    ) -> None:
        """Run the fill of a layer with random input; check every entry twice. Bounded.

        ``hoard``: nothing is released until the fill has come to a stop, then some entries, with
        ``single`` one, until it stops again. ``p_line``: lines of the map come with this chance in
        a cycle, so many at once.
        """
        dut, rng = self.dut, np.random.default_rng(random.getrandbits(32))
        arg = arg.replace(in_xor=random.getrandbits(1))
        d = describe_layer(arg, self.sizes)
        d = flattened(d) if flat else d
        ram = rng.integers(0, 256, RAM_ROWS * 64).astype(np.uint8)
        maps = []
        for place in arg.in_layouts:
            maps.append(rng.integers(0, 256, arg.in_shape).astype(np.uint8))
            airam.pack_map(ram, place.base, maps[-1] ^ np.uint8(0x80 * arg.in_xor))
        want = list(entries(maps, d))
        whole, there = ram, LINES
        if p_line:
            ram, there = rng.integers(0, 256, ram.size, dtype=np.uint8), 0
        dut.lines_there.value = there
        dut.desc.value, dut.start.value = pack_descriptor(d), 1
        await RisingEdge(dut.clk)
        dut.start.value = 0
        begin = self.freed
        filled, pause = 0, (400 if d["mode"] == FC else 40 * self.words)
        looks: list[tuple[int, int]] = []  # (entry, word) whose contents come next
        after: list[tuple[int, int]] = []  # and those of the cycle after it
        plan: list[tuple[int, int]] = []  # words to be looked at
        seen = released = fetched = 0
        known = soon = 0  # entries that were there when what is looked at was read
        again = False  # the oldest entry was looked at for the second time
        coming = deque([0] * (self.latency - 1))  # words that the AI RAM gives next
        most = still = drain = 0  # entries held at once; cycles without a new one; release up to
        for _ in range(
            300
            + int((60 * reads(d, self.word) + 60 * self.words * len(want)) / p_gnt / p_use)
            + int(2 * d["h"] / (p_line or 1))
        ):
            now = int(dut.tile_filled.value) - begin
            before, filled = filled, released + (now - released) % self.modulo
            most = max(most, filled - released)
            assert filled - released <= self.sizes.tile_rows
            still = still + 1 if filled == before else 0
            if not hoard:
                drain = filled
            elif still > pause / p_gnt and drain <= released < filled:
                upto = random.choice((released + 1, random.randint(released + 1, filled)))
                drain, still = released + 1 if single else upto, 0
            # one word a cycle: of a new entry, or again of the oldest
            dut.re.value = 0
            if not plan and random.random() < p_use:
                look = -1
                if seen < filled and (random.random() < 0.7 or seen == released):
                    look, seen = seen, seen + 1
                elif released < min(seen, drain) and not again:
                    look, again = released, True
                elif again and not looks and not after:
                    released, again = released + 1, False
                    dut.tile_freed.value = (begin + released) % self.modulo
                plan = [(look, word) for word in range(self.words)] if look >= 0 else []
            now = [plan.pop(0)] if plan else []
            for entry, word in now:
                self.read(begin + entry, word)
            if there < d["h"] and random.random() < p_line:
                count = min(at_once, d["h"] - there)
                for group in range(ceil_div(d["c"], 4 >> d["ip"])):  # channels that share rows
                    at = 64 * (d["src"] + group * d["ics"] + there * d["irl"])
                    part = slice(at, at + 64 * d["irl"] * count)
                    ram[part] = whole[part]
                there += count
                dut.lines_there.value = LINES if there == d["h"] else there
            dut.fill_gnt.value = int(random.random() < p_gnt)
            await RisingEdge(dut.clk)
            for entry, word in looks:
                self._compare(d, want[entry], entry, word)
                if self.wide > self.word and entry + 1 < known:
                    self._compare(d, want[entry + 1], entry + 1, 0, self.word)
            looks, after = after, now
            known, soon = soon, filled
            if int(dut.fill_req.value) and int(dut.fill_gnt.value):
                at = self.path * int(dut.fill_word.value)
                coming.append(int.from_bytes(ram[at : at + self.path].tobytes(), "little"))
                fetched += 1
            else:
                coming.append(random.getrandbits(8 * self.path))
            dut.fill_data.value = coming.popleft()
            if released == len(want) and not int(dut.busy.value):
                break
        else:
            raise AssertionError(f"{arg.in_shape}: {released} of {len(want)} entries, then nothing")
        await ClockCycles(dut.clk, 8)
        assert (int(dut.tile_filled.value) - begin - len(want)) % self.modulo == 0, (
            "too many entries"
        )
        self.freed = begin + len(want)
        needed = reads(d, self.word)
        assert fetched <= needed, f"{fetched} reads, {needed} words are needed"
        if hoard:  # the fill uses the room there is; a depthwise line reaches into the next one
            reach = 2 * d["irl"] + 2 if d["mode"] == DWROW else 2
            assert most >= min(len(want), self.sizes.tile_rows - reach)

    def _compare(
        self, d: dict[str, int], whole: np.ndarray, number: int, word: int, first: int = 0
    ) -> None:
        got = bytes_of(self.dut)[:, first : first + self.word]
        want = whole[:, word * self.word : (word + 1) * self.word]
        wrong = (want != ANY) & (got != want)
        if wrong.any():
            bank, at = (int(i) for i in np.argwhere(wrong)[0])
            shape = d["c"], d["h"], d["w"]
            raise AssertionError(
                f"{shape} mode {d['mode']} pool {d['pool']} stride {1 << d['stl']}: entry {number} "
                f"bank {bank} byte {word * self.word + at} is {got[bank, at]}, "
                f"expected {want[bank, at]}; "
                f"{int(wrong.sum())} wrong"
            )


def make(c, h, w, o, kernel, pool, depthwise, fc=False, dilation=1) -> LayerArg:
    src = random.randrange(RAM_ROWS // 4)
    flags = {"depthwise": bool(depthwise), "fc": fc, "dilation": dilation}
    return LayerArg.make(c, h, w, o, kernel=kernel, pool=pool, src=src, **flags)


def elementwise(c: int, h: int, w: int, pool: int, one: int) -> LayerArg:
    """An element-wise layer with its second map before or behind the first."""
    below, rows = random.getrandbits(1), Layout(c, h, w).rows
    src = random.randrange(rows, rows + RAM_ROWS // 4)
    other = src + rows + random.randrange(9) if below else random.randrange(src - rows + 1)
    kind = {"kernel": 3, "depthwise": True, "pool": pool, "elementwise": 1, "ew_one": one}
    return LayerArg.make(c, h, w, src=src, image_src2_addr=other, **kind)


RATES = ((1.0, 1.0), (0.3, 1.0), (1.0, 0.4), (0.6, 0.6))


@block_test(Bench)
async def chosen_layers(bench: Bench) -> None:
    for case in CASES:
        await bench.play(make(*case), *random.choice(RATES))


@block_test(Bench)
async def flat_maps(bench: Bench) -> None:
    """Maps taken as one line, with lines that go on in the next word or stripe, or end with it."""
    sizes = [(h, w) for w in (1, 3, 5, 7, 9, 11, 13, 15) for h in (1, 2, 64 // w, 64 // w + 1)]
    sizes += [(512, 1), (341, 3), (68, 15), (78, 13)]
    for h, w in sizes:
        c, o = random.choice((1, 4, 9, 10, 19) if h < 100 else (1, 4)), random.choice((1, 3))
        await bench.play(make(c, h, w, o, 1, 0, 0), *random.choice(RATES), flat=bench.flat)
    for h, w in ((9, 7), (33, 13)):  # of two blocks, and of more channels than are held
        await bench.play(make(20, h, w, 9, 1, 0, 0), *random.choice(RATES), flat=bench.flat)
        await bench.play(make(120, h, w, 3, 1, 0, 0), 1.0, 1.0, hoard=True, flat=bench.flat)


@block_test(Bench)
async def two_maps(bench: Bench) -> None:
    """Element-wise layers: rows and stripes, lines of several rows, channels that share a word."""
    shapes = [(5, 6, 10), (3, 5, 20), (2, 4, 64), (2, 3, 150), (1, 1, 1), (7, 2, 16), (3, 1, 200)]
    cases = [(*shape, 0, one) for shape in shapes for one in (0, 0, 1)]
    pooled = [(3, 6, 40, 1), (3, 7, 17, 5), (5, 8, 12, 3), (2, 6, 80, 8), (2, 8, 70, 6)]
    cases += [(*case, one) for case in [*pooled, (5, 9, 33, 9), (2, 8, 150, 7)] for one in (0, 1)]
    for case in cases:
        await bench.play(elementwise(*case), *random.choice(RATES))
    await bench.play(elementwise(20, 4, 12, 0, 0), random.choice((1.0, 0.5)), 1.0, hoard=True)
    await bench.play(elementwise(1, 4, 500, 0, 0), 1.0, 1.0, hoard=True)


@block_test(Bench)
async def dilated(bench: Bench) -> None:
    """Every distance with layouts of every kind, maps smaller than it, pools, depthwise; lines that
    arrive one by one."""
    for far in range(2, bench.dilation + 1):
        shapes = [(2, 2 * far + 3, 10), (2, 9, 20), (1, 4 * far, 33), (2, 7, 64), (1, 6, 65 + far)]
        shapes += [(2, far, 130), (3, far - 1, far - 1), (1, 1, 1), (1, 9, 63 + far), (5, 12, 16)]
        for shape in shapes:
            await bench.play(make(*shape, 2, 3, 0, 0, dilation=far), *random.choice(RATES))
        pool = random.randint(1, 4)
        await bench.play(make(2, 11, 23, 2, 3, pool, 0, dilation=far), *random.choice(RATES))
        await bench.play(make(2, 13, 70, 2, 3, pool, 1, dilation=far), *random.choice(RATES))
        await bench.play(make(3, 9, 19, 3, 3, 0, 1, dilation=far), *random.choice(RATES))
        await bench.play(make(40, 5, 5, 9, 3, 0, 0, dilation=far), 1.0, 1.0, hoard=True)
        come = make(2, 2 * far + 2, random.choice((64, 70)), 2, 3, 0, 0, dilation=far)
        await bench.play(come, *random.choice(RATES), p_line=random.choice((0.5, 0.02)))


@block_test(Bench)
async def lines_that_come(bench: Bench) -> None:
    """Stripes wait for their lines, and for those around them; the last ones for all."""
    cases = [(2, 9, 64, 2, 3, 0, 0), (3, 7, 70, 2, 3, 5, 0), (1, 8, 130, 1, 3, 7, 0)]
    cases += [(2, 8, 40, 2, 1, 0, 0), (2, 6, 65, 2, 3, 8, 0), (2, 4, 64, 2, 3, 0, 1)]
    # narrow: channels share rows, lines a stripe
    cases += [(9, 13, 16, 2, 3, 0, 0), (3, 10, 30, 2, 3, 5, 0), (11, 11, 7, 2, 1, 0, 0)]
    cases += [(20, 9, 14, 9, 1, 7, 0), (5, 12, 28, 2, 1, 0, 0), (4, 17, 8, 2, 3, 1, 0)]
    for case in cases:
        for p_line, at_once in ((0.5, 1), (0.02, 1), (0.1, 4), (0.02, 8)):
            lines = {"p_line": p_line, "at_once": at_once}
            await bench.play(make(*case), *random.choice(RATES), **lines)
    for h, w, o in ((9, 7, 3), (33, 13, 9), (20, 15, 2), (70, 1, 2)):
        for p_line in (0.3, 0.02):
            lines = {"p_line": p_line, "at_once": 8}
            arg = make(20, h, w, o, 1, 0, 0)
            await bench.play(arg, *random.choice(RATES), **lines, flat=bench.flat)


@block_test(Bench)
async def vectors(bench: Bench) -> None:
    """Fully connected: any length; one that fits the tile buffer and one that does not."""
    # lengths at 576, the elements of an entry; 578 and 580 end in the step that crosses it
    shapes = ((1, 1, 1), (3, 1, 3), (3, 5, 7), (64, 1, 9), (2, 17, 17), (116, 1, 5))
    for shape in (*shapes, (9, 1, 64), (2, 3, 150), (5, 11, 23)):
        await bench.play(make(*shape, 2, 1, 0, 0, True), *random.choice(RATES))
    # filled again for each group of outputs, the buffer full where one vector ends; in the second
    # shape its last word reaches from one entry into the next
    rows = bench.sizes.tile_rows
    for shape in ((rows + 1, 24, 24), {32: (7, 6, 439), 64: (5, 73, 101)}[rows]):
        await bench.play(make(*shape, 5, 1, 0, 0, True), 1.0, 1.0, hoard=True)
    # room for the entry that the last word reaches into, and for no word of the next vector: a word
    # that is requested before the last one is done overwrites an entry that is still in use
    await bench.play(make(*shape, 2, 1, 0, 0, True), 1.0, 1.0, hoard=True, single=True)


@block_test(Bench)
async def full_buffer(bench: Bench) -> None:
    """More entries than there is room for, none released until the fill stops."""
    rows = ((40, 4, 12, 40, 3, 0, 1), (2, 9, 130, 2, 3, 0, 1), (90, 3, 3, 2, 3, 0, 0))
    for case in (
        *rows,
        (700, 1, 5, 2, 1, 0, 0),
        (400, 1, 20, 2, 1, 0, 0),
        (20, 3, 70, 2, 1, 0, 0),
        (2, 6, 960, 2, 3, 0, 1),
    ):
        await bench.play(make(*case), random.choice((1.0, 0.5)), 1.0, hoard=True)
    await bench.play(make(48, 20, 20, 2, 1, 0, 0, True), 1.0, 1.0, hoard=True)


@block_test(Bench)
async def random_layers(bench: Bench) -> None:
    for _ in range(10):
        kernel, pool, depthwise = random.choice((1, 3)), random.randrange(10), random.random() < 0.3
        c, h, w = random.randint(1, 12), random.randint(4, 9), random.randint(4, 80)
        o = c if depthwise else random.randint(1, 4)
        far = random.randint(1, bench.dilation) if kernel == 3 and pool <= 4 else 1
        arg = make(c, h, w, o, kernel, pool, depthwise, dilation=far)
        await bench.play(arg, *random.choice(RATES))


@sizes(
    "sim path word rows flat dil",
    test="verilator-16-16-32-1-5",
    check="verilator-16-8-64-0-8",
    nightly="icarus-128-128-32-1-8 icarus-128-64-32-1-1 icarus-128-8-32-0-1 icarus-16-16-32-1-8 "
    "icarus-16-8-64-0-1 icarus-32-32-64-1-3 icarus-64-64-32-1-8 verilator-128-128-32-1-8 "
    "verilator-128-64-32-1-8 verilator-128-8-32-0-8 verilator-32-32-64-1-8 "
    "verilator-64-64-32-0-1",
)
def test_tile(sim: str, path: int, word: int, rows: int, flat: int, dil: int) -> None:
    sources = [f"rtl/lib/{name}.v" for name in ("ram_1r1w", "stripe_iter", "flat_*")]
    sources.append("rtl/tile/*.v")
    params = {"PATH": path, "TILE_W": word, "TILE_ROWS": rows}
    params |= {"FLAT_MAPS": 1} if flat else {}
    params |= {"DILATION": dil} if dil > 1 else {}
    params |= {"READ": 3} if word == 8 else {}  # as in arrays of few lanes
    run_bench(sim, "tile_buffer", sources, "tb.tile.test_tile", params=params)
