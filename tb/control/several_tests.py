# SPDX-License-Identifier: Apache-2.0
"""control: several transfers fail; which failure the host reads (docs/programming.md 3).

Every order of two and three failures, of every channel, of the inference at work and of the
prefetched one; then a failure in every cycle around each other event that ends a run or an
inference. An inference whose data failed never receives them: its array stalls, as it does on a
real bus. Run by test_control, on the same builds.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import permutations

import cocotb

from openkpu.layer.regmap import ERROR_CODES
from openkpu_tb.core.block_bench import block_test
from tb.control.fault_tests import CODES, LEAST, LIST, STORE, WEIGHT, the_error, whole
from tb.control.neighbours import Neighbours
from tb.control.test_control import Network, bad_layer, begin, layer, network_layers

LAYERS = 3
LAYER_BYTES = 96
HANG = 6000  # cycles in which an error is reported
NEAR = range(-3, 4)  # cycles around an event
REPORT = 2  # cycles from the end of the layers before a refused one to its error: leave, report


@dataclass(frozen=True)
class Failure:
    """A failed transfer: its channel, and how many inferences ahead of the one at work it is."""

    chan: int
    ahead: int

    def __str__(self) -> str:
        name = ("list", "bias", "weight", "pixel", "store")[self.chan]
        return f"{name}{'+' * self.ahead}"


# results are not written ahead of time
FAILURES = [Failure(chan, ahead) for chan in range(STORE + 1) for ahead in (0, 1)][:-1]


def orders(count: int) -> Iterator[tuple[Failure, ...]]:
    """Every order of ``count`` failures that the DMAC can report.

    A channel reports one failure, and nothing is prefetched while the list of the present inference
    is incomplete.
    """
    for some in permutations(FAILURES, count):
        channels = {failure.chan for failure in some}
        lacks = Failure(LIST, 0) in some and any(failure.ahead for failure in some)
        if len(channels) == count and not lacks:
            yield some


def first_to_count(some: tuple[Failure, ...]) -> int:
    """Number of the failure that the host reads.

    The earliest inference has priority; within it data before the list, as the list's earlier
    layers need the data; then the first failure to occur.
    """
    return min(range(len(some)), key=lambda n: (some[n].ahead, some[n].chan == LIST, n))


@dataclass
class Stream:
    """A stream in whose inference ``at`` the failures happen.

    If a list fails, its layers from ``lacks`` on are missing.
    """

    n: Neighbours
    at: int
    lacks: int

    async def begin(self, list_ahead: int | None) -> None:
        """Run up to the first layer of inference ``at``, and stall there.

        ``list_ahead``: how far ahead the inference with the incomplete list is.
        """
        n = self.n
        n.log.clear()
        n.silent, n.array_time, n.list_bytes, n.list_rate = set(), 60, None, 0.7
        Network(n, LAYERS, 2)
        short = LAYER_BYTES * self.lacks + random.choice((0, 8, 50, 95))
        if list_ahead is not None and self.at + list_ahead == 0:
            n.list_bytes = short
        n.pulse("host_start")
        if self.at:
            await n.until(n.times("list_req", self.at + (list_ahead or 0)), limit=60000)
            if list_ahead is not None:
                n.list_bytes = short
            await n.until(n.times("inf_next", self.at), limit=60000)
        else:
            await n.until(n.times("list_req", 1))
            if list_ahead == 1:
                n.list_bytes = short
        n.silent = {"seq_done"}
        await n.until(n.times("run", LAYERS * self.at + 1), limit=60000)
        if list_ahead != 0:  # the prefetched data have arrived
            await n.until(n.times("list_req", self.at + 2))
            n.list_rate = 1.0
            await n.steps(150)

    def starve(self, some: tuple[Failure, ...]) -> None:
        """Stall an inference whose data failed from its start on."""
        n, next_one = self.n, self.at + 1

        def watch() -> None:
            if len(n.kinds("inf_next")) == next_one:
                n.silent = {"seq_done"}

        if any(failure.ahead and failure.chan != LIST for failure in some):
            n.watch = watch

    async def over(self) -> dict[str, int]:
        """Let the layers continue; returns the error."""
        n = self.n
        n.silent -= {"seq_done"}
        await n.until(n.times("ev_err", 1), limit=HANG)
        await n.idle()
        n.watch, n.silent, n.list_rate = (lambda: None), set(), 0.7
        return the_error(n)

    def check(self, failure: Failure, error: dict[str, int], want: dict[str, int]) -> None:
        """The error is this failure's; all earlier inferences and layers have completed."""
        n, ended = self.n, self.at + failure.ahead
        assert error == want | {"waits": 0}
        assert len(n.kinds("ev_inf_done")) == len(n.kinds("inf_next")) == ended
        if failure.chan == LIST:
            assert len(n.kinds("run")) == len(n.kinds("layer_done")) == LAYERS * ended + self.lacks


