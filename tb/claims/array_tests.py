# SPDX-License-Identifier: Apache-2.0
"""C6 the sign-gated array, C7 pooling of what it computes."""

import numpy as np
from cocotb.triggers import FallingEdge

from openkpu.arithmetic.integers import ceil_div
from openkpu.arithmetic.pooling import PICKS
from openkpu.generators.generate import random_layer
from openkpu.layer import airam
from openkpu.layer.layout import ROW_BYTES, Layout
from openkpu_tb.claims import networks, recorder
from openkpu_tb.claims.recorder import option
from openkpu_tb.claims.recording import Recording
from openkpu_tb.core.registers import EIGHT_BIT_MODE
from openkpu_tb.device.device import Device, Tables
from openkpu_tb.device.simulation import SLOW, rng
from tb.device.checked import checked

AI_CONFIG = 0x1FC
POOLS = range(10)
ROWS = 128  # rows of the AI RAM that a layer of C7 may touch


@checked()
async def ungated_operands_toggle(device: Device) -> None:
    """The other half of C6, a build without the gate (GATE=0): operands toggle for nothing, the
    results are the same, and the counter that has to stay at 0 with the gate can count."""
    assert option("GATE", 1) == 0
    run = (await recorder.stream(device, networks.small_case(2))).exact()
    wanted = run.counters["macs_issued"] - run.counters["macs_gated"]
    assert run.products == wanted and run.idle_toggles > 0
    assert run.idle_toggles > run.toggles // 10, f"{run.idle_toggles} of {run.toggles}"


@checked()
async def c6_gated_array(device: Device) -> None:
    """Operand bits of every multiplier: none toggles unless its pixel is above zero."""
    shape = await device.read(AI_CONFIG)
    assert [shape >> s & 255 for s in (0, 8, 16)] == [9, option("N_Y", 0), option("N_Z", 0)]
    assert option("GATE", 1) == 1
    runs = [await recorder.run_small(device)]
    if not SLOW:  # real scans
        runs.append((await recorder.stream(device, networks.real(6))).exact())
    for run in runs:
        no_toggle_without_a_product(run)


def piece(pool: int) -> int:
    """Pixels of a line that are written together: a word, or what the pooling unit makes at a time.

    Lines have 16 pixels at most, so that the rest of a wider word belongs to other channels.
    """
    pooled = pool != 0 and pool not in PICKS
    if option("N_Y", 4) * option("N_Z", 4) < 8 and option("PATH", 64) == 16:
        return 1 if pooled else 4
    return 8 if pooled and option("PATH", 64) == 16 else 16


def no_toggle_without_a_product(run: Recording) -> None:
    """What the bench counted in the units, the device's counters, the golden model."""
    issued, gated = run.counters["macs_issued"], run.counters["macs_gated"]
    assert run.idle_toggles == 0, f"{run.idle_toggles} toggles without a multiplication"
    assert run.toggles > 0 and gated > 0
    # the products that the bench saw in the units are the ones that the device says it needed
    assert run.products == issued - gated, f"{run.products} products, {issued} - {gated} wanted"
    assert any(arg.signed_in for arg in run.network.layers), "no negative pixel is possible"
    golden = sum(
        result.macs_gated
        for number in run.images
        for result in run.network.run(images_of(run)[number]).layers
    )
    assert gated == golden, f"{gated} multiplications gated, {golden} pixels are not positive"


def images_of(run: Recording) -> np.ndarray:
    """Images of a run out of its storage."""
    r, shape = run.storage.registers, run.network.in_shape
    at = r["AI_PIX_ADR"] - run.storage.base
    size = r["AI_PIX_STRIDE"] * run.count
    rows = run.storage.data[at : at + size].reshape(run.count, -1)
    return rows[:, : int(np.prod(shape))].reshape(run.count, *shape)


@checked()
async def c7_pooled_before_the_cache(device: Device) -> None:
    """Every kind of pool: rows written are those of the pooled map, no other byte changes."""
    random = rng()
    for pool in POOLS:
        if SLOW and pool in (2, 4, 5, 7):
            continue
        size = (8, 16) if pool in (3, 4, 7) else (6, 10)
        layer = random_layer(
            random, c=2, h=size[0], w=size[1], o=4, kernel=3, pool=pool, depthwise=False,
            fc=False, eight_bit=True, src=3, dst=70,
        )  # fmt: skip
        before = random.integers(0, 256, ROWS * ROW_BYTES, dtype=np.uint8)
        airam.pack_map(before, layer.arg.image_src_addr, layer.x)
        arg = await device.place_tables(layer.arg, Tables(layer.weights, layer.bn, layer.act))
        arg = arg.replace(int_en=1, send_data_out=0)
        await device.back.load_ram(0, before)
        await device.write_many({EIGHT_BIT_MODE: 1, EIGHT_BIT_MODE + 4: 0})
        await recorder.begin(device)
        await device.push([int(w) for w in arg.encode()])
        await device.finish(recorder.LIMIT)
        trace = await recorder.end(device)
        await FallingEdge(device.tb.clk)

        stores, fills = trace.at("write_back"), trace.at("fill")
        issued = trace.at("issued")
        out = Layout(*arg.out_shape, base=arg.image_dst_addr)
        assert stores.size and issued.size and issued[0] < stores[0], f"pool {pool}"
        assert set(trace.write_row[stores]) == set(range(out.base, out.base + out.rows))
        # every pooled line is written once, in as many pieces as leave the write-back together:
        # no stripe here begins inside a word, and no line is longer than a stripe
        pieces = ceil_div(out.width, piece(pool))
        assert out.width <= 16
        writes = out.channels * out.height * pieces
        assert stores.size == writes, f"pool {pool}: {stores.size} writes, not {writes}"
        assert trace.read_row[fills].max() < out.base, "a map was read back to be pooled"
        assert not trace.pixel_write.any() and not trace.host_access.any()

        after, unknown = await device.back.read_ram(0, ROWS)
        want = before.copy()
        airam.pack_map(want, out.base, layer.y)
        assert not unknown.any()
        wrong = np.nonzero(after != want)[0]
        assert not wrong.size, f"pool {pool}: {wrong.size} bytes wrong, first {wrong[0]}"
