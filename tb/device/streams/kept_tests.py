# SPDX-License-Identifier: Apache-2.0
"""Weights that are kept in the AI RAM: streams, lists, layers of the host, errors, resets."""

import dataclasses
import os

import numpy as np

from openkpu.generators.generate import random_layer
from openkpu.layer.golden import run_layer
from openkpu.layer.layout import AI_RAM_ROWS as RAM_ROWS
from openkpu.layer.layout import ROW_BYTES
from openkpu.network import kept
from openkpu.network.network import Network
from openkpu_tb.core.registers import AI, EIGHT_BIT_MODE, Err
from openkpu_tb.device.device import Device, DeviceError, Tables
from openkpu_tb.device.inference_stream import (
    BRING,
    prepare_stream,
    run_one_by_one,
    run_stream,
    steady,
    stream_error,
)
from openkpu_tb.device.simulation import SLOW, rng
from openkpu_tb.runs.run_stream import DISTURBED
from tb.device.checked import checked
from tb.device.streams.stream_tests import LIMIT, a_network, pictures


def keeping(network: Network, share: float = 1.0) -> Network:
    """The network with the weights of some layers in free rows, anywhere in them."""
    places = kept.scatter(rng(7), network, RAM_ROWS, share)
    result = dataclasses.replace(network, kept=places)
    result.validate()
    assert places or share < 1.0
    return result


@checked()
async def streams(tb, device: Device) -> None:
    """Networks with all, or some, of their weights in the AI RAM; every result exact, on a bus with
    random wait states, lost grants, RETRY and SPLIT too."""
    for turn in range(3 if SLOW else 10):
        disturbed = turn >= (2 if SLOW else 6)
        for name, value in DISTURBED.items():
            getattr(tb, f"cfg_{name}").value = value if disturbed else 0
        network = keeping(a_network(rng(turn), dense=bool(turn % 2)), 1.0 if turn % 3 else 0.5)
        limit = LIMIT * (8 if disturbed else 1)
        run = await run_stream(device, network, pictures(network, 3), limit=limit, base=48 * turn)
        assert not run.wrong.any() and len(run.ends) == 3, run.wrong
        assert run.counters["inf_kept"] in (0, 2)
    run = await run_one_by_one(device, network, pictures(network, 2), limit=8 * LIMIT)
    assert not run.wrong.any()


@checked()
async def fewer_beats(device: Device) -> None:
    """Kept weights do not cross the bus, whether or not the weight buffer has room for all."""
    network = a_network(rng(3), dense=True)
    with_all = keeping(network)
    images = pictures(network, 4)
    plain = await run_stream(device, network, images, limit=LIMIT)
    found = await run_stream(device, with_all, images, limit=LIMIT)
    assert not plain.wrong.any() and not found.wrong.any()
    assert plain.counters["inf_kept"] == found.counters["inf_kept"]
    size = sum(kept.size(network, i) for i in with_all.kept)
    inferences = 1 if plain.counters["inf_kept"] else len(images)
    saved = plain.counters["bus_rd_beats"] - found.counters["bus_rd_beats"]
    lanes = int(os.environ["OKPU_BUS"]) // 8
    least = inferences * sum(kept.size(network, i) // lanes for i in with_all.kept)
    most = inferences * (size // lanes + 2 * sum(network.layers[i].loads for i in with_all.kept))
    assert least <= saved <= most, f"{saved} beats saved, {least} to {most} hold the weights"
    # a word of weights takes a cycle of the memory, in which no map is read
    words = sum(kept.size(network, i) // 16 + 2 for i in with_all.kept)
    assert steady(found) <= steady(plain) + words + 8 * len(network.layers)


@checked()
async def host_layers(device: Device) -> None:
    """Layers of the host, their weights at any byte of the AI RAM, 8 and 16 bits, several loads."""
    random = rng()
    for turn in range(4 if SLOW else 12):
        eight_bit = bool(turn % 3)
        layer = random_layer(
            random, c=int(random.integers(1, 12)), h=6, w=int(random.integers(4, 40)),
            o=int(random.integers(2, 14)), eight_bit=eight_bit, fc=turn % 4 == 3,
            per_load=3 if turn % 2 else None,
        )  # fmt: skip
        arg, x = layer.arg, layer.x.view(np.uint8)
        size = arg.replace(para_start_addr=0).weights_end(eight_bit)
        parts = [p for p in kept.free_rows([arg], RAM_ROWS) if p[1] * ROW_BYTES > size]
        low, rows = parts[int(random.integers(0, len(parts)))]
        at = int(random.integers(0, min(rows * ROW_BYTES, 65536) - size)) + low * ROW_BYTES
        arg = await device.place_tables(arg, Tables(layer.weights, layer.bn, layer.act))
        arg = arg.replace(kept_weights=1, para_start_addr=at, int_en=1)
        first = at // ROW_BYTES
        rows = np.zeros(((at + size) // ROW_BYTES + 1 - first) * ROW_BYTES, np.uint8)
        rows[at - first * ROW_BYTES :][: layer.weights.size] = layer.weights
        await device.back.load_ram(first, rows)
        await device.load_map(arg.in_layout, x)
        await device.write_many({EIGHT_BIT_MODE: int(eight_bit), EIGHT_BIT_MODE + 4: 0})
        await device.push([int(w) for w in arg.encode()])
        await device.finish(LIMIT)
        y, unknown = await device.read_map(arg.out_layout)
        want = run_layer(arg, x, layer.weights, layer.bn, layer.act, eight_bit=eight_bit).y
        assert not unknown.any() and (y == want.view(np.uint8)).all(), f"turn {turn}"


@checked()
async def refused(device: Device) -> None:
    """Weights that end behind the AI RAM, a pooling task with the flag; what follows is exact."""
    network = keeping(a_network(rng(1), dense=False))
    images = pictures(network, 2)
    last = max(network.kept)
    end = RAM_ROWS * ROW_BYTES
    for over in (1, 64, 1 << 21, 1 << 31):
        storage = await prepare_stream(device, network, images)
        words = network.layers[last]
        at = end - kept.size(network, last) + over
        moved = words.replace(kept_weights=1, para_start_addr=at)
        place = storage.registers["AI_LIST_ADR"] + 96 * last
        await device.back.load_storage(place, moved.encode().view(np.uint8))
        error = await stream_error(device, 2, LIMIT)
        assert error.code == Err.BAD_WEIGHTS and error.layer == last, error
        await device.read_until(AI["AI_STATUS"], lambda s: not s & 1, 4000, "AI_STATUS")
    (task, *_) = storage.bring
    try:
        await device.bring([task.replace(kept_weights=1)], BRING)
        raise AssertionError("the task was not refused")
    except DeviceError as error:
        assert error.code == Err.BAD_FLAGS, error
    run = await run_stream(device, network, images, limit=LIMIT)
    assert not run.wrong.any()


@checked()
async def resets(device: Device) -> None:
    """A soft reset at any moment of a stream: the next stream is exact."""
    random = rng()
    network = keeping(a_network(rng(2), dense=True))
    images = pictures(network, 3)
    for _ in range(2 if SLOW else 8):
        await prepare_stream(device, network, images)
        await device.start()
        await device.wait_at_most(int(random.integers(1, 2500 if SLOW else 9000)))
        await device.soft_reset()
        await device.clear()
    run = await run_stream(device, network, images, limit=LIMIT)
    assert not run.wrong.any()
