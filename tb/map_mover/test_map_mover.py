# SPDX-License-Identifier: Apache-2.0
"""map_mover: loads and unloads against the AI RAM codec; requests, order of events, stop."""

import random
from collections import deque
from itertools import accumulate

import numpy as np
from cocotb.triggers import RisingEdge

from openkpu.arithmetic.integers import ceil_div, round_up
from openkpu.arithmetic.words import to_stored
from openkpu.layer import airam
from openkpu.layer.layout import Layout
from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.core.byte_stream import ByteStream
from openkpu_tb.core.descriptor import join_fields, layout
from openkpu_tb.core.packed_ports import PackedView
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

ROWS = 2048
START = 16  # cycles from a start to the first word, and from the last one to the end
MAP = layout("map")
LOAD = layout("load", MAP_BITS=sum(width for _, width in MAP.values()))
BANDS = 1, 2, 4, 8  # lines of a band
OWNER_BITS = sum(width for _, width in layout("owner").values())
SHAPES = [  # channels, height, width: every layout, and the borders between them
    *((1, 1, 1), (3, 5, 4), (9, 3, 16), (5, 4, 17), (2, 3, 32), (3, 2, 33), (2, 3, 63)),
    *((2, 3, 64), (3, 2, 65), (1, 3, 320), (2, 2, 100), (130, 1, 1), (4, 2, 15), (1, 2, 512)),
]
UNLOAD = ("start", "map", "adr", "store", "gnt", "data", "owner", "words", "apart", "whole")
UNLOAD += ("held", "written")
Shape = tuple[int, int, int]


def pieces_of(shape: Shape, lanes: int, first: int, block: int) -> int:
    """Number of pieces of a dense map: each lies in one bus word, one line and one block of a word
    of the AI RAM; the first bus word has ``first`` bytes."""
    lines, width = shape[0] * shape[1], shape[2]
    cuts = {line * width + x for line in range(lines) for x in range(0, width, block)}
    return len(cuts | set(range(first, lines * width, lanes)))


def packed(base: int, shape: Shape) -> int:
    """A map of fields.toml."""
    sizes = dict(zip(("chans_m1", "height_m1", "width_m1"), (n - 1 for n in shape), strict=True))
    return join_fields(MAP, {"base": base, **sizes})


def packed_load(base: int, shape: Shape, band: int = 0) -> int:
    """A load of fields.toml; its groups of channels follow each other."""
    apart = Layout(*shape).channel_rows
    return join_fields(LOAD, {"map": packed(base, shape), "apart": apart, "band": band})


def in_bands(x: np.ndarray, band: int) -> list[np.ndarray]:
    """The bands of a map: lines of all channels."""
    band = band or x.shape[1]
    return [x[:, at : at + band] for at in range(0, x.shape[1], band)]


