# SPDX-License-Identifier: Apache-2.0
"""storage_port: contained errors, owners, windows of addresses, a bus that is given up."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import cocotb

from openkpu.arithmetic.integers import ceil_div
from openkpu_tb.ahb.responder import ERROR, OKAY, RETRY, SPLIT, Faults
from openkpu_tb.core.block_bench import block_test
from tb.storage_port.bench import CHANNELS, LAST_BLOCK, WRITE_CHANNEL, Bench, Fault, abort

AREA = 0x10_0000  # bytes; channel n has the area from (n + 1) * AREA on
ROUGH = Faults(wait=0.2, lose=0.1, regain=0.5, retry=0.05, split=0.02)
Requests = list[tuple[int, int, int]]  # address, length, owner

IDLE_AFTER = 2  # cycles from dma_abandon in an abort to dma_idle: docs/architecture.md 4


def ask(bench: Bench, chan: int, addr: int, length: int) -> tuple[int, int, int]:
    """A request of channel ``chan`` with an owner of its own."""
    owner = bench.owner()
    if chan == WRITE_CHANNEL:
        bench.write(addr, bench.rng.randbytes(length), owner)
    else:
        bench.read(CHANNELS[chan], addr, length, owner)
    return addr, length, owner


def random_requests(bench: Bench, chan: int, count: int) -> Requests:
    """Consecutive requests of a channel, with gaps; writes begin at a bus word."""
    addr, found = AREA * (chan + 1), []
    for _ in range(count):
        addr += bench.rng.randrange(0, 200)
        addr += -addr % bench.lanes if chan == WRITE_CHANNEL else 0
        length = bench.rng.choice([1, 3, bench.lanes, 40, bench.rng.randint(1, 400), 600])
        found.append(ask(bench, chan, addr, length))
        addr += length + 2 * bench.lanes
    return found


def check_reads(bench: Bench, chan: int, requests: Requests, stop: int) -> None:
    """A read channel delivered all bytes before address ``stop``, and none from there on."""
    before = sum(min(n, max(0, stop - a)) for a, n, _ in requests)
    assert bench.readers[CHANNELS[chan]].total == before, f"bytes before {stop:#x}"


def check_fault(bench: Bench, fault: Fault, requests: Requests) -> None:
    """The fault belongs to the request that contains its address; earlier requests are done."""
    mask = bench.lanes - 1
    hit = [i for i, (a, n, _) in enumerate(requests) if a & ~mask <= fault.addr < a + n]
    assert len(hit) == 1, f"{fault} belongs to nobody"
    assert fault.owner == requests[hit[0]][2]
    if fault.chan == WRITE_CHANNEL:
        assert bench.writes_done == hit[0]
    else:
        check_reads(bench, fault.chan, requests, fault.addr)


def check_stored(bench: Bench) -> None:
    """Every byte in memory has the value of the write request."""
    memory = bench.bus.memory
    assert all(bench.stored.get(a) == byte for a, byte in memory.items()), "wrong bytes written"


async def contained(
    bench: Bench,
    bad: int,
    decide: Callable[[int], bool],
    rough: Faults,
    own: Requests | None = None,
) -> None:
    """ERROR on beats of channel ``bad`` where ``decide(address)``: only that channel stops, and it
    reports one error."""
    dut, rng = bench.dut, bench.rng
    area = range(AREA * (bad + 1), AREA * (bad + 2))
    bench.bus.faults = replace(
        rough, answer=lambda a, w: ERROR if a in area and decide(a) else None
    )
    bench.anew()
    # with a one-cycle ERROR the next beat of the command is on the bus already; it is dropped
    bench.orphans = bench.orphans or rough.one_cycle
    requests = {c: random_requests(bench, c, rng.randint(1, 4)) for c in range(5) if c != bad}
    requests[bad] = own or random_requests(bench, bad, 4)
    if own:
        for addr, length, owner in own:
            if bad == WRITE_CHANNEL:
                bench.write(addr, rng.randbytes(length), owner)
            else:
                bench.read(CHANNELS[bad], addr, length, owner)
    await bench.run(but=(bad,))
    await bench.run_until(lambda: bench.errors, 3000)
    for r in bench.readers.values():
        r.speed = 1.0
    await bench.steps(70)
    assert len(bench.errors) == 1, bench.errors
    fault = bench.errors[0]
    assert fault.chan == bad and not fault.refused and decide(fault.addr)
    done = bench.writes_done
    check_fault(bench, fault, requests[bad])
    assert bad == WRITE_CHANNEL or done == len(requests[WRITE_CHANNEL])
    check_stored(bench)
    assert not int(dut.reading.value), "beats that never come are waited for"
    assert not int(dut.dma_idle.value), "idle although a channel failed"
    assert not int(dut.wait_why.value)
    bench.monitor.check()
    await abort(bench, hold=rng.randint(1, 3))
    assert int(dut.dma_idle.value)


async def again(bench: Bench) -> None:
    """All channels work again."""
    bench.bus.faults = Faults()
    bench.anew()
    requests = {c: random_requests(bench, c, 2) for c in range(5)}
    await bench.run()
    await bench.settle()
    assert not bench.errors and bench.writes_done == len(requests[WRITE_CHANNEL])
    for chan in range(4):
        check_reads(bench, chan, requests[chan], 1 << 32)


@block_test(Bench)
async def errors_of_one_channel(bench: Bench) -> None:
    """Random ERROR answers on one channel; all others deliver every byte."""
    for bad in range(5):
        for rough in (Faults(), Faults(wait=0.4), ROUGH, Faults(one_cycle=True)):
            for chance in (0.02, 0.3):
                for r in bench.readers.values():
                    r.speed = bench.rng.choice([0.2, 0.6, 1.0])
                bench.write_speed = bench.rng.choice([0.3, 1.0])
                chosen: dict[int, bool] = {}
                last = bench.rng.randrange(4)  # at the latest at this place, of four requests

                def decide(addr, chosen=chosen, chance=chance, last=last, rng=bench.rng):
                    at = addr - addr % 16
                    return chosen.setdefault(at, rng.random() < chance or len(chosen) == last)

                await contained(bench, bad, decide, rough)
        await again(bench)


@block_test(Bench)
async def error_at_each_word(bench: Bench) -> None:
    """ERROR on each word of requests of several bursts, others of the same channel behind it."""
    for bad in (2, 3, WRITE_CHANNEL):
        base, step = AREA * (bad + 1), bench.lanes
        for word in range(0, 28, 1 if bad == WRITE_CHANNEL else 3):
            rough = bench.rng.choice([Faults(), Faults(wait=0.3), ROUGH])
            own = [
                (base + i * 0x1000, n * step - 1, bench.owner()) for i, n in enumerate((3, 19, 6))
            ]
            words = [a + k * step for (a, n, _) in own for k in range(ceil_div(n, step))]
            fails = words[word]
            await contained(bench, bad, lambda a, at=fails, n=step: a // n == at // n, rough, own)
    await again(bench)


@block_test(Bench)
async def refused_bursts(bench: Bench, dut) -> None:
    """A burst outside the window never reaches the bus, is reported once, and stops only its
    channel."""
    step = bench.lanes
    for trial in range(25):
        read_first, write_first = bench.rng.randint(10, 500), bench.rng.randint(3000, 3500)
        read_last = read_first + bench.rng.randint(0, 1)
        write_last = write_first + bench.rng.randint(0, 1)
        bench.guard(read_first, read_last, write_first, write_last)
        inside = {False: (read_first, read_last), True: (write_first, write_last)}
        bench.bus.faults = bench.rng.choice([Faults(), ROUGH])
        bench.anew()
        start = len(bench.bus.reads), len(bench.bus.writes)
        requests: dict[int, Requests] = {}
        first_bad: dict[int, Fault] = {}
        for chan in range(5):
            low, high = inside[chan == WRITE_CHANNEL]
            low, high = low << 10, (high + 1) << 10
            kinds = ["in", "whole", bench.rng.choice(["in", "over", "under", "before", "behind"])]
            requests[chan] = []
            for kind in [*kinds, "in"]:
                n = bench.rng.choice([1, 4 * step, 100, 300])
                addr = {
                    "in": bench.rng.randint(low, high - n),
                    "whole": low,
                    "over": high - bench.rng.randint(1, n),
                    "under": low - bench.rng.randint(1, n),
                    "before": low - n - 2 * step,
                    "behind": high,
                }[kind]
                n = high - low if kind == "whole" else n
                addr -= addr % step if chan == WRITE_CHANNEL else 0
                requests[chan].append(ask(bench, chan, addr, n))
                addr, n, owner = requests[chan][-1]
                word = addr - addr % step
                bad = word if not low <= word < high else high if addr + n > high else None
                if bad is not None and chan not in first_bad:
                    first_bad[chan] = Fault(chan, bad, owner, True)
        await bench.run(but=tuple(first_bad))

        def over(count: int = len(first_bad)) -> bool:
            return len(bench.errors) >= count and not int(dut.reading.value)

        await bench.run_until(over, 20_000)
        await bench.steps(70)
        assert sorted(bench.errors, key=lambda f: f.chan) == list(first_bad.values()), trial
        for chan, wanted in requests.items():
            fault = first_bad.get(chan)
            done = next((i for i, r in enumerate(wanted) if fault and r[2] == fault.owner), 4)
            if chan == WRITE_CHANNEL:
                assert bench.writes_done == done
                stored: dict[int, int] = {}
                for i, (addr, data) in enumerate(bench.history[: done + 1]):
                    end = addr + len(data) if i < done or not fault else fault.addr
                    stored.update({a: data[a - addr] for a in range(addr, end)})
                assert bench.bus.memory == stored
                continue
            before = sum(n for _, n, _ in wanted[:done])
            before += max(0, fault.addr - wanted[done][0]) if fault else 0
            assert bench.readers[CHANNELS[chan]].total == before
        for touched, seen in ((bench.bus.reads, False), (bench.bus.writes, True)):
            low, high = inside[seen]
            assert all(low <= a >> 10 <= high for a in touched[start[seen] :]), "on the bus"
        bench.monitor.check()
        assert not int(dut.reading.value) and int(dut.dma_idle.value) == (not first_bad)
        await abort(bench, hold=1)
    bench.guard(0, LAST_BLOCK, 0, LAST_BLOCK)
    await again(bench)


@block_test(Bench)
async def beyond_the_last_address(bench: Bench) -> None:
    """A request that ends with the last byte is served; the burst behind it is refused at 0."""
    top = 1 << 32
    for chan in range(5):
        for before in (bench.lanes, 3 * bench.lanes, 0x400, 0x440):
            for more in (0, 1, bench.lanes + 1, 0x500):
                bench.anew()
                requests = [
                    ask(bench, chan, AREA, 9),
                    ask(bench, chan, top - before, before + more),
                ]
                await bench.run_until(lambda: bench.errors or not bench.busy(), 2000)
                await bench.steps(70)
                owner = requests[1][2]
                assert bench.errors == ([Fault(chan, 0, owner, True)] if more else [])
                if chan == WRITE_CHANNEL:
                    assert bench.writes_done == 1 + (not more)
                    end = bench.bus.read_bytes(top - before, before)
                    assert end == bytes(bench.stored[a] for a in range(top - before, top))
                else:
                    assert bench.readers[CHANNELS[chan]].total == 9 + before
                touched = {*bench.bus.reads, *bench.bus.writes}
                assert not [a for a in touched if a < AREA], "the address wrapped on the bus"
                await abort(bench, hold=1)
    await again(bench)


@block_test(Bench)
async def error_and_refusal_at_once(bench: Bench) -> None:
    """An ERROR and a refusal on two channels, at varying distances: both are reported."""
    bench.guard(AREA >> 10, LAST_BLOCK, 0, LAST_BLOCK)
    adjacent = 0
    # while the queue of the master is full, and when a burst at its end has left it
    for word, delay in itertools.product((5, 14), range(24)):
        bad = AREA * 3 + word * bench.lanes
        bench.bus.faults = Faults(answer=lambda a, w, bad=bad: ERROR if a == bad else None)
        bench.anew()
        first = ask(bench, 2, AREA * 3, 40 * bench.lanes)
        await bench.steps(delay)
        second = ask(bench, 3, 0x800, 50)
        ask(bench, 1, AREA, 300)
        await bench.run(but=(2, 3))
        await bench.steps(60)
        wanted = {Fault(2, bad, first[2], False), Fault(3, 0x800, second[2], True)}
        assert set(bench.errors) == wanted and len(bench.errors) == 2, (word, delay)
        adjacent += (
            bench.fault_cycles[1] - bench.fault_cycles[0] == 1 and not bench.errors[0].refused
        )
        await abort(bench, hold=1)
    assert adjacent, "they were never in the same cycle"


@cocotb.test()
async def abort_among_errors(dut) -> None:
    """Any beat may fail, before and during an abort: transfers that the abort drops report no
    error."""
    bench = Bench(dut)
    dut, rng = bench.dut, bench.rng
    await bench.reset()
    reported = 0
    for trial in range(40):
        bench.anew()
        for chan in range(5):
            random_requests(bench, chan, 3)
        chance = rng.choice([0.03, 0.3])
        bench.bus.faults = replace(
            rng.choice([Faults(), Faults(wait=0.4), ROUGH]),
            answer=lambda a, w, chance=chance: ERROR if rng.random() < chance else None,
        )
        await bench.steps(rng.randint(5, 90))
        reported += len(bench.errors)
        assert len({f.chan for f in bench.errors}) == len(bench.errors), "a channel failed twice"
        await abort(bench, hold=1 + trial % 3)
        bench.monitor.check()
        await again(bench)
    assert reported > 20


async def give_up(bench: Bench) -> None:
    """Abort without waiting for the bus: idle within a few cycles."""
    bench.orphans = True
    bench.dut.dma_abandon.value = 1
    await abort(bench, hold=1, limit=4)
    bench.dut.dma_abandon.value = 0


@cocotb.test()
async def a_dead_bus_is_given_up(dut) -> None:
    """No answer, no grant, a SPLIT for ever: the abort ends, and new traffic is exact later."""
    bench = Bench(dut)
    dut, bus, rng = bench.dut, bench.bus, bench.rng
    await bench.reset()
    for trial in range(36):
        kind = ("stuck", "no grant", "split", "retry")[trial % 4]
        bus.faults = Faults(wait=0.1, lose=0.05, regain=0.5)
        # earlier writes may still complete, so every run has its own addresses
        base = AREA * (16 + trial)
        for chan in range(4):
            ask(bench, chan, base + chan * 0x1000, 600)
        ask(bench, WRITE_CHANNEL, base + 0x8000, 600)
        await bench.steps(rng.randint(5, 150))
        bus.stuck, bus.granted = kind == "stuck", kind not in ("no grant", "retry")
        if kind in ("split", "retry"):
            bus.faults.split_cycles = 1_000_000
            bus.faults.answer = lambda a, w, kind=kind: SPLIT if kind == "split" else RETRY
        await bench.steps(rng.choice([0, 1, 5, 60]))
        await give_up(bench)
        bench.count_anew()
        asked = [ask(bench, chan, base + chan * 0x1000 + 0x800, 300) for chan in range(4)]
        ask(bench, WRITE_CHANNEL, base + 0x8800, 300)
        await bench.steps(rng.choice([0, 3, 60]))
        if bus.stuck and bus.beat and not bus.beat.second:
            # without a grant at the abort the beat that waits is of the new traffic, whose ERROR
            # would be reported
            given_up = bus.beat.addr & 0xFFF < 0x800
            bus.beat.answer = rng.choice([OKAY, RETRY, *[ERROR] * given_up])
        bus.faults, bus.stuck, bus.granted, bus.away = Faults(), False, True, 0
        await bench.run()
        await bench.settle()
        assert not bench.errors and bench.writes_done == 1
        for chan in range(4):
            check_reads(bench, chan, [asked[chan]], 1 << 32)
        check_stored(bench)


@cocotb.test()
async def given_up_in_an_abort(dut) -> None:
    """An abort that waits for a dead bus ends two cycles behind dma_abandon (docs/architecture.md
    4)."""
    bench = Bench(dut)
    dut, bus, rng = bench.dut, bench.bus, bench.rng
    await bench.reset()
    for trial in range(12):
        bench.anew()
        bench.orphans = True
        for chan in range(5):
            ask(bench, chan, AREA * (16 + trial) + chan * 0x1000, 600)
        await bench.steps(rng.randint(5, 60))
        bus.stuck = True
        # until a beat waits
        await bench.steps(30)
        bench.clear()
        bench._drive()
        dut.dma_abort.value = 1
        for _ in range(rng.randint(2, 20)):
            await bench.step()
            dut.dma_abort.value = 0
            assert not int(dut.dma_idle.value), "the bus is dead"
        dut.dma_abandon.value = 1
        for cycle in range(4):
            await bench.step()
            assert int(dut.dma_idle.value) == int(cycle >= IDLE_AFTER), cycle
        dut.dma_abandon.value = 0
        bus.stuck = False
        await bench.steps(40)


@cocotb.test()
async def what_it_waits_for(dut) -> None:
    """Reason, address, channel and owner of the beat that waits."""
    bench = Bench(dut)
    dut, bus = bench.dut, bench.bus
    await bench.reset()
    for chan in range(5):
        addr = AREA * (chan + 1)

        async def expect(why: int, addr: int, chan: int = chan, owner: int = 0) -> None:
            await bench.steps(40)
            seen = [int(getattr(dut, f"wait_{n}").value) for n in ("why", "addr", "chan", "owner")]
            assert seen == [why, addr, chan, owner]

        bus.granted = False
        _, _, owner = ask(bench, chan, addr, 8 * bench.lanes)
        await expect(1, addr, owner=owner)
        bus.stuck = bus.granted = True
        await expect(2, addr, owner=owner)
        assert bus.beat is not None
        bus.granted, bus.stuck, bus.beat.answer = False, False, RETRY
        await expect(3, addr, owner=owner)
        bus.granted = True
        await bench.run()
        await bench.settle()
        assert not int(dut.wait_why.value)
