# SPDX-License-Identifier: Apache-2.0
"""The vendor's two driver sequences (docs/kpu.md 3) on the whole device, step by step.

tb/device/test_driver.py runs these on both simulators.
"""

import dataclasses
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge, Timer

from openkpu.kmodel import (
    KpuOutcome,
    KpuStep,
    Program,
    Segment,
    View,
    golden_kpu,
    loads_kmodel,
    walk,
)
from openkpu.kmodel.build import build_v0, build_v1, chain_layers
from openkpu.layer import airam
from openkpu.layer.layout import Layout
from openkpu.words import MAPS, WAYS
from openkpu_tb.core.registers import (
    AI,
    AI_RAM,
    EIGHT_BIT_MODE,
    FIFO_DATA_OUT,
    FIFO_THRESHOLD,
    INTERRUPT_CLEAR,
    INTERRUPT_MASK,
    INTERRUPT_RAW,
    INTERRUPT_STATUS,
    Kpu,
)
from openkpu_tb.device.device import Device
from openkpu_tb.device.driver import ALL, Driver
from tb.device.checked import checked

LIMIT = 200_000  # cycles of any single wait
POINT = {"kernel": 1, "pool": 0, "depthwise": False}


def tiny(layers: int, seed: int, eight_bit: bool = True) -> tuple[np.ndarray, bytes]:
    """(input map, v0 or v1 container) of so many small layers that feed each other."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (3, 5, 9), dtype=np.uint8)
    first = {"o": 5, "kernel": 3, "pool": 9, "depthwise": False}
    shapes = [first, *({"o": 3 + i % 3, **POINT} for i in range(layers - 1))]
    built = chain_layers(rng, shapes[:layers], x, eight_bit=eight_bit)
    return x, (build_v1 if eight_bit else build_v0)(built)


async def ready(file: bytes, **options: Any) -> tuple[Device, Driver, Program]:
    """A device after reset, its driver with the model in storage."""
    device = Device(cocotb.top, cocotb.RANDOM_SEED)
    await device.reset()
    driver = Driver(device, file, **options)
    await driver.load_file()
    return device, driver, loads_kmodel(file)


def segments(program: Program, x: np.ndarray) -> list[tuple[Segment, list[np.ndarray]]]:
    """What the device is asked for, and the golden maps of its layers."""
    walker, found, answer = walk(program, x[None]), [], None
    while True:
        try:
            request = walker.send(answer)
        except StopIteration:
            return found
        assert isinstance(request, Segment), "the program reads no map back"
        ram, maps = request.ram.copy(), []
        for step in request.steps:
            maps.append(golden_kpu(step, ram).y)
            airam.pack_map(ram, step.arg.image_dst_addr, maps[-1])
        found.append((request, maps))
        answer = [KpuOutcome(y) for y in maps]


async def same(driver: Driver, step: KpuStep, y: np.ndarray) -> None:
    """The map in the AI RAM, read through the window, is the golden one."""
    found = await driver.download(step.arg.out_layout)
    assert np.array_equal(found, y), f"{step.name}: {int((found != y).sum())} bytes differ"


@checked()
async def layer_by_layer(tb: Any) -> None:
    """Sequence 2: calc_done for every layer, the last one's map through the FIFO."""
    for eight_bit in (True, False):
        x, file = tiny(4, 1 + eight_bit, eight_bit)
        device, driver, program = await ready(file)
        ((segment, maps),) = segments(program, x)
        await driver.bring_up(segment)
        for step, y in zip(segment.steps, maps, strict=True):
            driver.seen.clear()
            found = await driver.run_layer(step, LIMIT)
            mask = await device.read(INTERRUPT_MASK)
            assert await device.read(EIGHT_BIT_MODE) == eight_bit
            if step.to_main:
                assert found is not None and np.array_equal(found, y)
                assert mask == ALL and driver.seen == []
            else:
                assert found is None and mask == 0b110 and driver.seen == [Kpu.CALC_DONE]
            assert await device.read(INTERRUPT_RAW) & Kpu.CALC_DONE == 0
            assert not int(tb.irq.value)
            await same(driver, step, y)
        device.check_rules()


