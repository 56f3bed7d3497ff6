# SPDX-License-Identifier: Apache-2.0
"""Every error in each way of running on each kind of bus: the bins of the cross `run`.

An error that does not stop the job leaves it exact; after one that stops it the next job is exact.
The error report has the code, and the layer if the error belongs to one.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import numpy as np

from openkpu.layer.argument import LayerArg
from openkpu_tb.core.registers import AI, FIFO_DATA_OUT, Ctrl, Err
from openkpu_tb.coverage.model import MODES, TRAFFIC, crosses
from openkpu_tb.device.device import Device
from openkpu_tb.device.inference_stream import INFERENCES
from openkpu_tb.device.simulation import SLOW, rng
from tb.device.checked import checked
from tb.device.hostile.timeline import Findings
from tb.device.hostile.tiny_jobs import UNTOUCHED, LayerJob, StreamJob, at_rest, tidy

HOST, LIST, STREAM = MODES
IMMEDIATE, WAITING, REFUSING = TRAFFIC
KNOBS = {
    IMMEDIATE: {},
    WAITING: {"rd_wait": 2, "seq_wait": 1, "wr_wait": 1, "wait_prob": 40},
    REFUSING: {"loss_prob": 60, "retry_prob": 50, "split_prob": 20, "rival_prob": 60},
}
ALL_KNOBS = sorted({name for knobs in KNOBS.values() for name in knobs})
LIST_BASE = 0x4000  # where the list job lies: host layers have their tables below
CHANGED = 1  # number of the layer that is spoilt
TABLES_1 = 0x908  # tables of the host's second layer
OUTSIDE = 0x20000  # behind everything
LIMIT = 60_000  # cycles until an error is reported
ARG_BYTES = 96
GOES_ON = (Err.FIFO_OVERRUN, Err.START_BUSY, Err.FIFO_UNDERRUN, Err.BAD_CONFIG, Err.LOCKED)
SPOILT: dict[Err, dict[str, int]] = {
    Err.BAD_SIZE: {"o_row_wid": 1000},
    Err.BAD_ADDR: {"image_dst_addr": 32767},
    Err.BAD_POOL: {"pool_type": 12},
    Err.BAD_KERNEL: {"kernel_type": 5},
    Err.BAD_WEIGHTS: {"para_size": 0},
    Err.BAD_FLAGS: {"depth_wise_layer": 1, "fc": 1},
}
FIFO_LAYERS = 16


@dataclass
class Jobs:
    """The device with a job for each way of running."""

    device: Device
    layers: LayerJob
    lists: dict[str, StreamJob]

    def of(self, mode: str) -> LayerJob | StreamJob:
        return self.layers if mode == HOST else self.lists[mode]

    async def set_bus(self, bus: str, dead: int = 0) -> None:
        """Wait states and refusals of the storage's bus; ``dead``: no grant any more."""
        tb = self.device.tb
        for name in ALL_KNOBS:
            getattr(tb, f"cfg_{name}").value = KNOBS[bus].get(name, 0)
        tb.cfg_dead.value = dead

    async def begin(self, mode: str) -> None:
        """Push the layers, or start the list."""
        if mode == HOST:
            await self.device.transfer(*self.layers.pushes())
        else:
            await self.device.write(AI["AI_CTRL"], Ctrl.START)


Injection = Callable[[Jobs, str], Awaitable[None]]


async def spoil(jobs: Jobs, mode: str, code: Err) -> None:
    """Start a job one of whose layers is refused."""
    if mode == HOST:
        arg = LayerArg.decode(jobs.layers.words[CHANGED]).replace(**SPOILT[code])
        words = [*jobs.layers.words[:CHANGED], [int(word) for word in arg.encode()]]
        for layer in words:
            await jobs.device.push(layer)
        return
    await change(jobs.lists[mode], **SPOILT[code])
    await jobs.begin(mode)


