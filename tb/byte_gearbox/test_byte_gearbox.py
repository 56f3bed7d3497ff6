# SPDX-License-Identifier: Apache-2.0
"""byte_gearbox against a byte queue: order, zero padding, offsets, rate."""

import random

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

from openkpu_tb.core.pipeline_bench import reset
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

INPUTS = ("flush", "in_valid", "in_data", "in_off", "in_cnt", "take")


async def traffic(dut, cycles: int, p_in: float, taker, p_flush: float = 0.0) -> tuple[int, int]:
    """``taker(avail)`` says how much is taken. Returns (input words, bytes taken)."""
    n_in, n_out = int(dut.IN_BYTES.value), int(dut.OUT_BYTES.value)
    unit = int(dut.UNIT.value)
    pairs = unit == n_out == 2 * n_in  # whole windows only
    model = b""
    words = taken = 0
    dut.in_valid.value = dut.take.value = dut.flush.value = 0
    dut.flush.value = 1
    await RisingEdge(dut.clk)
    for _ in range(cycles):
        # drive, then look at the settled cycle: take depends on avail
        off = random.randrange(n_in) if random.random() < 0.5 else 0
        cnt = random.randint(1, n_in - off) if random.random() < 0.5 else n_in - off
        valid, flush = random.random() < p_in, random.random() < p_flush
        data = random.getrandbits(8 * n_in)
        dut.in_valid.value, dut.in_off.value, dut.in_cnt.value = int(valid), off, cnt
        dut.in_data.value, dut.flush.value = data, int(flush)
        take = taker(len(model)) // unit * unit
        dut.take.value = take
        await ReadOnly()
        seen = model if not pairs else model[:n_out] if len(model) >= n_out else b""
        assert int(dut.avail.value) == len(seen)
        window = int(dut.out_data.value).to_bytes(n_out, "little")
        assert window == seen[:n_out].ljust(n_out, b"\0"), "wrong bytes or no zero padding"
        ready = int(dut.in_ready.value)
        assert ready or len(model) > n_out + n_in - pairs, "back-pressure although a word fits"
        await RisingEdge(dut.clk)
        model = model[take:]
        taken += take
        if valid and ready:
            model += data.to_bytes(n_in, "little")[off : off + cnt]
            words += 1
        if flush:
            model = b""
    return words, taken


@cocotb.test()
async def random_traffic(dut) -> None:
    await reset(dut, *INPUTS)
    n_out = int(dut.OUT_BYTES.value)
    for p_in, p_take in ((1.0, 0.3), (0.3, 1.0), (0.8, 0.8)):

        def some(avail: int, p: float = p_take) -> int:
            return random.randint(0, min(avail, n_out)) if random.random() < p else 0

        await traffic(dut, 300, p_in, some)
        await traffic(dut, 100, p_in, some, p_flush=0.1)


@cocotb.test()
async def one_word_per_cycle(dut) -> None:
    """A consumer that takes whole windows never stops an input of one word per cycle."""
    await reset(dut, *INPUTS)
    n_out, n_in = int(dut.OUT_BYTES.value), int(dut.IN_BYTES.value)
    cycles = 300
    words, taken = await traffic(dut, cycles, 1.0, lambda a: n_out if a >= n_out else 0)
    if n_out >= n_in:
        assert words == cycles
    assert taken > 0


@sizes(
    "sim n_in n_out unit",
    test="icarus-4-18-1",
    check="icarus-16-16-8 icarus-16-8-1 icarus-4-4-1 icarus-4-8-8 icarus-8-16-16 icarus-8-8-8 "
    "verilator-16-16-8 verilator-4-18-1 verilator-4-8-8",
    nightly="icarus-16-18-1 icarus-16-64-1 icarus-16-8-8 icarus-4-8-4 icarus-4-9-1 icarus-8-8-1",
)
def test_byte_gearbox(sim: str, n_in: int, n_out: int, unit: int) -> None:
    params = {"IN_BYTES": n_in, "OUT_BYTES": n_out, "UNIT": unit}
    sources = [f"rtl/lib/byte_{name}.v" for name in ("gearbox", "ring", "pairs")]
    sources.append("rtl/lib/ram_1r1w_async.v")
    run_bench(sim, "byte_gearbox", sources, "tb.byte_gearbox.test_byte_gearbox", params=params)
