# SPDX-License-Identifier: Apache-2.0
"""layer_decode: which loads are too long (docs/kpu.md section 2, "Weight loads"), lengths of
vectors and constant terms at their ends, and the cycles that a layer takes (docs/architecture.md
15.6). Run by test_layer_decode, on the same builds."""

import random

from cocotb.triggers import RisingEdge

from openkpu.arithmetic.integers import ceil_div
from openkpu.layer.argument import ERROR_CODES, LayerArg
from openkpu.layer.layout import ROW_BYTES
from openkpu_tb.core.block_bench import block_test
from openkpu_tb.core.descriptor import unpack
from tb.layer_decode.bench import LATENCY, Bench


async def decoded(dut, arg: LayerArg) -> int | dict[str, int]:
    """The code of the refusal, or the descriptor."""
    for word in arg.encode():
        dut.w_valid.value, dut.w_data.value = 1, int(word)
        await RisingEdge(dut.clk)
    dut.w_valid.value, dut.d_ready.value = 0, 1
    for _ in range(LATENCY):
        await RisingEdge(dut.clk)
        if int(dut.err.value):
            return int(dut.err_code.value)
        if int(dut.d_valid.value):
            return unpack(int(dut.desc.value))
    raise AssertionError("neither a descriptor nor a refusal")


@block_test(Bench)
async def a_load_of_more_channels_than_there_are(bench: Bench, dut) -> None:
    """para_size must hold o_ch_num_coef channels; no more than O channels are read."""
    dut.eight_bit.value = 1
    for kernel, c, o, coef in ((1, 5, 3, 4), (3, 2, 3, 8), (1, 1, 1, 2), (1, 7, 6, 6)):
        one = c * kernel * kernel  # bytes of an output channel
        arg = LayerArg.make(c, 4, 4, o, kernel=kernel)
        arg = arg.replace(image_dst_addr=64, o_ch_num_coef=coef, load_time=1)
        for size in (coef * one - 1, o * one) if coef > o else (coef * one - 1,):
            got = await decoded(dut, arg.replace(para_size=size))
            assert got == ERROR_CODES["BAD_WEIGHTS"], f"para_size {size} of {coef} channels: {got}"
        for size in (coef * one, coef * one + 5):
            got = await decoded(dut, arg.replace(para_size=size))
            assert isinstance(got, dict), f"para_size {size} of {coef} channels: code {got}"
            assert got["loads"] == 1 and got["wlast"] == got["wlen"] == o * one, got


@block_test(Bench)
async def vectors(bench: Bench, dut) -> None:
    """A fully connected layer's length is divided by nine: any remainder, up to 2 MiB."""
    dut.eight_bit.value = 1
    shapes = [(c, h, w) for c in (1, 8, 9, 10, 17) for h in (1, 9, 13) for w in (1, 5, 16)]
    shapes += [(1024, 8, 16), (1023, 32, 4), (1022, 73, 1), (64, 512, 3), (13, 511, 16)]
    for c, h, w in shapes:
        arg = LayerArg.make(c, h, w, 1, kernel=1).replace(fc=1, pool_type=0, o_row_wid=1)
        arg = arg.replace(o_col_high=1, image_src_addr=1, image_dst_addr=0, load_time=1)
        arg = arg.replace(para_size=min(c * h * w, (1 << 17) - 1), arg_add=-1 - c)
        rows = ceil_div(c, arg.in_layout.groups) * h * ceil_div(w, ROW_BYTES)
        got = await decoded(dut, arg)
        if rows + 1 > bench.sizes.ram_rows:
            assert got == ERROR_CODES["BAD_ADDR"], f"{c} x {h} x {w}: {got}"
        elif c * h * w >= 1 << 17:
            assert got == ERROR_CODES["BAD_WEIGHTS"], f"{c} x {h} x {w}: {got}"
        else:
            assert isinstance(got, dict), f"{c} x {h} x {w}: code {got}"
            steps, last = divmod(c * h * w - 1, 9)
            want = steps + 1, last + 1, c * h * w, (-1 - c) % (1 << 36)
            assert (got["s"], got["lastn"], got["inb"], got["addc"]) == want, f"{c} x {h} x {w}"


@block_test(Bench)
async def constant_terms(bench: Bench, dut) -> None:
    """arg_add times the input channels, modulo 2^36."""
    dut.eight_bit.value = 1
    for c in (1, 2, 1024, 1025, 8191, 9 * min(1024, bench.sizes.wbuf_rows)):
        for add in (1, -1, (1 << 35) - 1, -(1 << 35), 1 << 17, -(1 << 18), random.getrandbits(35)):
            last = min(4095, bench.sizes.ram_rows - 1)
            arg = LayerArg.make(c, 1, 1, 1, kernel=1).replace(arg_add=add, image_dst_addr=last)
            got = await decoded(dut, arg)
            if ceil_div(c, 9) > bench.sizes.wbuf_rows:
                assert got == ERROR_CODES["BAD_WEIGHTS"], f"{c} channels: {got}"
            else:
                assert isinstance(got, dict), f"{c} channels: code {got}"
                assert got["addc"] == add * c % (1 << 36), f"{add} * {c}: {got['addc']:#x}"


@block_test(Bench)
async def cycles(bench: Bench, dut) -> None:
    """From the last word to the descriptor, with a word every second cycle."""
    dut.eight_bit.value = 1
    plain = LayerArg.make(4, 8, 20, 1, kernel=3).replace(image_dst_addr=64)
    vector = LayerArg.make(4, 2, 2, 1, kernel=1, fc=True).replace(image_dst_addr=64)
    rows = LayerArg.make(4, 8, 20, 4, kernel=3, depthwise=True).replace(image_dst_addr=64)
    two = rows.replace(elementwise=1, image_src2_addr=128)
    apart = plain.replace(kernel_type=0, image_dst_addr=64)
    for arg, takes in ((plain, 35), (vector, 51), (rows, 37), (two, 43), (apart, 35)):
        for word in arg.encode():
            dut.w_valid.value = 0
            await RisingEdge(dut.clk)
            dut.w_valid.value, dut.w_data.value = 1, int(word)
            await RisingEdge(dut.clk)
        dut.w_valid.value, dut.d_ready.value = 0, 1
        count = 0
        while not int(dut.d_valid.value):
            await RisingEdge(dut.clk)
            count += 1
            assert count < LATENCY and not int(dut.err.value), f"{arg}: {count} cycles"
        assert count == takes, f"{count} cycles, {takes} expected: {arg}"
        await RisingEdge(dut.clk)
