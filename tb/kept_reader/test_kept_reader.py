# SPDX-License-Identifier: Apache-2.0
"""kept_reader: bytes of the AI RAM in order, whatever their place, at the rate of the loader."""

import random
from collections import deque

import numpy as np
from cocotb.triggers import FallingEdge, RisingEdge

from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.core.descriptor import layout
from openkpu_tb.core.packed_ports import PackedView
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

RAM = 1 << 16  # bytes of it that are looked at, at both ends of the address range
PIECE = 16
OWNER_BITS = sum(width for _, width in layout("owner").values())


class Bench(BlockBench):
    """The AI RAM on one side, the loader on the other."""

    inputs = "req_valid", "req", "ram_gnt", "ram_data", "kept_ready"

    def __init__(self, dut) -> None:
        ports = {
            "req": (layout("req", OWNER_BITS=OWNER_BITS), "req_"),
            "kept": (layout("kept"), "kept_"),
        }
        super().__init__(PackedView(dut, ports))
        self.path = int(dut.PATH.value)
        rng = np.random.default_rng(random.getrandbits(32))
        self.ram = rng.integers(0, 256, RAM, dtype=np.uint8)
        self.words = self.cycles = 0

    def word(self, number: int) -> int:
        """A word of the AI RAM; its addresses are taken modulo RAM."""
        at = number * self.path % RAM
        return int.from_bytes(self.ram[at : at + self.path].tobytes(), "little")

    def bytes_at(self, at: int, size: int) -> bytes:
        """What a request means."""
        return self.ram[np.arange(at, at + size) % RAM].tobytes()

    async def play(self, asked: list[tuple[int, int]], p_gnt: float, p_take: float) -> None:
        """Requests one after the other; every byte is compared. Bounded."""
        dut = self.dut
        waiting, data = list(asked), b""
        due = [self.bytes_at(*one) for one in asked if one[1]]
        left, ahead = b"", 0
        coming: deque[int | None] = deque([None] * int(dut.READ.value))
        total = sum(size for _, size in asked)
        bound = 100 + int(20 * (len(asked) + total / PIECE) / p_gnt / p_take)
        for self.cycles in range(bound):
            dut.req_valid.value = int(bool(waiting))
            if waiting:
                dut.req_addr.value, dut.req_len.value = waiting[0]
            dut.req_owner.value = random.getrandbits(OWNER_BITS)
            dut.kept_ready.value = int(random.random() < p_take)
            noise = random.getrandbits(8 * self.path)
            there = coming.popleft()
            dut.ram_data.value = noise if there is None else self.word(there)
            await FallingEdge(dut.clk)  # the request comes from registers
            given = None
            if int(dut.ram_req.value) and random.random() < p_gnt:
                given = int(dut.ram_word.value)
                self.words += 1
            dut.ram_gnt.value = int(given is not None)
            coming.append(given)
            await RisingEdge(dut.clk)
            if waiting and int(dut.req_ready.value):
                ahead += waiting.pop(0)[1] > 0
                assert ahead <= 3, "more requests than there are places for"
            if int(dut.kept_valid.value) and int(dut.kept_ready.value):
                off, count = int(dut.kept_off.value), int(dut.kept_cnt.value)
                assert 1 <= count <= PIECE - off
                if not left:
                    assert ahead, "a piece that nobody asked for"
                    left = due.pop(0)
                piece = int(dut.kept_data.value).to_bytes(PIECE, "little")[off : off + count]
                assert piece == left[:count], f"{piece.hex()}, expected {left[:count].hex()}"
                left, data = left[count:], data + piece
                ahead -= not left
            if len(data) == total and not waiting:
                break
        else:
            raise AssertionError(f"{len(data)} of {total} bytes in {bound} cycles")
        dut.req_valid.value = dut.ram_gnt.value = 0
        for _ in range(4):
            dut.kept_ready.value = 1
            await RisingEdge(dut.clk)
            assert not int(dut.kept_valid.value) and not int(dut.ram_req.value)


def a_request(path: int) -> tuple[int, int]:
    """Any place, around the ends of words and of the memory."""
    size = random.choice((0, 1, 15, 16, 17, path, path + 1, random.randint(1, 700)))
    top = (1 << 21) - size
    near = random.randrange(RAM // path) * path + random.choice((-1, 0, 1))
    return random.choice((0, top, random.randint(0, top), max(0, near))), size


@block_test(Bench)
async def any_place(bench: Bench) -> None:
    """Requests of any size, also none, at any place, with a slow memory and a slow loader; only
    words that hold wanted bytes are read."""
    for p_gnt, p_take in ((1.0, 1.0), (0.2, 1.0), (1.0, 0.2), (0.5, 0.6)):
        bench.words = 0
        asked = [a_request(bench.path) for _ in range(60)]
        await bench.play(asked, p_gnt, p_take)
        words = sum((at + n - 1) // bench.path - at // bench.path + 1 for at, n in asked if n)
        assert bench.words == words, f"{bench.words} words were read, {words} hold the bytes"


@block_test(Bench)
async def rate(bench: Bench) -> None:
    """16 bytes a cycle when the memory gives a word whenever it is asked."""
    await bench.play([(64, 4096)], 1.0, 1.0)
    assert bench.cycles <= 4096 // PIECE + 8, bench.cycles
    # ... and no pause between requests
    await bench.play([(64 + 512 * n, 512) for n in range(8)], 1.0, 1.0)
    assert bench.cycles <= 4096 // PIECE + 8 + 2 * 8, bench.cycles


@block_test(Bench)
async def dropped(bench: Bench, dut) -> None:
    """A reset in the middle leaves nothing behind."""
    for wait in range(1, 14):
        dut.req_valid.value, dut.req_addr.value, dut.req_len.value = 1, 32, 400
        dut.kept_ready.value = random.getrandbits(1)
        for _ in range(wait):
            await FallingEdge(dut.clk)
            dut.ram_gnt.value = int(dut.ram_req.value) & random.getrandbits(1)
            await RisingEdge(dut.clk)
        dut.req_valid.value = dut.ram_gnt.value = 0
        await bench.reset()
        await bench.play([a_request(bench.path) for _ in range(3)], 0.8, 0.8)


@sizes(
    "sim path latency",
    test="icarus-16-1",
    check="icarus-64-1 verilator-128-1 verilator-16-3",
    nightly="verilator-32-1",
)
def test_kept_reader(sim: str, path: int, latency: int) -> None:
    sources = ["rtl/cache/kept_reader.v", "rtl/lib/fifo_sync.v", "rtl/lib/ram_1r1w_async.v"]
    run_bench(sim, "kept_reader", sources, "tb.kept_reader.test_kept_reader", params={
        "PATH": path, "READ": latency,
    })  # fmt: skip
