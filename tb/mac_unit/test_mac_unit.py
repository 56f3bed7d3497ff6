# SPDX-License-Identifier: Apache-2.0
"""mac_unit: sums of gated products, choice, and operand registers that stay while gated."""

import random

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from openkpu_tb.core.pipeline_bench import reset
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

PIXELS = (0, 1, 127, 128, 129, 254, 255)
INPUTS = ("valid", "sgn", "pixel", "weight", "psum_in", "xsum_in", "best", "least")


def operands(top: int) -> tuple[int, int, int, int]:
    """(valid, signed, byte of a pixel, weight), with the ends of the ranges among them."""
    pixel = random.choice(PIXELS) if random.random() < 0.5 else random.randrange(256)
    weight = random.choice((0, 1, top, random.randint(0, top)))
    return int(random.random() < 0.8), random.getrandbits(1), pixel, weight


def product(op: tuple[int, int, int, int]) -> tuple[int, int]:
    """(product, pixel) as they are summed: nothing unless valid and above zero."""
    valid, signed, byte, weight = op
    pixel = byte - 256 if signed and byte > 127 else byte
    return (pixel * weight, pixel) if valid and pixel > 0 else (0, 0)


@cocotb.test()
async def sums_and_gating(dut) -> None:
    """Each cycle new operands: both sums after three cycles, operand registers as the gate says."""
    await reset(dut, *INPUTS)
    top = (1 << int(dut.WEIGHT_BITS.value)) - 1
    gate, nth = int(dut.GATE.value), int(dut.NTH.value)
    most = nth * 255 * top  # the sum that comes in
    held = None  # contents of the operand registers
    before = (0, 0, 0, 0)  # what the operand registers got last
    multiplied = (0, 0)  # product and pixel in the registers behind the multiplier
    kept = toggled = 0
    want: tuple[int, int] | None = None  # sums expected in the next cycle
    for _ in range(3000):
        op = operands(top)
        sums = random.choice((0, most, random.randint(0, most))), random.randint(0, 255 * nth)
        dut.valid.value, dut.sgn.value, dut.pixel.value, dut.weight.value = op
        dut.psum_in.value, dut.xsum_in.value = sums
        await RisingEdge(dut.clk)
        # values from before this edge
        if want is not None:
            assert (int(dut.psum_out.value), int(dut.xsum_out.value)) == want
        if held is not None:
            now = int(dut.pixel_q.value) & 255, int(dut.weight_q.value)
            assert now == held, f"operand registers {now}, expected {held}"
        # this edge adds the product made in the cycle before to the sums that come in now
        want = (sums[0] + multiplied[0], sums[1] + multiplied[1])
        multiplied = product(before)
        enabled = product(op)[1] > 0
        new = op[2:]
        if gate == 2:  # each valid pair is multiplied, a pixel below zero as zero
            enabled = bool(op[0])
            new = max(0, op[2] - 256 * (op[1] and op[2] > 127)), op[3]
        if enabled or not gate:
            toggled += held is not None and new != held and not enabled
            held = new
        else:
            kept += held is not None and new != held
        before = op
    if gate == 2:
        assert kept > 300, "only operands that are not valid are held"
    elif gate:
        assert kept > 500, "too few gated operands that differ from the held ones"
    else:
        assert toggled > 500, "without the gate the registers follow every operand"


@cocotb.test()
async def choice(dut) -> None:
    """A unit that chooses passes the sum less its product, or zero on the wrong side, and
    counts no pixel; one behind it adds its product to either; others only add."""
    await reset(dut, *INPUTS)
    top = (1 << int(dut.WEIGHT_BITS.value)) - 1
    mask = (1 << int(dut.PW.value)) - 1
    kind, most = int(dut.CHOICE.value), int(dut.NTH.value) * 255 * top
    for best, least in [(1, 0), (1, 1), (0, 1), (1, 0)]:
        dut.best.value, dut.least.value = best, least
        for number in range(120):
            op = operands(top)
            result, pixel = product(op)
            # also equal ones, neighbours, and the ends
            near = min(most, max(0, result + random.choice((-1, 0, 1))))
            other = random.choice((near, 0, most, random.randint(0, min(most, 255 * top))))
            if kind == 2 and best and least:
                other = -random.choice((0, 1, result, random.randint(0, result)))
            pixels = random.randint(0, 255 * int(dut.NTH.value))
            dut.valid.value, dut.sgn.value, dut.pixel.value, dut.weight.value = op
            dut.psum_in.value, dut.xsum_in.value = other & mask, pixels
            await ClockCycles(dut.clk, 4)
            got = int(dut.psum_out.value), int(dut.xsum_out.value)
            want = (other + result) & mask, pixels + pixel
            if kind == 1 and best:
                want = (min if least else max)(other - result, 0) & mask, pixels
            assert got == want, f"{number}, best {best}, least {least}: {other}, {op}: {got}"


@sizes(
    "sim wb gate nth choice",
    test="icarus-16-1-7-1",
    check="icarus-8-0-8-2 icarus-8-2-7-1 icarus-16-2-3-0 icarus-16-1-8-2 icarus-8-1-3-0"
    " icarus-16-1-0-0 verilator-16-1-7-1",
)
def test_mac_unit(sim: str, wb: int, gate: int, nth: int, choice: int) -> None:
    params = {"WEIGHT_BITS": wb, "GATE": gate, "NTH": nth, "CHOICE": choice}
    run_bench(sim, "mac_unit", ["rtl/mac/mac_unit.v"], "tb.mac_unit.test_mac_unit", params=params)
