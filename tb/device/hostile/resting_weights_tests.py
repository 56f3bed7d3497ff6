# SPDX-License-Identifier: Apache-2.0
"""Weights that lie in the AI RAM: while they are loaded the bus rests, and the watchdog sees it.

docs/programming.md, section 10: the duration of a layer does not matter. The bus has no wait
states, so that not even the least limit may end a run.
"""

from typing import Any

import numpy as np

from openkpu.generators.generate import random_layer
from openkpu.layer.vectors import VectorLayer
from openkpu.network.network import Network
from openkpu_tb.core.registers import AI, EIGHT_BIT_MODE
from openkpu_tb.device.device import Device, Tables
from openkpu_tb.device.inference_stream import prepare_stream
from openkpu_tb.device.simulation import rng
from tb.device.checked import checked
from tb.device.hostile.tiny_jobs import at_rest

LEAST = 256
RESULT_ROW, KEPT_ROW = 500, 600  # of the AI RAM, behind the map
LONGEST = 100_000  # cycles of a run
PLAIN: dict[str, Any] = {"depthwise": False, "fc": False, "eight_bit": True}


async def run_layer(device: Device, layer: VectorLayer, *, kept: bool) -> None:
    """One layer by the host, its weights in the AI RAM or in storage; its map must be exact."""
    arg = await device.place_tables(layer.arg, Tables(layer.weights, layer.bn, layer.act))
    if kept:
        arg = arg.replace(kept_weights=1, para_start_addr=64 * KEPT_ROW)
        rows = np.pad(layer.weights, (0, -layer.weights.size % 64))
        await device.back.load_ram(KEPT_ROW, rows)
    await device.load_map(arg.in_layout, layer.x)
    await device.write(EIGHT_BIT_MODE, 1)
    await device.push([int(word) for word in arg.replace(send_data_out=0).encode()])
    assert await at_rest(device, LONGEST)
    assert not await device.error()
    found, _ = await device.read_map(arg.out_layout)
    np.testing.assert_array_equal(found, layer.y.view(np.uint8))


@checked()
async def kept_weights(device: Device) -> None:
    """400 channels of a map of 16 pixels: the array waits for weights most of the time."""
    await device.write(AI["AI_WATCHDOG"], LEAST)
    kind: dict[str, Any] = {"c": 400, "h": 4, "w": 4, "o": 16, "kernel": 3, "pool": 0}
    layer = random_layer(rng(), src=0, dst=RESULT_ROW, **PLAIN | kind)
    for kept in (False, True):
        await run_layer(device, layer, kept=kept)


@checked()
async def waiting_weights(device: Device) -> None:
    """A list; the weights of its later layers wait in AI_SPARE_ROWS while the first ones run."""
    await device.write(AI["AI_WATCHDOG"], LEAST)
    network = Network(eight_bit=True)
    x, signed = rng().integers(0, 256, (4, 40, 60)).astype(np.uint8), False
    kinds: list[dict[str, Any]] = [
        {"o": 24, "kernel": 3, "pool": 4},
        {"o": 48, "kernel": 3, "pool": 4},
        {"o": 240, "kernel": 1, "pool": 0},
        {"o": 32, "kernel": 3, "pool": 0},
        {"o": 8, "fc": True},
    ]
    for kind in kinds:
        layer = random_layer(rng(), x=x, signed_in=signed, **PLAIN | kind)
        network.add(layer.arg, layer.weights, layer.bn, layer.act)
        x, signed = layer.y, bool(layer.arg.signed_out)
    network.place()
    network.validate()
    image = rng().integers(0, 256, (1, *network.in_shape), dtype=np.uint8)
    golden = network.run(image[0]).stored.reshape(-1)
    stream = await prepare_stream(device, network, image, continuous=False, spare=None)
    await device.start()
    assert await at_rest(device, LONGEST)
    assert not await device.error()
    found, _ = await device.back.read_storage(stream.results[0], golden.size)
    np.testing.assert_array_equal(found, golden)
