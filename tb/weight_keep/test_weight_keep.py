# SPDX-License-Identifier: Apache-2.0
"""weight_keep: streams whose layers fill the buffers to a row, one more, and by far too much.

A list is decoded layer by layer; each descriptor is seen for some cycles and given in the last one.
Rows are counted up as docs/architecture.md says, and `keep` and `reuse` compared in every cycle.
"""

import random
from collections import Counter

import pytest
from cocotb.triggers import ReadOnly, RisingEdge

from openkpu.arithmetic.integers import ceil_div
from openkpu_tb.core.block_bench import BlockBench, block_test
from openkpu_tb.core.descriptor import pack_descriptor
from openkpu_tb.simrun import SIMS, run_bench

SOURCES = ["rtl/control/weight_keep.v"]


class Bench(BlockBench):
    """Drives the block; `keep`, `reuse`, and the rows that the model has counted."""

    inputs = "flush", "begin_run", "stream", "ends", "seen", "given", "desc"

    def __init__(self, dut) -> None:
        super().__init__(dut)
        self.n_z, self.rows, self.prows = (
            int(getattr(dut, name).value) for name in ("N_Z", "WBUF_ROWS", "PAR_ROWS")
        )
        self.keep = self.reuse = False
        self.counts = [0, 0]
        self.met: Counter[str] = Counter()

    async def cycle(self, **inputs: int) -> None:
        """A cycle with these inputs; outputs as expected in it."""
        for name in ("flush", "begin_run", "ends", "seen", "given"):
            getattr(self.dut, name).value = inputs.get(name, 0)
        # the stream bit counts with a start alone
        self.dut.stream.value = inputs.get("stream", random.randrange(2))
        if not inputs.get("seen"):
            self.dut.desc.value = random.getrandbits(len(self.dut.desc))
        await ReadOnly()
        assert int(self.dut.keep.value) == self.keep and int(self.dut.reuse.value) == self.reuse
        await RisingEdge(self.dut.clk)

    async def start(self, stream: bool) -> None:
        """A run begins."""
        await self.cycle(begin_run=1, stream=int(stream))
        self.keep, self.counts = stream, [0, 0]

    async def end(self, by: str) -> None:
        """Nothing is kept any more."""
        await self.cycle(**{by: 1})
        self.keep = self.reuse = False

    async def layer(self, rows: int, chans: int, kind: str, last: bool) -> None:
        """A descriptor that waits for some cycles and is given in the last one."""
        none = kind in ("pools", "fp16")
        values = {"wrows": rows, "o": chans, "last": int(last)}
        self.dut.desc.value = pack_descriptor(values | ({kind: 1} if none else {}))
        cycles = random.choice((1, 1, 2, 5))
        over = False
        for cycle in range(cycles):
            given = cycle == cycles - 1
            counts = cycle == 0 and self.keep and not self.reuse
            await self.cycle(seen=1, given=int(given))
            if counts:
                self.counts[0] += rows
                self.counts[1] += 0 if none else ceil_div(chans, self.n_z)
                over = self.counts[0] > self.rows or self.counts[1] > self.prows
                self.keep = not over
            if given and last and self.keep:
                self.reuse = True
        while random.random() < 0.3:
            await self.cycle()

    async def network(self, room: tuple[int, int], inferences: int) -> None:
        """Layers that leave so many rows of each buffer; fewer than none: they do not fit."""
        left = [self.rows - room[0], self.prows - room[1]]
        layers = []
        while any(left) or not layers:
            kind = random.choice(("conv", "conv", "pools", "fp16"))
            chans = min(1024, left[1] * self.n_z)
            if kind in ("pools", "fp16"):
                layers.append((0, random.randint(1, 1024), kind))
                continue
            rows = min(65535, random.choice((left[0], random.randint(0, left[0]))))
            groups = random.choice(
                (ceil_div(chans, self.n_z), random.randint(0, chans // self.n_z))
            )
            # any number of channels that takes so many rows
            chans = max(0, groups * self.n_z - random.randrange(self.n_z)) if groups else 0
            if not groups and left[1]:
                continue
            layers.append((rows, chans, kind))
            left = [left[0] - rows, left[1] - groups]
        for _ in range(inferences):
            for number, (rows, chans, kind) in enumerate(layers, 1):
                await self.layer(rows, chans, kind, number == len(layers))


@block_test(Bench)
async def streams(bench: Bench) -> None:
    """Kept if both buffers hold all rows, to the last one; never without a stream."""
    rooms = [(0, 0), (0, 5), (5, 0), (-1, 0), (0, -1), (-1, -1), (3, 3), (-70000, 0)]
    for number, room in enumerate(rooms * 3):
        stream = number < len(rooms) or random.random() < 0.7
        await bench.start(stream)
        while random.random() < 0.5:
            await bench.cycle()
        await bench.network(room, random.randint(1, 3))
        assert bench.reuse == (stream and min(room) >= 0), (stream, room)
        bench.met[f"reuse {bench.reuse}, {stream}"] += 1
        await bench.end(random.choice(("ends", "flush")))
        for _ in range(random.randint(1, 3)):
            await bench.cycle()
    assert len(bench.met) == 3, bench.met


@block_test(Bench)
async def single_bits(bench: Bench) -> None:
    """Each bit of the numbers of rows and of channels counts by itself."""
    for rows, chans in [(1 << bit, 1) for bit in range(16)] + [(1, 1 << bit) for bit in range(11)]:
        await bench.start(True)
        await bench.layer(rows, chans, "conv", True)
        held = rows <= bench.rows and ceil_div(chans, bench.n_z) <= bench.prows
        assert bench.reuse == held, f"{rows} rows, {chans} channels"
        await bench.end("ends")


@pytest.mark.tier(check=["2-512-verilator", "16-1024-icarus", "16-1024-verilator"])
@pytest.mark.parametrize("sim", SIMS)
@pytest.mark.parametrize(("n_z", "wbuf_rows"), [(2, 512), (16, 1024)])
def test_weight_keep(sim: str, n_z: int, wbuf_rows: int) -> None:
    params = {"N_Z": n_z, "WBUF_ROWS": wbuf_rows, "PAR_ROWS": 2048 // n_z}
    run_bench(sim, "weight_keep", SOURCES, "tb.weight_keep.test_weight_keep", params=params)
