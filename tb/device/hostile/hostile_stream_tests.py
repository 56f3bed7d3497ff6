# SPDX-License-Identifier: Apache-2.0
"""A host that writes the AI registers while a list or a stream runs; bus errors in such runs."""

from itertools import product

from openkpu.generators.generate import random_layer
from openkpu_tb.core.registers import AI, EIGHT_BIT_MODE, Ctrl, Err, Int
from openkpu_tb.device.device import Device, Tables
from openkpu_tb.device.inference_stream import INFERENCES
from openkpu_tb.device.simulation import rng
from tb.device.checked import checked
from tb.device.hostile import timeline
from tb.device.hostile.timeline import Findings, burst, merged, read, write
from tb.device.hostile.tiny_jobs import (
    UNTOUCHED,
    Outcome,
    StreamJob,
    at_rest,
    layer_job,
    moments,
    share,
    stream_job,
    tidy,
)

START = write(AI["AI_CTRL"], Ctrl.START)
LIST, BIAS, WEIGHT, PIXEL, RESULT = range(5)  # AI_ERR_INFO.stream
LIST_BYTES = 96  # of a layer
BEHIND = 64  # cycles from the last done to idle on a bus without wait states: three bursts of 16


def whole(outcome: Outcome, slots: list[int]) -> bool:
    """The slots are as expected, without an error, at rest."""
    return outcome.slots == slots and not outcome.error and not outcome.hung


def prefix(job: StreamJob, count: int) -> list[int]:
    """Slots after the first ``count`` inferences were stored."""
    return [n if n < count else UNTOUCHED for n in range(len(job.images))]


@checked()
async def an_error_behind_another(tb, device: Device) -> None:
    """A run fails while AI_ERR_CODE holds the host's own error: the register keeps it, the run
    ends, and the interrupt is raised again. After a clear the next error is recorded."""
    job, found = await stream_job(device, 4), Findings("an error behind another")
    for inference, cleared in product(range(3), (False, True)):
        at = job.image(inference) & ~3
        tb.cfg_err_lo.value, tb.cfg_err_hi.value = at, at + 4
        await job.arm()
        script = [START, START, write(AI["AI_INT_STATUS"], int(Int.ERROR))]
        script += [write(AI["AI_ERR_CODE"], 0)] if cleared else []
        await timeline.play(device, burst(0, script))
        outcome = await job.outcome()
        tb.cfg_err_hi.value = 0
        regs = outcome.regs
        reported = outcome.error, regs["AI_ERR_INFO"], regs["AI_ERR_ADDR"] & ~3
        own, its = (Err.START_BUSY, 0, 0), (Err.BUS_ERROR, inference << 24 | PIXEL << 16, at)
        good = reported == (its if cleared else own) and bool(regs["AI_INT_STATUS"] & Int.ERROR)
        good = good and outcome.slots == prefix(job, inference) and not outcome.hung
        found.check(good, f"image {inference}, cleared {cleared}: {outcome.brief}, {reported}")
        await tidy(device, outcome.hung)
        bad = await job.clean_run()
        found.check(not bad, bad)
    found.verdict()


@checked()
async def beyond_the_last_address(tb, device: Device) -> None:
    """A transfer that would wrap to address 0: BAD_ACCESS instead, reported with address 0.

    The end of the address space is storage here, so the bursts up to it succeed.
    """
    job = await stream_job(device, 1)
    regs, found = job.registers, Findings("transfers over the end of the address space")
    end, top = 1 << 32, device.back.storage_bytes
    layers, data = job.network.layers, job.storage.data
    tb.cfg_top.value = 1
    cases = {  # register: (start, as a distance from the end; bytes; layer; stream)
        "AI_PIX_ADR": (64, 72, 0, PIXEL),
        "AI_LIST_ADR": (64, 288, 0, LIST),
        "AI_WGT_ADR": (16, layers[0].weight_count, 0, WEIGHT),
        "AI_BIAS_ADR": (8, 24, 0, BIAS),
        "AI_RES_ADR": (4, 8, len(layers) - 1, RESULT),
    }
    for name, (before, size, layer, stream) in cases.items():
        await job.arm()
        await device.back.load_storage(top - before, data[regs[name] :][: min(before, size)])
        script = burst(0, [write(AI[name], end - before), START])
        await timeline.play(device, script)
        outcome = await job.outcome()
        info, addr = outcome.regs["AI_ERR_INFO"], outcome.regs["AI_ERR_ADDR"]
        good = outcome.error == Err.BAD_ACCESS and addr == 0 and not outcome.hung
        good = good and info == (stream << 16 | layer) and set(outcome.slots) == {UNTOUCHED}
        kept, _ = await device.back.read_storage(0, job.first_slot)
        good = good and (kept == data[: job.first_slot]).all()
        found.check(good, f"{name}: {outcome.brief}, info {info:#x}, address {addr:#x}")
        await tidy(device, outcome.hung)
        await job.place()
        bad = await job.clean_run()
        found.check(not bad, f"{name}: {bad}")
    tb.cfg_top.value = 0
    found.verdict()


