# SPDX-License-Identifier: Apache-2.0
"""Inside the device, for the diagrams: from the fill to the array."""

from collections.abc import Callable

import cocotb
import numpy as np

from openkpu.generators.generate import Limits, random_layer
from openkpu.layer.argument import LayerArg
from openkpu_tb.device.device import Device, Tables
from openkpu_tb.handle import Handle
from openkpu_tb.timing.recorder import Recorder

LIMIT = 100_000
BEHIND = 3  # cycles shown behind the write-back
SHAPE = (2, 4, 16)  # of the layer: one full stripe


@cocotb.test()
async def fill_to_array(tb: Handle) -> None:
    """A 3x3 layer of two channels: rows into the tile buffer, issues, columns, sums, bytes."""
    device = Device(tb, 1)
    await device.reset()
    rng = np.random.default_rng(1)
    x = rng.integers(0, 256, SHAPE, dtype=np.uint8)
    layer = random_layer(
        rng, x=x, o=2, kernel=3, pool=0, depthwise=False, fc=False, eight_bit=True, limits=Limits()
    )
    core = tb.dut.u_core

    def column(number: int) -> Callable[[], str]:
        return lambda: str(core.column_re.value)[::-1][number]

    recorder = Recorder(
        tb.clk,
        {
            "fill_gnt": core.fill_gnt,
            "tile_filled": lambda: str(int(core.tile_filled.value)),
            "issued": core.u_seq.issued,
            "column_re[0]": column(0),
            "column_re[1]": column(1),
            "column_re[8]": column(8),
            "row_take": core.row_take,
            "sum_valid": core.sum_valid,
            "post_valid": core.post_valid,
            "writeback_gnt": core.writeback_gnt,
        },
    )
    arg = layer.arg.replace(image_src_addr=0, image_dst_addr=64)
    tables = Tables(layer.weights, layer.bn, layer.act)
    y, unknown = await device.run_layer(arg, tables, x, eight_bit=True, limit=LIMIT)
    assert not unknown.any() and np.array_equal(y, layer.y)
    check_skew(recorder, arg)
    ends = [i for i, v in enumerate(recorder.rows["writeback_gnt"]) if v == "1"]
    recorder.save(recorder.first("fill_gnt") - 1, ends[-1] + BEHIND)


def check_skew(recorder: Recorder, arg: LayerArg) -> None:
    """Column t reads t cycles after column 0, which reads in the cycle of the issue."""
    issues = [i for i, v in enumerate(recorder.rows["issued"]) if v == "1"]
    for number in (0, 1, 8):
        reads = [i for i, v in enumerate(recorder.rows[f"column_re[{number}]"]) if v == "1"]
        assert reads == [i + number for i in issues]
    top: Handle = cocotb.top
    n_y = int(top.N_Y.value)
    # the 64 pixels of the stripe in every step, for each group of n_z = 2 output channels
    assert len(issues) == 64 // n_y * arg.i_ch_num
