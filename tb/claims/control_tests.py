# SPDX-License-Identifier: Apache-2.0
"""C9 AI_CFG and the central controller: registers that move on by themselves, and the host."""

from dataclasses import replace

import numpy as np

from openkpu.network.network import UNWRITTEN, Storage
from openkpu_tb.claims import networks, recorder
from openkpu_tb.claims.networks import ClaimCase
from openkpu_tb.claims.recording import Recording
from openkpu_tb.core.registers import AI, Ctrl, Int
from openkpu_tb.device.device import Device
from tb.device.checked import checked

POLLS = 3000  # reads of a register while waiting for it
IDLE = 1500  # cycles in which nothing may happen after a stop


@checked()
async def c9_registers_move_on(device: Device) -> None:
    """AI registers cycle by cycle over a stream; a host that changes or stops it."""
    moves_on(await recorder.run_small(device))
    moves_on(await recorder.large(device))
    case = networks.small_case(5)
    for host, images in ((redirect_early, [0, 3, 4]), (redirect_late, [0, 1, 3])):
        run = (await recorder.stream(device, case, meanwhile=host, images=images)).exact()
        assert run.trace.npix_taken.any()
        for number, taken in enumerate(images):  # AI_PIX_ADR is the image at work
            span = slice(run.starts[number] + 1, run.ends[number] + 1)
            assert set(run.trace.pix_adr[span]) == {image(run.storage, taken)}
    for name, value in (("AI_CTRL", Ctrl.STOP), ("AI_INF_LEFT", 0), ("AI_CNN_MODE", 1)):
        await stopped(device, case, name, int(value))


def moves_on(run: Recording) -> None:
    """The registers in the cycles around every end of an inference."""
    trace, r = run.trace, run.storage.registers
    last = run.count - 1
    assert run.streamed and run.ends.size == run.count
    done = trace.at("inf_done")
    steps = trace.at("inf_next")
    assert steps.size == last and (np.abs(steps - done[:-1]) <= 2).all()
    begin = run.starts[0]
    assert (trace.mode[begin], trace.inf_left[begin]) == (2, last)
    for number, cycle in enumerate([*steps, None]):
        span = slice(run.starts[number] + 1, run.ends[number] + 1)
        shown = {"pix_adr": r["AI_PIX_ADR"] + number * r["AI_PIX_STRIDE"]}
        shown["inf_left"] = last - number
        shown["mode"] = 1 if number == last else 2
        shown["npix_adr"] = r["AI_PIX_ADR"] + (number + 1) * r["AI_PIX_STRIDE"]
        for name, value in shown.items():
            found = set(getattr(trace, name)[span])
            assert found == {value}, f"{name} of inference {number}: {found}, not {value}"
        if cycle is not None:  # AI_PIX_ADR <- AI_NPIX_ADR
            assert trace.pix_adr[cycle + 1] == trace.npix_adr[cycle]
    assert trace.mode[-1] == 1 and trace.inf_left[-1] == 0
    for end in done:  # AI_INT_STATUS is set one cycle later and raises the interrupt
        assert trace.irq[end + 1] == 1


async def redirect_early(device: Device, storage: Storage) -> None:
    """Before AI_NPIX_ADR was taken: the next inference uses what the host writes."""
    await device.write(AI["AI_INF_LEFT"], 2)
    taken = await device.read(AI["AI_TAKEN_ADR"])
    assert taken != storage.registers["AI_NPIX_ADR"], "too late"
    await device.write(AI["AI_NPIX_ADR"], image(storage, 3))


async def redirect_late(device: Device, storage: Storage) -> None:
    """After it was taken: the inference after the next one does."""
    await device.write(AI["AI_INF_LEFT"], 2)
    for _ in range(POLLS):
        if await device.read(AI["AI_TAKEN_ADR"]) == storage.registers["AI_NPIX_ADR"]:
            break
    else:
        raise AssertionError("AI_NPIX_ADR was never taken")
    assert await device.read(AI["AI_PIX_ADR"]) == storage.registers["AI_PIX_ADR"]
    await device.write(AI["AI_NPIX_ADR"], image(storage, 3))


def image(storage: Storage, number: int) -> int:
    """Address of an image."""
    return storage.registers["AI_PIX_ADR"] + number * storage.registers["AI_PIX_STRIDE"]


async def stopped(device: Device, case: ClaimCase, name: str, value: int) -> None:
    """A host that ends the stream during its first inference: that one is finished, no more."""
    case = replace(case, images=case.images[:2])
    storage = await recorder.prepare_case(device, case)
    await recorder.begin(device)
    await device.start()
    await device.wait_cycles(100)
    await device.write(AI[name], value)
    await device.wait(recorder.LIMIT)
    assert await device.read(AI["AI_CNN_DONE"]) == 1
    assert await device.read(AI["AI_INT_STATUS"]) == Int.DONE
    await device.clear()
    assert await device.read(AI["AI_CNN_DONE"]) == 0
    await device.wait_cycles(IDLE)
    status = await device.read(AI["AI_STATUS"])
    assert status & 1 == 0, f"{name}: still busy"
    run = (await recorder.view(device, case, storage, images=[0])).exact()
    assert run.ends.size == 1 and not run.trace.data_phase[run.ends[0] + 1 :].any()
    after = storage.results[1] - storage.base
    data = await recorder.storage_contents(device, storage)
    assert (data[after : after + run.results.shape[1]] == UNWRITTEN).all(), f"{name}: went on"