class Bench(BlockBench):
    """AI RAM, store channel and pixel stream around the module, a cycle at a time."""

    inputs = "stop", "load_start", "load", "pixel_valid", "pixel_beat", "load_gnt"
    inputs += *(f"unload_{name}" for name in UNLOAD), "result_ready", "store_req_ready"
    inputs += "store_ready", "store_done"

    def __init__(self, dut) -> None:
        lanes = int(dut.AHB_W.value) // 8
        sizes = {"AHB_W": 8 * lanes, "OW": lanes.bit_length() - 1, "CW": lanes.bit_length()}
        beat = {k: v for k, v in layout("beat", **sizes).items() if k != "last"}
        req = layout("req", OWNER_BITS=OWNER_BITS)
        ports = {"pixel_beat": (beat, "pixel_"), "store_req": (req, "store_req_")}
        super().__init__(PackedView(dut, ports))
        self.lanes, self.path, self.narrow = lanes, int(dut.PATH.value), int(dut.NARROW.value)
        self.pixels = ByteStream(self.dut, "pixel")
        rng = np.random.default_rng(random.getrandbits(32))
        self.ram = rng.integers(0, 256, ROWS * 64, dtype=np.uint8)
        # words whose data come in this cycle, and in the next ones
        self.coming: deque[int | None] = deque([None] * int(dut.READ.value))
        self.clear()

    def clear(self) -> None:
        self.dut.unload_whole.value = 1
        self.reads = 0  # words of the AI RAM that were read
        self.held = 0  # cycles without permission to read, so far
        self.unwritten: set[int] = set()  # rows that are still being written: not to be read
        self.requests: list[tuple[int, int, int]] = []  # address, bytes, owner
        self.words: dict[str, list[int]] = {"result": [], "store": []}
        self.done = {"load": 0, "unload": 0}
        self.bands = 0  # that were reported
        self.arrived: list[int] = []  # bytes of the AI RAM that were written, after each cycle
        self.store_due = -1  # cycles until the request is answered as finished

    async def step(self, p: float = 0.6) -> None:
        """One cycle; each neighbour is ready with probability ``p``."""
        dut = self.dut
        for name in ("load_gnt", "unload_gnt", "result_ready", "store_req_ready", "store_ready"):
            getattr(dut, name).value = int(random.random() < p)
        dut.store_done.value = int(self.store_due == 0)
        self.store_due -= self.store_due >= 0
        path = self.path
        read = self.coming.popleft()
        word = random.randbytes(path) if read is None else self.ram[read * path :][:path]
        dut.unload_data.value = int.from_bytes(bytes(word), "little")
        self.pixels.drive(p)
        await RisingEdge(dut.clk)
        self.pixels.sample()
        on = {n: int(getattr(dut, n).value) for n in ("load_req", "load_gnt", "unload_req")}
        granted = on["unload_req"] and int(dut.unload_gnt.value)
        self.coming.append(int(dut.unload_word.value) if granted else None)
        self.held = self.held + 1 if int(dut.unload_held.value) else 0
        assert not granted or self.held < 2, "read although the map is held"
        self.reads += granted
        if granted and self.path <= 64:
            row = int(dut.unload_word.value) * path // 64
            assert row not in self.unwritten, "a row is read that is written"
        self.bands += int(dut.load_band.value)
        self.arrived.append(self.arrived[-1] if self.arrived else 0)
        if on["load_req"] and on["load_gnt"]:
            at, be = int(dut.load_word.value) * path, int(dut.load_be.value)
            bits = str(dut.load_data.value)
            self.arrived[-1] += be.bit_count()
            for i in range(path):
                if be >> i & 1:
                    self.ram[at + i] = int(bits[8 * (path - 1 - i) : 8 * (path - i)], 2)
        if int(dut.store_req_valid.value) and int(dut.store_req_ready.value):
            ports = (dut.store_req_addr, dut.store_req_len, dut.store_req_owner)
            address, length, owner = (int(port.value) for port in ports)
            self.requests.append((address, length, owner))
        for name, words in self.words.items():
            if all(int(getattr(dut, f"{name}_{n}").value) for n in ("valid", "ready")):
                words.append(int(getattr(dut, f"{name}_data").value))
        for name in self.done:
            self.done[name] += int(getattr(dut, f"{name}_done").value)

    async def start(self, name: str, base: int, shape: Shape, band: int = 0) -> None:
        """A start pulse; the map is stable some cycles before it. A map to load comes in bands of
        so many lines."""
        if name == "load":
            self.dut.load.value = packed_load(base, shape, band)
        else:
            self.dut.unload_map.value = packed(base, shape)
        await self.steps(3)
        await self.pulse(**{f"{name}_start": 1})

    async def finish(self, name: str, limit: int) -> None:
        """Run until the load or the unload is done."""
        await self.run_until(lambda: self.done[name], limit)

    async def load(self, shape: Shape, base: int, p: float, band: int = 0) -> int:
        """Load a random map; no other byte changes. Each band is reported in the cycle after its
        last byte was written. Cycles from the start to the end."""
        self.clear()
        x = np.frombuffer(random.randbytes(int(np.prod(shape))), dtype=np.uint8).reshape(shape)
        want = self.ram.copy()
        airam.pack_map(want, base, x)
        await self.start("load", base, shape, band)
        parts = in_bands(x, band)
        data = b"".join(part.tobytes() for part in parts)
        self.pixels.add(data, x.size if p == 1.0 else random.choice((x.size, 7, 64)))
        self.first = self.pixels.words[0][2]  # bytes of the first bus word
        sizes = list(accumulate(part.size for part in parts))

        def over() -> int:
            again = bool(self.pixels.words) and random.random() < 0.2  # while it is busy: no start
            self.dut.load_start.value = int(again)
            before = self.arrived[-2] if len(self.arrived) > 1 else 0
            there = sum(size <= before for size in sizes)
            assert self.bands == there, f"{self.bands} bands, {there} have arrived"
            return self.done["load"]

        cycles = await self.run_until(over, 200 + 10 * x.size, p)
        assert self.bands == len(parts) and self.arrived[-1] == x.size
        assert (self.ram == want).all(), f"{shape} at row {base}, bands of {band}"
        assert not self.requests and not self.done["unload"]
        return cycles

    async def unload(self, shape: Shape, base: int, store: int, words: bool, p: float) -> int:
        """Unload a map, padded to a word, with one request if its target is the storage; it is done
        once it is stored. ``words``: four planes a channel. Cycles from its start to the last
        word."""
        self.clear()
        planes = (4 * shape[0], *shape[1:]) if words else shape
        size, width = int(np.prod(planes)), self.lanes if store else 8
        address, owner = random.getrandbits(20) * self.lanes, random.getrandbits(OWNER_BITS)
        dut, way = self.dut, "store" if store else "result"
        dut.unload_words.value, dut.unload_apart.value = int(words), Layout(*planes).channel_rows
        dut.unload_adr.value, dut.unload_store.value = address, store
        dut.unload_owner.value = owner
        await self.start("unload", base, shape)
        count = ceil_div(size, width)
        got = self.words[way]
        cycles = await self.run_until(lambda: len(got) == count, 200 + 10 * size, p)
        if store:
            await self.steps(20)
            assert not self.done["unload"], "done before the storage has it"
            self.store_due = random.randint(0, 9)
        await self.steps(30)
        assert self.done["unload"] == 1, "done comes once"
        assert self.requests == [(address, size, owner)] * store
        assert not self.words["result" if store else "store"], "words on the other way"
        data = b"".join(w.to_bytes(width, "little") for w in got)
        want = to_stored(airam.unpack_map(self.ram, base, planes), words).tobytes()
        assert data == want.ljust(round_up(size, width), b"\0"), f"{shape} at row {base}"
        return cycles


