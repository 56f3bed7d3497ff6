# SPDX-License-Identifier: Apache-2.0
"""Several transfers of a stream fail: it ends, with the error of docs/programming.md section 3.

On a build whose weight buffer does not hold the network, so that every stream is read for every
inference. The words are bad from the beginning of one inference on: that one meets those that it
reads late, the next one whatever is fetched ahead.
"""

from itertools import combinations, product

import numpy as np

from openkpu_tb.core.registers import AI, COUNTERS, PERF, Err, Int
from openkpu_tb.device.device import Device
from openkpu_tb.device.inference_stream import INFERENCES
from openkpu_tb.device.simulation import SLOW, rng
from tb.device.checked import checked
from tb.device.hostile import timeline
from tb.device.hostile.hostile_stream_tests import (
    BIAS,
    LIST,
    LIST_BYTES,
    PIXEL,
    RESULT,
    START,
    WEIGHT,
    prefix,
)
from tb.device.hostile.timeline import Findings, burst, read, write
from tb.device.hostile.tiny_jobs import Moments, Outcome, StreamJob, moments, share, tidy

DENSE = (32, 24)  # outputs of two fully connected layers: more weights than the buffer holds
WINDOWS = ("err", "err1", "err2")  # of words that the storage answers with ERROR
KEPT = PERF + 8 * COUNTERS.index("inf_kept")
LAST = 5  # images
Word = tuple[int, int, int, int]  # inference, stream, layer, address


