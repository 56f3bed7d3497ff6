# SPDX-License-Identifier: Apache-2.0
"""control: when a failed transfer takes effect, by owner; changed lists; a device that hangs.

Run by test_control, on the same builds.
"""

import random

from openkpu.layer.argument import LayerArg
from openkpu.layer.regmap import ERROR_CODES
from openkpu_tb.core.block_bench import block_test
from openkpu_tb.core.descriptor import join_fields, layout
from tb.control.neighbours import Neighbours
from tb.control.test_control import Network, bad_layer, begin, check_runs, layer, network_layers

LIST, BIAS, WEIGHT, PIXEL, STORE, NONE = 0, 1, 2, 3, 4, 7
CODES = (ERROR_CODES["BUS_ERROR"], ERROR_CODES["BAD_ACCESS"])  # by fault_refused
LEAST = 256  # cycles, the shortest limit of the watchdog
FOR_EVER = 5000  # cycles; longer than any operation here


async def whole(n: Neighbours) -> None:
    """The next run is whole."""
    n.log.clear()
    n.silent, n.list_bytes = set(), None
    net = Network(n, 2, 1)
    await net.once()


def the_error(n: Neighbours) -> dict[str, int]:
    """The only one."""
    errors = n.kinds("ev_err")
    assert len(errors) == 1, f"{len(errors)} errors"
    return errors[0].info


@block_test(begin)
async def present_inference(n: Neighbours) -> None:
    """A failed transfer of the inference at work takes effect at once, at any time."""
    failed = 0
    for turn in range(12):
        n.log.clear()
        parity, refused = turn & 1, turn >> 1 & 1
        Network(n, 3, 2 if parity else random.choice((1, 2)))
        n.pulse("host_start")
        await n.step()
        await n.until(lambda parity=parity: n.parity == parity)
        await n.steps(random.choice((3, 30, random.randint(1, 400))))
        if n.parity != parity or not int(n.dut.status_busy.value):  # it is over
            n.pulse("host_soft_reset")
            await n.idle()
            continue
        n.log.clear()
        chan, at = random.randint(BIAS, STORE), random.getrandbits(10)
        failed += 1
        address = n.fail(chan, at, n.parity, refused=refused)
        await n.until(n.times("ev_err", 1), limit=5)
        await n.idle()
        want = {"code": CODES[refused], "layer": at, "stream": chan, "waits": 0, "addr": address}
        assert the_error(n) == want
        assert n.kinds("flush") and not n.kinds("ev_inf_done", "inf_next")
        await whole(n)
    assert failed > 6


async def fail_ahead(n: Neighbours, inferences: int) -> tuple[dict[str, int], int]:
    """Fail a transfer of the next inference during inference number ``inferences`` of a stream;
    (its error, number of completed inferences).

    A list that fails delivers its first layer.
    """
    refused, chan, at = random.randrange(2), random.randint(LIST, PIXEL), random.getrandbits(10)
    await n.until(n.times("list_req", inferences), limit=60000)
    n.list_bytes = 96 if chan == LIST else None
    await n.until(n.times("inf_next", inferences - 1), limit=60000)
    await n.until(lambda: int(n.dut.runs.value) and int(n.dut.committed.value))
    await n.until(n.times("list_req", inferences + 1))
    assert n.parity == (inferences - 1) % 2
    address = n.fail(chan, 0 if chan == LIST else at, n.parity ^ 1, refused=refused)
    at = 1 if chan == LIST else at
    want = {"code": CODES[refused], "layer": at, "stream": chan, "waits": 0, "addr": address}
    await n.steps(20)
    assert not n.kinds("ev_err", "flush"), "the inference at work has nothing to do with it"
    return want, len(n.kinds("ev_inf_done"))


@block_test(begin)
async def next_inference(n: Neighbours) -> None:
    """A failed transfer of the next inference is reported after the present inference completes
    and the registers advance."""
    for turn in range(6):
        n.log.clear()
        count = 1 + turn % 3
        Network(n, 3, 2)
        n.array_time = 400
        n.pulse("host_start")
        want, done = await fail_ahead(n, count)
        assert done == count - 1
        # a later failure is not reported, neither as a second error nor in place of the first,
        # unless the first is the list's: layers before the missing ones need their data
        refused = random.randrange(2)
        address = n.fail(PIXEL, 0, n.parity ^ 1, refused=refused)
        if want["stream"] == LIST:
            want = {
                "code": CODES[refused],
                "layer": 0,
                "stream": PIXEL,
                "waits": 0,
                "addr": address,
            }
        await n.until(n.times("ev_err", 1))
        await n.idle()
        assert the_error(n) == want
        assert len(n.kinds("ev_inf_done")) == len(n.kinds("inf_next")) == count
        assert len(n.kinds("result")) == count
        assert len(n.kinds("run")) == 3 * count, "the next inference has begun"
        ends, moved = n.kinds("ev_inf_done")[-1].cycle, n.kinds("inf_next")[-1].cycle
        assert ends <= moved < n.kinds("ev_err")[0].cycle
        await whole(n)


