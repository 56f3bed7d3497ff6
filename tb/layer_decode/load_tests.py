# SPDX-License-Identifier: Apache-2.0
"""layer_decode: which loads are too long (docs/kpu.md section 2, "Weight loads"). Run by
test_layer_decode, on the same builds."""

from cocotb.triggers import RisingEdge

from openkpu.layer.argument import ERROR_CODES, LayerArg
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
