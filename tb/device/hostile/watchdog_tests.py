# SPDX-License-Identifier: Apache-2.0
"""A dead bus: the watchdog ends the run, and only when no data move any more.

The fabric's cfg_dead stops the bus in a given cycle of a job: no grant, no answer, or a SPLIT
without resumption. beat_cycle of the bench is the cycle of the last good beat.
"""

from itertools import product

import numpy as np
from cocotb.triggers import FallingEdge

from openkpu.generators.generate import Limits, random_layer, random_network
from openkpu_tb.core.registers import AI, EIGHT_BIT_MODE, FIFO_DATA_OUT, Ctrl, Err
from openkpu_tb.device.device import Device, Tables
from openkpu_tb.device.inference_stream import INFERENCES
from openkpu_tb.device.simulation import SLOW, rng
from tb.device.checked import checked
from tb.device.hostile import timeline
from tb.device.hostile.hostile_stream_tests import BIAS, LIST, PIXEL, RESULT, START, WEIGHT
from tb.device.hostile.timeline import Findings, burst, read
from tb.device.hostile.tiny_jobs import (
    UNTOUCHED,
    WRONG,
    LayerJob,
    StreamJob,
    at_rest,
    layer_job,
    share,
    stream_job,
    tidy,
)

GRANT, ANSWER, REPLAY = 1, 2, 3  # AI_ERR_INFO.waits; 1 << (n - 1) is the kind in cfg_dead
KINDS = {"no grant": GRANT, "no answer": ANSWER, "SPLIT for ever": REPLAY}
ALIVE = 0
LIMIT_REG, CODE, STATUS = AI["AI_WATCHDOG"], AI["AI_ERR_CODE"], AI["AI_STATUS"]
DEFAULT, LEAST, FLUSH_LIMIT = 1 << 20, 256, 1 << 16
# cycles that the array still works after the last beat of the bus, plus those to the error
SLACK = 400
AT_ONCE = 12  # cycles in which an idle device completes a reset
# cut bursts, endless waits of the master and of the slave: a dead bus, and the remainder of an
# abandoned burst (tb/openkpu_tb/ahb/checkers/README.md)
# tests with a working bus come first in this file: a broken rule is reported until the run ends
DEAD_RULES = {10, 18, 20, 28, 36}


async def kill(device: Device, kind: int) -> None:
    """Stop the bus in the way of ``kind`` from now on."""
    device.tb.cfg_dead.value = 1 << kind >> 1
    await FallingEdge(device.tb.clk)


def now(device: Device) -> int:
    return int(device.tb.cycle.value)


async def error_within(device: Device, cycles: int) -> int:
    """Cycle in which an error is visible; 0 without an error, or if the device completes first."""
    start = now(device)
    while now(device) - start < cycles:
        await device.wait_at_most(cycles - (now(device) - start))
        if await device.read(CODE):
            return device_event(device)
        status = await device.read(STATUS)
        if not status & 1:
            return 0
        await device.write(AI["AI_INT_STATUS"], 1)  # done of an inference before
    return 0


def device_event(device: Device) -> int:
    """Cycle of the event in the device: the present one, less the latency of the read."""
    return now(device) - 4


async def idle_within(device: Device, cycles: int) -> int:
    """Cycles until AI_STATUS.busy is 0; -1 when it is not within ``cycles``."""
    start = now(device)
    while now(device) - start <= cycles + 4:
        if not await device.read(STATUS) & 1:
            return now(device) - start
        if cycles > 1000:
            await device.wait_cycles(50)
    return -1


def regions(job: StreamJob) -> dict[int, range]:
    """Addresses of each stream of a list run."""
    regs = job.registers
    ends = sorted([*(regs[n] for n in ("AI_WGT_ADR", "AI_BIAS_ADR", "AI_PIX_ADR")), job.slot(0)])

    def upto(first: int) -> range:
        return range(first & ~3, min((e for e in ends if e > first), default=1 << 20))

    lists = range(regs["AI_LIST_ADR"] & ~3, regs["AI_LIST_ADR"] + 96 * regs["AI_LIST_LEN"])
    names = {BIAS: "AI_BIAS_ADR", WEIGHT: "AI_WGT_ADR", PIXEL: "AI_PIX_ADR"}
    return (
        {LIST: lists}
        | {s: upto(regs[n]) for s, n in names.items()}
        | {RESULT: range(job.slot(0), job.slot(len(job.images)))}
    )


def layer_regions(job: LayerJob) -> dict[int, range]:
    """The same for layers of the host: their tables are close together."""
    tables = range(0x100, 0x108 + 0x800 * len(job.layers))
    return {BIAS: tables, WEIGHT: tables}


