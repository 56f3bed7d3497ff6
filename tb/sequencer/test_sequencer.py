# SPDX-License-Identifier: Apache-2.0
"""sequencer: every issue of every kind of layer, each cycle, with resources that come and fail.

The reference walks the loop nest as the documentation has it and knows of each lane which pixel of
the map it computes. Layers follow each other without a reset, so that all counters run round.
"""

import cocotb
import pytest
from openkpu.tb.sequencer.bench import Bench, Supply
from openkpu.tb.sequencer.layers import EVERY, Maker
from openkpu.tb.simrun import run


async def begin(dut) -> tuple[Bench, Maker]:
    """The device after a reset, and layers for it."""
    bench = Bench(dut)
    await bench.reset()
    return bench, Maker(bench.array, bench.sizes)


def hold(bench: Bench, *names: str) -> None:
    """All of these were met."""
    missing = [name for name in names if not bench.met[name]]
    assert not missing, f"never met: {missing} of {dict(bench.met)}"


@cocotb.test()
async def every_kind(dut) -> None:
    """All kinds with all pools; everything is there, so an issue is made in every cycle."""
    bench, maker = await begin(dut)
    for kind, pool in EVERY:
        await bench.play(maker.draw(kind, pool), Supply())


@pytest.mark.parametrize(
    ("sim", "n_y", "n_z", "tile_w", "tile_rows", "wbuf_rows", "share"),
    [
        ("icarus", 2, 2, 16, 32, 64, 1),
        ("icarus", 4, 4, 16, 32, 256, 1),
    ],
)
def test_sequencer(
    sim: str, n_y: int, n_z: int, tile_w: int, tile_rows: int, wbuf_rows: int, share: int
) -> None:
    sources = ["rtl/sequencer/*.v", "rtl/lib/stripe_iter.v"]
    params = {"N_Y": n_y, "N_Z": n_z, "TILE_W": tile_w, "TILE_ROWS": tile_rows}
    params |= {"WBUF_ROWS": wbuf_rows, "POST_SHARE": share}
    run(sim, "sequencer", sources, "tb.sequencer.test_sequencer", params=params)
