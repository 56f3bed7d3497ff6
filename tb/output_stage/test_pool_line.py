# SPDX-License-Identifier: Apache-2.0
"""pool_line: each pool of each line of stripes of every size, against the model's pools."""

import random

import cocotb
import numpy as np
import pytest
from cocotb.triggers import Timer
from openkpu.models.pooling import POOL_STRIDE, pool_map
from openkpu.tb.core.descriptor import POOL_CODE
from openkpu.tb.core.pipeline_bench import join, split
from openkpu.tb.simrun import SIMS, run


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


async def check(dut, rng: np.random.Generator, pool: int, swl: int, sgn: int, size) -> None:
    """All output lines of one stripe; bytes outside ``size`` (lines, width) are noise."""
    lines, width = size
    bytes_ = stripe(rng, swl)
    valid = bytes_[:lines, :width].view(np.int8 if sgn else np.uint8)
    want = pool_map(pool, valid[None])[0].view(np.uint8)
    dut.stripe.value = join(bytes_.reshape(-1), 8)
    dut.swl.value, dut.width.value, dut.lines.value = swl, width, lines
    dut.pool.value, dut.sgn.value, dut.enable.value = POOL_CODE[pool], sgn, 1
    for line, row in enumerate(want):
        dut.line.value = line
        await Timer(1, "ns")
        got = split(int(dut.pooled.value), 8, 16)[: len(row)]
        assert got == [int(p) for p in row], (
            f"pool {pool} of {lines} x {width} in {64 >> swl} lines, {line}"
        )


@cocotb.test()
async def every_pool_and_size(dut) -> None:
    """Stride 1: all widths and lines of a stripe; stride 2 and 4: all that fill windows."""
    rng = np.random.default_rng(random.getrandbits(32))
    await Timer(1, "ns")  # first values are not to be written at time 0
    for pool in POOL_CODE:
        stride = POOL_STRIDE[pool]
        for swl in (4, 5) if stride == 2 else (4,):
            for lines in range(stride, (64 >> swl) + 1, stride):
                for width in range(stride, (1 << swl) + 1, stride):
                    for sgn in (0, 1) if stride == 1 else (0, 1) * 4:
                        await check(dut, rng, pool, swl, sgn, (lines, width))


@cocotb.test()
async def rests(dut) -> None:
    """Not enabled it gives zeros, whatever comes in."""
    rng = np.random.default_rng(random.getrandbits(32))
    await Timer(1, "ns")
    for pool in (1, 3, 8):
        await check(dut, rng, pool, 4, 0, (4, 16))
        dut.enable.value = 0
        for _ in range(5):
            dut.stripe.value = random.getrandbits(512)
            await Timer(1, "ns")
            assert int(dut.pooled.value) == 0


@pytest.mark.parametrize("sim", SIMS)
def test_pool_line(sim: str) -> None:
    run(sim, "pool_line", ["rtl/output/pool_line.v"], "tb.output_stage.test_pool_line")
