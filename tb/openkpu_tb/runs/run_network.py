# SPDX-License-Identifier: Apache-2.0
"""The simulator's side of a network: it runs in task-list mode; every layer's map is compared.

Events: ``beat``, ``stored`` with a map that a layer left in storage, ``image`` with the result,
what its layers and the inference counted, and the cycles of the bench from the start to the
interrupt.
"""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge

from openkpu.arithmetic.words import from_stored
from openkpu.compare import First
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import map_bytes
from openkpu.network.network import Network, NetworkRun, Storage
from openkpu_tb.core.registers import COUNTERS
from openkpu_tb.device.device import Device, DeviceError, DeviceTimeout
from openkpu_tb.device.events import Say, counts, mismatches
from openkpu_tb.runs.requests import NetworkRequest


async def watch_layers(
    device: Device,
    args: Iterable[LayerArg],
    maps: list[Any],
    done: Callable[[int], None] = lambda _: None,
) -> None:
    """Dump every layer's output map in the moment it is complete, before others overwrite it;
    ``done`` is called with its number."""
    for number, arg in enumerate(args):
        await RisingEdge(device.tb.layer_done)
        maps.append(await device.read_map(arg.out_layout))
        done(number)


async def read_result(
    device: Device, at: int, expected: np.ndarray, words: bool
) -> tuple[np.ndarray, int, First | None]:
    """What lies in storage from ``at`` on for a map (C, H, W): bytes, how many differ, the first
    of them."""
    shape = expected.shape
    data, unknown = await device.back.read_storage(at, map_bytes(shape))
    found = from_stored(data, shape, words)
    bad = from_stored(unknown.view(np.uint8), shape, words).astype(bool)
    return data, *mismatches(found, bad, expected)


async def report_stored(
    device: Device, network: Network, storage: Storage, golden: NetworkRun, number: int, say: Say
) -> None:
    """Every map that a layer left in storage, compared with the golden model's."""
    for layer, at in storage.stored.items():
        y = golden.layers[layer].y.view(np.uint8)
        words = bool(network.layers[layer].out32)
        data, wrong, first = await read_result(device, at, y, words)
        say(
            "stored",
            index=number,
            layer=layer,
            y=data.tolist(),
            mismatching_bytes=wrong,
            first=first,
        )


async def run_network(device: Device, request: NetworkRequest, say: Say) -> None:
    """Every image of the request, until one fails."""
    network, images = request.network, request.images
    storage = network.storage(images, align=request.align)
    await device.back.load_storage(storage.base, storage.data)
    await device.bring(storage.bring, request.limit)
    rows = request.spare
    await device.spare(network.spare_rows(device.back.ram_rows) if rows is None else rows)
    await device.back.forget_perf()
    maps: list = []
    watcher = cocotb.start_soon(watch_layers(device, itertools.cycle(network.layers), maps))
    zero = np.zeros(len(COUNTERS), dtype=np.uint64)
    registers = dict(storage.registers)
    for number, image in enumerate(images):
        golden = network.run(image)
        registers["AI_PIX_ADR"] = (
            storage.registers["AI_PIX_ADR"] + number * storage.registers["AI_PIX_STRIDE"]
        )
        registers["AI_RES_ADR"] = storage.results[number]
        await device.configure(registers)
        began = int(device.tb.cycle.value)
        await device.start()
        failure = None
        try:
            await device.finish(
                request.limit, lambda cycles, n=number: say("beat", index=n, cycles=cycles)
            )
        except (DeviceError, DeviceTimeout) as error:
            failure = str(error)
        records = await device.back.perf_records()
        await device.back.forget_perf()
        place = storage.results[number]
        data, wrong, first = await read_result(device, place, golden.y, network.words)
        if failure is None:
            await report_stored(device, network, storage, golden, number, say)
        expected = len(network.layers)
        if failure is None and not (len(records) == len(maps) == expected):
            failure = f"{len(records)} layers finished instead of {expected}"
        before, layers = zero, []
        for i, (result, row, (y, bad)) in enumerate(
            zip(golden.layers, records, maps, strict=False)
        ):
            differ, place = mismatches(y, bad, result.y)
            layers.append(
                {
                    "index": i,
                    "counters": counts(row, before),
                    "macs": result.macs,
                    "macs_gated": result.macs_gated,
                    "mismatching_bytes": differ,
                    "first": place,
                }
            )
            before = row
        now = np.array(list((await device.counters()).values()), dtype=np.uint64)
        inference = counts(now, zero)  # a start empties them
        say(
            "image",
            index=number,
            y=data.tolist(),
            mismatching_bytes=wrong,
            first=first,
            layers=layers,
            failure=failure,
            inference=inference,
            cycles=device.woke - began,
        )
        maps.clear()
        if failure:
            break
    watcher.cancel()
