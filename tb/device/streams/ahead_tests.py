# SPDX-License-Identifier: Apache-2.0
"""Weights that wait in the AI RAM: that they do, wherever and however few the rows; host, lists,
streams, errors, resets."""

import dataclasses
import os

import numpy as np

from openkpu.arithmetic.integers import ceil_div
from openkpu.generators.generate import random_layer
from openkpu.layer.layout import ROW_BYTES
from openkpu.network import kept
from openkpu.network.network import Network, Storage
from openkpu_tb.core.registers import AI, EIGHT_BIT_MODE, Err
from openkpu_tb.device.device import Device
from openkpu_tb.device.inference_stream import (
    WIDEST,
    collect_results,
    golden_results,
    host_layers,
    prepare_stream,
    run_one_by_one,
    run_stream,
    stream_error,
)
from openkpu_tb.device.simulation import SLOW, rng
from openkpu_tb.runs.run_stream import DISTURBED
from tb.device.checked import checked
from tb.device.streams.stream_tests import pictures

LIMIT = 1_000_000
NARROW = 5  # layers with more weights than the buffer holds
FILL = 0xA5
END = 16  # rows
LAYERS_OF_HOST = 16  # in the layer FIFO


def wide_then_narrow(device: Device, random: np.random.Generator) -> Network:
    """A layer with many pixels and few weights, then layers with few pixels and many weights: their
    weights arrive while the first layer computes. No map lies in the last END rows."""
    few, many = (8, 24) if SLOW else (24, 64)
    network = Network(eight_bit=True)
    x = random.integers(0, 256, (2, 24, 24) if SLOW else (4, 32, 48), dtype=np.uint8)
    signed = False
    # the pool halves lines and columns
    for channels, pool in (*[(few, 2)] * (NARROW - 1), (many, 0), (many, 0)):
        kind = {"o": channels, "kernel": 3, "pool": pool, "depthwise": False, "fc": False}
        layer = random_layer(random, x=x, signed_in=signed, eight_bit=True, **kind)
        network.add(layer.arg, layer.weights, layer.bn, layer.act)
        x, signed = layer.y, bool(layer.arg.signed_out)
    network.place(device.back.ram_rows - END)
    network.validate(device.back.ram_rows)
    return network


async def fill_unused(device: Device, network: Network) -> None:
    """FILL in every row that no map uses."""
    for first, rows in kept.unused_parts(network.layers, device.back.ram_rows):
        await device.back.load_ram(first, np.full(rows * ROW_BYTES, FILL, np.uint8))


async def written(device: Device, network: Network) -> set[int]:
    """The rows that no map uses and that are not FILL any more."""
    found = set()
    for first, rows in kept.unused_parts(network.layers, device.back.ram_rows):
        data, unknown = await device.back.read_ram(first, rows)
        changed = ((data != FILL) | unknown.view(bool)).reshape(rows, ROW_BYTES).any(axis=1)
        found |= {first + int(row) for row in np.flatnonzero(changed)}
    return found


def of(part: tuple[int, int]) -> set[int]:
    return set(range(part[0], part[0] + part[1]))


def parts(device: Device, network: Network) -> list[tuple[int, int]]:
    """None, all there are, few ones from an even and an odd row on, and at the end one."""
    first, rows = network.spare_rows(device.back.ram_rows)
    last = device.back.ram_rows
    return [(0, 0), (first, rows), (last - 7, 7), (first + 1, 5), (first + 2, 2), (last - 1, 1)]


@checked()
async def streams(tb, device: Device) -> None:
    """Results are exact with any rows; only these are written, and they are when there are some.
    On a bus with wait states, lost grants, RETRY and SPLIT too."""
    for turn in range(1 if SLOW else 3):
        network = wide_then_narrow(device, rng(turn))
        images = pictures(network, 2 if SLOW else 3)
        golden = await golden_results(network, images)
        for name, value in DISTURBED.items():
            getattr(tb, f"cfg_{name}").value = value if turn == 2 else 0
        for number, part in enumerate(parts(device, network)):
            if SLOW and number not in (1, 2):
                continue
            await fill_unused(device, network)
            way = run_one_by_one if number % 3 == 1 else run_stream
            run = await way(device, network, images, limit=LIMIT, golden=golden, spare=part)
            assert not run.wrong.any(), f"rows {part}: {run.wrong}"
            found = await written(device, network)
            assert found <= of(part), f"rows {part}, written: {sorted(found - of(part))[:5]}"
            # a word of two rows needs both
            whole = 128 // ROW_BYTES if int(tb.path_bytes.value) == 128 else 1
            assert found or part[1] < 2 * whole, f"no weights waited in rows {part}"


@checked()
async def sooner(device: Device) -> None:
    """With rows to wait in, the bus works while the first layer computes. The loader accepts a word
    of nine weights a cycle, which a bus of 128 bits brings at that time anyway."""
    network = wide_then_narrow(device, rng(5))
    images = pictures(network, 1)
    cycles = []
    for part in (parts(device, network)[0], parts(device, network)[1]):
        run = await run_one_by_one(device, network, images, limit=LIMIT, spare=part)
        assert not run.wrong.any()
        cycles.append(int(run.counters["total"]))
    without, waiting = cycles
    wide = os.environ["OKPU_BUS"] == "128"
    assert waiting < without or wide, f"{waiting} cycles, without rows {without}"
    assert waiting <= without, f"{waiting} cycles, without rows {without}"


