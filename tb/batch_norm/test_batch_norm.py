# SPDX-License-Identifier: Apache-2.0
"""batch_norm: v = ((alu * mul) >> shift) + add modulo 2^36, floor shift, stages with gaps."""

import random

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from openkpu_tb.core.pipeline_bench import run_stages, start_clock
from openkpu_tb.simrun import SIMS, run_bench

ALU = (-(1 << 35), (1 << 35) - 1, -1, 0, 1)
MUL = (-(1 << 23), (1 << 23) - 1, -1, 0, 1)
ADD = (-(1 << 31), (1 << 31) - 1, -1, 0, 1)


def number(bits: int, ends: tuple[int, ...]) -> int:
    """An end of the range, or a number of random size."""
    if random.random() < 0.3:
        return random.choice(ends)
    bits = random.randint(1, bits)
    return random.randrange(-(1 << (bits - 1)), 1 << (bits - 1))


def item(alu: int, mul: int, shift: int, add: int) -> list[dict[str, int]]:
    """alu comes raised by 2^35; what the raise adds behind the multiplier is off the addend."""
    scaled = mul << (15 - shift)
    return [{"alu": alu + (1 << 35), "mul": scaled}, {}, {"add": add - (scaled << 20)}, {}]


@cocotb.test()
async def exact(dut) -> None:
    """Every shift with ends of the ranges and random numbers; negative products are floored."""
    start_clock(dut)
    dut.valid.value = 0
    await RisingEdge(dut.clk)
    for p_item in (1.0, 0.6):
        cases = [(a, m, s, b) for a in ALU for m in MUL for s in range(16) for b in ADD[::2]]
        cases += [
            (number(36, ALU), number(24, MUL), random.randrange(16), number(32, ADD))
            for _ in range(1000)
        ]
        # the floor shows: small negative products that are no multiple of 2^shift
        cases += [(-1, 3, s, 0) for s in range(16)] + [(5, -3, s, 7) for s in range(16)]
        random.shuffle(cases)
        got = await run_stages(dut, [item(*c) for c in cases], "v", p_item=p_item)
        for (alu, mul, shift, add), v in zip(cases, got, strict=True):
            want = (((alu * mul) >> shift) + add) & ((1 << 36) - 1)
            assert v == want, f"({alu} * {mul} >> {shift}) + {add}: {v:#x}, expected {want:#x}"


@pytest.mark.tier(check=["18-verilator", "17-icarus", "17-verilator"])
@pytest.mark.parametrize("sim", SIMS)
@pytest.mark.parametrize("piece", [18, 17])
def test_batch_norm(sim: str, piece: int) -> None:
    test = "tb.batch_norm.test_batch_norm"
    run_bench(sim, "batch_norm", ["rtl/post/batch_norm.v"], test, params={"PIECE": piece})
