# SPDX-License-Identifier: Apache-2.0
"""pixel_writer against the AI RAM codec: layout, neighbours, offsets, back-pressure, rate, stop."""

import random

import cocotb
import numpy as np
import pytest
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

from openkpu.arithmetic.integers import ceil_div
from openkpu.layer import airam
from openkpu_tb.simrun import run_bench

ROWS = 4096
SHAPES = [  # channels, height, width: every layout, and the borders between them
    *((1, 1, 1), (3, 5, 4), (9, 3, 16), (5, 4, 17), (2, 3, 32), (3, 2, 33), (2, 3, 63)),
    *((2, 3, 64), (3, 2, 65), (1, 3, 320), (2, 2, 100), (130, 1, 1), (4, 2, 15), (1, 2, 512)),
    (1026, 1, 1),
]


class Bench:
    def __init__(self, dut) -> None:
        self.dut = dut
        self.lanes = int(dut.AHB_W.value) // 8
        self.path = int(dut.PATH.value)
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for n in ("stop", "start", "base_row", "chans_m1", "height_m1", "width_m1"):
            getattr(dut, n).value = 0
        for n in ("pixel_valid", "pixel_data", "pixel_off", "pixel_cnt", "load_gnt"):
            getattr(dut, n).value = 0
        self.ram = np.random.default_rng(random.getrandbits(32)).integers(
            0, 256, ROWS * 64, dtype=np.uint8
        )

    async def reset(self) -> None:
        self.dut.rst.value = 1
        for _ in range(3):
            await RisingEdge(self.dut.clk)
        self.dut.rst.value = 0
        await RisingEdge(self.dut.clk)

    def words(self, data: bytes, split: int) -> list[tuple[int, int, int]]:
        """The stream as the DMAC gives it, in requests of ``split`` bytes: (word, off, cnt)."""
        out = []
        for start in range(0, len(data), split):
            part = data[start : start + split]
            off = random.randrange(self.lanes)
            while part:
                piece, part = part[: self.lanes - off], part[self.lanes - off :]
                noise = random.randbytes(self.lanes)
                word = noise[:off] + piece + noise[off + len(piece) :]
                out.append((int.from_bytes(word, "little"), off, len(piece)))
                off = 0
        return out

    def _store(self) -> None:
        dut = self.dut
        word, be = int(dut.load_word.value), int(dut.load_be.value)
        data = int("".join(c if c in "01" else "0" for c in str(dut.load_data.value)), 2)
        assert be, "a word without a byte"
        for i in range(self.path):
            if be >> i & 1:
                self.ram[word * self.path + i] = data >> 8 * i & 0xFF

    async def start(self, base: int, shape: tuple[int, int, int]) -> None:
        dut = self.dut
        dut.base_row.value, dut.start.value = base, 1
        dut.chans_m1.value, dut.height_m1.value, dut.width_m1.value = (n - 1 for n in shape)
        await RisingEdge(dut.clk)
        dut.start.value = 0
        for n in ("base_row", "chans_m1", "height_m1", "width_m1"):
            getattr(dut, n).value = 1  # the values must have been taken

    async def load(self, base: int, x, split: int, p_in: float, p_gnt: float) -> int:
        """Write map ``x``; returns the cycles from start to done."""
        dut = self.dut
        queue = self.words(x.tobytes(), split)
        await self.start(base, x.shape)
        busy_seen = False
        cycles = 0
        for _ in range(40 * x.size + 1000):
            cycles += 1
            if queue and random.random() < p_in:
                dut.pixel_data.value, dut.pixel_off.value, dut.pixel_cnt.value = queue[0]
                dut.pixel_valid.value = 1
            else:
                dut.pixel_valid.value = 0
            dut.load_gnt.value = int(random.random() < p_gnt)
            # while pixels are to come it is busy: another start, of another map, does nothing
            dut.start.value = int(bool(queue) and random.random() < 0.2)
            await RisingEdge(dut.clk)
            if int(dut.pixel_valid.value) and int(dut.pixel_ready.value):
                queue.pop(0)
            busy_seen |= bool(int(dut.busy.value))
            assert not int(dut.done.value) or not queue
            assert int(dut.busy.value) or not int(dut.load_req.value), "a word waits: it is busy"
            if int(dut.load_req.value) and int(dut.load_gnt.value):
                self._store()
            if int(dut.done.value):
                assert busy_seen and not int(dut.busy.value)
                break
        else:
            raise AssertionError("never done")
        dut.start.value = 0
        await self.rests()
        return cycles

    async def rests(self) -> None:
        """Nothing is written, taken or told for some cycles."""
        dut = self.dut
        dut.pixel_valid.value = 0
        for _ in range(5):
            dut.load_gnt.value = 1
            await RisingEdge(dut.clk)
            assert not int(dut.load_req.value) and not int(dut.pixel_ready.value)
            assert not int(dut.busy.value) and not int(dut.done.value)
        dut.load_gnt.value = 0