@block_test(begin)
async def next_inference_never(n: Neighbours) -> None:
    """The stream stops before the next inference begins: its error is dropped with its
    prefetch."""
    for count in (1, 2):
        n.log.clear()
        n.array_time = 400
        Network(n, 3, 2)
        n.pulse("host_start")
        await fail_ahead(n, count)
        n.on_inf_next = lambda: None
        n.dut.cfg_more.value = 0
        await n.idle()
        assert len(n.kinds("ev_inf_done")) == count and len(n.kinds("inf_next")) == count - 1
        assert not n.kinds("ev_err") and n.kinds("flush")
        await whole(n)


@block_test(begin)
async def list_in_order(n: Neighbours) -> None:
    """The list ends in an error: layers before it complete, the first missing one is reported."""
    for turn in range(10):
        n.log.clear()
        count = random.randint(1, 5)
        broken = random.randrange(count)
        n.list_bytes = 96 * broken + random.choice((0, 8, 50, 95))
        Network(n, count, 1)
        n.array_time = 300
        n.pulse("host_start")
        await n.until(n.times("list_req", 1))
        if turn % 2:  # before the words received are used up, or long after
            await n.steps(random.randrange(40))
        else:
            await n.until(n.times("layer_done", broken))
            await n.steps(50)
        refused = random.randrange(2)
        n.list_rate = 1.0  # the words read before the beat that failed are in the FIFO
        address = n.fail(LIST, 0, 0, refused=refused)
        await n.until(n.times("ev_err", 1), limit=6000)
        await n.idle()
        want = {"code": CODES[refused], "layer": broken, "stream": LIST, "waits": 0}
        n.list_rate = 0.7
        assert the_error(n) == want | {"addr": address}
        assert len(n.kinds("run")) == len(n.kinds("layer_done")) == broken
        await whole(n)


@block_test(begin)
async def list_words_on_their_way(n: Neighbours) -> None:
    """A burst of the list is refused while words of the previous bursts are on the bus: layers
    whose words all arrive complete, the first incomplete one is reported."""
    for broken in (0, 1, 2, 3):
        for turn in range(4):
            n.log.clear()
            n.list_bytes = 96 * broken + random.choice((0, 8, 50, 95))
            Network(n, 4, 1)
            n.array_time = 30
            n.pulse("host_start")
            await n.until(n.times("list_req", 1))
            n.dut.traffic_reading.value = 1
            left = random.randint(1, len(n.list.words)) if n.list.words else 0
            await n.until(lambda left=left: len(n.list.words) <= left, limit=6000)
            n.list_rate = 0.0
            await n.steps(random.choice((0, 3, 40)))
            address = n.fail(LIST, 0, 0, refused=1)
            await n.steps(random.choice((1, 4, 60)))
            assert not n.kinds("ev_err"), f"{broken} layers, {turn}: their words are to come"
            n.list_rate = random.choice((0.05, 0.5, 1.0))
            await n.until(lambda: not n.list.words and not n.list.on, limit=6000)
            n.dut.traffic_reading.value = 0
            await n.until(n.times("ev_err", 1), limit=6000)
            await n.idle()
            n.list_rate = 0.7
            want = {"code": CODES[1], "layer": broken, "stream": LIST, "waits": 0}
            assert the_error(n) == want | {"addr": address}
            assert len(n.kinds("run")) == len(n.kinds("layer_done")) == broken
            await whole(n)


@block_test(begin)
async def list_behind_a_layer(n: Neighbours) -> None:
    """The list ends in an error behind a layer on its way to the array: that layer completes."""
    for late in range(12):  # cycles after the layer was given to its loaders
        n.log.clear()
        n.list_bytes = 96
        Network(n, 2, 1)
        n.pulse("host_start")
        await n.until(n.times("param_load", 1))
        await n.steps(late)
        n.fail(LIST, 0, 0)
        await n.until(n.times("ev_err", 1), limit=6000)
        await n.idle()
        assert the_error(n)["layer"] == 1
        assert [e.info["idx"] for e in n.kinds("run")] == [0], f"{late} cycles behind it"
        assert len(n.kinds("layer_done")) == 1
        await whole(n)


