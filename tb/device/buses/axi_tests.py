# SPDX-License-Identifier: Apache-2.0
"""openkpu_axi on buses that stall, fail and die: what comes is exact, errors are those of AHB."""

import numpy as np

from openkpu import digits
from openkpu_tb.ahb.host_agent import ERROR, Transfer
from openkpu_tb.core.registers import AI, AI_RAM, Err
from openkpu_tb.device.device import Device
from openkpu_tb.device.inference_stream import prepare_stream, run_stream
from openkpu_tb.device.simulation import rng
from tb.device.buses.bridge import LIMIT, exact_stream, fails, pictures, recorded_layers
from tb.device.checked import checked

ROUGH = ((0, 0), (60, 3), (140, 0), (30, 25))  # chance in 256 that a channel stalls, latency
DEAD = 300  # cycles of the watchdog's limit


def rough(tb, kind: int) -> None:
    tb.cfg_wait_prob.value, tb.cfg_rd_wait.value = ROUGH[kind % len(ROUGH)]


@checked()
async def layers(tb, device: Device) -> None:
    """Recorded layers, each on another kind of bus."""
    await recorded_layers(device, lambda number: rough(tb, number))


@checked()
async def streams(tb, device: Device) -> None:
    """Streams of digits, on each kind of bus: every result exact."""
    network = digits.load_network()
    for kind in range(len(ROUGH)):
        rough(tb, kind)
        await exact_stream(device, network, 4, 8)
    assert int(tb.rd_beats.value) and int(tb.wr_beats.value)


@checked()
async def errors_of_the_bus(tb, device: Device) -> None:
    """SLVERR and DECERR of reads and writes are BUS_ERROR; the next stream is exact."""
    network = digits.load_network()
    images = pictures(network, 3)
    for kind in range(2 * len(ROUGH)):
        storage = await prepare_stream(device, network, images)
        registers = storage.registers
        read = kind % 2 == 0
        place = registers["AI_PIX_ADR"] + registers["AI_PIX_STRIDE"] if read else storage.results[1]
        rough(tb, kind // 2)
        tb.cfg_err_lo.value, tb.cfg_err_hi.value = place, place + 4
        # a write reports the last beat of the burst, which may come after the beat that failed
        far = (await fails(device, len(images))).addr - place
        assert -4 < far < 4 if read else -4 < far < 64, f"{far} bytes from {place:#x}"
    # beyond the end of the storage
    storage = await prepare_stream(device, network, images)
    await device.write(AI["AI_PIX_ADR"], 4 * int(tb.store_words.value) + 0x1000)
    await fails(device, len(images))
    await exact_stream(device, network, len(images))


@checked()
async def dead_bus(tb, device: Device) -> None:
    """A storage that answers no more: WATCHDOG; when it does again, the next stream is exact."""
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
async def window(tb, device: Device) -> None:
    """Bytes, half-words and words of the AI RAM through AXI4-Lite; what is refused is SLVERR."""
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
