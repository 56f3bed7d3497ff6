# SPDX-License-Identifier: Apache-2.0
"""weight_ring: bytes in order whatever the loader does, as many of them as its rows hold."""

import random
from collections import deque
from collections.abc import Iterator

from cocotb.triggers import FallingEdge, RisingEdge

from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.core.descriptor import layout
from openkpu_tb.core.packed_ports import PackedView
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

BESIDE = 5  # words on the way to the AI RAM: gathered, to be written
PIECE = 16  # bytes that leave in a cycle, out of the AI RAM
READ_AHEAD = 3  # ... out of it, more than those whose reads are under way


def refusals(*spans: tuple[int, float]) -> Iterator[bool]:
    """The loader accepts: for so many cycles with a chance; the last span does not end."""
    for cycles, chance in spans[:-1]:
        for _ in range(cycles):
            yield random.random() < chance
    while True:
        yield random.random() < spans[-1][1]


class Bench(BlockBench):
    """DMAC, loader and AI RAM."""

    inputs = (
        "base",
        "words",
        "in_valid",
        "in_beat",
        "out_ready",
        "write_gnt",
        "read_gnt",
        "read_data",
    )

    def __init__(self, dut) -> None:
        bus = int(dut.AHB_W.value)
        shift = (bus // 8).bit_length() - 1
        beat = layout("beat", AHB_W=bus, OW=shift, CW=shift + 1)
        ports = {"in_beat": (beat, "in_"), "out_piece": (layout("kept"), "out_")}
        super().__init__(PackedView(dut, ports))
        self.bus, self.path = bus // 8, int(dut.PATH.value)
        self.reading = int(dut.READ.value)
        self.accepted = self.cycles = self.written = self.former = 0

    def beats(self, total: int) -> Iterator[tuple[int, bytes]]:
        """Requests of any place and size, cut into bus words: first byte, bytes."""
        left = total
        while left:
            size, at = min(left, random.randint(1, 9 * self.bus)), random.randrange(self.bus)
            left -= size
            while size:
                part = min(size, self.bus - at)
                yield at, random.randbytes(part)
                size, at = size - part, 0

    async def play(
        self,
        total: int,
        takes: Iterator[bool],
        *,
        ring: tuple[int, int],
        p_come: float = 1.0,
        p_gnt: float = 1.0,
        limit: int | None = None,
        moves: tuple[int, tuple[int, int]] | None = None,
    ) -> None:
        """Bytes from one end to the other; every byte is compared. Bounded: ``limit`` cycles, or
        until all have left. From a cycle on the ports name another ring (``moves``), which has a
        word once no word waits in the former one, and then all of them."""
        dut = self.dut
        source = self.beats(total)
        beat = next(source, None)
        due, ram = deque[int](), dict[int, int]()
        coming: deque[int | None] = deque([None] * self.reading)
        dut.base.value, dut.words.value = ring
        self.accepted = self.written = self.former = left = 0
        bound = limit or 200 + int(40 * total / p_come / p_gnt)
        for self.cycles in range(bound):
            if moves is not None and self.cycles == moves[0]:
                dut.base.value, dut.words.value = moves[1]
            comes = beat is not None and random.random() < p_come
            dut.in_valid.value = int(comes)
            if beat is not None:
                at, data = beat
                noise = random.randbytes(at), random.randbytes(self.bus - at - len(data))
                dut.in_data.value = int.from_bytes(noise[0] + data + noise[1], "little")
                dut.in_off.value, dut.in_cnt.value = at, len(data)
            dut.out_ready.value = int(next(takes))
            there = coming.popleft()
            dut.read_data.value = random.getrandbits(8 * self.path) if there is None else there
            await FallingEdge(dut.clk)
            reads = int(dut.read_req.value) and random.random() < p_gnt
            writes = int(dut.write_req.value) and random.random() < p_gnt
            dut.read_gnt.value, dut.write_gnt.value = int(reads), int(writes)
            coming.append(ram.pop(int(dut.read_word.value)) if reads else None)
            if writes:
                word = int(dut.write_word.value)
                if moves is not None and self.moves_on(word, ram, *moves):
                    ring, moves = moves[1], None
                assert ring[0] <= word < sum(ring), f"word {word} is not in the ring {ring}"
                assert word not in ram, f"word {word} is overwritten before it is read"
                ram[word] = int(dut.write_data.value)
                self.written += 1
                self.former = self.cycles if moves is not None else self.former
            await RisingEdge(dut.clk)
            if comes and int(dut.in_ready.value):
                assert beat
                due.extend(beat[1])
                self.accepted += len(beat[1])
                beat = next(source, None)
            if int(dut.out_valid.value) and int(dut.out_ready.value):
                off, count = int(dut.out_off.value), int(dut.out_cnt.value)
                assert not off and (1 <= count <= self.bus or count == PIECE)
                found = int(dut.out_data.value).to_bytes(PIECE, "little")[:count]
                assert len(due) >= count, "bytes that nobody sent"
                want = bytes(due.popleft() for _ in range(count))
                assert found == want, f"{found.hex()}, expected {want.hex()}"
                left += count
            if left == total:
                return
        assert limit, f"{left} of {total} bytes in {bound} cycles"

    def moves_on(self, word: int, ram: dict[int, int], at: int, other: tuple[int, int]) -> bool:
        """Is a word in the other ring, and does none wait in the former one?"""
        rows = range(other[0], sum(other))
        return self.cycles > at and word in rows and all(place in rows for place in ram)

    async def idle(self) -> None:
        """Nothing is left behind."""
        dut = self.dut
        dut.in_valid.value, dut.out_ready.value = 0, 1
        for _ in range(30):
            dut.read_gnt.value = dut.write_gnt.value = 0
            await RisingEdge(dut.clk)
            assert not int(dut.out_valid.value)
            assert not int(dut.read_req.value) and not int(dut.write_req.value)

    def a_ring(self) -> tuple[int, int]:
        """Also the last words of the address range."""
        words = random.choice((1, 2, 3, 7, 40))
        top = (1 << 21) // self.path - words
        return random.choice((0, 1, top, random.randrange(top))), words


@block_test(Bench)
async def any_loader(bench: Bench) -> None:
    """Every byte arrives once and in order, whenever the loader refuses and however slow the AI RAM
    is; rings of one word too."""
    for _ in range(25):
        spans = [(random.randint(1, 150), random.choice((0.0, 0.05, 0.5, 1.0))) for _ in range(6)]
        takes = refusals(*spans, (0, random.choice((0.3, 1.0))))
        come, gnt = random.choice((0.3, 1.0)), random.choice((0.15, 0.6, 1.0))
        total = random.randint(1, 1200)
        await bench.play(total, takes, ring=bench.a_ring(), p_come=come, p_gnt=gnt)
        await bench.idle()


@block_test(Bench)
async def room(bench: Bench) -> None:
    """A loader that refuses everything stops the DMAC when the ring is full, not earlier; without
    a ring at once. Then all of it arrives."""
    for words in (0, 1, 5, 30):
        total = (words + 20) * bench.path
        await bench.play(total, refusals((0, 0.0)), ring=(100, words), limit=total)
        beside = BESIDE + READ_AHEAD + bench.reading
        most = (words + beside if words else 0) * bench.path + 4 * bench.bus
        least = words * bench.path
        assert least <= bench.accepted <= most, f"{bench.accepted} bytes, ring of {words} words"
        await bench.reset()
        takes = refusals((total, 0.0), (0, 1.0))
        await bench.play(total, takes, ring=(100, words))
        await bench.idle()


@block_test(Bench)
async def rates(bench: Bench) -> None:
    """A loader that accepts everything gets a bus word a cycle and nothing is stored; one that has
    refused for long then gets sixteen bytes a cycle out of the AI RAM."""
    total = 256 * bench.bus

    def whole(total: int) -> Iterator[tuple[int, bytes]]:
        return ((0, random.randbytes(bench.bus)) for _ in range(total // bench.bus))

    bench.beats = whole  # requests of whole bus words
    await bench.play(total, refusals((0, 1.0)), ring=(0, 64))
    assert not bench.written and bench.cycles <= 256 + 6, bench.cycles
    await bench.play(total, refusals((400, 0.0), (0, 1.0)), ring=(0, 64))
    words = total // bench.path  # one is read in a cycle
    stored = max(words, total // PIECE)
    assert bench.written and bench.cycles <= 400 + stored + 20 + bench.reading, bench.cycles


@block_test(Bench)
async def another_ring(bench: Bench) -> None:
    """Words that wait stay in their ring, whatever the ports name from the first of them on; the
    next ones wait in the other."""
    for words in (1, 2, 7, 40):
        for at in (60, 150):
            takes, total = refusals((250, 0.0), (0, 1.0)), (words + 12) * bench.path
            ring, other = (random.randrange(1000), words), (2000, random.randint(0, 40))
            await bench.play(total, takes, ring=ring, moves=(at, other))
            assert bench.written, "nothing waited"
            await bench.idle()


@block_test(Bench)
async def rows_taken_away(bench: Bench) -> None:
    """A bus without gaps and a loader that accepts everything leave the way through the ring open:
    once other rows are named, or none, it is read to its end, and no word goes there any more."""

    def whole(total: int) -> Iterator[tuple[int, bytes]]:
        return ((0, random.randbytes(bench.bus)) for _ in range(total // bench.bus))

    bench.beats = whole
    for words in (4, 0):
        takes, total = refusals((60, 0.0), (0, 1.0)), 900 * bench.bus
        await bench.play(total, takes, ring=(100, 4), moves=(300, (500, words)))
        assert bench.written, "nothing waited"
        assert bench.former < 300 + 20, f"a word in the former rows in cycle {bench.former}"
        await bench.idle()


@block_test(Bench)
async def dropped(bench: Bench, dut) -> None:
    """A reset in the middle leaves nothing behind."""
    for cycles in range(1, 90, 7):
        await bench.play(4000, refusals((30, 0.0), (0, 0.5)), ring=bench.a_ring(), limit=cycles)
        dut.in_valid.value = dut.read_gnt.value = dut.write_gnt.value = 0
        await bench.reset()
        await bench.play(300, refusals((20, 0.0), (0, 0.7)), ring=bench.a_ring())
        await bench.idle()


@sizes(
    "sim bus path latency",
    test="icarus-64-64-1",
    check="icarus-32-16-3 verilator-64-128-1 verilator-128-64-1",
    nightly="verilator-32-64-1",
)
def test_weight_ring(sim: str, bus: int, path: int, latency: int) -> None:
    """Buses and memory paths."""
    sources = ["rtl/cache/weight_ring.v"] + [
        f"rtl/lib/{name}.v"
        for name in ("fifo_sync", "ram_1r1w_async", "byte_gearbox", "byte_ring", "byte_pairs")
    ]
    run_bench(sim, "weight_ring", sources, "tb.weight_ring.test_weight_ring", params={
        "AHB_W": bus, "PATH": path, "READ": latency,
    })  # fmt: skip
