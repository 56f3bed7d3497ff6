# SPDX-License-Identifier: Apache-2.0
"""The simulator's side of scripts/sim.py: one process runs all layers or images of a command.

The job comes in a pickle named by OKPU_JOB; events go out as JSON lines to OKPU_EVENTS.
"""

import json
import os
import pickle
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from openkpu.models.compare import First, difference
from openkpu.models.golden import run_layer
from openkpu.models.network import Network
from openkpu.models.vectors import VectorLayer
from openkpu.tb.device.device import Device, DeviceError, DeviceTimeout, Tables
from openkpu.tb.device.registers import COUNTERS
from openkpu.tb.device.run_model import counts, run_model
from openkpu.tb.device.run_random import run_random
from openkpu.tb.device.run_stream import run_streams


class Events:
    """Sends events to the process that started the simulation."""

    def __init__(self) -> None:
        self.stream = open(os.environ["OKPU_EVENTS"], "w", buffering=1)  # noqa: SIM115

    def __call__(self, event: str, **fields: Any) -> None:
        self.stream.write(json.dumps({"event": event, **fields}) + "\n")
        self.stream.flush()


def mismatches(
    y: np.ndarray, unknown: np.ndarray, *expected: np.ndarray
) -> tuple[int, First | None]:
    """(bytes that differ from any of the expected maps or are unknown, the first one)."""
    return difference(y, *expected, unknown=unknown)


async def replay(device: Device, layers: list[VectorLayer], limits: list[int], say: Events) -> None:
    """Vectors: every layer alone, pushed by the host."""
    before = np.zeros(len(COUNTERS), dtype=np.uint64)
    for number, (layer, limit) in enumerate(zip(layers, limits, strict=True)):
        say("start", index=number)
        golden = run_layer(
            layer.arg, layer.x, layer.weights, layer.bn, layer.act, eight_bit=layer.eight_bit
        )
        tables = Tables(layer.weights, layer.bn, layer.act)
        failure, first = None, None
        try:
            y, unknown = await device.run_layer(
                layer.arg,
                tables,
                layer.x,
                eight_bit=layer.eight_bit,
                limit=limit,
                beat=lambda cycles, number=number: say("beat", index=number, cycles=cycles),
            )
            wrong, first = mismatches(y, unknown, layer.y, golden.y)
        except (DeviceError, DeviceTimeout) as error:
            failure, wrong = str(error), int(layer.y.size)
        records = await device.back.perf_records()
        await device.back.forget_perf()
        counters = counts(records[-1], before) if len(records) == 1 else None
        if failure is None and counters is None:
            failure = f"{len(records)} layers finished instead of one"
        before = records[-1] if len(records) else before
        say(
            "layer",
            index=number,
            mismatching_bytes=wrong,
            first=first,
            counters=counters,
            failure=failure,
            golden_differs=int((golden.y != layer.y).sum()),
            macs=golden.macs,
            macs_gated=golden.macs_gated,
        )
        if failure:
            await device.reset()
            before = np.zeros(len(COUNTERS), dtype=np.uint64)


async def watch_layers(device: Device, network: Network, maps: list) -> None:
    """Dump every layer's output map in the moment it is complete, before others overwrite it."""
    number = 0
    while True:
        await RisingEdge(device.tb.layer_done)
        layer = network.layers[number % len(network.layers)]
        maps.append(await device.read_map(layer.out_layout))
        number += 1


async def infer(device: Device, job: dict[str, Any], say: Events) -> None:
    """A network in task-list mode, image after image; every layer's map is compared."""
    network: Network = job["network"]
    images: np.ndarray = job["images"]
    storage = network.storage(images)
    await device.back.load_storage(storage.base, storage.data)
    maps: list = []
    watcher = cocotb.start_soon(watch_layers(device, network, maps))
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
                job["limit"], lambda cycles, n=number: say("beat", index=n, cycles=cycles)
            )
        except (DeviceError, DeviceTimeout) as error:
            failure = str(error)
        records = await device.back.perf_records()
        await device.back.forget_perf()
        size = int(np.prod(network.out_shape))
        data, unknown = await device.back.read_storage(storage.results[number], size)
        shape = network.out_shape
        wrong, first = mismatches(data.reshape(shape), unknown.reshape(shape), golden.y)
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


@cocotb.test()
async def run_job(tb: cocotb.handle.SimHandleBase) -> None:
    """Run the job; a bus rule that was broken fails the test."""
    job = pickle.loads(Path(os.environ["OKPU_JOB"]).read_bytes())
    say = Events()
    device = Device(tb, seed=cocotb.RANDOM_SEED)
    await device.reset()
    if job["kind"] == "vectors":
        await replay(device, job["layers"], job["limits"], say)
    elif job["kind"] == "model":
        await run_model(device, job, say)
    elif job["kind"] == "random":
        await run_random(device, job, say)
    elif job["kind"] == "streams":
        await run_streams(device, job, say)
    else:
        await infer(device, job, say)
    try:
        device.check_rules()
    except AssertionError as error:
        say("rules", text=str(error))
        raise
    say("end")