@checked()
async def host(device: Device) -> None:
    """Layers of the host, as many as its FIFO holds."""
    network = wide_then_narrow(device, rng(6))
    images = pictures(network, 1)
    storage = await prepare_stream(device, network, images, continuous=False)
    args = host_layers(network, storage)
    await fill_unused(device, network)
    again = range(LAYERS_OF_HOST // len(args))
    await device.write_many({EIGHT_BIT_MODE: 1, EIGHT_BIT_MODE + 4: 0})
    for number in again:
        last = number == len(again) - 1
        await device.push(
            [int(w) for arg in args for w in arg.replace(int_en=arg.int_en and last).encode()]
        )
    await device.finish(LIMIT)
    run = await stored(device, network, images, storage)
    assert not run.any(), run
    assert await written(device, network), "no weights waited"


async def stored(
    device: Device, network: Network, images: np.ndarray, storage: Storage
) -> np.ndarray:
    """Bytes of each result that are wrong."""
    return (await collect_results(device, network, images, storage, 0)).wrong


async def whole_stream(device: Device, network: Network, images: np.ndarray) -> None:
    """A stream of its own is exact."""
    run = await run_stream(device, network, images, limit=LIMIT)
    assert not run.wrong.any(), run.wrong


@checked()
async def resets(device: Device) -> None:
    """A soft reset at any moment while weights wait: a stream with other rows is exact."""
    random, waited = rng(), 0
    network = wide_then_narrow(device, rng(7))
    images = pictures(network, 2)
    first = await run_one_by_one(device, network, images[:1], limit=LIMIT)
    length = int(first.counters["total"])
    for number in range(2 if SLOW else 10):
        await fill_unused(device, network)
        await prepare_stream(device, network, images)
        await device.start()
        await device.wait_at_most(int(random.integers(length // 4, length)))
        await device.soft_reset()
        await device.clear()
        waited += bool(await written(device, network))
        part = parts(device, network)[1 + number % 5]
        run = await run_stream(device, network, images, limit=LIMIT, spare=part)
        assert not run.wrong.any(), f"after reset {number}, rows {part}: {run.wrong}"
    assert waited, "no weights waited at a reset"


@checked()
async def failed_transfers(device: Device) -> None:
    """ERROR on weights of each narrow layer, those before them wait: the report is right, and the
    next stream is exact."""
    network, waited = wide_then_narrow(device, rng(8)), set[int]()
    images = pictures(network, 2)
    tb = device.tb
    for layer in range(1, 1 + NARROW):
        await fill_unused(device, network)
        storage = await prepare_stream(device, network, images)
        arg = network.layers[layer]
        at = storage.registers["AI_WGT_ADR"] + arg.para_start_addr
        at = (at + int(rng(layer).integers(arg.weight_count))) // WIDEST * WIDEST
        tb.cfg_err_lo.value, tb.cfg_err_hi.value = at, at + WIDEST
        error = await stream_error(device, 2, LIMIT)
        found = error.code, error.stream, error.layer, error.inference
        assert found == (Err.BUS_ERROR, 2, layer, 0), error
        tb.cfg_err_lo.value = tb.cfg_err_hi.value = 0
        await device.read_until(AI["AI_STATUS"], lambda s: not s & 1, 4000, "AI_STATUS")
        waited = await written(device, network)
        await whole_stream(device, network, images)
    # those of the first narrow layers may all have had room in the weight buffer
    assert waited, "no weights waited in front of the last layer's"


@checked()
async def other_rows(device: Device) -> None:
    """The host names other rows while weights wait, and rows that do not exist."""
    random = rng()
    network = wide_then_narrow(device, rng(9))
    images = pictures(network, 2 if SLOW else 4)
    golden = await golden_results(network, images)
    some = parts(device, network)
    end = device.back.ram_rows
    for turn in range(1 if SLOW else 5):
        await fill_unused(device, network)
        storage = await prepare_stream(device, network, images, spare=some[1])
        await device.start()
        for number in range(6 if SLOW else 40):
            await device.wait_cycles(int(random.integers(1, 1500)))
            part = some[int(random.integers(len(some)))]
            await device.spare(part)
            if number % 4 == 0:
                await device.spare((end - 1, 2))
                if not await device.read(AI["AI_STATUS"]) & 1:
                    break
        while await device.read(AI["AI_STATUS"]) & 1:
            await device.wait_cycles(500)
        error = await device.error()
        assert error and error.code == Err.BAD_CONFIG, error
        await device.clear()
        run = await collect_results(device, network, images, storage, 0, golden)
        assert not run.wrong.any(), f"turn {turn}: {run.wrong}"
        found, allowed = await written(device, network), set().union(*map(of, some))
        assert found and found <= allowed


@checked()
async def beside_kept(device: Device) -> None:
    """Weights of some layers stay in the AI RAM, others wait beside them."""
    network = wide_then_narrow(device, rng(10))
    images = pictures(network, 3)
    row = network.spare_rows(device.back.ram_rows)[0]
    count = ceil_div(kept.size(network, 2), ROW_BYTES)
    stays = dataclasses.replace(network, kept={2: row + 9})
    stays.validate(device.back.ram_rows)
    for part in ((row + 9 + count, 11), (row, 9), stays.spare_rows(device.back.ram_rows)):
        run = await run_stream(device, stays, images, limit=LIMIT, spare=part)
        assert not run.wrong.any(), f"rows {part}: {run.wrong}"
