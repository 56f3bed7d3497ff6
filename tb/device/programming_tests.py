# SPDX-License-Identifier: Apache-2.0
"""The driver in sw/, the code of docs/programming.md, access by access.

Every C function runs in a thread of its own; an access of it blocks until the host driver of the
bench has performed it.
"""

import contextlib
import ctypes
import os
from collections.abc import Callable
from typing import Any

import cocotb
import numpy as np
from cocotb.task import bridge, resume

from openkpu.arithmetic.integers import round_up
from openkpu.generators.generate import Limits, random_network
from openkpu.layer.layout import ROW_BYTES, map_bytes
from openkpu.network.network import Network
from openkpu_tb.ahb.host_agent import Transfer
from openkpu_tb.core.registers import AI, EIGHT_BIT_MODE, INTERRUPT_MASK, INTERRUPT_RAW, Err, Kpu
from openkpu_tb.device.device import Device, DeviceTimeout
from tb.device.checked import checked

LIMIT = 200_000  # cycles of any single wait
PAUSE = 2_000  # cycles of a pause without an interrupt
ACCESSES = 50_000  # of the host in a test
GIVE_UP = 0xFFFF_FFFE  # idle, error, many inferences
SMALL = Limits(channels=6, size=12, sixteen_bit=False)
BASE = 0x400
RESULT_ALIGN = 16
U32, POINTER = ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32)


class NetworkC(ctypes.Structure):
    """``struct openkpu_network``."""

    _fields_ = [(n, U32) for n in ("list", "layers", "weights", "biases", "eight_bit")]
    _fields_ += [(f"{n}{m}", U32) for n in ("input", "result") for m in ("", "_bytes", "_stride")]


class Code:
    """The compiled code with its platform functions on the device."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.waits = self.accesses = 0
        self.failure: BaseException | None = None
        self.layer, self.address = U32(0), U32(0)
        self.library = ctypes.CDLL(os.environ["OKPU_CODE"])
        one, two = ctypes.CFUNCTYPE(U32, U32), ctypes.CFUNCTYPE(None, U32, U32)
        hooks = [one(self._hook(self._read, 2)), two(self._hook(self._write, 2))]
        hooks += [ctypes.CFUNCTYPE(None)(self._hook(self._wait))]
        self.hooks = hooks  # ctypes does not keep them
        self.library.platform(*hooks)

    def _hook(self, access: Callable[..., Any], *more: int) -> Callable[..., int]:
        """A platform function. C cannot be left by an exception: the first one is kept, and from
        then on reads give a number that ends every loop of the page's code."""

        def hook(*arguments: int) -> int:
            try:
                if self.failure is None:
                    self.accesses += 1
                    assert self.accesses < ACCESSES, f"more than {ACCESSES} accesses"
                    return resume(access)(*more, *arguments) or 0
            except BaseException as failure:
                self.failure = failure
            return GIVE_UP

        return hook

    async def _read(self, size: int, offset: int) -> int:
        (done,) = await self.device.transfer(Transfer(offset, False, 0, size))
        return done.data

    async def _write(self, size: int, offset: int, value: int) -> None:
        await self.device.transfer(Transfer(offset, True, value, size))

    async def _wait(self) -> None:
        """Until an interrupt, or a short time has passed (OPENKPU_PAUSE, docs/driver.md 4)."""
        if not int(self.device.tb.irq.value):
            with contextlib.suppress(DeviceTimeout):
                await self.device.wait(PAUSE)
        self.waits += int(self.device.tb.irq.value)  # interrupts

    async def __call__(self, function: str, *arguments: Any, where: bool = True) -> int:
        """Call a C function; ``where``: it takes pointers for layer and address at its end."""
        more = (ctypes.byref(self.layer), ctypes.byref(self.address)) if where else ()

        def call() -> int:
            return getattr(self.library, function)(*arguments, *more)

        found = await bridge(call)()
        if self.failure is not None:
            raise self.failure
        return found


def buffer(data: np.ndarray) -> ctypes.c_void_p:
    """Pointer to the bytes of an array."""
    return ctypes.c_void_p(data.ctypes.data)


async def ready(layers: int, fc_last: bool = False) -> tuple[Device, Code, Network, np.ndarray]:
    """Device after reset, the code, a network of small layers, an image for it."""
    device = Device(cocotb.top, cocotb.RANDOM_SEED)
    await device.reset()
    code = Code(device)
    assert await code("begin", where=False) == Err.NONE
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    network, x = random_network(
        rng, shape=(2, 5, 9), layers=layers, fc_last=fc_last, limits=SMALL, eight_bit=True
    )
    for layout in (network.layers[0].in_layout, *(arg.out_layout for arg in network.layers)):
        # the driver reads whole words, where the device leaves bytes between lines as they are
        await device.back.load_ram(layout.base, np.zeros(layout.rows * ROW_BYTES, np.uint8))
    return device, code, network, x


