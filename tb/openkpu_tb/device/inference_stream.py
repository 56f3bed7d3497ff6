# SPDX-License-Identifier: Apache-2.0
"""Continuous runs: a stream of images through the device, without Python between the inferences."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openkpu.layer.argument import WORDS, LayerArg
from openkpu.network.network import Network, Storage
from openkpu_tb.core.registers import AI, COUNTERS, PERF, Int
from openkpu_tb.device.device import Device, DeviceError, DeviceTimeout

BRING = 2_000_000  # cycles of a layer that brings kept weights, at most
WIDEST = 16  # bytes of the widest bus word: results must be aligned to the bus
INFERENCES = PERF + 8 * COUNTERS.index("inferences")


@dataclass
class StreamRun:
    """What came of a stream."""

    ends: npt.NDArray[np.uint64]  # counters (inferences, COUNTERS) at the end of each inference
    results: npt.NDArray[np.uint8]  # (inferences, bytes of a result)
    wrong: npt.NDArray[np.int64]  # bytes of each result that are not the golden model's
    counters: dict[str, int]  # at the end, through the registers
    bus_cycles: int  # cycles with a transfer of the device on the bus, first start to last end
    span: int = 0  # cycles of the bench from the start to the interrupt at the end of a stream

    @property
    def cycles(self) -> npt.NDArray[np.int64]:
        """Cycles from the end of the inference before (or the start) to the end of each."""
        return np.diff(self.ends[:, 0].astype(np.int64), prepend=0)


def host_layers(network: Network, storage: Storage) -> list[LayerArg]:
    """A network's layers for the host to push, with absolute addresses: the first loads the image,
    the last stores the result and raises the interrupt (docs/kpu.md 1.13)."""
    at, count = storage.registers, len(network.layers)
    rows = storage.data[at["AI_LIST_ADR"] - storage.base :][: 8 * WORDS * count].view("<u8")
    args = []
    for number, row in enumerate(rows.reshape(count, WORDS)):
        arg, last = LayerArg.decode(row), number == count - 1
        fields = {"int_en": int(last), "send_data_out": 0}
        fields["para_start_addr"] = arg.para_start_addr + at["AI_WGT_ADR"]
        fields["bwsx_base_addr"] = arg.bwsx_base_addr + at["AI_BIAS_ADR"]
        fields["active_addr"] = arg.active_addr + at["AI_BIAS_ADR"]
        if number == 0:
            fields |= {"load_map": 1, "map_load_addr": at["AI_PIX_ADR"]}
        if last:
            fields |= {"store_map": 1, "map_store_addr": at["AI_RES_ADR"]}
        args.append(arg.replace(**fields))
    return args


async def prepare_stream(
    device: Device,
    network: Network,
    images: np.ndarray,
    *,
    base: int = 0,
    continuous: bool = True,
    spare: tuple[int, int] | None = None,
) -> Storage:
    """Network and images into storage, kept weights into the AI RAM, registers written.

    ``spare``: rows in which weights may wait; None: as many as there are.
    """
    storage = network.storage(images, base=base, continuous=continuous, align=WIDEST)
    await device.back.load_storage(storage.base, storage.data)
    await device.bring(storage.bring, BRING)
    await device.spare(network.spare_rows(device.back.ram_rows) if spare is None else spare)
    await device.configure(storage.registers)
    await device.back.forget_perf()
    return storage


async def finish_stream(
    device: Device,
    count: int,
    limit: int,
    on_inference: Callable[[int], None] | None = None,
) -> None:
    """Wait for ``count`` inferences, each at most ``limit`` cycles after the one before.

    DeviceError when the device reports one, DeviceTimeout when nothing comes.
    """
    done, since = 0, int(device.tb.cycle.value)
    while done < count:
        await device.wait(limit)
        await device.write(AI["AI_INT_STATUS"], int(Int.DONE))
        error = await device.error()
        if error:
            await device.clear()
            raise error
        before, done = done, await device.read(INFERENCES)
        now = int(device.tb.cycle.value)
        since = now if done > before else since
        if now - since > limit:
            raise DeviceTimeout(f"{done} of {count} inferences, no other within {limit} cycles")
        for number in range(before, done):
            if on_inference:
                on_inference(number)
    await device.clear()


async def stream_error(device: Device, count: int, limit: int) -> DeviceError:
    """Start a stream of ``count`` images, and wait for the error that it must end with."""
    await device.start()
    try:
        await finish_stream(device, count, limit)
    except DeviceError as error:
        return error
    raise AssertionError("the stream ended without an error")


async def golden_results(network: Network, images: np.ndarray) -> npt.NDArray[np.uint8]:
    """Results of the golden model, one row an image."""
    return np.stack([network.run(image).y.view(np.uint8).reshape(-1) for image in images])


async def run_stream(
    device: Device,
    network: Network,
    images: np.ndarray,
    *,
    limit: int,
    base: int = 0,
    golden: npt.NDArray[np.uint8] | None = None,
    spare: tuple[int, int] | None = None,
    on_inference: Callable[[int], None] | None = None,
) -> StreamRun:
    """The images in one continuous run; results compared with the golden model's."""
    storage = await prepare_stream(device, network, images, base=base, spare=spare)
    busy, began = int(device.tb.bus_cycles.value), int(device.tb.cycle.value)
    await device.start()
    await finish_stream(device, len(images), limit, on_inference)
    busy, span = int(device.tb.bus_cycles.value) - busy, device.woke - began
    run = await collect_results(device, network, images, storage, busy, golden)
    run.span = span
    return run