@cocotb.test()
async def layouts(dut) -> None:
    """Every layout; bytes that belong to no pixel keep their value."""
    bench = Bench(dut)
    await bench.reset()
    for shape in SHAPES:
        for p_in, p_gnt in ((1.0, 1.0), (0.6, 0.4)):
            x = np.random.default_rng(random.getrandbits(32)).integers(0, 256, shape, np.uint8)
            base = random.randrange(ROWS // 2)
            want = bench.ram.copy()
            airam.pack_map(want, base, x)
            split = random.choice([x.size, 7, 64, 50])
            await bench.load(base, x, split, p_in, p_gnt)
            wrong = np.flatnonzero(bench.ram != want)
            assert not wrong.size, f"{shape}: bytes {wrong[:5]} of the AI RAM"


@cocotb.test()
async def full_rate(dut) -> None:
    """A bus word a cycle; the end of a line takes one of its own."""
    bench = Bench(dut)
    await bench.reset()
    for shape in ((1, 8, 64), (2, 3, 320), (5, 4, 17), (3, 2, 33), (2, 2, 100)):
        x = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
        cycles = await bench.load(10, x, x.size, 1.0, 1.0)
        pieces = shape[0] * shape[1] * ceil_div(shape[2], bench.lanes)
        assert cycles <= pieces + 8, f"{shape}: {cycles} cycles for {pieces} pieces of lines"


@cocotb.test()
async def stop_any_time(dut) -> None:
    """stop drops everything; the next map is right."""
    bench = Bench(dut)
    await bench.reset()
    for _ in range(10):
        await bench.start(100, (4, 8, 40))
        for word, off, count in bench.words(random.randbytes(400), 400)[: random.randint(1, 60)]:
            dut.pixel_valid.value, dut.pixel_data.value = 1, word
            dut.pixel_off.value, dut.pixel_cnt.value = off, count
            dut.load_gnt.value = random.getrandbits(1)
            await RisingEdge(dut.clk)
        dut.pixel_valid.value, dut.stop.value = 0, 1
        await RisingEdge(dut.clk)
        dut.stop.value = 0
        await RisingEdge(dut.clk)
        assert not int(dut.busy.value) and not int(dut.load_req.value)
        x = np.random.default_rng(random.getrandbits(32)).integers(0, 256, (3, 4, 20), np.uint8)
        want = bench.ram.copy()
        airam.pack_map(want, 7, x)
        await bench.load(7, x, x.size, 1.0, 1.0)
        assert (bench.ram == want).all()


@cocotb.test()
async def stop_at_the_end(dut) -> None:
    """stop, or a reset, as the last word is taken, or with done; the next map is right."""
    bench = Bench(dut)
    await bench.reset()
    for turn in range(16):
        name, late, width = ("stop", "rst")[turn % 2], turn >= 8, 1 + turn // 2 % 4
        await bench.start(3, (1, 1, width))
        dut.pixel_valid.value, dut.pixel_data.value = 1, random.getrandbits(8 * bench.lanes)
        dut.pixel_off.value, dut.pixel_cnt.value = 0, width
        for _ in range(20):
            await FallingEdge(dut.clk)
            if int(dut.load_req.value):
                break
            await RisingEdge(dut.clk)
        else:
            raise AssertionError("no word")
        dut.load_gnt.value = 1
        if late:
            await RisingEdge(dut.clk)
            dut.load_gnt.value = 0
        getattr(dut, name).value = 1
        await RisingEdge(dut.clk)
        assert int(dut.done.value) == late
        getattr(dut, name).value = 0
        await bench.rests()
        x = np.random.default_rng(random.getrandbits(32)).integers(0, 256, (2, 2, 20), np.uint8)
        want = bench.ram.copy()
        airam.pack_map(want, 5, x)
        await bench.load(5, x, x.size, 1.0, 1.0)
        assert (bench.ram == want).all()


@pytest.mark.tier(
    nightly=[
        "icarus-64-16",
        "icarus-64-32",
        "icarus-128-32",
        "icarus-64-64",
        "icarus-128-64",
        "icarus-128-16",
        "icarus-32-32",
        "verilator-64-64",
        "verilator-128-32",
    ],
    check=["icarus-32-128", "icarus-32-16", "verilator-128-128", "verilator-32-16"],
)
@pytest.mark.parametrize(
    ("sim", "width", "path"),
    [
        *(("icarus", 32, 64), ("icarus", 64, 64), ("icarus", 128, 64), ("verilator", 64, 64)),
        *(("icarus", 32, 16), ("icarus", 64, 16), ("icarus", 128, 16), ("verilator", 32, 16)),
        *(("icarus", 32, 32), ("icarus", 64, 32), ("icarus", 128, 32), ("verilator", 128, 32)),
        *(("icarus", 32, 128), ("verilator", 128, 128)),
    ],
)
def test_pixel_writer(sim: str, width: int, path: int) -> None:
    sources = ["rtl/cache/pixel_writer.v", "rtl/cache/row_sequencer.v"]
    sources += ["rtl/lib/byte_*.v", "rtl/lib/ram_1r1w_async.v"]
    test = "tb.pixel_writer.test_pixel_writer"
    run_bench(sim, "pixel_writer", sources, test, params={"AHB_W": width, "PATH": path})
