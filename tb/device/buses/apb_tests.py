# SPDX-License-Identifier: Apache-2.0
"""openkpu_apb with an APB3 master as the host: registers, window, layers, streams and errors."""

import re

import cocotb

from openkpu import digits
from openkpu.checkout import ROOT
from openkpu_tb.ahb.host_agent import ERROR, OKAY, Transfer
from openkpu_tb.core.registers import AI, AI_RAM, EIGHT_BIT_MODE, PERF
from openkpu_tb.device.apb_host import ApbHost
from openkpu_tb.device.device import Device
from openkpu_tb.device.inference_stream import finish_stream, prepare_stream
from openkpu_tb.device.simulation import rng
from tb.device.buses.bridge import LIMIT, exact_stream, fails, pictures, recorded_layers
from tb.device.checked import checked

REGISTER, REFUSED = 2, 3  # cycles of an access while the device is idle
# ... of accesses of the AI RAM, two and the wait states of docs/programming.md 1, which are read
# there: idle, and at most while a layer runs
ROW = r"^\|[^|]*`nano`[^|]*\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$"
(WAITS,) = re.findall(ROW, (ROOT / "docs" / "programming.md").read_text("utf-8"), re.MULTILINE)
READ, MOST_READ, WRITE, MOST_WRITE = (2 + int(waits) for waits in WAITS)
ID = 0x55504B4F
# of the map in docs/programming.md 1: the ends of each range, and what is beside them
HOLES = (0x48, 0xFC, 0x16C, 0x17C, 0x1F0, 0x1F4, 0x200, 0x1000, 0x1FFFFC)


async def begin(tb) -> tuple[Device, ApbHost]:
    host = ApbHost(tb)
    device = Device(tb, cocotb.RANDOM_SEED, host.send)
    await device.reset()
    host.took.clear()
    return device, host


def rough(tb, on: bool = True) -> None:
    """A storage that waits, and an arbiter that takes the bus away."""
    tb.cfg_wait_prob.value, tb.cfg_loss_prob.value, tb.cfg_retry_prob.value = (
        (60, 20, 10) if on else (0, 0, 0)
    )


@checked()
async def registers(tb) -> None:
    """Two cycles each; what is written is read; what is refused has PSLVERR and no effect."""
    device, host = await begin(tb)
    assert await device.read(AI["AI_ID"]) == ID
    random = rng(1)
    held = {}
    for _ in range(4):
        for name in ("AI_PIX_ADR", "AI_RES_ADR", "AI_PIX_STRIDE", "AI_RES_STRIDE", "AI_WATCHDOG"):
            held[AI[name]] = int(random.integers(1, 1 << 20)) << 4
            await device.write(AI[name], held[AI[name]])
    await device.write(EIGHT_BIT_MODE, 1)
    held[EIGHT_BIT_MODE] = 1
    found = {at: await device.read(at) for at in held}
    assert found == held and set(host.took) == {REGISTER}
    host.took.clear()
    bad = [Transfer(at, write, 0xFFFFFFFF) for at in HOLES for write in (False, True)]
    await device.attempt(*bad)
    assert all(t.resp == ERROR for t in bad), [t.addr for t in bad if t.resp == OKAY]
    assert set(host.took) == {REFUSED}
    read_only = [AI["AI_ID"], AI["AI_CONFIG"], PERF]
    before = [await device.read(at) for at in read_only]
    await device.write_many(dict.fromkeys(read_only, 0xFFFFFFFF))
    assert [await device.read(at) for at in read_only] == before and before[0] == ID
    assert {at: await device.read(at) for at in held} == held


@checked()
async def window(tb) -> None:
    """Words of the AI RAM up to its last one, and PSLVERR behind it; bits 1:0 do not count."""
    device, host = await begin(tb)
    last = AI_RAM + 64 * int(tb.ram_rows.value) - 4
    words = [int(w) for w in rng(2).integers(0, 1 << 32, 40)]
    places = [AI_RAM + 4 * i for i in range(39)] + [last]
    pairs = list(zip(places, words, strict=True))
    await device.transfer(*(Transfer(at, True, word) for at, word in pairs))
    got = await device.transfer(*(Transfer(at, False) for at in places))
    assert [t.data for t in got] == words and set(host.took) == {WRITE, READ}
    behind = [Transfer(last + 4, write, 1) for write in (True, False)] if last < 0x3FFFFC else []
    await device.attempt(*behind)
    assert all(t.resp == ERROR for t in behind)


@checked()
async def layers(tb) -> None:
    """Recorded layers, every third one on a storage that waits."""
    device, _ = await begin(tb)
    await recorded_layers(device, lambda number: rough(tb, number % 3 == 2))


@checked()
async def streams(tb) -> None:
    """Streams of digits are exact while the host reads and writes the AI RAM and registers."""
    device, host = await begin(tb)
    network = digits.load_network()
    maps = [part for arg in network.layers for part in (*arg.in_layouts, arg.out_layout)]
    row = max(part.base + part.rows for part in maps if part.base < int(tb.ram_rows.value) // 2)
    assert not any(part.base <= row < part.base + part.rows for part in maps)
    free = AI_RAM + 64 * row
    for kind in range(2):
        rough(tb, kind == 1)
        await exact_stream(device, network, 6, 8)
    await prepare_stream(device, network, pictures(network, 6))
    await device.start()
    host.took.clear()
    waited = 0
    while not int(tb.irq.value):
        value = int(rng(waited).integers(0, 1 << 32))
        (_, found, ident) = await device.transfer(
            Transfer(free, True, value), Transfer(free, False), Transfer(AI["AI_ID"], False)
        )
        assert (found.data, ident.data) == (value, ID)
        waited += 1
    assert waited > 50 and set(host.took[2::3]) == {REGISTER}
    writes, reads = host.took[0::3], host.took[1::3]
    assert WRITE < max(writes) <= MOST_WRITE and READ < max(reads) <= MOST_READ
    await finish_stream(device, 6, LIMIT)


@checked()
async def errors(tb) -> None:
    """A failing storage and words that are no layer: code and place; then all is exact again."""
    device, _ = await begin(tb)
    network = digits.load_network()
    for read in (True, False):
        storage = await prepare_stream(device, network, pictures(network, 2))
        place = storage.registers["AI_PIX_ADR"] if read else storage.results[0]
        tb.cfg_err_lo.value, tb.cfg_err_hi.value = place, place + 4
        assert (await fails(device, 2)).addr == place
        await exact_stream(device, network, 2)
    await device.push([0] * 12)
    await device.wait(LIMIT)
    assert await device.error() is not None
    await device.soft_reset()
    await device.clear()
    await exact_stream(device, network, 2)
