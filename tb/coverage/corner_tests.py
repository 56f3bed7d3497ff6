# SPDX-License-Identifier: Apache-2.0
"""Corners of the device that no random job meets: pipelined accesses, weights that are refused,
resets in every cycle of a decoded layer. On a build with few rows of weights (test_rest.py).
"""

import itertools

import numpy as np

from openkpu.generators.generate import Limits, random_layer
from openkpu.generators.generate_lists import random_list
from openkpu.layer.argument import LayerArg
from openkpu_tb.ahb.host_agent import Transfer
from openkpu_tb.ahb.protocol import ERROR, OKAY
from openkpu_tb.core.registers import AI, AI_RAM, FIFO_CTRL, Ctrl, Err
from openkpu_tb.device.device import Device, Tables
from openkpu_tb.device.simulation import rng
from tb.device.checked import checked
from tb.device.hostile.tiny_jobs import (
    FLUSH_LAYERS,
    FLUSH_OFF,
    LAYERS_DONE,
    LayerJob,
    StreamJob,
    at_rest,
    tidy,
)

HOLE = 0x1000  # behind the registers
TABLES = 0x8000  # of a layer by itself
MISALIGNED = 12  # the rule that "odd" breaks
LONGEST = 200_000  # cycles of a list
CYCLES = 90  # more than a layer takes from its last word until it begins


@checked({MISALIGNED})
async def accesses_without_a_pause(device: Device) -> None:
    """Registers, AI RAM and errors one right behind the other: each has its own answer and data."""
    random = rng()
    identity, held = await device.read(AI["AI_ID"]), {}
    words = [AI_RAM + 4 * int(n) for n in random.choice(1024, 16, replace=False)]
    for addr in words:
        held[addr] = int(random.integers(0, 1 << 32))
        await device.write(addr, held[addr])
    kinds = ("read", "write", "window", "store", "hole", "odd")
    met = set()
    for _ in range(40):
        asked: list[tuple[Transfer, int, int | None]] = []  # with answer and data
        chosen = [str(kind) for kind in random.choice(kinds, 25)]
        met |= set(itertools.pairwise(chosen))
        for kind in chosen:
            addr = int(random.choice(words))
            if kind == "read":
                asked.append((Transfer(AI["AI_ID"], False), OKAY, identity))
            elif kind == "write":
                asked.append((Transfer(AI["AI_INT_MASK"], True, 0), OKAY, None))
            elif kind == "window":
                asked.append((Transfer(addr, False), OKAY, held[addr]))
            elif kind == "store":
                held[addr] = int(random.integers(0, 1 << 32))
                asked.append((Transfer(addr, True, held[addr]), OKAY, None))
            elif kind == "hole":
                asked.append((Transfer(HOLE, bool(random.integers(2)), 1), ERROR, None))
            else:
                asked.append((Transfer(addr + 1, bool(random.integers(2)), 1), ERROR, None))
        done = await device.attempt(*(transfer for transfer, *_ in asked))
        for transfer, (_, answer, data) in zip(done, asked, strict=True):
            assert transfer.resp == answer, transfer
            assert data is None or transfer.data == data, transfer
    assert len(met) == len(kinds) ** 2, "not every access came behind every other"


@checked()
async def weights_that_do_not_fit(device: Device) -> None:
    """Each reason for BAD_WEIGHTS besides a load that is too short; the next layer is exact."""
    random = rng()
    job = LayerJob(device, random, 2, row=1024)
    await job.place()
    plain = {"pool": 0, "depthwise": False, "fc": False, "eight_bit": True}
    small = random_layer(random, c=2, h=5, w=6, o=3, kernel=3, **plain)
    # more nines of weights for an output channel than the buffer has rows
    deep = random_layer(random, c=100, h=4, w=6, o=3, kernel=3, **plain)
    cases = {
        "more loads than channels": small.arg.replace(load_time=63),
        "more rows than there are": deep.arg,
    }
    for name, changed in cases.items():
        layer = deep if changed is deep.arg else small
        tables = Tables(layer.weights, layer.bn, layer.act)
        placed = await device.place_tables(layer.arg, tables, TABLES)
        placed = placed.replace(load_time=changed.load_time)
        await device.push([int(word) for word in placed.encode()])
        assert await at_rest(device), f"{name}: hangs"
        error = await device.error()
        assert error and error.code == Err.BAD_WEIGHTS, f"{name}: {error or 'no error'}"
        await tidy(device, hung=False)
        bad = await job.clean_run()
        assert not bad, f"after {name}: {bad}"