def words(
    job: StreamJob, inference: int, random: np.random.Generator, where: int
) -> dict[int, Word]:
    """A word of each stream that is fetched ahead for that inference, and of its result.

    ``where`` in the list: 0 to 2.
    """
    regs, layers = job.registers, job.network.layers
    # the list fails with the first words behind the first layer, or while the second layer waits
    # for the first one's data; or anywhere, where the inference at work may meet it
    anywhere = int(random.integers(1, len(layers))), int(random.integers(LIST_BYTES // 4))
    lacks, word = [(1, int(random.integers(8))), (2, 0), anywhere][where]
    arg = layers[0]
    table = arg.active_addr if random.random() < 0.5 else arg.bwsx_base_addr
    found = {
        LIST: (lacks, regs["AI_LIST_ADR"] + lacks * LIST_BYTES + 4 * word),
        BIAS: (0, regs["AI_BIAS_ADR"] + table),
        WEIGHT: (0, regs["AI_WGT_ADR"] + arg.para_start_addr),
        PIXEL: (0, job.image(inference) + 4 * int(random.integers(18))),
        RESULT: (len(layers) - 1, job.slot(inference)),
    }
    return {stream: (inference, stream, layer, at) for stream, (layer, at) in found.items()}


def first_to_count(bad: list[Word]) -> set[tuple[int, int]]:
    """(AI_ERR_INFO, address of the word) that may be read: of the first inference; its data of
    layers before those that its list lacks, then its list, then its result."""
    first = min(word[0] for word in bad)
    mine = [word for word in bad if word[0] == first]
    turns = {LIST: 1, RESULT: 2}
    turn = min(turns.get(word[1], 0) for word in mine)
    mine = [word for word in mine if turns.get(word[1], 0) == turn]
    return {(n << 24 | stream << 16 | layer, at & ~3) for n, stream, layer, at in mine}


async def hurt(job: StreamJob, bad: list[Word], after: int, watchdog: int) -> Outcome:
    """A trial with these words bad from a cycle of the run on."""
    tb = job.device.tb
    await job.device.write(AI["AI_WATCHDOG"], watchdog)
    await job.arm()
    start = await timeline.play(job.device, {0: START})
    await timeline.until(job.device, start + after)
    for name, (*_, at) in zip(WINDOWS, bad, strict=False):
        getattr(tb, f"cfg_{name}_lo").value = at & ~3
        getattr(tb, f"cfg_{name}_hi").value = (at & ~3) + 4
    outcome = await job.outcome()
    for name in WINDOWS:
        getattr(tb, f"cfg_{name}_hi").value = 0
    await tidy(job.device, outcome.hung)
    return outcome


async def a_job(device: Device) -> tuple[StreamJob, Moments]:
    """A stream whose weights are read again for every inference, and its moments."""
    job = StreamJob(device, rng(), LAST, dense=DENSE)
    await job.place()
    seen = await moments(job)
    await job.trial({})
    assert await device.read(INFERENCES) == LAST and not await device.read(KEPT)
    return job, seen


@checked()
async def bad_words_of_several_streams(device: Device) -> None:
    """Two and three bad words, each of another stream, met by what is fetched ahead.

    Every set of them, with and without the watchdog: the inferences before are stored, the error is
    the first one that counts, and the next stream is exact.
    """
    job, seen = await a_job(device)
    found, both = Findings("bad words of several streams"), 0
    sets = [s for count in (2, 3) for s in combinations(range(RESULT + 1), count)]
    pairs = [s for s in sets if s[0] == LIST and len(s) == 2 and RESULT not in s]
    chosen = [*pairs, *share(s for s in sets if s not in pairs)]
    turns = product(range(1 if SLOW else 6), chosen, (0, 1))
    for number, (_, streams, now) in enumerate(turns):
        at = int(rng(number).integers(1, LAST - 2))  # the inference at work
        # the result is that of the inference at work, or of the next one
        mine, next_one = (words(job, at + n, rng(100 + number), number % 3) for n in (0, 1))
        bad = [(mine if s == RESULT and now else next_one)[s] for s in streams]
        outcome = await hurt(job, bad, seen.changes[at - 1] + 1, 0 if number % 2 else 1 << 20)
        regs = outcome.regs
        got = regs["AI_ERR_INFO"], regs["AI_ERR_ADDR"] & ~3
        wanted = first_to_count(bad)
        if LIST in streams:  # met by the inference at work already
            wanted |= first_to_count([mine[LIST] if w[1] == LIST else w for w in bad])
            both += got[0] >> 24 == at + 1 and got[0] >> 16 & 7 in (BIAS, WEIGHT, PIXEL)
        first = got[0] >> 24
        good = outcome.error == Err.BUS_ERROR and got in wanted and not outcome.hung
        good = good and outcome.slots[:first] == prefix(job, first)[:first]
        # of a result that failed some bytes may be there
        good = good and all(s < 0 for s in outcome.slots[first:])
        text = f"streams {streams} of inference {at + 1 - now}.., {outcome.brief}, info {got[0]:#x}"
        found.check(
            good, f"{text} at {got[1]:#x}, expected {[(hex(i), hex(a)) for i, a in wanted]}"
        )
        if not number % 8 or not good:
            clean = await job.clean_run()
            found.check(not clean, f"after {text}: {clean}")
    found.verdict()
    assert both >= len(pairs), "a list and data ahead of it failed in few trials"


@checked()
async def an_error_behind_another(tb, device: Device) -> None:
    """A run fails while AI_ERR_CODE holds the host's own error: that one stays, the run ends, and
    the interrupt is raised again. Once it is cleared the next error is recorded."""
    job, _ = await a_job(device)
    found = Findings("an error behind another")
    for inference in share((0, 1, 2)):
        bad = words(job, inference, rng(inference), 2)[PIXEL]
        tb.cfg_err_lo.value, tb.cfg_err_hi.value = bad[3], bad[3] + 4
        for cleared in (False, True):
            await job.arm()
            again = [START, write(AI["AI_INT_STATUS"], int(Int.ERROR))]
            again += [write(AI["AI_ERR_CODE"], 0)] if cleared else []
            status = read(AI["AI_INT_STATUS"])
            await timeline.play(device, burst(0, [START, *again, status]))
            outcome = await job.outcome()
            raised = outcome.regs["AI_INT_STATUS"] & Int.ERROR
            want = Err.BUS_ERROR if cleared else Err.START_BUSY
            good = outcome.error == want and raised and not outcome.hung
            good = good and not status.data & Int.ERROR
            good = good and outcome.slots == prefix(job, inference)
            info = outcome.regs["AI_ERR_INFO"], outcome.regs["AI_ERR_ADDR"] & ~3
            good = good and info == (
                (inference << 24 | PIXEL << 16, bad[3] & ~3) if cleared else (0, 0)
            )
            found.check(
                bool(good), f"image {inference}, cleared {cleared}: {outcome.brief}, {info}"
            )
            await tidy(device, outcome.hung)
        tb.cfg_err_hi.value = 0
        clean = await job.clean_run()
        found.check(not clean, clean)
    found.verdict()
