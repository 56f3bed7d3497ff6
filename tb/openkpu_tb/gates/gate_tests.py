# SPDX-License-Identifier: Apache-2.0
"""A netlist of the device, by its pins alone: networks in storage, results compared."""

import cocotb
import numpy as np

from openkpu import digits
from openkpu.generators.generate import Limits, random_network
from openkpu.network.network import Network
from openkpu_tb.device.device import Device
from openkpu_tb.device.inference_stream import finish_stream, golden_results, prepare_stream

LIMIT = 200_000  # cycles of an inference


async def run(tb, network: Network, images: np.ndarray) -> None:
    """Images in one stream; every byte of every result as the golden model has it."""
    device = Device(tb, cocotb.RANDOM_SEED)
    await device.reset()
    network.place(device.back.ram_rows)
    storage = await prepare_stream(device, network, images)
    began = int(tb.cycle.value)
    await device.start()
    await finish_stream(device, len(images), LIMIT)
    cycles = device.woke - began
    golden = await golden_results(network, images)
    for number, expected in enumerate(golden):
        data, unknown = await device.back.read_storage(storage.results[number], expected.size)
        assert not unknown.any(), f"result {number} has unknown bits"
        wrong = int((data != expected).sum())
        assert wrong == 0, f"result {number}: {wrong} of {expected.size} bytes differ"
    device.check_rules()
    size = golden.size
    tb._log.info("%d images, %d bytes exact, %d cycles", len(images), size, cycles)


@cocotb.test()
async def a_layer(tb) -> None:
    """A convolution with batch norm, activation and pooling, alone."""
    rng = np.random.default_rng(cocotb.RANDOM_SEED & 0xFFFFFFFF)
    limits = Limits(channels=8)
    network, _ = random_network(rng, shape=(3, 12, 12), layers=1, fc_last=False, limits=limits)
    images = rng.integers(0, 256, (2, *network.in_shape), dtype=np.uint8)
    await run(tb, network, images)


@cocotb.test()
async def digit(tb) -> None:
    """Two handwritten digits, the second prefetched while the first one is at work."""
    await run(tb, digits.load_network(), digits.load_data()[1].pixels[:2])
