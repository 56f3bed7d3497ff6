# SPDX-License-Identifier: Apache-2.0
"""Runs the device and records it; what several claims look at is run once."""

import os
from collections.abc import Awaitable, Callable

import numpy as np
from cocotb.triggers import FallingEdge

from openkpu.network.network import Storage
from openkpu_tb.claims import networks
from openkpu_tb.claims.networks import ClaimCase
from openkpu_tb.claims.recording import Recording
from openkpu_tb.core.registers import AI
from openkpu_tb.device.device import Device
from openkpu_tb.device.inference_stream import finish_stream
from openkpu_tb.device.trace import Trace, read_trace

LIMIT = 20_000  # cycles that an inference may take
AFTER = 20  # cycles recorded after the end
GAP = 60  # cycles between inferences that the host starts
Meanwhile = Callable[[Device, Storage], Awaitable[None]]


def option(name: str, default: int) -> int:
    """A parameter of tb_top in this build."""
    return int(os.environ.get(f"OKPU_{name}", default))


async def prepare_case(
    device: Device, case: ClaimCase, *, storage: Storage | None = None, continuous: bool = True
) -> Storage:
    """Network and images into storage, registers written."""
    storage = storage or case.network.storage(case.images, continuous=continuous)
    await device.back.load_storage(storage.base, storage.data)
    await device.configure(storage.registers)
    return storage


async def begin(device: Device) -> None:
    """The recording begins, with empty counters of toggles."""
    await FallingEdge(device.tb.clk)
    device.tb.trace_on.value = 1


async def end(device: Device) -> Trace:
    """The recording ends; what was recorded."""
    trace = await read_trace(device.back)
    device.tb.trace_on.value = 0
    await FallingEdge(device.tb.clk)
    return trace


async def storage_contents(device: Device, storage: Storage) -> np.ndarray:
    """Bytes of the storage from its base on; an unknown one is a failure."""
    data, unknown = await device.back.read_storage(storage.base, storage.data.size)
    assert not unknown.any(), "unknown bytes in the storage"
    return data


async def view(
    device: Device, case: ClaimCase, storage: Storage, images: list[int] | None = None
) -> Recording:
    """End the recording of a run that is over; ``images``: what each inference was to take."""
    await device.wait_cycles(AFTER)
    counters = await device.counters()
    tb = device.tb
    sums = (int(tb.toggles.value), int(tb.idle_toggles.value), int(tb.products.value))
    trace = await end(device)
    images = list(range(len(case.images))) if images is None else images
    golden = np.stack(
        [case.network.run(case.images[i]).y.view(np.uint8).reshape(-1) for i in images]
    )
    data = await storage_contents(device, storage)
    at = [address - storage.base for address in storage.results[: len(images)]]
    results = np.stack([data[a : a + golden.shape[1]] for a in at])
    want = storage.data.copy()
    for a in at:
        want[a : a + golden.shape[1]] = data[a : a + golden.shape[1]]
    spoilt = storage.base + np.nonzero(data != want)[0]
    wrong = (results != golden).sum(axis=1)
    device.check_rules()
    return Recording(
        case.network, case.kept, storage, trace, images, counters, *sums, results, wrong, spoilt
    )


async def stream(
    device: Device,
    case: ClaimCase,
    *,
    storage: Storage | None = None,
    meanwhile: Meanwhile | None = None,
    images: list[int] | None = None,
) -> Recording:
    """A continuous run; ``meanwhile``: the host's actions after the start."""
    storage = await prepare_case(device, case, storage=storage)
    await begin(device)
    await device.start()
    if meanwhile:
        await meanwhile(device, storage)
    await finish_stream(device, len(images or case.images), LIMIT)
    return await view(device, case, storage, images)


async def one_by_one(device: Device, case: ClaimCase) -> Recording:
    """The images as single inferences, each started by the host."""
    storage = await prepare_case(device, case, continuous=False)
    await begin(device)
    for number in range(len(case.images)):
        pixels = storage.registers["AI_PIX_ADR"] + number * storage.registers["AI_PIX_STRIDE"]
        result = storage.results[number]
        await device.write_many({AI["AI_PIX_ADR"]: pixels, AI["AI_RES_ADR"]: result})
        await device.start()
        await device.finish(LIMIT)
        await device.wait_cycles(GAP)
    return await view(device, case, storage)


_RECORDINGS: dict[str, Recording] = {}


async def run_small(device: Device) -> Recording:
    """Stream of three; weights fit the buffer."""
    return await _once("small", lambda: stream(device, networks.small_case(3)))


async def large(device: Device) -> Recording:
    """Stream of two; weights do not fit."""
    return await _once("large", lambda: stream(device, networks.large(2)))


async def convolutions(device: Device) -> Recording:
    """Stream of two; no fully connected layer."""
    return await _once("convolutions", lambda: stream(device, networks.convolutions(2)))


async def _once(name: str, run: Callable[[], Awaitable[Recording]]) -> Recording:
    """The recording of that name, made when it is asked for the first time."""
    if name not in _RECORDINGS:
        _RECORDINGS[name] = await run()
    return _RECORDINGS[name].exact()
