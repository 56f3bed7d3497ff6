# SPDX-License-Identifier: Apache-2.0
"""What real hosts do: poll without a delay, come late to an interrupt, chain jobs blindly."""

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge
from openkpu_tb.core.registers import AI, INTERRUPT_CLEAR, INTERRUPT_RAW, Ctrl, Int, Kpu
from openkpu_tb.device.device import Device

from tb.device.checked import checked
from tb.device.hostile import tiny_jobs
from tb.device.hostile.hostile_tests import rng

LIMIT = 4000  # cycles of a tiny job
SLOW = "icarus" in cocotb.SIM_NAME.lower()
ROUNDS = 3 if SLOW else 12


async def begin(tb, count: int) -> tuple[Device, tiny_jobs.StreamJob]:
    device = Device(tb, cocotb.RANDOM_SEED)
    await device.reset()
    job = tiny_jobs.StreamJob(device, rng(), count)
    await job.place()
    return device, job


def single(job: tiny_jobs.StreamJob, number: int) -> dict[int, int]:
    """Registers of image ``number`` alone, result into its slot."""
    return {AI["AI_PIX_ADR"]: job.image(number), AI["AI_RES_ADR"]: job.slot(number)}


@checked()
async def poll_without_delay(tb) -> None:
    """start; while (busy); the result is there, and nothing was lost."""
    device, job = await begin(tb, 1)
    await job.arm()
    for number in range(min(ROUNDS, len(job.images))):
        await device.write_many({**single(job, number), AI["AI_CTRL"]: int(Ctrl.START)})
        for _ in range(LIMIT):
            if not await device.read(AI["AI_STATUS"]) & 1:
                break
        else:
            raise AssertionError("busy for ever")
        assert await device.read(AI["AI_CNN_DONE"]) == 1
        assert (await job.slots())[number] == number
    assert not await device.error()


@checked()
async def poll_the_done_bit(tb) -> None:
    """start; while (!done): the next start in the cycle after is accepted."""
    device, job = await begin(tb, 1)
    await job.arm()
    count = min(ROUNDS, len(job.images))
    for number in range(count):
        await device.write_many({**single(job, number), AI["AI_CTRL"]: int(Ctrl.START)})
        await device.read_until(AI["AI_CNN_DONE"], bool, LIMIT, "AI_CNN_DONE")
    assert not await device.error(), "a start right behind DONE was refused"
    assert (await job.slots())[:count] == list(range(count))


@checked()
async def interrupt_served_late(tb) -> None:
    """A handler that comes after one inference or several: the count tells, all is exact."""
    device, job = await begin(tb, 6)
    random = rng(1)
    for _ in range(2 if SLOW else 6):
        await job.arm()
        await device.start()
        finished = 0
        while finished < job.count:
            await device.wait(LIMIT)
            await device.wait_cycles(int(random.integers(1, 1500)))
            await device.write(AI["AI_INT_STATUS"], int(Int.DONE))
            finished = await device.read(tiny_jobs.INFERENCES)
        assert await job.slots() == job.clean and not await device.error()
        await device.clear()
        assert not int(tb.irq.value)


@checked()
async def tasks_in_a_row(tb) -> None:
    """Task after task on the interrupt alone: no status is read, not a cycle is left between."""
    device, job = await begin(tb, 1)
    await job.arm()
    count = min(ROUNDS, len(job.images))
    for number in range(count):
        await device.write_many(
            {
                AI["AI_INT_STATUS"]: int(Int.DONE),
                **single(job, number),
                AI["AI_CTRL"]: int(Ctrl.START),
            }
        )
        for _ in range(LIMIT):
            await FallingEdge(tb.clk)
            if int(tb.irq.value):
                break
        else:
            raise AssertionError(f"task {number}: no interrupt")
    assert not await device.error()
    assert (await job.slots())[:count] == list(range(count))


@checked()
async def next_task_prepared_early(tb) -> None:
    """The registers of the next task are written while the present one runs, at any moment."""
    device, job = await begin(tb, 1)
    await job.arm()
    random = rng(2)
    count = min(ROUNDS, len(job.images))
    await device.write_many(single(job, 0))
    for number in range(count):
        await device.start()
        await device.wait_cycles(int(random.integers(1, 250)))
        if number + 1 < count:
            await device.write_many(single(job, number + 1))
        await device.wait(LIMIT)
        await device.write(AI["AI_INT_STATUS"], int(Int.DONE))
    assert not await device.error()
    assert (await job.slots())[:count] == list(range(count))


@checked()
async def layers_between_tasks(tb) -> None:
    """A layer of the host, a task, a layer, with the interrupt as the only sign."""
    device, job = await begin(tb, 1)
    await job.arm()
    first = job.network.layers[0].replace(int_en=1)
    words = first.replace(
        para_start_addr=first.para_start_addr + job.registers["AI_WGT_ADR"],
        bwsx_base_addr=first.bwsx_base_addr + job.registers["AI_BIAS_ADR"],
        active_addr=first.active_addr + job.registers["AI_BIAS_ADR"],
    ).encode()
    for number in range(min(ROUNDS, len(job.images))):
        x = job.images[number]
        await device.load_map(first.in_layout, x)
        await device.push([int(w) for w in words])
        await device.wait(LIMIT)
        assert await device.read(INTERRUPT_RAW) & Kpu.CALC_DONE
        y, unknown = await device.read_map(first.out_layout)
        golden = job.network.run(x).layers[0].y
        assert not unknown.any() and np.array_equal(y, golden)
        await device.write_many({INTERRUPT_CLEAR: 7, **single(job, number)})
        await device.start()
        await device.wait(LIMIT)
        await device.write(AI["AI_INT_STATUS"], int(Int.DONE))
        assert (await job.slots())[number] == number
    assert not await device.error()
