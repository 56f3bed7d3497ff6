# SPDX-License-Identifier: Apache-2.0
"""result_reader against the AI RAM codec: both destinations, padding, back-pressure, rate, stop."""

import random

import cocotb
import numpy as np
import pytest
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.words import to_stored
from openkpu.layer import airam
from openkpu.layer.layout import Layout
from openkpu_tb.simrun import run_bench

ROWS = 4096
SHAPES = [
    *((1, 1, 1), (10, 1, 1), (3, 5, 4), (9, 3, 16), (5, 4, 17), (2, 3, 32), (3, 2, 33)),
    *((2, 3, 63), (2, 3, 64), (3, 2, 65), (1, 3, 320), (2, 2, 100), (4, 2, 15), (1, 2, 512)),
]


WORDS = ("words", "apart")


class Bench:
    def __init__(self, dut) -> None:
        self.dut = dut
        self.lanes = int(dut.AHB_W.value) // 8
        self.path = int(dut.PATH.value)
        cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
        for n in ("stop", "start", "base_row", "chans_m1", "height_m1", "width_m1", "dest", *WORDS):
            getattr(dut, n).value = 0
        dut.unload_gnt.value = dut.unload_data.value = dut.result_ready.value = (
            dut.store_ready.value
        ) = 0
        self.noise = np.random.default_rng(random.getrandbits(32))
        self.ram = self.noise.integers(0, 256, ROWS * 64, dtype=np.uint8)

    async def reset(self) -> None:
        self.dut.rst.value = 1
        for _ in range(3):
            await RisingEdge(self.dut.clk)
        self.dut.rst.value = 0
        await RisingEdge(self.dut.clk)

    async def start(self, base: int, shape, dest: int, words: bool = False) -> None:
        """``words``: the channels of ``shape`` are words of four planes."""
        dut = self.dut
        dut.words.value = int(words)
        dut.apart.value = Layout(*shape).channel_rows if words else random.getrandbits(14)
        dut.base_row.value, dut.dest.value, dut.start.value = base, dest, 1
        dut.chans_m1.value, dut.height_m1.value, dut.width_m1.value = (n - 1 for n in shape)
        await RisingEdge(dut.clk)
        dut.start.value = 0
        dut.dest.value, dut.words.value, dut.apart.value = 1 - dest, int(not words), 3
        for n in ("base_row", "chans_m1", "height_m1", "width_m1"):
            getattr(dut, n).value = 1

    def _serve(self, granted: int | None) -> None:
        """Data in the cycle after the grant, noise in all others."""
        path = self.path
        word = self.noise.bytes(path) if granted is None else self.ram[granted * path :][:path]
        self.dut.unload_data.value = int.from_bytes(bytes(word), "little")

    async def fetch(
        self, base, shape, dest: int, p_gnt: float, p_out: float, words: bool = False
    ) -> tuple[bytes, int]:
        """Read a map; returns the bytes of all words, and the cycles from first to last word."""
        dut = self.dut
        valid, ready, data = (
            (dut.store_valid, dut.store_ready, dut.store_data)
            if dest
            else (dut.result_valid, dut.result_ready, dut.result_data)
        )
        other = dut.result_valid if dest else dut.store_valid
        size = self.lanes if dest else 8
        out, first, last, held = b"", 0, 0, None
        await self.start(base, shape, dest, words)
        granted = None
        for cycle in range(60 * int(np.prod(shape)) + 1000):
            dut.unload_gnt.value = 0
            self._serve(granted)
            ready.value = int(random.random() < p_out)
            grant = random.random() < p_gnt
            dut.unload_gnt.value = int(grant)
            await RisingEdge(dut.clk)
            granted = int(dut.unload_word.value) if grant and int(dut.unload_req.value) else None
            assert not int(other.value)
            if int(valid.value):
                word = int(data.value)
                assert held in (None, word), "the word changed while it waited"
                held = word
                if int(ready.value):
                    out += word.to_bytes(size, "little")
                    first, last, held = first or cycle, cycle, None
            else:
                assert held is None, "valid fell before ready"
            if int(dut.done.value):
                assert not int(dut.busy.value)
                break
        else:
            raise AssertionError("never done")
        for _ in range(5):
            ready.value = dut.unload_gnt.value = 1
            await RisingEdge(dut.clk)
            assert (
                not int(valid.value) and not int(dut.unload_req.value) and not int(dut.done.value)
            )
        return out, last - first + 1