@checked()
async def busy_behind_the_last_done(device: Device) -> None:
    """A stream that is stopped early in any cycle: idle at most BEHIND cycles after its last done.

    A start in the cycle after a read of "idle" is accepted, an earlier one is not.
    """
    job = await stream_job(device, 4)
    seen = await moments(job)
    found, longest = Findings("busy behind the last done"), 0
    # delay from the interrupt to the counter
    script = timeline.watching(AI["AI_INT_STATUS"], 1, seen.rest)
    await job.trial(script)
    late = seen.done[0] - timeline.rises(timeline.values(script, AI["AI_INT_STATUS"]), 0)[0]
    ways = {"AI_CTRL": int(Ctrl.STOP), "AI_INF_LEFT": 0, "AI_CNN_MODE": 1}
    for (name, value), at in share(product(ways.items(), range(2, seen.rest)), 120):
        shown = {}
        for addr in (INFERENCES, AI["AI_STATUS"]):
            watch = timeline.watching(addr, at + 1, seen.rest + 40)
            outcome = await job.trial(merged({at: write(AI[name], value)}, watch))
            shown[addr] = timeline.values(watch, addr)
        falls = timeline.falls(shown[AI["AI_STATUS"]], 0)
        done = timeline.changes(shown[INFERENCES])
        count = sum(slot >= 0 for slot in outcome.slots)
        text = f"{name} in cycle {at}: {outcome.brief}, idle in {falls}, done in {done}"
        good = whole(outcome, prefix(job, count)) and count > 0 and len(falls) == 1
        if not found.check(good and bool(done), text):
            continue
        behind = falls[0] - (done[-1] - late)
        longest = max(longest, behind)
        found.check(0 <= behind <= BEHIND, f"{text}: {behind} cycles behind it")
        idle = falls[0] + 1  # of the first read that returns it
        for start in (idle - 1, idle + 1):
            begun = {at: write(AI[name], value), start: write(AI["AI_CTRL"], Ctrl.START)}
            later = {start + 1: read(AI["AI_ERR_CODE"])}
            await job.arm()
            await timeline.play(device, merged({0: START}, begun, later))
            code = later[start + 1].data
            found.check(bool(code) == (start < idle), f"{text}: start in {start}, error {code}")
            await tidy(device, not await at_rest(device))
    found.verdict()
    print(f"idle up to {longest} cycles behind the last done")


@checked()
async def loads_beyond_the_last_address(tb, device: Device) -> None:
    """Weights in two loads: one that follows the end of the address space is not read at 0."""
    layer = random_layer(
        rng(1), c=4, h=5, w=6, o=4, kernel=3, pool=0, depthwise=False, fc=False, eight_bit=True,
        per_load=2, src=0, dst=64,
    )  # fmt: skip
    tables = Tables(layer.weights, layer.bn, layer.act)
    arg = await device.place_tables(layer.arg, tables, 0x4000)
    assert arg.load_time == 2
    size, end, top = arg.para_size, 1 << 32, device.back.storage_bytes
    tb.cfg_top.value = 1
    await device.back.load_storage(top - size, layer.weights[:size])
    await device.back.load_storage(0, layer.weights[size:])
    await device.load_map(arg.in_layout, layer.x)
    await device.write_many({EIGHT_BIT_MODE: 1, EIGHT_BIT_MODE + 4: 0})
    arg = arg.replace(para_start_addr=end - size, int_en=1, send_data_out=0)
    await device.push([int(word) for word in arg.encode()])
    assert await at_rest(device)
    error = await device.error()
    assert error and (error.code, error.addr) == (Err.BAD_ACCESS, 0), error
    await device.soft_reset()
    tb.cfg_top.value = 0


@checked()
async def errors_of_the_host_behind_a_stream(device: Device) -> None:
    """A refused layer of the host belongs to no inference, whatever ran before it."""
    job = await stream_job(device, 3)
    outcome = await job.trial({})
    assert outcome.slots[:3] == [0, 1, 2], outcome
    layers = await layer_job(device, 1)
    words = [int(word) for word in layers.layers[0].arg.replace(pool_type=12).encode()]
    for _ in range(2):
        await device.push(words)
        assert await at_rest(device)
        error = await device.error()
        assert error and (error.code, error.inference) == (Err.BAD_POOL, 0), error
        await tidy(device, False)