async def place(device: Device, network: Network, images: np.ndarray) -> tuple[Any, NetworkC]:
    """Network and images into storage."""
    storage = network.storage(images, base=BASE, continuous=True, align=RESULT_ALIGN)
    await device.back.load_storage(storage.base, storage.data)
    names = "AI_LIST_ADR", "AI_LIST_LEN", "AI_WGT_ADR", "AI_BIAS_ADR"
    return storage, NetworkC(*(storage.registers[n] for n in names), 1)


def words(network: Network, registers: dict[str, int]) -> np.ndarray:
    """Layer arguments for the host: addresses of the tables in storage."""
    rows = [
        arg.replace(
            para_start_addr=arg.para_start_addr + registers["AI_WGT_ADR"],
            bwsx_base_addr=arg.bwsx_base_addr + registers["AI_BIAS_ADR"],
            active_addr=arg.active_addr + registers["AI_BIAS_ADR"],
            int_en=0,
            send_data_out=0,
        ).encode()
        for arg in network.layers
    ]
    return np.stack(rows)


def place_of(layout: Any) -> tuple[int, int, int, int]:
    """Arguments of upload and download."""
    return layout.base, layout.channels, layout.height, layout.width


@checked()
async def layer_by_layer(tb: Any) -> None:
    """upload, run_layer and download; the last map through run_layer_out."""
    device, code, network, x = await ready(3)
    storage, _ = await place(device, network, x[None])
    golden = network.run(x)
    await code("upload", *place_of(network.layers[0].in_layout), buffer(x), where=False)
    rows = words(network, storage.registers)
    for arg, row, want in zip(network.layers, rows, golden.layers, strict=True):
        assert await code("run_layer", buffer(row), 1) == Err.NONE
        assert await device.read(INTERRUPT_RAW) & Kpu.CALC_DONE == 0
        y = np.zeros(arg.out_shape, dtype=np.uint8)
        await code("download", *place_of(arg.out_layout), buffer(y), where=False)
        assert np.array_equal(y, want.y)
    assert code.waits == len(rows)
    y = np.zeros(golden.y.shape, dtype=np.uint8)
    assert await code("run_layer_out", buffer(rows[-1]), 1, buffer(y), y.size) == Err.NONE
    assert np.array_equal(y, golden.y)


@checked()
async def moved_maps(tb: Any) -> None:
    """run_layer_moved: a layer's maps come from storage and go there."""
    device, code, network, x = await ready(2)
    storage, _ = await place(device, network, x[None])
    golden = network.run(x)
    at = storage.registers
    rows = words(network, at)
    places = [at["AI_PIX_ADR"], storage.results[0]]
    places.append(places[1] + round_up(golden.layers[0].y.size, RESULT_ALIGN))
    for row, pixels, result, want in zip(rows, places, places[1:], golden.layers, strict=False):
        assert await code("run_layer_moved", buffer(row), 1, pixels, result) == Err.NONE
        y, unknown = await device.back.read_storage(result, want.y.size)
        assert not unknown.any() and np.array_equal(y.reshape(want.y.shape), want.y)


@checked()
async def bursts(tb: Any) -> None:
    """run_burst: 14 layers take two bursts and two interrupts; a refused layer in between."""
    device, code, network, x = await ready(14)
    storage, _ = await place(device, network, x[None])
    golden = network.run(x)
    await code("upload", *place_of(network.layers[0].in_layout), buffer(x), where=False)
    rows = words(network, storage.registers)
    assert await code("run_burst", buffer(rows), len(rows), 1) == Err.NONE
    assert code.waits == 2
    y, unknown = await device.read_map(network.layers[-1].out_layout)
    assert not unknown.any() and np.array_equal(y, golden.y)
    bad = rows.copy()
    bad[5, 4] |= np.uint64(0xF0)  # pool type 15
    assert await code("run_burst", buffer(bad), len(bad), 1) == Err.BAD_POOL
    assert (code.layer.value, code.address.value) == (5, 0)
    assert not int(tb.irq.value) and not await device.read(AI["AI_STATUS"])
    await code("upload", *place_of(network.layers[0].in_layout), buffer(x), where=False)
    assert await code("run_burst", buffer(rows), len(rows), 1) == Err.NONE
    y, unknown = await device.read_map(network.layers[-1].out_layout)
    assert not unknown.any() and np.array_equal(y, golden.y)


