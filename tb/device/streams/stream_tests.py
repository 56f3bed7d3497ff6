# SPDX-License-Identifier: Apache-2.0
"""Streams that are hurried, mixed, cut short or hurt: what comes is exact, what follows too."""

import os

import numpy as np

from openkpu import digits
from openkpu.generators.generate import Limits, random_network
from openkpu.network.network import Network, Storage
from openkpu_tb.device.device import Device
from openkpu_tb.device.inference_stream import (
    collect_results,
    prepare_stream,
    run_one_by_one,
    run_stream,
)
from openkpu_tb.device.simulation import SLOW, rng
from tb.device.checked import checked

LIMIT = 400_000  # cycles from one inference to the next, besides those for its weights
WORST = 8  # cycles for a byte of weights on a bus that DISTURBED disturbs; four bytes pass at once


def networks(count: int) -> list[Network]:
    """Small random networks, every other one with fully connected layers; on the fast simulator
    the digits network first."""
    found = [] if SLOW else [digits.load_network()]
    while len(found) < count:
        found.append(a_network(rng(len(found)), dense=len(found) % 2 == 0))
    return found


def a_network(random: np.random.Generator, *, dense: bool, pixels: int = 0) -> Network:
    """A random network whose image has ``pixels`` bytes or more."""
    most = (3, 10, 12) if SLOW else (8, 40, 70)
    while True:
        shape = tuple(
            int(random.integers(low, high)) for low, high in zip((1, 4, 4), most, strict=True)
        )
        if np.prod(shape) >= pixels:
            break
    layers = int(random.integers(2, 4 if SLOW else 8))
    limits = Limits(channels=6) if SLOW else Limits(channels=32)
    return random_network(random, shape=shape, layers=layers, fc_last=dense, limits=limits)[0]


def pictures(network: Network, count: int) -> np.ndarray:
    return rng().integers(0, 256, (count, *network.in_shape), dtype=np.uint8)


async def stream(device: Device, network: Network, count: int, **more) -> None:
    """A stream of random images, every result exact."""
    weights = sum(arg.para_size * arg.load_time for arg in network.layers)
    limit = LIMIT + WORST * weights  # without a place in the buffer they are read for every image
    run = await run_stream(device, network, pictures(network, count), limit=limit, **more)
    assert len(run.ends) == count == run.counters["inferences"] and not run.wrong.any(), run.wrong
    # the device's own counter is the time from the start to the last byte of the last result
    total = run.counters["total"]
    assert 0 <= total - int(run.ends[-1][0]) < 8, (total, run.ends[-1][0])
    # (the last inference may end while the interrupt of the one before is served)
    assert abs(run.span - total) < 60, (run.span, total)


async def results(device: Device, network: Network, images: np.ndarray, storage: Storage) -> None:
    """What is stored now is exact."""
    run = await collect_results(device, network, images, storage, 0)
    assert not run.wrong.any(), f"bytes that differ, by inference: {run.wrong}"


@checked()
async def networks_in_turn(device: Device) -> None:
    """The same network twice, two in turn, a single image, then one by one."""
    first, second = networks(2)
    for network, count in ((first, 3), (first, 2), (second, 3), (first, 1), (second, 2)):
        await stream(device, network, count, base=16 * int(rng().integers(0, 100)))
    run = await run_one_by_one(device, second, pictures(second, 2), limit=LIMIT)
    assert not run.wrong.any()


@checked()
async def wide_images(device: Device) -> None:
    """Images far larger than the pixel FIFO, with and without a place of their own."""
    for turn in range(1 if SLOW else 4):
        network = a_network(rng(turn), dense=bool(turn % 2), pixels=150 if SLOW else 5000)
        await stream(device, network, 3)
        layers = network.layers  # maps in turn in two places only: the input's is used again
        low, high = 0, 16384
        packed = []
        for i, arg in enumerate(layers):
            src, dst = (low, high) if i % 2 == 0 else (high, low)
            packed.append(arg.replace(image_src_addr=src, image_dst_addr=dst))
        crowded = Network(packed, network.weights, network.biases, network.eight_bit)
        crowded.validate()
        await stream(device, crowded, 3)


@checked()
async def reset_in_a_stream(device: Device) -> None:
    """A soft reset at any moment; the next stream is exact."""
    random = rng()
    for network in networks(2):
        for _ in range(3 if SLOW else 8):
            await prepare_stream(device, network, pictures(network, 4))
            await device.start()
            wait = int(random.integers(1, 3000 if SLOW else 12000))
            await device.wait_at_most(wait)
            await device.soft_reset()
            await device.clear()
        await stream(device, network, 3)


@checked()
async def weights_that_do_not_fit(device: Device) -> None:
    """With a small weight buffer the weights are read again; the counter has the inferences that
    keep them."""
    seen = set()
    for network in networks(4):
        run = await run_stream(device, network, pictures(network, 3), limit=LIMIT)
        assert not run.wrong.any()
        kept = run.counters["inf_kept"]
        assert kept in (0, 2), kept
        seen.add(kept)
    assert os.environ.get("OKPU_WBUF") != "64" or 0 in seen, "all weights fit the buffer"