@cocotb.test()
async def layouts(dut) -> None:
    """Every layout to both destinations, the last word zero padded."""
    bench = Bench(dut)
    await bench.reset()
    for shape in SHAPES:
        for dest, p_gnt, p_out in ((0, 1, 1), (1, 1, 1), (0, 0.5, 0.7), (1, 0.3, 1), (1, 1, 0.3)):
            base = random.randrange(ROWS // 2)
            want = airam.unpack_map(bench.ram, base, shape).tobytes()
            size = bench.lanes if dest else 8
            want += bytes(-len(want) % size)
            got, _ = await bench.fetch(base, shape, dest, p_gnt, p_out)
            assert got == want, f"{shape} to {dest}"


@cocotb.test()
async def words_of_planes(dut) -> None:
    """Four planes a channel leave as words, of every layout, at any rate; maps of bytes between."""
    bench = Bench(dut)
    await bench.reset()
    for shape in SHAPES:
        for dest, p_gnt, p_out in ((0, 1, 1), (1, 1, 1), (0, 0.5, 0.7), (1, 0.3, 1), (1, 1, 0.3)):
            base = random.randrange(ROWS // 2)
            planes = airam.unpack_map(bench.ram, base, (4 * shape[0], *shape[1:]))
            want = to_stored(planes, True).tobytes()
            size = bench.lanes if dest else 8
            want += bytes(-len(want) % size)
            got, _ = await bench.fetch(base, shape, dest, p_gnt, p_out, True)
            assert got == want, f"{shape} to {dest}"
            if random.random() < 0.2:
                got, _ = await bench.fetch(base, shape, dest, 1.0, 1.0)
                assert got.startswith(airam.unpack_map(bench.ram, base, shape).tobytes())


@cocotb.test()
async def words_at_full_rate(dut) -> None:
    """A bus word a cycle where lines are whole words of the AI RAM: reads are no more.

    Where they are as many, a cycle in nine is lost: both places of 64 bytes are in use.
    """
    bench = Bench(dut)
    await bench.reset()
    for shape in ((1, 8, 64), (2, 3, 128)):
        _, cycles = await bench.fetch(10, shape, 1, 1.0, 1.0, True)
        least = 4 * int(np.prod(shape)) // min(bench.lanes, min(bench.path, 64) // 4)
        lost = least // 8 if 4 * bench.lanes >= min(bench.path, 64) else 0
        assert cycles <= least + 8 + lost, f"{shape}: {cycles} cycles, {least} at best"


@cocotb.test()
async def full_rate(dut) -> None:
    """A bus word a cycle; the end of a line is one of its own, though it leaves with the next."""
    bench = Bench(dut)
    await bench.reset()
    for shape in ((1, 8, 64), (2, 3, 320)):
        _, cycles = await bench.fetch(10, shape, 1, 1.0, 1.0)
        assert cycles == int(np.prod(shape)) // bench.lanes, f"{shape}: {cycles} cycles"
    for shape in ((5, 4, 17), (3, 2, 33), (2, 2, 100)):
        _, cycles = await bench.fetch(10, shape, 1, 1.0, 1.0)
        pieces = shape[0] * shape[1] * ceil_div(shape[2], bench.lanes)
        assert cycles <= pieces, f"{shape}: {cycles} cycles for {pieces} pieces of lines"


@cocotb.test()
async def stop_any_time(dut) -> None:
    """stop ends at once; the next map is right."""
    bench = Bench(dut)
    await bench.reset()
    for trial in range(10):
        await bench.start(100, (4, 8, 40), trial & 1, bool(trial & 2))
        for _ in range(random.randint(1, 40)):
            dut.unload_gnt.value = random.getrandbits(1)
            dut.store_ready.value = dut.result_ready.value = random.getrandbits(1)
            bench._serve(None)
            await RisingEdge(dut.clk)
        dut.stop.value = 1
        await RisingEdge(dut.clk)
        dut.stop.value = dut.unload_gnt.value = 0
        await RisingEdge(dut.clk)
        assert not int(dut.busy.value) and not int(dut.unload_req.value)
        assert not int(dut.store_valid.value) and not int(dut.result_valid.value)
        want = airam.unpack_map(bench.ram, 7, (3, 4, 20)).tobytes()
        got, _ = await bench.fetch(7, (3, 4, 20), 1, 1.0, 1.0)
        assert got == want


@pytest.mark.tier(
    nightly=[
        "icarus-64-64",
        "icarus-128-64",
        "icarus-64-16",
        "icarus-128-16",
        "icarus-32-32",
        "icarus-64-32",
        "icarus-128-32",
        "icarus-32-128",
        "icarus-32-64",
        "verilator-128-16",
        "verilator-128-128",
        "verilator-128-64",
    ],
    check=["verilator-32-16"],
)
@pytest.mark.parametrize(
    ("sim", "width", "path"),
    [
        *(("icarus", 32, 64), ("icarus", 64, 64), ("icarus", 128, 64), ("verilator", 128, 64)),
        *(("icarus", 32, 16), ("icarus", 64, 16), ("icarus", 128, 16), ("verilator", 32, 16)),
        *(("icarus", 32, 32), ("icarus", 64, 32), ("icarus", 128, 32), ("verilator", 128, 16)),
        *(("icarus", 32, 128), ("verilator", 128, 128)),
    ],
)
def test_result_reader(sim: str, width: int, path: int) -> None:
    sources = [f"rtl/cache/{n}.v" for n in ("result_reader", "row_sequencer", "plane_sequencer")]
    sources += ["rtl/lib/byte_*.v", "rtl/lib/ram_1r1w_async.v"]
    test = "tb.result_reader.test_result_reader"
    run_bench(sim, "result_reader", sources, test, params={"AHB_W": width, "PATH": path})