async def change(job: StreamJob, **fields: int) -> None:
    """Other fields in the argument of layer CHANGED, in storage."""
    at = job.registers["AI_LIST_ADR"] + CHANGED * ARG_BYTES
    data = job.storage.data[at - job.base :][:ARG_BYTES].view(np.uint64)
    arg = LayerArg.decode(data).replace(**fields)
    await job.device.back.load_storage(at, arg.encode().view(np.uint8))


async def no_error(jobs: Jobs, mode: str) -> None:
    await jobs.begin(mode)
    assert await at_rest(jobs.device, LIMIT), f"{mode}: hangs"


async def bus_error(jobs: Jobs, mode: str) -> None:
    """ERROR on the tables, of the second layer when the host pushes them."""
    job = jobs.of(mode)
    at = TABLES_1 if isinstance(job, LayerJob) else job.registers["AI_BIAS_ADR"]
    jobs.device.tb.cfg_err_lo.value = at
    jobs.device.tb.cfg_err_hi.value = at + 0x800
    await jobs.begin(mode)


async def overrun(jobs: Jobs, mode: str) -> None:
    """More layers than the FIFO holds, while nothing takes them: the bus stalls."""
    jobs.device.tb.cfg_dead.value = 1
    if mode != HOST:
        await jobs.begin(mode)
    for _ in range(FIFO_LAYERS // 2 + 4):
        await jobs.device.transfer(*jobs.layers.pushes())
    jobs.device.tb.cfg_dead.value = 0


async def start_twice(jobs: Jobs, mode: str) -> None:
    await jobs.begin(mode)
    await jobs.device.write(AI["AI_CTRL"], Ctrl.START)


async def empty_results(jobs: Jobs, mode: str) -> None:
    await jobs.begin(mode)
    await jobs.device.read(FIFO_DATA_OUT + 4)


async def bad_config(jobs: Jobs, mode: str) -> None:
    """A result address that is no multiple of the bus word, written to a device at work."""
    await jobs.begin(mode)
    before = await jobs.device.read(AI["AI_RES_ADR"])
    await jobs.device.write(AI["AI_RES_ADR"], before + 2)
    assert await jobs.device.read(AI["AI_RES_ADR"]) == before


async def list_changed(jobs: Jobs, mode: str) -> None:
    """Another word in the list once the first inference has read it."""
    job = jobs.lists[mode]
    await jobs.begin(mode)
    while await jobs.device.read(AI["AI_TAKEN_ADR"]) == job.image(0):
        await jobs.device.wait_cycles(20)
    await change(job, coef_size=77)


async def watchdog(jobs: Jobs, mode: str) -> None:
    """No grant any more, a while after the beginning."""
    await jobs.device.write(AI["AI_WATCHDOG"], 300)
    await jobs.begin(mode)
    await jobs.device.wait_cycles(40)
    jobs.device.tb.cfg_dead.value = 1


async def bad_access(jobs: Jobs, mode: str) -> None:
    """A window that does not have the tables of the second layer, or the pixels."""
    last = TABLES_1 - 0x400 if mode == HOST else OUTSIDE - 0x400
    await jobs.device.write_many({AI["AI_READ_LAST"]: last, AI["AI_PIX_ADR"]: OUTSIDE})
    await jobs.begin(mode)


async def locked(jobs: Jobs, mode: str) -> None:
    await jobs.device.write(AI["AI_LOCK"], 1)
    await jobs.begin(mode)
    await jobs.device.write(AI["AI_WRITE_LAST"], 0)
    assert await jobs.device.read(AI["AI_WRITE_LAST"]) == 0xFFFFFC00


INJECTIONS: dict[Err, Injection] = {
    Err.NONE: no_error,
    Err.BUS_ERROR: bus_error,
    Err.FIFO_OVERRUN: overrun,
    Err.START_BUSY: start_twice,
    Err.FIFO_UNDERRUN: empty_results,
    Err.BAD_CONFIG: bad_config,
    Err.LIST_CHANGED: list_changed,
    Err.WATCHDOG: watchdog,
    Err.BAD_ACCESS: bad_access,
    Err.LOCKED: locked,
}
for _code in SPOILT:
    INJECTIONS[_code] = lambda jobs, mode, code=_code: spoil(jobs, mode, code)


async def trial(jobs: Jobs, mode: str, bus: str, code: Err) -> str:
    """One job with the error; what was wrong with it, or nothing."""
    device, job = jobs.device, jobs.of(mode)
    await job.arm()
    if mode == HOST and code in (Err.START_BUSY, Err.BAD_CONFIG):
        await device.write_many({AI["AI_CNN_MODE"]: 0, AI["AI_RES_ADR"]: 0})
    await jobs.set_bus(bus)
    await INJECTIONS[code](jobs, mode)
    begun = int(device.tb.cycle.value)
    if code in GOES_ON:
        await at_rest(device, LIMIT)
    error = await device.error()
    while code and not error and int(device.tb.cycle.value) - begun < LIMIT:
        await device.wait_cycles(60)
        error = await device.error()
    jobs.device.tb.cfg_dead.value = 0
    rest = await at_rest(device, LIMIT)
    for name in ("err_lo", "err_hi"):
        getattr(device.tb, f"cfg_{name}").value = 0
    wrong = [] if rest else ["hangs"]
    found = error.code if error else 0
    if found != code:
        wrong.append(f"{error or 'no error'}")
    elif code in SPOILT or code == Err.LIST_CHANGED:
        layer = error.layer if error else None
        wrong += [] if layer == CHANGED else [f"layer {layer}, expected {CHANGED}"]
    if code in GOES_ON or not code:
        slots, clean = await job.slots(), getattr(job, "clean", [0, 1])
        wrong += [] if slots == clean else [f"results {slots}"]
    elif mode != HOST:  # those before are stored, of the one at work some bytes may be
        slots, done = await job.slots(), await device.read(INFERENCES)
        whole = slots[:done] == list(range(done)) and all(s < 0 for s in slots[done:])
        at_most = all(s == UNTOUCHED for s in slots[done + 1 :])
        wrong += [] if whole and at_most else [f"results {slots} of {done} inferences"]
    await jobs.set_bus(IMMEDIATE)
    if code in (Err.LOCKED, Err.WATCHDOG, Err.BAD_ACCESS):
        await device.reset()  # AI_LOCK stays until then; windows and limit are as they were
    await tidy(device, hung=not rest)
    if mode != HOST:
        await job.place()
    return "; ".join(wrong)


def wanted(random: np.random.Generator) -> list[tuple[str, str, Err]]:
    """All bins of the cross; on the slow simulator a handful."""
    (run,) = (cross for cross in crosses() if cross.name == "run")
    bins = [(mode, bus, Err[error]) for mode, bus, error in run.bins]
    if SLOW:
        return [bins[i] for i in sorted(random.choice(len(bins), 8, replace=False))]
    return bins


@checked()
async def every_error(tb, device: Device) -> None:
    """All of them; after every eighth one a job of each kind is exact."""
    random = rng()
    tb.cfg_seed.value = int(random.integers(1, 1 << 32))
    layers = LayerJob(device, random, 2, row=1024)
    lists = {
        mode: StreamJob(device, random, count, base=LIST_BASE + place * 0x8000)
        for place, (mode, count) in enumerate({LIST: 1, STREAM: 4}.items())
    }
    jobs = Jobs(device, layers, lists)
    for job in (layers, *lists.values()):
        await job.place()
    found = Findings("errors by mode and bus")
    for number, (mode, bus, code) in enumerate(wanted(random)):
        wrong = await trial(jobs, mode, bus, code)
        found.check(not wrong, f"{mode}, {bus}, {code.name}: {wrong}")
        if number % 8 == 7:
            for job in (layers, *lists.values()):
                bad = await job.clean_run()
                found.check(not bad, f"after {mode}, {bus}, {code.name}: {bad}")
    found.verdict()
