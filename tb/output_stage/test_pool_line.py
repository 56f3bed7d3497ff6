# SPDX-License-Identifier: Apache-2.0
"""pool_line: each pool of stripes of every size, word by word, against the model's pools."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from openkpu.arithmetic.pooling import POOL_STRIDE, pool_map
from openkpu_tb.core.descriptor import POOL_CODE
from openkpu_tb.core.pipeline_bench import join_words, split_words
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes


def stripe(rng: np.random.Generator, swl: int) -> np.ndarray:
    """(lines, width) of bytes: any, or close together, or at the ends of the range."""
    kind = rng.integers(0, 4)
    if kind == 0:
        flat = rng.choice([0, 127, 128, 255], 64)
    elif kind == 1:
        flat = (rng.integers(0, 256) + rng.integers(-2, 3, 64)) & 0xFF
    else:
        flat = rng.integers(0, 256, 64)
    return flat.astype(np.uint8).reshape(64 >> swl, 1 << swl)


LATENCY = 4  # clock edges from a word to the pixels it completes


@dataclass
class Step:
    """A word as out_walk has it read, and the pooled pixels it completes."""

    word: list[int]
    width: int
    below: int
    pixels: list[int] | None  # None: none yet


def turned(flat: list[int], path: int, byte: int) -> list[int]:
    """The word with ``byte``, so that this byte comes first."""
    at = byte % path
    return [flat[byte - at + (i ^ at)] for i in range(path)]


def steps(path: int, pool: int, swl: int, flat: list[int], size, want) -> Iterator[Step]:
    """The walk over a stripe of ``size`` (lines, width), see out_walk."""
    lines, width = size
    wide, stride = 1 << swl, POOL_STRIDE[pool]
    piece = 8 if path == 16 else 16  # pixels at a time
    for y, row in enumerate(want):
        row = [int(p) for p in row]
        for x in range(0, len(row), piece):
            below = y + 1 < lines
            if stride == 1:
                read = [y * wide + x] if path == 64 else [y * wide + x, (y + below) * wide + x]
            else:
                first = y * stride * wide
                read = range(first, first + stride * wide, max(path, wide))
                read = [at + x * stride for at in read]
                if path == 64:
                    read = [first]
                elif path == 32 and wide == 16:
                    read = list(range(first, first + stride * wide, 32))
            slot = 0 if not below else 3 if y % 2 else 1
            for i, at in enumerate(read):
                done = row[x : x + piece] if i == len(read) - 1 else None
                yield Step(turned(flat, path, at), (width - x) % 32, slot, done)


@cocotb.test()
async def every_pool_and_size(dut) -> None:
    """All widths and lines of a stripe; rests and words of no pool in between change nothing."""
    rng = np.random.default_rng(random.getrandbits(32))
    path = 8 * (len(dut.word) // 64)
    dut.en.value = 0
    Clock(dut.clk, 10, "ns").start()
    await FallingEdge(dut.clk)
    for pool in POOL_CODE:
        stride = POOL_STRIDE[pool]
        for swl in (4, 5) if stride == 2 else (4,):
            for sgn in (0, 1):
                await check(dut, rng, path, pool, swl, sgn)


async def check(dut, rng: np.random.Generator, path: int, pool: int, swl: int, sgn: int) -> None:
    """Stripes of all sizes that windows fill, one after the other; bytes outside are noise."""
    stride = POOL_STRIDE[pool]
    walk: list[Step] = []
    for lines in range(stride, (64 >> swl) + 1, stride):
        for width in range(stride, (1 << swl) + 1, stride):
            bytes_ = stripe(rng, swl)
            valid = bytes_[:lines, :width].view(np.int8 if sgn else np.uint8)
            want = pool_map(pool, valid[None])[0].view(np.uint8)
            flat = [int(b) for b in bytes_.reshape(-1)]
            # not a window's end, but the bits offered while nothing is read
            idle = Step([random.randrange(256) for _ in range(path)], 0, 0, [])
            walk += [idle] * random.randrange(3)
            walk += steps(path, pool, swl, flat, (lines, width), want)
    dut.pool.value, dut.sgn.value, dut.narrow.value = POOL_CODE[pool], sgn, int(swl == 4)
    done: list[Step | None] = [None] * LATENCY
    walk = [Step([0] * path, 0, 0, [])] * LATENCY + walk + [Step([0] * path, 0, 0, [])] * LATENCY
    for step in walk:
        while random.random() < 0.2:  # nothing moves
            dut.en.value = 0
            dut.word.value = random.getrandbits(8 * path)
            await FallingEdge(dut.clk)
        dut.en.value = 1
        dut.word.value = join_words(step.word, 8)
        dut.width.value, dut.below.value = step.width, step.below
        dut.last.value = int(step.pixels is not None)
        await FallingEdge(dut.clk)
        done = [*done[1:], step]
        if done[0] and done[0].pixels:
            got = split_words(int(dut.pooled.value), 8, len(dut.pooled) // 8)
            want = done[0].pixels
            assert got[: len(want)] == want, f"pool {pool}, lines of {1 << swl}: {done[0]}"


@sizes(
    "sim path",
    test="icarus-16",
    check="verilator-16 verilator-64",
    nightly="icarus-32 icarus-64 verilator-32",
)
def test_pool_line(sim: str, path: int) -> None:
    test, params = "tb.output_stage.test_pool_line", {"PATH": path}
    run_bench(sim, "pool_line", ["rtl/output/pool_line.v"], test, params=params)