async def plant(
    n: Neighbours, failure: Failure, lacks: int, parity: int | None = None, together: str = ""
) -> dict[str, int]:
    """Cause a failure in the next cycle; returns the expected report.

    ``parity``: of its inference, where ``failure.ahead`` does not give its distance;
    ``together``: a net that is high in the same cycle.
    """
    refused = random.randrange(2)
    layer = 0 if failure.chan == LIST else random.randrange(lacks)
    parity = n.parity ^ failure.ahead if parity is None else parity
    address = n.fail(failure.chan, layer, parity, refused=refused)
    await n.step()
    assert not together or int(getattr(n.dut, together).value), f"not in the cycle of {together}"
    where = {"layer": lacks if failure.chan == LIST else layer, "stream": failure.chan}
    return where | {"code": CODES[refused], "addr": address}


async def fail_in_order(n: Neighbours, some: tuple[Failure, ...], at: int, gap: int) -> None:
    """Run one stream with these failures, ``gap`` cycles apart."""
    lists = [failure.ahead for failure in some if failure.chan == LIST]
    run = Stream(n, at, random.randint(1, LAYERS - 1))
    await run.begin(lists[0] if lists else None)
    run.starve(some)
    reports = []
    for failure in some:
        if n.kinds("flush") and gap > 1:  # the DMAC reports nothing during a flush
            break
        reports.append(await plant(n, failure, run.lacks))
        await n.steps(gap - 1)
    number = first_to_count(some)
    run.check(some[number], await run.over(), reports[number])


async def every_order(dut, count: int, share: int) -> None:
    """All orders of ``count`` failures, or at most ``share`` of them."""
    n = await begin(dut)
    every = list(orders(count))
    for some in random.sample(every, min(share, len(every))):
        text = ", ".join(map(str, some))
        for at, gap in ((0, 1), (1, random.randint(2, 12))):
            try:
                await fail_in_order(n, some, at, gap)
            except AssertionError as error:
                raise AssertionError(f"{text}, inference {at}, {gap} apart: {error}") from error
        await whole(n)


@cocotb.test()
async def two_of_a_stream(dut) -> None:
    """Every order of two failures: the host reads the one that takes effect first."""
    await every_order(dut, 2, 1000)


@cocotb.test()
async def three_of_a_stream(dut) -> None:
    """Orders of three."""
    await every_order(dut, 3, 60)


@block_test(begin)
async def stopped_before(n: Neighbours) -> None:
    """The stream ends before the inference that failed begins: no failure is reported."""
    ahead = [failure for failure in FAILURES if failure.ahead]
    for some in permutations(ahead, 2):
        run = Stream(n, random.randrange(2), 1)
        await run.begin(1 if LIST in (failure.chan for failure in some) else None)
        for failure in some:
            await plant(n, failure, run.lacks)
        n.on_inf_next = lambda: None
        n.dut.cfg_more.value = 0
        n.silent, n.list_rate = set(), 0.7
        await n.idle()
        assert len(n.kinds("ev_inf_done")) == run.at + 1 and not n.kinds("ev_err")
        await whole(n)


# ---- in every cycle around an event
Begin = Callable[[], Awaitable[None]]


async def cycles_to(n: Neighbours, prepare: Begin, event: str) -> int:
    """Cycles from the end of ``prepare`` until a net of the controller is high."""
    state = random.getstate()
    await prepare()
    count = 0
    while not int(getattr(n.dut, event).value):
        count += 1
        assert count < HANG, f"no {event}"
        await n.step()
    n.watch = lambda: None
    n.pulse("host_soft_reset")
    await n.idle()
    n.dut.cfg_watchdog.value = 0
    random.setstate(state)
    return count


async def meet(
    n: Neighbours, prepare: Begin, cycle: int, failure: Failure, run: Stream, together: str = ""
) -> dict[str, int]:
    """Repeat ``prepare``, and cause a failure in that cycle; returns the expected report.

    ``together``: a net that is high in the same cycle.
    """
    await prepare()
    parity = n.parity ^ failure.ahead
    await n.steps(cycle - 1)
    return await plant(n, failure, run.lacks, parity, together)


async def settle(n: Neighbours) -> list[dict[str, int]]:
    """The errors, once the device is idle; the bench is in its initial state afterwards."""
    n.silent -= {"seq_done"}
    await n.until(lambda: bool(n.kinds("ev_err")), limit=HANG)
    await n.idle()
    n.watch, n.silent, n.list_rate, n.dut.cfg_watchdog.value = (lambda: None), set(), 0.7, 0
    return [e.info for e in n.kinds("ev_err")]


async def around(
    n: Neighbours, prepare: Begin, event: str, failure: Failure, run: Stream, gap: int = 0
) -> AsyncIterator[tuple[int, dict[str, int], dict[str, int]]]:
    """A failure in each cycle near an event; (distance, expected report, error) of each.

    ``gap``: cycles until stalled layers may continue.
    """
    for offset in NEAR:
        at = await cycles_to(n, prepare, event)
        want = await meet(n, prepare, at + offset, failure, run, "" if offset else event)
        await n.steps(gap)
        (error,) = await settle(n)
        yield offset, want, error
        await whole(n)


