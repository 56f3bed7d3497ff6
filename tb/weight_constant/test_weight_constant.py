# SPDX-License-Identifier: Apache-2.0
"""weight_constant: ((arg_w * sum) >> shr_w) + addc, sums of every width, at the rate it states."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from openkpu_tb.core.pipeline_bench import reset, signed
from openkpu_tb.simrun import run_bench

INPUTS = ("start", "arg_w", "shr_w", "addc", "above_17", "above_34", "valid", "sum", "row", "bank")
LAYERS, CHANNELS = 150, 12
LATEST = 10  # the edge that takes a sum, nine cycles, and the one in which kc_we stands
MULTIPLIERS = (0, 1, 0x7FFFFF, 0x800000, 0xFFFFFF, 0x010000, 0xFF0000)
BITS = (17, 34, 37)  # of sums: by above_17 and above_34


def drawn(bits: int) -> int:
    """A sum: the largest one, one of few bits, or any."""
    return random.choice(((1 << bits) - 1, random.getrandbits(4), random.getrandbits(bits)))


async def begin(dut, arg_w: int, shr_w: int, bits: int) -> int:
    """Start a layer; the cycles that a sum of it takes, once the multiplier is moved."""
    dut.start.value, dut.arg_w.value, dut.shr_w.value = 1, arg_w, shr_w
    dut.above_17.value, dut.above_34.value = int(bits > 17), int(bits > 34)
    dut.addc.value = random.getrandbits(36)
    await RisingEdge(dut.clk)
    dut.start.value = 0
    await RisingEdge(dut.clk)
    for _ in range(shr_w + 1):
        if not int(dut.scaling.value):
            return int(dut.cycles.value)
        await RisingEdge(dut.clk)
    raise AssertionError(f"the multiplier is not moved in {shr_w} cycles")


@cocotb.test()
async def constants(dut) -> None:
    """Layers of every width of sums and shift; a sum as soon as one may come, or later."""
    await reset(dut, *INPUTS)
    rows, banks = 1 << len(dut.row), 1 << len(dut.bank)
    widths = set()
    for number in range(LAYERS):
        bits, shr_w = BITS[number % len(BITS)], random.randrange(16)
        arg_w = random.choice((*MULTIPLIERS, random.getrandbits(24), random.getrandbits(24)))
        cycles = await begin(dut, arg_w, shr_w, bits)
        widths.add(cycles)
        addc = int(dut.addc.value)
        due: list[tuple[int, tuple[int, int, int]]] = []  # (latest cycle, what is written)
        free, left, now = 0, CHANNELS, 0
        while left or due:
            valid = left > 0 and now >= free and random.random() < 0.7
            total, place = drawn(bits), (random.randrange(rows), random.randrange(banks))
            dut.valid.value, dut.sum.value = int(valid), total
            dut.row.value, dut.bank.value = place
            await RisingEdge(dut.clk)
            if int(dut.kc_we.value):
                assert due, f"layer {number}: a constant that nobody asked for"
                latest, want = due.pop(0)
                got = tuple(int(p.value) for p in (dut.kc_row, dut.kc_bank, dut.kc_data))
                assert got == want, f"layer {number}, {bits} bits, {arg_w:#x} >> {shr_w}: {got}"
                assert now <= latest, f"layer {number}: {now - latest} cycles late"
            assert not due or now <= due[0][0], f"layer {number}: no constant"
            if valid:
                assert not due or int(dut.busy.value), f"layer {number}: not busy"
                constant = (signed(arg_w, 24) * total >> shr_w) + addc & (1 << 36) - 1
                due.append((now + LATEST, (*place, constant)))
                free, left = now + cycles, left - 1
            now += 1
        dut.valid.value = 0
        await RisingEdge(dut.clk)
        assert not int(dut.busy.value), f"layer {number}: busy behind its last constant"
    # one product a cycle, or the parts that there can be: two sum digits of the multiplier's three
    assert widths == ({2, 3, 4, 5, 6} if int(dut.SERIAL.value) else {1})


@cocotb.test()
async def resets(dut) -> None:
    """A sum before a reset gives no constant behind it, whenever the reset comes."""
    await reset(dut, *INPUTS)
    for after in range(LATEST + 1):
        await begin(dut, 3, 0, 37)
        dut.valid.value, dut.sum.value = 1, 5
        await RisingEdge(dut.clk)
        dut.valid.value = 0
        await ClockCycles(dut.clk, after)
        dut.rst.value = 1
        await RisingEdge(dut.clk)
        dut.rst.value = 0
        for _ in range(LATEST + 3):
            await RisingEdge(dut.clk)
            assert not int(dut.kc_we.value), f"reset {after} cycles behind a sum"
            assert not int(dut.busy.value), f"busy behind a reset {after} cycles behind a sum"
        # nor does a reset leave the multiplier on its way
        dut.start.value, dut.shr_w.value = 1, 15
        await RisingEdge(dut.clk)
        dut.start.value = 0
        await RisingEdge(dut.clk)
        dut.rst.value = 1
        await RisingEdge(dut.clk)
        dut.rst.value = 0
        await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)
        assert not int(dut.scaling.value)


@pytest.mark.tier(check=["verilator-1", "verilator-0"])
@pytest.mark.parametrize(("sim", "serial"), [("verilator", 1), ("verilator", 0), ("icarus", 1)])
def test_weight_constant(sim: str, serial: int) -> None:
    sources = ["rtl/weight/weight_constant.v"]
    test = "tb.weight_constant.test_weight_constant"
    run_bench(sim, "weight_constant", sources, test, params={"SERIAL": serial})