@checked()
async def a_stop_in_every_cycle(device: Device) -> None:
    """Layers of the host and a list stopped in each cycle from their beginning on; both work."""
    random = rng()
    layers = LayerJob(device, random, 2, row=1024)
    stream = StreamJob(device, random, 1, base=0x4000)
    for job in (layers, stream):
        await job.place()
    for cycle in range(CYCLES):
        for job in (layers, stream):
            await job.arm()
            start = [Transfer(AI["AI_CTRL"], True, Ctrl.START)]
            await device.transfer(*(layers.pushes() if job is layers else start))
            await device.wait_cycles(cycle + 1)
            if job is layers and cycle % 2:
                await device.write(FIFO_CTRL, FLUSH_LAYERS)
                await device.write(FIFO_CTRL, FLUSH_OFF)
                assert await at_rest(device), f"cycle {cycle}: hangs after a flush"
            else:
                await device.soft_reset()
            await tidy(device, hung=False)
            if cycle % 8 == 7:
                bad = await job.clean_run()
                assert not bad, f"stopped in cycle {cycle}: {bad}"


@checked()
async def a_stop_as_a_result_begins_to_leave(tb, device: Device) -> None:
    """A layer whose map goes to the result FIFO, stopped in each of its last cycles."""
    random = rng()
    job = LayerJob(device, random, 1, row=1024)
    await job.place()
    plain = job.words[0]
    sends = [int(w) for w in LayerArg.decode(plain).replace(send_data_out=1).encode()]

    async def begin() -> int:
        await job.arm()
        await device.push(sends)
        return int(tb.cycle.value)

    first = await begin()
    while await device.read(LAYERS_DONE) == 0:
        assert int(tb.cycle.value) - first < LONGEST, "hangs"
    most = int(tb.cycle.value) - first
    await device.soft_reset()
    await tidy(device, hung=False)
    for cycle in range(max(0, most - CYCLES), most):
        await begin()
        await device.wait_cycles(cycle + 1)
        await device.soft_reset()
        await tidy(device, hung=False)
        if cycle % 8 == 7:
            bad = await job.clean_run()
            assert not bad, f"stopped in cycle {cycle}: {bad}"


@checked()
async def a_layer_of_very_many_weights(device: Device) -> None:
    """A million weights, more rows than the number of rows counts: taken, and stopped."""
    random = rng()
    job = LayerJob(device, random, 1, row=1024)
    await job.place()
    await job.arm()  # sets the mode of 8-bit weights
    # 288 rows for every output
    arg = LayerArg.make(9, 16, 18, 1024, fc=True, eight_bit=True)
    await device.push([int(word) for word in arg.encode()])
    await device.wait_cycles(200)
    assert await device.read(AI["AI_STATUS"]) & 1, "not at work"
    assert not await device.error()
    await device.soft_reset()
    await tidy(device, hung=False)
    bad = await job.clean_run()
    assert not bad, bad


@checked()
async def a_host_that_keeps_the_ai_ram_busy(tb, device: Device) -> None:
    """Pools and products of float16 beside accesses to the AI RAM without a pause."""
    random = rng()
    last = AI_RAM + 64 * (device.back.ram_rows - 1)  # a row that no task needs
    for trial in range(12):
        kinds = [("pool", "float16")[(trial + n) % 2] for n in range(4)]
        shape = (int(random.integers(1, 5)), 2, 64)
        network, image = random_list(random, kinds, shape, limits=Limits(channels=12, size=30))
        storage = network.storage(image[None], continuous=False, align=16)
        await device.back.load_storage(storage.base, storage.data)
        await device.configure(storage.registers)
        await device.write(AI["AI_CTRL"], Ctrl.START)
        start, busy = int(tb.cycle.value), True
        while busy:
            assert int(tb.cycle.value) - start < LONGEST, f"{kinds}: hangs"
            stored = [Transfer(last + 4 * n, True, trial + n) for n in range(16)]
            read = [Transfer(last + 4 * n, False) for n in range(16)]
            done = await device.transfer(*stored, *read)
            assert [t.data for t in done[16:]] == [trial + n for n in range(16)]
            busy = bool(await device.read(AI["AI_STATUS"]) & 1)
        wanted = network.run(image).y.view(np.uint8).reshape(-1)
        found, unknown = await device.back.read_storage(storage.results[0], wanted.size)
        assert not unknown.any() and (found == wanted).all(), f"{kinds}: wrong bytes"
        assert not await device.error()
        await device.clear()
