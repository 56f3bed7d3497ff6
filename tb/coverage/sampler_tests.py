# SPDX-License-Identifier: Apache-2.0
"""Known work on the device: test_sampler.py has the bins that it must hit, and no others."""

from typing import Any

import numpy as np

from openkpu.generators.generate import random_layer
from openkpu.layer.vectors import VectorLayer
from openkpu.network.network import Network
from openkpu_tb.ahb.host_agent import ERROR, Transfer
from openkpu_tb.core.registers import AI, Err
from openkpu_tb.device.device import Device, DeviceError, Tables
from openkpu_tb.device.inference_stream import run_one_by_one, run_stream
from tb.device.checked import checked

LIMIT = 100_000  # cycles of any single wait


def layer(**shape: Any) -> VectorLayer:
    """A layer of this shape; convolutions have their channels in loads of two."""
    shape = {"kernel": 1, "pool": 0, "depthwise": False, "fc": False, "eight_bit": True} | shape
    return random_layer(np.random.default_rng(5), h=4, **shape)


async def run(device: Device, layer: VectorLayer) -> None:
    tables = Tables(layer.weights, layer.bn, layer.act)
    y, unknown = await device.run_layer(
        layer.arg, tables, layer.x, eight_bit=layer.eight_bit, limit=LIMIT
    )
    assert not unknown.any() and np.array_equal(y, layer.y.view(np.uint8))


async def push(device: Device, layer: VectorLayer, **fields: int) -> None:
    """The words of a layer alone: nothing is read back."""
    tables = Tables(layer.weights, layer.bn, layer.act)
    arg = await device.place_tables(layer.arg.replace(int_en=1, **fields), tables)
    await device.load_map(arg.in_layout, layer.x)
    await device.push([int(word) for word in arg.encode()])


@checked()
async def host(tb: Any, device: Device) -> None:
    """Layers of the host, quiet and with wait states, one refused, one that nobody looked at."""
    assert await device.read(AI["AI_PIX_ADR"]) == 0
    await device.write(AI["AI_WGT_ADR"], 0)
    assert await device.read(AI["AI_WGT_ADR"]) == 0
    (refused,) = await device.attempt(Transfer(AI["AI_TAKEN_ADR"], False, size=1))
    assert refused.resp == ERROR
    await run(device, layer(c=3, w=20, o=4, kernel=3, pool=1, per_load=2))
    await run(device, layer(c=3, w=20, o=7, kernel=3, pool=6, per_load=2))
    await run(device, layer(c=2, w=1, o=1, pool=9, eight_bit=False))
    tb.cfg_rd_wait.value = 3
    await run(device, layer(c=4, w=70, depthwise=True, o=4, pool=7))
    tb.cfg_rd_wait.value = 0
    tb.cfg_retry_prob.value = 128
    await run(device, layer(c=4, w=33, fc=True, o=2, per_load=2))
    tb.cfg_retry_prob.value = 0
    unseen = layer(c=2, w=16, o=3, pool=3)
    await push(device, unseen)
    await device.finish(LIMIT)
    await device.soft_reset()
    await device.back.read_ram(0, 1)
    await push(device, unseen, pool_type=12)
    await device.write(AI["AI_BIAS_ADR"], 0)
    try:
        await device.finish(LIMIT)
        raise AssertionError("the bad layer was not refused")
    except DeviceError as error:
        assert error.code == Err.BAD_POOL


@checked()
async def networks(device: Device) -> None:
    """Two layers from a task list, once alone and in a stream: the second one is decoded before the
    first one ends."""
    network = Network()
    for part in (
        layer(c=2, w=16, o=3, kernel=3, pool=8, per_load=3),
        layer(c=3, w=16, o=2, per_load=1),
    ):
        network.add(part.arg, part.weights, part.bn, part.act)
    network.place()
    images = np.random.default_rng(6).integers(0, 256, (3, *network.in_shape), dtype=np.uint8)
    alone = await run_one_by_one(device, network, images[:1], limit=LIMIT)
    stream = await run_stream(device, network, images, limit=LIMIT)
    assert not alone.wrong.any() and not stream.wrong.any()