def a_shape() -> Shape:
    return random.randint(1, 6), random.randint(1, 6), random.choice((3, 16, 17, 32, 64, 70))


@block_test(Bench)
async def load(bench: Bench) -> None:
    """Pixels at any alignment become the map, in every layout."""
    for shape in [*SHAPES, (1026, 1, 1), *(a_shape() for _ in range(8))]:
        await bench.load(shape, random.randrange(ROWS // 2), 0.6)


@block_test(Bench)
async def load_in_bands(bench: Bench) -> None:
    """Lines come in bands, each with all channels: channels that share a row, one and several
    groups of them, a last band of any number of lines, maps of any width."""
    fixed = [(1, 9, 64), (5, 3, 130), (9, 17, 7), (4, 16, 16), (6, 5, 17), (2, 8, 32), (3, 12, 33)]
    shapes = [*fixed, *(a_shape() for _ in range(24))]
    for turn, (channels, height, width) in enumerate(shapes):
        band = BANDS[turn % 4]
        height = height if height > band else band + random.randint(1, 9)
        p = random.choice((0.6, 1.0))
        await bench.load((channels, height, width), random.randrange(ROWS // 2), p, band)
    for band in (0, 2):  # whatever the band before was
        await bench.load((5, 3, 20), random.randrange(ROWS // 2), 0.8, band)


@block_test(Bench)
async def unload(bench: Bench) -> None:
    """To the storage and to the host, in every layout, as bytes and as words of four planes."""
    for turn, shape in enumerate([*SHAPES, *(a_shape() for _ in range(8))]):
        for way in (turn, turn + 1):
            base, words = random.randrange(ROWS // 4), bool(turn // 2 + way & 1)
            await bench.unload(shape, base, way % 2, words, random.choice((0.3, 0.6, 1.0)))


@block_test(Bench)
async def full_rate(bench: Bench) -> None:
    """A bus word per cycle in both directions; the end of a line is a word of its own. Words of
    four planes are as fast as reads of whole AI RAM words; with as many words as reads, a cycle in
    nine is lost because both 64-byte buffers are in use. Narrow: a piece per cycle, within one bus
    word and one block of 16 bytes; with planes a byte."""
    for shape in ((1, 8, 64), (2, 3, 320), (5, 4, 17), (3, 2, 33), (2, 2, 100), (3, 4, 5)):
        pieces = shape[0] * shape[1] * ceil_div(shape[2], bench.lanes)
        cycles = await bench.load(shape, 10, 1.0)
        most = pieces_of(shape, bench.lanes, bench.first, 16) if bench.narrow else pieces
        assert cycles <= most + START, f"{shape}: {cycles} cycles for {most} pieces of lines"
        band = next((lines for lines in reversed(BANDS) if lines < shape[1]), 0)
        cycles = await bench.load(shape, 10, 1.0, band)  # at another place of its first word
        most = pieces_of(shape, bench.lanes, bench.first, 16) if bench.narrow else pieces
        assert cycles <= most + START + 1, f"{shape}: {cycles} cycles in bands of {band}"
        cycles = await bench.unload(shape, 10, 1, False, 1.0)
        most = pieces_of(shape, bench.lanes, bench.lanes, 16) if bench.narrow else pieces
        assert cycles <= most + START, f"{shape}: {cycles} cycles for {most} pieces of lines"
    for shape in ((1, 8, 64), (2, 3, 128)):
        at_once = 1 if bench.narrow else min(bench.lanes, min(bench.path, 64) // 4)
        least = 4 * int(np.prod(shape)) // at_once
        both = 4 * bench.lanes >= min(bench.path, 64) and not bench.narrow
        lost = least // 8 if both else 0
        cycles = await bench.unload(shape, 10, 1, True, 1.0)
        assert cycles <= least + lost + START, f"{shape}: {cycles} cycles, {least} at best"
    bench.dut.unload_words.value = 0


@block_test(Bench)
async def while_written(bench: Bench) -> None:
    """A map is unloaded while its channels are written: each channel as soon as it is complete, and
    as soon as the other channels in its row are; the rest when the map is reported as complete."""
    for turn in range(16):
        bench.clear()
        words = turn % 3 == 2
        shape = (random.randint(1, 10), random.randint(1, 2), a_shape()[2])
        planes = (4 * shape[0], *shape[1:]) if words else shape
        base, per = random.randrange(ROWS // 4), 4 if words else 1
        data = random.randbytes(int(np.prod(planes)))
        x = np.frombuffer(data, dtype=np.uint8).reshape(planes)
        rows = airam.unpack_map(np.arange(bench.ram.size) // 64, base, planes)
        bench.unwritten = set(rows.ravel().tolist())
        bench.dut.unload_words.value = int(words)
        bench.dut.unload_apart.value = Layout(*planes).channel_rows
        bench.dut.unload_store.value, bench.dut.unload_whole.value = 1, 0
        reported_late = turn % 4 == 3  # only the end reports the last channels
        await bench.start("unload", base, shape)
        there = 0
        while there < shape[0] - 2 * reported_late:
            count = min(random.choice((1, 1, 2, 4, 16)), shape[0] - there)
            places = airam.unpack_map(np.arange(bench.ram.size), base, planes)
            part = slice(per * there, per * (there + count))
            bench.ram[places[part]] = x[part]
            there += count
            bench.unwritten = set(rows[per * there :].ravel().tolist())
            held = random.random() < 0.2
            bench.dut.unload_held.value = int(held)
            bench.dut.unload_written.value = count
            await bench.step()
            bench.dut.unload_written.value = 0
            await bench.steps(random.choice((0, 1, 5, 200)))
            bench.dut.unload_held.value = 0
        size = len(data)
        pieces = shape[0] * shape[1] * per * ceil_div(shape[2], bench.lanes)
        # a read returns a quarter of a word of a plane, narrow a byte
        pace = (4 if bench.narrow else 2) if words else 1
        await bench.steps(60 + 6 * pace * pieces if not reported_late else 0)
        if not reported_late and (words or shape[2] > 32):
            assert len(bench.words["store"]) >= size // bench.lanes, "channels that are there stay"
        bench.ram[airam.unpack_map(np.arange(bench.ram.size), base, planes)] = x
        bench.unwritten = set()
        bench.dut.unload_whole.value = 1
        bench.store_due = 30 + 8 * pieces
        await bench.finish("unload", 300 + 20 * pace * pieces)
        got = b"".join(w.to_bytes(bench.lanes, "little") for w in bench.words["store"])
        assert got[:size] == to_stored(x, words).tobytes(), f"{shape} at row {base}, turn {turn}"
    bench.dut.unload_words.value = 0


@block_test(Bench)
async def channel_after_channel(bench: Bench) -> None:
    """Channels of one word each follow each other without a pause, whether they are reported one by
    one or with the whole map; none is read in the cycle after the map is held."""
    shape = (24, 1, 5)
    bench.dut.unload_store.value = 0
    bench.dut.unload_apart.value = Layout(*shape).channel_rows
    cycles = []
    for turn in range(6):
        bench.clear()
        whole, holds = turn == 1, turn > 1
        bench.dut.unload_whole.value = int(whole)
        await bench.start("unload", 9, shape)
        bench.dut.unload_written.value = 0 if whole else shape[0]
        await bench.step(1.0)
        bench.dut.unload_written.value = 0

        def over(holds: bool = holds) -> int:
            bench.dut.unload_held.value = int(holds and random.random() < 0.3)
            return bench.done["unload"]

        cycles.append(await bench.run_until(over, 1000, 1.0))
        bench.dut.unload_held.value = 0
        data = b"".join(w.to_bytes(8, "little") for w in bench.words["result"])
        size = int(np.prod(shape))
        assert data[:size] == airam.unpack_map(bench.ram, 9, shape).tobytes()
    # a read per cycle; on a narrow bus the words need longer to the host, and words of 64 bytes and
    # more pass two buffers in front of the gearbox, each occupied for three cycles; the AI RAM of a
    # narrow device answers later
    most = {16: 31 if bench.path < 64 else 42, 8: 42, 4: 55 + bench.narrow}[bench.lanes]
    assert max(cycles[:2]) <= most, f"{bench.reads} reads in {cycles[:2]} cycles"


@block_test(Bench)
async def stored_before_read(bench: Bench) -> None:
    """The storage may report done in the cycle of the last word; an earlier report is ignored."""
    bench.dut.unload_store.value = bench.dut.unload_whole.value = 1
    await bench.start("unload", 3, (2, 3, 16))
    bench.store_due = 0
    await bench.step()
    await bench.step()
    assert not bench.done["unload"], "done although words are still to come"
    await bench.finish("unload", 2000)
    assert len(bench.words["store"]) == ceil_div(96, bench.lanes)


@block_test(Bench)
async def stop(bench: Bench) -> None:
    """Stop at any time: no request, word or done of the old map follows; the next map is whole."""
    for _ in range(10):
        shape = (4, 4, 40)
        bench.clear()
        bench.dut.unload_store.value = 1
        await bench.start("unload", 10, shape)
        await bench.steps(random.randint(0, 60))
        bench.dut.stop.value = 1
        await bench.step()
        bench.dut.stop.value = 0
        bench.clear()
        await bench.steps(30)
        assert not bench.requests and not any(bench.words.values()) and not any(bench.done.values())
        bench.dut.unload_store.value = 0
        await bench.start("unload", 10, shape)
        await bench.finish("unload", 8000)
        data = b"".join(w.to_bytes(8, "little") for w in bench.words["result"])
        assert data[:640] == airam.unpack_map(bench.ram, 10, shape).tobytes()


@sizes(
    "sim bus path narrow",
    test="verilator-128-16-0 verilator-64-64-0 verilator-32-16-1",
    nightly="icarus-128-64-0 icarus-32-16-0 icarus-32-16-1 icarus-32-64-0 icarus-64-32-0 "
    "verilator-32-128-0",
)
def test_map_mover(sim: str, bus: int, path: int, narrow: int) -> None:
    names = "map_mover map_size pixel_writer result_reader row_sequencer plane_sequencer"
    names += " piece_writer piece_reader byte_walk unload_gate"
    sources = [f"rtl/cache/{name}.v" for name in names.split()]
    sources += ["rtl/lib/byte_*.v", "rtl/lib/ram_1r1w_async.v"]
    params = {"AHB_W": bus, "PATH": path, "NARROW": narrow, "READ": 3 if narrow else 1}
    run_bench(sim, "map_mover", sources, "tb.map_mover.test_map_mover", params=params)