@block_test(begin)
async def changed_list(n: Neighbours) -> None:
    """A list that changes for a later inference: its first changed layer does not run."""
    for turn in range(10):
        n.log.clear()
        count = random.randint(1, 4)
        layers = network_layers(count, turn % 2)
        Network(n, count, 2, layers)
        n.array_time = 200
        n.pulse("host_start")
        good = random.randint(1, 2)  # inferences with the list as it was
        await n.until(n.times("list_req", good), limit=60000)
        changed = random.randrange(count)
        bit = 768 * changed + random.randrange(768)  # any of its bits, reserved ones included
        image = bytearray(n.image)
        image[bit // 8] ^= 1 << bit % 8
        n.image = bytes(image)
        await n.until(n.times("ev_err", 1), limit=60000)
        await n.idle()
        want = {"code": ERROR_CODES["LIST_CHANGED"], "layer": changed, "stream": LIST}
        assert the_error(n) == want | {"waits": 0, "addr": 0}, f"bit {bit}"
        assert len(n.kinds("ev_inf_done")) == good == len(n.kinds("result"))
        assert len(n.kinds("run")) == good * count + changed
        assert [e.info["idx"] for e in n.kinds("run")] == (
            [*range(count)] * good + [*range(changed)]
        )
        await whole(n)


@block_test(begin)
async def changed_between_runs(n: Neighbours) -> None:
    """A different list for a new start is not a change."""
    for _ in range(3):
        n.log.clear()
        net = Network(n, random.randint(1, 4), 2)
        await net.stream(3, limit=60000)
    assert not n.kinds("ev_err")


async def stuck(n: Neighbours, limit: int) -> dict[str, int]:
    """No data move any more: the error comes after the limit, then the device is idle."""
    quiet = max(limit, LEAST)
    n.dut.moves.value = 1
    n.dut.cfg_watchdog.value = limit
    await n.steps(quiet + 50)
    n.dut.moves.value = 0
    last = n.cycle
    await n.until(n.times("ev_err", 1), limit=quiet + 10)
    took = n.kinds("ev_err")[0].cycle - last
    assert took >= quiet, f"after {took} cycles of {quiet}"
    assert int(n.dut.give_up.value), "the bus is waited for"
    await n.idle()
    assert not int(n.dut.give_up.value)
    n.dut.cfg_watchdog.value = 0
    return the_error(n)


@block_test(begin)
async def nothing_moves(n: Neighbours) -> None:
    """The watchdog reports every kind of wait."""
    code = ERROR_CODES["WATCHDOG"]
    nothing = {"code": code, "stream": NONE, "addr": 0}
    for limit in (1, 600):
        cases = (("load_done", "pixels", 4), ("seq_done", "run", 5), ("unload_done", "result", 6))
        for port, kind, waits in cases:
            n.log.clear()
            n.silent = {port}
            Network(n, 3, 1)
            n.pulse("host_start")
            await n.until(n.times(kind, 1))
            at = n.kinds("run")[-1].info["idx"] if n.kinds("run") else 0
            assert await stuck(n, limit) == nothing | {"waits": waits, "layer": at}, port
            assert n.kinds("flush") and not n.kinds("ev_inf_done")
            await whole(n)
        n.log.clear()
        n.list_bytes = 8  # the words of the list do not come, and the bus reports no wait
        Network(n, 3, 1)
        n.pulse("host_start")
        await n.until(n.times("list_req", 1))
        assert await stuck(n, limit) == nothing | {"waits": 7, "layer": 0}
        await whole(n)
        for why in (1, 2, 3):
            n.log.clear()
            n.silent = {"load_done"}
            Network(n, 3, 1)
            n.pulse("host_start")
            await n.until(n.times("pixels", 1))
            want = {"code": code, "waits": why, "addr": random.getrandbits(32)}
            want |= {"stream": random.randrange(5), "layer": random.getrandbits(10)}
            owner = join_fields(layout("owner"), {"layer": want["layer"], "inf": why % 2})
            values = {"why": why, "addr": want["addr"], "chan": want["stream"], "owner": owner}
            for name, value in values.items():
                getattr(n.dut, f"waiting_{name}").value = value
            assert await stuck(n, limit) == want
            n.dut.waiting_why.value = 0
            await whole(n)


@block_test(begin)
async def something_moves(n: Neighbours) -> None:
    """No watchdog while data move, or while the device waits for the host; 0 turns it off."""
    for port in ("moves", "traffic_read_beat", "traffic_write_beat"):
        n.log.clear()
        net = Network(n, 2, 1)
        n.silent = {"load_done"}
        n.pulse("host_start")
        await n.until(n.times("pixels", 1))
        n.dut.cfg_watchdog.value = 1
        for _ in range(8):
            getattr(n.dut, port).value = 1
            await n.step()
            getattr(n.dut, port).value = 0
            await n.steps(LEAST - 10)
        n.dut.cfg_watchdog.value = 0
        n.silent = set()
        await n.until(n.times("ev_inf_done", 1))
        await n.idle()
        net.check(1)
    # results that the host does not read, words that it does not send
    n.dut.cfg_watchdog.value = 1
    n.log.clear()
    n.silent = {"unload_done"}
    n.push(layer(send_data_out=1))
    await n.until(n.times("result", 1))
    await n.steps(4 * LEAST)
    n.silent = set()
    await n.idle()
    n.push(layer())
    rest, n.words = n.words[7:], n.words[:7]
    await n.steps(4 * LEAST)
    n.words += rest
    await n.until(n.times("layer_done", 2))
    await n.idle()
    n.dut.cfg_watchdog.value = 0
    n.silent = {"seq_done"}
    n.push(layer())
    await n.until(n.times("run", 3))
    await n.steps(FOR_EVER)
    n.silent = set()
    await n.until(n.times("layer_done", 3))
    assert not n.kinds("ev_err", "flush")


@block_test(begin)
async def reset_of_a_dead_bus(n: Neighbours) -> None:
    """A soft reset waits for the end of the bursts, but not longer than the limit."""
    for limit, most in ((1, LEAST), (700, 700)):
        n.dut.cfg_watchdog.value = limit
        n.log.clear()
        n.silent = {"dma_idle"}
        Network(n, 2, 1)
        n.pulse("host_start")
        await n.steps(40)
        n.pulse("host_soft_reset")
        began = n.cycle
        for _ in range(most + 20):
            await n.step()
            if int(n.dut.give_up.value):
                break
        took = n.cycle - began
        assert most <= took <= most + 10, f"given up after {took} cycles, limit {limit}"
        await n.steps(30)
        assert int(n.dut.give_up.value) and int(n.dut.flush.value), "until the DMAC is idle"
        n.silent = set()  # give_up makes the DMAC idle
        await n.idle()
        assert not n.kinds("ev_err") and not int(n.dut.give_up.value)
        await whole(n)


@block_test(begin)
async def dropped_words(n: Neighbours) -> None:
    """An incomplete layer is dropped; the layer at work and the queued ones still run."""
    for turn in range(12):
        n.log.clear()
        before = [layer(int_en=1) for _ in range(turn % 3)]
        n.push(*before)
        if turn % 2:
            n.silent = {"seq_done"}  # still at work then
        await n.until(lambda: not n.words)
        n.push(layer())
        n.words = n.words[: 1 + turn % 11]
        await n.until(lambda: not n.words)
        n.pulse("arg_flush")
        await n.steps(2)
        n.silent = set()
        after = [layer(int_en=1) for _ in range(2)]
        n.push(*after)
        await n.until(n.times("layer_done", len(before) + 2))
        await n.idle()
        check_runs(n, [*before, *after])
        assert not n.kinds("ev_err", "flush")


@block_test(begin)
async def dropped_nothing(n: Neighbours) -> None:
    """Only words of the host are dropped: a list continues."""
    for _ in range(4):
        n.log.clear()
        net = Network(n, 4, 1)
        n.pulse("host_start")
        while not n.kinds("ev_inf_done"):
            if random.random() < 0.2:
                n.pulse("arg_flush")
            await n.step()
        await n.idle()
        net.check(1)


@block_test(begin)
async def pending_words(n: Neighbours) -> None:
    """Words wait while a start or a reset of the host is pending."""
    n.hold_words = True
    args: list[LayerArg] = [layer() for _ in range(2)]
    n.push(*args)
    await n.steps(40)
    assert len(n.words) == 24, "words of the time after the reset"
    n.hold_words = False
    await n.until(n.times("layer_done", 2))
    await n.idle()
    check_runs(n, args)


@block_test(begin)
async def start_acknowledges(n: Neighbours) -> None:
    """After an error in host mode the words are discarded, until a start is accepted."""
    for _ in range(4):
        n.log.clear()
        bad, code = bad_layer()
        n.push(bad, layer(), layer())
        await n.until(n.times("ev_err", 1))
        assert the_error(n)["code"] == code
        await n.until(lambda: not n.words)
        await n.steps(100)
        assert int(n.dut.status_hold.value) and not n.kinds("run")
        n.log.clear()
        net = Network(n, 2, 1)
        n.pulse("host_start")
        n.pulse("arg_flush")
        await n.until(n.times("ev_inf_done", 1))
        await n.idle()
        net.check(1)
        assert not int(n.dut.status_hold.value)
        n.log.clear()
        args = [layer(), layer()]
        n.push(*args)
        await n.until(n.times("layer_done", 2))
        await n.idle()
        check_runs(n, args)