@checked()
async def task_list_and_stream(tb: Any) -> None:
    """run_inference and run_stream give the golden results; a bus error is reported and over."""
    device, code, network, x = await ready(4, fc_last=True)
    images = np.stack([np.roll(x, i, axis=2) for i in range(4)])
    storage, net = await place(device, network, images)
    results = [network.run(image).y.view(np.uint8).reshape(-1) for image in images]
    size = map_bytes(network.out_shape)
    at = storage.registers
    by_reference = ctypes.byref(net)
    pixels, stride = at["AI_PIX_ADR"], at["AI_PIX_STRIDE"]
    result = storage.results[0]
    code.library.run_inference.argtypes = [ctypes.c_void_p, U32, U32, POINTER, POINTER]
    assert await code("run_inference", by_reference, pixels + stride, result) == Err.NONE
    y, unknown = await device.back.read_storage(result, size)
    assert not unknown.any() and np.array_equal(y, results[1])

    nowhere = NetworkC(0xFFFF_0000, net.layers, net.weights, net.biases, 1)
    bad = await code("run_inference", ctypes.byref(nowhere), pixels, result)
    assert bad == Err.BUS_ERROR and code.address.value == 0xFFFF_0000
    assert not int(tb.irq.value)

    # nothing but the storage's first half may be touched, and nobody can change that
    half = device.back.storage_bytes // 2
    assert await code("confine", 0, half, 0, half, 1000, where=False) == Err.NONE
    assert await code("confine", 0, 2 * half, 0, half, 1000, where=False) == Err.LOCKED
    bad = await code("run_inference", by_reference, half, result)
    assert bad == Err.BAD_ACCESS and (code.layer.value, code.address.value) == (0, half)
    tb.cfg_dead.value = 1
    await device.write(AI["AI_PIX_ADR"], pixels)
    await device.start()
    await device.wait(LIMIT)
    assert await code("check_error") == Err.WATCHDOG
    assert await code("waited_for", where=False) == 1
    tb.cfg_dead.value = 0

    told: list[int] = []
    done = ctypes.CFUNCTYPE(None, U32)(told.append)
    count, apart = len(images), at["AI_RES_STRIDE"]
    stream = by_reference, count, pixels, stride, result, apart, done
    assert await code("run_stream", *stream) == Err.NONE
    assert told[-1] == count and told == sorted(set(told))
    for place_, want in zip(storage.results, results, strict=True):
        y, unknown = await device.back.read_storage(place_, size)
        assert not unknown.any() and np.array_equal(y, want)
    assert await device.read(AI["AI_CNN_MODE"]) == 1
    assert await device.read(EIGHT_BIT_MODE) == 1 and await device.read(INTERRUPT_MASK) == 7
    assert result % ROW_BYTES % RESULT_ALIGN == 0


@checked()
async def stream_that_ends_early(tb: Any) -> None:
    """end_stream at any time of a stream: whole results, and the next start is accepted at once."""
    device, code, network, x = await ready(3, fc_last=True)
    images = np.stack([np.roll(x, i, axis=2) for i in range(4)])
    storage, net = await place(device, network, images)
    size = map_bytes(network.out_shape)
    results = [network.run(image).y.view(np.uint8).reshape(-1) for image in images]
    finished, rng = U32(0), np.random.default_rng(cocotb.RANDOM_SEED)
    await device.configure(storage.registers)
    await device.start()
    begun = int(tb.cycle.value)
    await device.finish(LIMIT)
    whole = int(tb.cycle.value) - begun  # up to the first done
    await device.soft_reset()
    seen = set()
    for wait in (1, *rng.integers(2, 3 * whole, 6)):
        await device.clear()
        await device.configure(storage.registers)
        await device.start()
        await device.wait_cycles(int(wait))
        assert await code("end_stream", ctypes.byref(finished)) == Err.NONE
        assert not int(tb.irq.value) and 1 <= finished.value <= len(images)
        seen.add(finished.value)
        for place_, want in zip(storage.results[: finished.value], results, strict=False):
            y, unknown = await device.back.read_storage(place_, size)
            assert not unknown.any() and np.array_equal(y, want)
        one = ctypes.byref(net), storage.registers["AI_PIX_ADR"], storage.results[0]
        assert await code("run_inference", *one) == Err.NONE, "the start behind it"
    assert len(seen) > 1, seen