@block_test(begin)
async def around_the_change(n: Neighbours) -> None:
    """A failure of the next inference in every cycle around its beginning."""
    for failure in (f for f in FAILURES if f.ahead):
        run = Stream(n, 0, 2)

        async def prepare(run: Stream = run, failure: Failure = failure) -> None:
            await run.begin(1 if failure.chan == LIST else None)
            n.silent = set()
            run.starve((failure,))

        async for _, want, error in around(n, prepare, "inf_next", failure, run):
            run.check(failure, error, want)


@block_test(begin)
async def around_a_refusal(n: Neighbours) -> None:
    """A failure around the cycle in which a layer of its list is refused, or detected as changed.

    Failed data of earlier layers end the run, a failure of the list after the layer does not.
    """
    for failure in FAILURES:
        bad, code = bad_layer()
        event = "list_changed" if failure.ahead else "dec_err"
        run = Stream(n, 0, 2)

        async def prepare(run: Stream = run, failure: Failure = failure, bad=bad) -> None:
            """Layer 1 is refused: in the first list, or in the second, which differs from it."""
            n.log.clear()
            n.silent, n.array_time, n.list_bytes = {"seq_done"}, 60, None
            if failure.chan == LIST:  # the words read before the beat that failed are in the FIFO
                n.list_rate = 1.0
            net = Network(n, LAYERS, 2, network_layers(LAYERS, 0))
            spoilt = b"".join(
                arg.encode().astype("<u8").tobytes() for arg in (net.layers[0], bad, net.layers[2])
            )
            if failure.chan == LIST and not failure.ahead:
                n.list_bytes = LAYER_BYTES * 2
            if not failure.ahead:
                n.image = spoilt
            n.pulse("host_start")
            if failure.ahead:
                await n.until(n.times("list_req", 1))
                n.image = spoilt
                n.list_bytes = LAYER_BYTES * 2 if failure.chan == LIST else None
                await n.until(n.times("list_req", 2))
            run.starve((failure,))

        gap = 60 if failure.ahead or failure.chan == LIST else 0
        async for offset, want, error in around(n, prepare, event, failure, run, gap):
            if failure.chan == LIST:
                code = ERROR_CODES["LIST_CHANGED"] if failure.ahead else code
                want = {"code": code, "layer": 1, "stream": LIST, "addr": 0}
            assert error == want | {"waits": 0}, f"{failure}, {offset} cycles from {event}"


@block_test(begin)
async def around_the_watchdog(n: Neighbours) -> None:
    """A failure around the watchdog's: one error; the transfer has priority."""
    for failure in FAILURES:
        run = Stream(n, 0, 1)

        async def prepare(run: Stream = run, failure: Failure = failure) -> None:
            await run.begin(failure.ahead if failure.chan == LIST else None)
            n.dut.cfg_watchdog.value = LEAST

        # no transfer fails while the cycles are counted: "trouble" is the watchdog's
        async for offset, want, error in around(n, prepare, "trouble", failure, run):
            first = offset <= 0 and not failure.ahead and failure.chan != LIST
            text = f"{failure}, {offset} cycles from the watchdog's: {error}"
            assert (error == want | {"waits": 0}) == first, text
            assert first or error["code"] == ERROR_CODES["WATCHDOG"], text


@block_test(begin)
async def around_a_reset(n: Neighbours) -> None:
    """A failure around a soft reset: nothing of it remains in the next run."""
    for failure in FAILURES:
        run = Stream(n, random.randrange(2), 1)
        for offset in NEAR:
            await run.begin(failure.ahead if failure.chan == LIST else None)
            parity = n.parity ^ failure.ahead
            for cycle in range(-3, 4):
                if cycle == 0:
                    n.pulse("host_soft_reset")
                if cycle == offset and not n.kinds("flush")[1:]:
                    n.fail(failure.chan, 0, parity)
                await n.step()
            await n.idle()
            reported = offset <= 0 and not failure.ahead and failure.chan != LIST
            assert len(n.kinds("ev_err")) == reported, f"{failure}, {offset} cycles from it"
            # a host's layer fails at once: the stream leaves no parity behind
            n.log.clear()
            n.silent, n.list_rate = {"seq_done"}, 0.7
            n.push(layer())
            await n.until(n.times("run", 1))
            want = await plant(n, Failure(WEIGHT, 0), 1, 0)
            (error,) = await settle(n)
            assert error == want | {"waits": 0}
            n.pulse("host_ack")
            await whole(n)


@block_test(begin)
async def refusal_at_the_drain(n: Neighbours) -> None:
    """A refused layer that waits is reported as soon as the layers before it complete."""
    for good in (1, 2, 3):
        n.log.clear()
        n.silent = {"seq_done"}
        n.push(*(layer() for _ in range(good)), bad_layer()[0])
        await n.until(lambda: int(n.dut.refused.value))
        assert not n.kinds("layer_done", "ev_err")
        n.silent = set()
        await n.until(n.times("ev_err", 1))
        done = n.kinds("layer_done")
        assert len(done) == good
        assert n.kinds("ev_err")[0].cycle - done[-1].cycle == REPORT
        n.pulse("host_ack")
        await n.idle()