async def collect_results(
    device: Device,
    network: Network,
    images: np.ndarray,
    storage: Storage,
    busy: int,
    golden: npt.NDArray[np.uint8] | None = None,
) -> StreamRun:
    """Results and counters after a stream."""
    if golden is None:
        golden = await golden_results(network, images)
    size = golden.shape[1]
    first, last = storage.results[0], storage.results[-1] + size
    data, unknown = await device.back.read_storage(first, last - first)
    rows = [slice(at - first, at - first + size) for at in storage.results]
    results = np.stack([data[row] for row in rows])
    bad = np.stack([unknown[row] for row in rows]).astype(bool)
    wrong = ((results != golden) | bad).sum(axis=1)
    records = await device.back.perf_records()
    ends = records[len(network.layers) - 1 :: len(network.layers)]
    return StreamRun(ends, results, wrong, await device.counters(), busy)


async def run_one_by_one(
    device: Device,
    network: Network,
    images: np.ndarray,
    *,
    limit: int,
    base: int = 0,
    golden: npt.NDArray[np.uint8] | None = None,
    spare: tuple[int, int] | None = None,
) -> StreamRun:
    """The same images, each started by the host when the one before is done."""
    if golden is None:
        golden = await golden_results(network, images)
    storage = await prepare_stream(
        device, network, images, base=base, continuous=False, spare=spare
    )
    ends, busy = [], int(device.tb.bus_cycles.value)
    total = np.zeros(len(COUNTERS), dtype=np.uint64)
    for number in range(len(images)):
        pixels = storage.registers["AI_PIX_ADR"] + number * storage.registers["AI_PIX_STRIDE"]
        await device.write_many(
            {AI["AI_PIX_ADR"]: pixels, AI["AI_RES_ADR"]: storage.results[number]}
        )
        await device.start()
        await device.finish(limit)
        counters = list((await device.counters()).values())  # a start empties them
        total = total + np.array(counters, dtype=np.uint64)
        ends.append(total)
    run = await collect_results(
        device, network, images, storage, int(device.tb.bus_cycles.value) - busy, golden
    )
    run.ends = np.stack(ends)
    return run


def steady(run: StreamRun, skip: int = 2) -> float:
    """Mean cycles of the inferences after the first ``skip``."""
    return float(np.mean(list(itertools.islice(run.cycles, skip, None))))
