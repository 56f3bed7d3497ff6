# SPDX-License-Identifier: Apache-2.0
"""What is done with the device behind any bridge: recorded layers, and streams that fail."""

import os
from collections.abc import Callable

import numpy as np

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu.layer import vectors
from openkpu.network.network import Network
from openkpu.prediction.roofline import layer_cycles
from openkpu_tb.core.registers import AI, Err
from openkpu_tb.device.device import Device, DeviceError, Tables
from openkpu_tb.device.events import mismatches
from openkpu_tb.device.inference_stream import run_stream, stream_error
from openkpu_tb.device.simulation import rng

VECTORS = sorted((ROOT / "models/tests/data/vectors").glob("rand_50*.npz"))
LIMIT = 400_000  # cycles of an inference


def pictures(network: Network, count: int) -> np.ndarray:
    return rng(7).integers(0, 256, (count, *network.in_shape), dtype=np.uint8)


async def recorded_layers(device: Device, rough: Callable[[int], None]) -> None:
    """Recorded layers; ``rough`` sets the bus before each, by its number."""
    config = configs.load_config(os.environ["OKPU_CONFIG"])
    count = 0
    for layer in vectors.load_cases(VECTORS, say=print):
        rough(count)
        y, unknown = await device.run_layer(
            layer.arg,
            Tables(layer.weights, layer.bn, layer.act),
            layer.x,
            x2=layer.x2,
            eight_bit=layer.eight_bit,
            limit=50_000 + 200 * layer_cycles(config, layer.arg, eight_bit=layer.eight_bit),
        )
        wrong, first = mismatches(y, unknown, layer.y)
        assert not wrong, f"{layer.title}: {wrong} bytes differ, first {first}"
        count += 1
    assert count > 20


async def exact_stream(device: Device, network: Network, count: int, times: int = 1) -> None:
    """A stream of so many images; every result is exact. ``times``: the usual limit."""
    run = await run_stream(device, network, pictures(network, count), limit=times * LIMIT)
    assert len(run.ends) == count and not run.wrong.any(), run.wrong


async def fails(device: Device, count: int) -> DeviceError:
    """Start a stream of ``count`` images that ends with a bus error; the device is then idle."""
    found = await stream_error(device, count, 8 * LIMIT)
    assert found.code == Err.BUS_ERROR, found
    device.tb.cfg_err_hi.value = device.tb.cfg_err_lo.value = 0
    await device.read_until(AI["AI_STATUS"], lambda status: not status & 1, 9000, "AI_STATUS")
    await device.clear()
    return found