class Case:
    """A job that is started, interrupted by a dead bus, and checked."""

    def __init__(self, job: StreamJob | LayerJob) -> None:
        self.job, self.device = job, job.device
        self.stream = isinstance(job, StreamJob)
        self.where = regions(job) if isinstance(job, StreamJob) else layer_regions(job)
        self.layers = len(job.network.layers if isinstance(job, StreamJob) else job.layers)

    async def launch(self) -> int:
        """Arm and start; cycle of the start, or of the first word."""
        await self.job.arm()
        job = self.job
        script = {0: START} if isinstance(job, StreamJob) else burst(0, job.pushes())
        return await timeline.play(self.device, script)

    async def learn(self) -> None:
        """Measure an undisturbed run: the cycle of its last beat, and of its end."""
        start = await self.launch()
        assert await at_rest(self.device)
        self.last_beat = int(self.device.tb.beat_cycle.value) - start
        self.first = 2 if isinstance(self.job, StreamJob) else len(self.job.pushes()) + 2
        await tidy(self.device, False)

    def plausible(self, info: int, addr: int) -> str:
        """The part of the error description that is impossible; empty if there is none."""
        layer, stream = info & 0xFFFF, info >> 16 & 7
        if stream not in self.where:
            return f"stream {stream}"
        if addr not in self.where[stream]:
            return f"address {addr:#x} of stream {stream}"
        right = {PIXEL: (0,), RESULT: (self.layers - 1,)}.get(stream, range(self.layers))
        if stream == LIST:
            right = (0, (addr - self.where[LIST][0]) // 96)
        return "" if layer in right else f"layer {layer} of stream {stream}, address {addr:#x}"

    async def die(self, kind: int, at: int, limit: int) -> str:
        """The bus dies in cycle ``at``: the faults of the device's reaction, or an empty string.

        Checks the error, its description, immediate idle, an immediate reset, and a start on the
        dead bus; then the bus recovers and a job is exact.
        """
        device, job = self.device, self.job
        await device.write(LIMIT_REG, limit)
        start = await self.launch()
        await timeline.until(device, max(start + at, now(device) + 1))
        await kill(device, kind)
        killed = now(device)
        texts = []
        event = await error_within(device, limit + 4 * SLACK)
        beat = int(device.tb.beat_cycle.value)
        busy = await idle_within(device, AT_ONCE)
        code, info = await device.read(CODE), await device.read(AI["AI_ERR_INFO"])
        addr = await device.read(AI["AI_ERR_ADDR"])
        finished = await device.read(INFERENCES)
        needed = killed - start < self.last_beat - 3
        if not needed and not code:
            pass  # the job needed no further data
        elif code != Err.WATCHDOG or not event:
            texts.append(f"code {code}")
        else:
            waited = event - beat
            early = waited < max(limit, LEAST) - 1
            if early or waited > max(limit, LEAST) + SLACK:
                texts.append(f"{waited} cycles after the last beat")
            if info >> 20 & 7 != kind:
                texts.append(f"waits {info >> 20 & 7}")
            if info >> 24 != (finished if self.stream else 0):
                texts.append(f"inference {info >> 24}")
            texts.append(self.plausible(info, addr))
            texts.append("" if busy >= 0 else "busy after the error")
            await device.write(AI["AI_CTRL"], Ctrl.SOFT_RESET)
            took = await idle_within(device, AT_ONCE)
            texts.append("" if took >= 0 else "a reset with a dead bus lasts")
            left = await device.read(CODE) | await device.read(AI["AI_INT_STATUS"])
            texts.append("an error survives the reset" if left else "")
            if self.stream:  # again, with a bus that is dead from the start
                await device.write(AI["AI_CTRL"], Ctrl.START)
                again = await error_within(device, limit + 4 * SLACK)
                code = await device.read(CODE)
                texts.append("" if again and code == Err.WATCHDOG else f"then code {code}")
        await kill(device, ALIVE)
        if isinstance(job, StreamJob):
            slots = await job.slots()
            whole = [*range(finished)]
            if code and WRONG in slots and await job.begun(finished):
                whole.append(WRONG)  # the bus died while it was stored
            exact = slots == whole + [UNTOUCHED] * (len(slots) - len(whole))
            texts.append("" if exact else f"slots {slots} after {finished} inferences")
        await tidy(device, False)
        texts.append(await job.clean_run())
        return "; ".join(t for t in texts if t)


@checked()
async def results_may_wait(device: Device) -> None:
    """send_data_out: the device waits for a host that does not read, also with layers queued."""
    await device.write(LIMIT_REG, LEAST)
    layer = random_layer(
        rng(5), c=2, h=9, w=9, o=6, kernel=3, pool=0, depthwise=False, fc=False, eight_bit=True,
        src=0, dst=256,
    )  # fmt: skip
    arg = await device.place_tables(layer.arg, Tables(layer.weights, layer.bn, layer.act))
    await device.write_many({EIGHT_BIT_MODE: 1, EIGHT_BIT_MODE + 4: 0})
    want = layer.y.view(np.uint8).reshape(-1)
    assert want.size > 3 * 128, "the map fits the FIFO"
    for behind in (1,) if SLOW else (0, 1, 5):
        await device.load_map(arg.in_layout, layer.x)
        words = [int(w) for w in arg.replace(send_data_out=1, int_en=0).encode()]
        follows = [int(w) for w in arg.replace(send_data_out=0, int_en=0).encode()]
        await device.push(words + behind * follows)
        got = bytearray()
        while len(got) < want.size:
            await device.wait_cycles(5 * LEAST)
            assert not await device.read(CODE), f"an error after {len(got)} bytes"
            held = await device.read(STATUS) >> 16 & 31
            assert held, f"no words after {len(got)} bytes"
            for _ in range(held):
                low, high = read(FIFO_DATA_OUT), read(FIFO_DATA_OUT + 4)
                await device.transfer(low, high)
                got += (low.data | high.data << 32).to_bytes(8, "little")
        assert (np.frombuffer(got, np.uint8)[: want.size] == want).all()
        assert await at_rest(device, 40_000) and not await device.read(CODE)


@checked()
async def long_layers_move(device: Device) -> None:
    """A list with layers many times longer than the limit, and the least limit: exact, no
    error."""
    random = rng(6)
    for fc_last in (True,) if SLOW else (True, False):
        network, x = random_network(
            random,
            shape=(8, 14, 20),
            layers=2 if SLOW else 5,
            fc_last=fc_last,
            limits=Limits(channels=12, pools=(0,), sixteen_bit=False),
        )
        storage = network.storage(x[None], base=0, align=16)
        await device.back.load_storage(0, storage.data)
        await device.configure(dict(storage.registers))
        await device.write(LIMIT_REG, 1)
        begun = now(device)
        await device.start()
        await device.finish(400_000)
        cycles = (now(device) - begun) // len(network.layers)
        assert cycles > 2 * LEAST, f"{cycles} cycles a layer are no test"
        want = network.run(x).y.view(np.uint8).reshape(-1)
        y, unknown = await device.back.read_storage(storage.results[0], want.size)
        assert not unknown.any() and (y == want).all()


@checked(DEAD_RULES)
async def dead_bus(device: Device) -> None:
    """The bus dies at random moments of a list, of four inferences, and of layers that the host
    pushed, in each of the three ways: the inferences before are stored and exact."""
    random = rng(7)
    found = Findings("dead bus")
    jobs: dict[str, StreamJob | LayerJob] = {"layers": await layer_job(device, 3)}
    jobs |= {f"{n} inferences": await stream_job(device, n, 0x4000 * n) for n in (1, 4)}
    for name, job in jobs.items():
        case = Case(job)
        await case.learn()
        for (way, kind), _ in product(KINDS.items(), range(2 if SLOW else 40)):
            at = int(random.integers(case.first, case.last_beat + 4))
            limit = int(random.integers(300, 600))
            text = await case.die(kind, at, limit)
            found.check(not text, f"{name}, {way} in cycle {at}, limit {limit}: {text}")
    found.verdict()


@checked(DEAD_RULES)
async def reset_of_a_hung_device(device: Device) -> None:
    """A soft reset while the bus is dead, before the watchdog fires: done within the limit.

    Without a watchdog no error is reported, and the reset ends within 65536 cycles (on Verilator).
    """
    found = Findings("soft reset with a dead bus")
    jobs = {"list": await stream_job(device, 2, 0x4000), "layers": await layer_job(device, 2)}
    limits = [300, 500] if SLOW else [300, 500, 1000, 0]
    cases = [*product(limits, jobs, KINDS)]
    for limit, name, kind in share(cases, 24):
        case = Case(jobs[name])
        await case.learn()
        await device.write(LIMIT_REG, limit)
        start = await case.launch()
        at = int(rng(limit).integers(case.first, case.first + 40))
        await timeline.until(device, max(start + at, now(device) + 1))
        await kill(device, KINDS[kind])
        await device.wait_cycles(limit // 2 if limit else FLUSH_LIMIT + 2000)
        busy = await device.read(STATUS) & 1
        code = await device.read(CODE)
        bound = limit or FLUSH_LIMIT
        await device.write(AI["AI_CTRL"], Ctrl.SOFT_RESET)
        took = await idle_within(device, bound + 100)
        await kill(device, ALIVE)
        text = "" if busy and not code else f"busy {busy}, code {code} before the reset"
        # without a beat on the bus the device has nothing to wait for
        waits = "" if 0 <= took <= bound + 60 else f"the reset lasts {took} cycles"
        await tidy(device, took < 0)
        await device.write(LIMIT_REG, DEFAULT)
        clean = await jobs[name].clean_run()
        text = " ".join(t for t in (text, waits, clean) if t)
        found.check(not text, f"{name}, {kind}, {limit}: {text}")
    found.verdict()


@checked(DEAD_RULES)
async def switched_on(tb, device: Device) -> None:
    """A watchdog that is switched on while the bus stalls counts from then on."""
    for still in (LEAST, FLUSH_LIMIT + 400):
        job = await stream_job(device, 1)
        await job.arm()
        await device.write(LIMIT_REG, 0)
        await kill(device, GRANT)
        await device.start()
        await device.wait_cycles(still)
        assert not await device.error() and await device.read(STATUS) & 1
        began = now(device)
        await device.write(LIMIT_REG, 2 * LEAST)
        event = await error_within(device, 3 * LEAST)
        assert 2 * LEAST <= event - began <= 2 * LEAST + 40, f"{event - began} cycles"
        tb.cfg_dead.value = ALIVE
        await tidy(device, False)
        assert not await job.clean_run()