async def watch_bus(tb: Any, seen: dict[str, int]) -> None:
    """The host's accesses as the pins show them: cycles of the first and of the last one of a map,
    a result or AI_CTRL, and how many cycles accesses of maps take."""
    seen |= {"maps": 0}
    data = False  # the data phase is of an access to the AI RAM
    while True:
        await FallingEdge(tb.clk)
        await Timer(1, "ns")  # the driver has put its values on the pins by now
        active, address = bool(int(tb.s_htrans.value) & 2), int(tb.s_haddr.value)
        now, ready = int(tb.cycle.value), int(tb.s_hready.value)
        is_map = active and address >= AI_RAM
        seen["maps"] += int(is_map or data)
        data = is_map if ready else data
        is_fifo = address & ~7 == FIFO_DATA_OUT
        if active and (is_map or is_fifo or address == AI["AI_CTRL"]):
            seen.setdefault("first", now)
            seen["last"] = now


@checked()
async def span_of_a_run(tb: Any) -> None:
    """From the first byte of the input to the last one of the result, as the pins show it."""
    x, file = tiny(4, 21)
    for way in WAYS:
        device, driver, program = await ready(file)
        ((segment, _),) = segments(program, x)
        seen: dict[str, int] = {}
        watcher = cocotb.start_soon(watch_bus(tb, seen))
        await device.wait_cycles(50)  # which do not count
        await driver.run(way, segment, LIMIT)
        watcher.cancel()
        assert driver.began is not None
        cycles = driver.ended - driver.began
        last = device.woke if way == "tasks" else seen["last"]
        # registers are written before the device reads the input itself
        assert 0 <= cycles - (last - seen["first"]) < (60 if way == "tasks" else 6), (way, seen)
        assert (seen["maps"] == 0) == (way == "tasks"), seen
        assert abs(driver.host_cycles - seen["maps"]) <= 4, (driver.host_cycles, seen)
        driver.forget()
        assert (driver.host_cycles, driver.began) == (0, None)


@checked()
async def bursts(tb: Any) -> None:
    """Sequence 1: twelve layers at a time, the next ones on almost_empty, result by FIFO."""
    for count, served in ((1, 0), (12, 0), (13, 1), (26, 2)):
        x, file = tiny(count, count)
        device, driver, program = await ready(file)
        ((segment, maps),) = segments(program, x)
        await driver.bring_up(segment)
        y = await driver.run_burst(segment.steps, LIMIT)
        assert y is not None and np.array_equal(y, maps[-1]), f"{count} layers"
        assert driver.seen == [Kpu.ALMOST_EMPTY] * served
        assert await device.read(FIFO_THRESHOLD) == 0x1C
        assert await device.read(INTERRUPT_MASK) == ALL
        assert await device.read(INTERRUPT_STATUS) == 0
        assert (await device.counters())["layers"] == count
        await same(driver, segment.steps[-1], maps[-1])
        device.check_rules()


@checked()
async def moved_by_the_device(tb: Any) -> None:
    """Every way with maps that the device moves: the same bytes, and none through the window."""
    x, file = tiny(14, 22)
    device, driver, program = await ready(file, maps="dma")
    ((plain, maps),) = segments(program, x)
    steps = plain.steps
    # what the CPU reads next: the last maps, and one whose place others have taken
    layouts = [step.arg.out_layout for step in steps]
    wanted = (layouts[0], layouts[-2], layouts[-1])
    segment = dataclasses.replace(plain, wanted=wanted)
    last_of = {wanted[1]: len(steps) - 2, wanted[2]: len(steps) - 1}
    after = layouts[1:]
    assert any(
        a.base < layouts[0].base + layouts[0].rows and layouts[0].base < a.base + a.rows
        for a in after
    )
    for way in (*WAYS, "burst"):
        driver.known[:] = False
        driver.forget()
        seen: dict[str, int] = {}
        watcher = cocotb.start_soon(watch_bus(tb, seen))
        found = await driver.run(way, segment, LIMIT)
        watcher.cancel()
        assert list(found) == [13] and np.array_equal(found[13], maps[-1]), way
        assert (seen["maps"], driver.host_cycles, driver.moved_by_host) == (0, 0, 0), way
        assert set(driver.stored) == set(last_of), way
        for layout, i in last_of.items():
            assert np.array_equal(driver.stored[layout], maps[i]), f"{way}: map of layer {i}"
        assert driver.moved == x.size + sum(maps[i].size for i in last_of.values()), way
        assert FIFO_DATA_OUT not in seen and driver.ended == device.woke, way
        await same(driver, steps[-1], maps[-1])
    # data that are already in the AI RAM are not loaded again
    driver.forget()
    await driver.run("burst", plain, LIMIT)
    known = driver.holds(steps[0].arg.in_layout)
    assert driver.moved == maps[-1].size + (0 if known else x.size)


