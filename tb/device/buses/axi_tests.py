# SPDX-License-Identifier: Apache-2.0
"""openkpu_axi on buses that stall, fail and die: what comes is exact, errors are those of AHB."""

import os

import cocotb
import numpy as np

from openkpu import configs, digits
from openkpu.checkout import ROOT
from openkpu.layer import vectors
from openkpu.prediction.roofline import layer_cycles
from openkpu_tb.ahb.host_agent import ERROR, Transfer
from openkpu_tb.core.registers import AI, AI_RAM, Err
from openkpu_tb.device.device import Device, DeviceError, Tables
from openkpu_tb.device.events import mismatches
from openkpu_tb.device.inference_stream import finish_stream, prepare_stream, run_stream
from tb.device.checked import checked

VECTORS = sorted((ROOT / "models/tests/data/vectors").glob("rand_50*.npz"))
ROUGH = ((0, 0), (60, 3), (140, 0), (30, 25))  # chance in 256 that a channel stalls, latency
LIMIT = 400_000  # cycles of an inference
DEAD = 300  # cycles of the watchdog's limit


def rng(more: int) -> np.random.Generator:
    return np.random.default_rng([cocotb.RANDOM_SEED & 0xFFFFFFFF, more])


async def begin(tb) -> Device:
    device = Device(tb, cocotb.RANDOM_SEED)
    for name in ("wait_prob", "rd_wait", "err_lo", "err_hi", "dead"):
        getattr(tb, f"cfg_{name}").value = 0
    tb.cfg_seed.value = cocotb.RANDOM_SEED & 0xFFFFFFFF
    await device.reset()
    return device


def rough(tb, kind: int) -> None:
    tb.cfg_wait_prob.value, tb.cfg_rd_wait.value = ROUGH[kind % len(ROUGH)]


def pictures(network, count: int) -> np.ndarray:
    return rng(7).integers(0, 256, (count, *network.in_shape), dtype=np.uint8)


@checked()
async def recorded_layers(tb) -> None:
    """Recorded layers, each on another kind of bus."""
    device = await begin(tb)
    config = configs.load_config(os.environ["OKPU_CONFIG"])
    count = 0
    for layer in vectors.load_cases(VECTORS, say=print):
        rough(tb, count)
        limit = 50_000 + 200 * layer_cycles(config, layer.arg, eight_bit=layer.eight_bit)
        y, unknown = await device.run_layer(
            layer.arg,
            Tables(layer.weights, layer.bn, layer.act),
            layer.x,
            x2=layer.x2,
            eight_bit=layer.eight_bit,
            limit=limit,
        )
        wrong, first = mismatches(y, unknown, layer.y)
        assert not wrong, f"{layer.title}: {wrong} bytes differ, first {first}"
        count += 1
    assert count > 20


@checked()
async def streams(tb) -> None:
    """Streams of digits, on each kind of bus: every result exact."""
    device = await begin(tb)
    network = digits.load_network()
    for kind in range(len(ROUGH)):
        rough(tb, kind)
        run = await run_stream(device, network, pictures(network, 4), limit=8 * LIMIT)
        assert len(run.ends) == 4 and not run.wrong.any(), run.wrong
    assert int(tb.rd_beats.value) and int(tb.wr_beats.value)


@checked()
async def errors_of_the_bus(tb) -> None:
    """SLVERR and DECERR of reads and writes are BUS_ERROR; the next stream is exact."""
    device = await begin(tb)
    network = digits.load_network()
    images = pictures(network, 3)
    for kind in range(2 * len(ROUGH)):
        storage = await prepare_stream(device, network, images)
        registers = storage.registers
        read = kind % 2 == 0
        place = registers["AI_PIX_ADR"] + registers["AI_PIX_STRIDE"] if read else storage.results[1]
        rough(tb, kind // 2)
        tb.cfg_err_lo.value, tb.cfg_err_hi.value = place, place + 4
        await device.start()
        try:
            await finish_stream(device, len(images), 8 * LIMIT)
            raise AssertionError("the error went unnoticed")
        except DeviceError as error:
            assert error.code == Err.BUS_ERROR, error
            # of a write the last beat of the burst is told, which may be behind the one that failed
            far = error.addr - place
            assert -4 < far < 4 if read else -4 < far < 64, f"{error}: expected {place:#x}"
        tb.cfg_err_hi.value = tb.cfg_err_lo.value = 0
        await device.read_until(AI["AI_STATUS"], lambda status: not status & 1, 9000, "AI_STATUS")
        await device.clear()
    # behind the end of the storage
    storage = await prepare_stream(device, network, images)
    await device.write(AI["AI_PIX_ADR"], 4 * int(tb.store_words.value) + 0x1000)
    await device.start()
    try:
        await finish_stream(device, len(images), 8 * LIMIT)
        raise AssertionError("the error went unnoticed")
    except DeviceError as error:
        assert error.code == Err.BUS_ERROR, error
    await device.read_until(AI["AI_STATUS"], lambda status: not status & 1, 9000, "AI_STATUS")
    await device.clear()
    run = await run_stream(device, network, images, limit=LIMIT)
    assert not run.wrong.any()


@checked()
async def dead_bus(tb) -> None:
    """A storage that answers no more: WATCHDOG; when it does again, the next stream is exact."""
    device = await begin(tb)
    network = digits.load_network()
    images = pictures(network, 2)
    random = rng(3)
    await device.write(AI["AI_WATCHDOG"], DEAD)
    for kind in range(12):
        rough(tb, 0 if kind % 2 else 1)
        await prepare_stream(device, network, images)
        await device.start()
        await device.wait_at_most(int(random.integers(1, 9000)))
        if not int(tb.irq.value):
            tb.cfg_dead.value = 2
            await device.wait(8 * LIMIT)
            error = await device.error()
            done = error is None  # nothing was left to do on the bus
            assert done or error.code == Err.WATCHDOG, error
        tb.cfg_dead.value = 0
        await device.soft_reset()
        await device.clear()
        run = await run_stream(device, network, images, limit=LIMIT)
        assert not run.wrong.any(), f"round {kind}"


@checked()
async def window(tb) -> None:
    """Bytes, half-words and words of the AI RAM through AXI4-Lite; what is refused is SLVERR."""
    device = await begin(tb)
    tb.cfg_wait_prob.value = 60
    random = rng(4)
    held = random.integers(0, 256, 64, dtype=np.uint8)
    words = [int(w) for w in held.view("<u4")]
    await device.transfer(*(Transfer(AI_RAM + 4 * i, True, w) for i, w in enumerate(words)))
    for _ in range(100):
        size = int(random.integers(0, 3))
        at = int(random.integers(0, 64 >> size)) << size
        data = int(random.integers(0, 1 << (8 << size)))
        await device.transfer(Transfer(AI_RAM + at, True, data, size=size))
        held[at : at + (1 << size)] = list(data.to_bytes(1 << size, "little"))
    got = await device.transfer(*(Transfer(AI_RAM + 4 * i, False) for i in range(16)))
    assert [t.data for t in got] == [int(w) for w in held.view("<u4")]
    refused = [Transfer(0x1000, False), Transfer(AI["AI_ID"] + 1, True, 0, size=0)]
    await device.attempt(*refused)
    assert all(t.resp == ERROR for t in refused)
    assert await device.read(AI["AI_ID"]) == 0x55504B4F