@checked()
async def lists_of_a_segment(tb: Any) -> None:
    """A segment that is cut into two lists: the second one begins with a map that the CPU made, or
    with one of the device's."""
    rng = np.random.default_rng(cocotb.RANDOM_SEED & 0xFFFFFFFF)
    x, file = tiny(4, 23)
    for maps in MAPS:
        for from_cpu in (True, False):
            _, driver, program = await ready(file, maps=maps)
            ((segment, _),) = segments(program, x)
            steps, ram = list(segment.steps), segment.ram.copy()
            out = View("main", 0, (1, *steps[1].arg.out_shape))
            steps[1] = dataclasses.replace(
                steps[1], layer=dataclasses.replace(steps[1].layer, main_out=out)
            )
            if from_cpu:
                arg = steps[2].arg.replace(image_src_addr=5000)
                steps[2] = dataclasses.replace(steps[2], arg=arg)
                airam.pack_map(ram, 5000, rng.integers(0, 256, arg.in_shape, dtype=np.uint8))
            golden, memory = [], ram.copy()
            for step in steps:
                golden.append(golden_kpu(step, memory).y)
                airam.pack_map(memory, step.arg.image_dst_addr, golden[-1])
            for way in WAYS:
                driver.known[:] = False
                found = await driver.run(way, Segment(steps, ram), LIMIT)
                assert list(found) == [1, 3], f"{maps}, {way}: {list(found)}"
                for i in found:
                    assert np.array_equal(found[i], golden[i]), f"{maps}, {way}: layer {i}"


@checked()
async def exact_thresholds(tb: Any) -> None:
    """A device that waits for its reader holds its layers: each threshold to the layer."""
    x, file = tiny(15, 12)
    device, driver, program = await ready(file)
    ((segment, _),) = segments(program, x)
    await driver.bring_up(segment)
    await device.write_many({INTERRUPT_MASK: ALL, EIGHT_BIT_MODE: 1})
    # nobody reads the result FIFO, which is smaller than this map
    assert segment.steps[0].arg.dma_total_byte > 16 * 8
    blocked = driver.argument(segment.steps[0], send_data_out=1, int_en=0)
    other = driver.argument(segment.steps[1], send_data_out=0, int_en=0)

    async def held() -> int:
        return await device.read(AI["AI_STATUS"]) >> 24 & 31

    await device.push(blocked)
    await device.push(other * 11)
    await device.wait_cycles(5000)
    count = await held()
    assert 2 <= count <= 11
    for bit, beyond in ((Kpu.ALMOST_EMPTY, -1), (Kpu.ALMOST_FULL, 1)):
        for off in (0, beyond):  # the threshold at the number of layers, and one beyond it
            count += 1
            value = count + off if bit == Kpu.ALMOST_FULL else (count + off) << 4 | 15
            await device.write_many({FIFO_THRESHOLD: value, INTERRUPT_CLEAR: ALL})
            await device.push(other)
            assert await held() == count
            raised = bool(await device.read(INTERRUPT_RAW) & bit)
            assert raised == (off == 0), f"{bit.name} at {count}, threshold {count + off}"
    await device.soft_reset()
    assert await held() == 0


@checked()
async def window(device: Device) -> None:
    """Maps of every kind of width: what lies between the lines keeps its value."""
    rng = np.random.default_rng(cocotb.RANDOM_SEED)
    driver = Driver(device, b"")
    for c, h, w in ((5, 2, 1), (3, 2, 7), (2, 2, 16), (3, 1, 30), (2, 2, 64), (1, 2, 67)):
        layout = Layout(c, h, w, base=int(rng.integers(0, 1000)))
        before = rng.integers(0, 256, layout.bytes, dtype=np.uint8)
        await device.back.load_ram(layout.base, before)
        x = rng.integers(0, 256, (c, h, w), dtype=np.uint8)
        await driver.upload(layout, x)
        airam.pack_map(before, 0, x)
        await device.wait_cycles(3)  # a small array's AI RAM has registers in front of its memory
        after, unknown = await device.back.read_ram(layout.base, layout.rows)
        assert not unknown.any() and np.array_equal(after, before), (c, h, w)
        assert np.array_equal(await driver.download(layout), x)
        assert driver.holds(layout)
