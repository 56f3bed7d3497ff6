# SPDX-License-Identifier: Apache-2.0
"""ahb_master alone: rate, bursts, grant loss, RETRY, SPLIT, ERROR, against a Python bus."""

from dataclasses import replace

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from openkpu_tb.ahb.responder import ERROR, OKAY, RETRY, SPLIT, Faults
from openkpu_tb.core.block_bench import block_test
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes
from tb.ahb_master.bench import Bench, Command, spread


@block_test(Bench)
async def back_to_back(bench: Bench) -> None:
    """0 wait states, permanent grant: every bus cycle between first and last beat carries data."""
    step = bench.width // 8
    for beats in (16, 8, 4, 3, 1):
        for write in (False, True):
            start = len(bench.monitor.done)
            await bench.run(spread(12, beats, step, write, bench.rng))
            await bench.settle()
            done = bench.monitor.done[start:]
            assert len(done) == 12 * beats
            cycles = done[-1].cycle - done[0].cycle + 1
            assert cycles == 12 * beats, f"{12 * beats} beats of {beats} took {cycles} cycles"
    mixed = [bench.command() for _ in range(60)]
    start = len(bench.monitor.done)
    await bench.run(mixed)
    await bench.settle()
    done = bench.monitor.done[start:]
    assert done[-1].cycle - done[0].cycle + 1 == len(done), "reads and writes in turn lost cycles"
    assert {"SINGLE", "INCR", "INCR4", "INCR8", "INCR16"} <= set(bench.monitor.bursts)


@cocotb.test()
async def random_bus(dut) -> None:
    """Waits, grant loss, RETRY, SPLIT, alone and together; slow and fast commands."""
    for faults in (
        Faults(wait=0.4),
        Faults(lose=0.3, regain=0.4),
        Faults(retry=0.2),
        Faults(split=0.1),
        Faults(wait=0.3, lose=0.2, regain=0.5, retry=0.1, split=0.05),
    ):
        bench = Bench(dut, faults)
        await bench.reset()
        await bench.run([bench.command() for _ in range(60)], p_valid=0.8)
        await bench.settle()
        if faults.lose:
            assert bench.monitor.broken > 5, "no burst lost the grant: the test tests nothing"
        assert bool(bench.bus.answers[RETRY]) == bool(faults.retry)
        assert bool(bench.bus.answers[SPLIT]) == bool(faults.split)
        await bench.stop()


@block_test(Bench)
async def retry_every_beat(bench: Bench) -> None:
    """RETRY and SPLIT once on each beat of a 16-beat burst, read and write."""
    step = bench.width // 8
    for write in (False, True):
        for answer in (RETRY, SPLIT):
            for beat in range(16):
                wanted = {0x4000 + beat * step: 1}

                def plan(addr, w, wanted=wanted, answer=answer):
                    return answer if wanted.pop(addr, 0) else OKAY

                bench.bus.faults.answer = plan
                await bench.run(spread(2, 16, step, write, bench.rng))
                await bench.settle()
                assert not wanted


@block_test(Bench)
async def grant_lost_at_every_beat(bench: Bench, dut) -> None:
    """The grant goes away after each number of beats, for a while: the rest is rebuilt."""
    step = bench.width // 8
    for beats in range(1, 17):

        async def arbiter(count=beats):
            goal = bench.bus.beats + count
            for _ in range(5000):
                if bench.bus.beats >= goal:
                    break
                await RisingEdge(dut.clk)
            else:
                raise AssertionError(f"{bench.bus.beats} beats, expected {goal}")
            bench.bus.granted = False
            await ClockCycles(dut.clk, 5)
            bench.bus.granted = True

        task = cocotb.start_soon(arbiter())
        await bench.run(spread(2, 16, step, bool(beats & 1), bench.rng))
        await task
        await bench.settle()
    assert bench.monitor.broken >= 14


def row(bench: Bench, lengths: list[int], kinds: list[bool], at: int = 0x4000) -> list[Command]:
    """Commands of whole words one behind the other, of these lengths and directions."""
    step, commands = bench.width // 8, []
    for beats, write in zip(lengths, kinds, strict=True):
        at += -at % 1024 if at % 1024 + beats * step > 1024 else 0
        data = [bench.rng.getrandbits(bench.width) for _ in range(beats)] if write else []
        tag = bench.rng.getrandbits(len(bench.dut.cmd_tag))
        commands.append(Command(write, at, beats, bench.full, data=data, tag=tag))
        at += beats * step
    return commands


async def each_beat_fails(dut, lengths: tuple[int, ...], faults: Faults) -> Bench:
    """ERROR on each beat of commands of these lengths, between others, as reads and as writes."""
    bench = Bench(dut)
    await bench.reset()
    for beats in lengths:
        for beat in range(beats):
            for write in (False, True):
                others = [bench.rng.choice([1, 2, 4, 16]) for _ in range(3)]
                kinds = [bench.rng.random() < 0.5 for _ in range(3)]
                commands = row(
                    bench,
                    [others[0], beats, others[1], others[2]],
                    [kinds[0], write, kinds[1], kinds[2]],
                )
                bad = commands[1].addr + beat * bench.width // 8

                def answer(addr, write, bad=bad):
                    return ERROR if addr == bad else None

                bench.bus.faults = replace(faults, answer=answer)
                bench.errors.clear()
                await bench.run(commands)
                assert bench.errors == [bad]
                await bench.settle()
    return bench


@cocotb.test()
async def error_ends_its_command(dut) -> None:
    """ERROR on each beat of each length: the rest of the command is dropped, nothing else is."""
    await each_beat_fails(dut, (1, 2, 3, 4, 8, 11, 16), Faults())


@cocotb.test()
async def error_on_a_rough_bus(dut) -> None:
    """The same with wait states, lost grants, RETRY and SPLIT around it."""
    rough = Faults(wait=0.3, lose=0.2, regain=0.5, retry=0.1, split=0.05)
    bench = await each_beat_fails(dut, (1, 2, 4, 5, 16), rough)
    assert bench.bus.answers[RETRY] and bench.bus.answers[SPLIT] and bench.monitor.broken


@cocotb.test()
async def error_in_one_cycle(dut) -> None:
    """ERROR with HREADY high at once: a beat of another command behind it goes on."""
    await each_beat_fails(dut, (1, 2, 3, 4, 8, 16), Faults(one_cycle=True))
    rough = Faults(one_cycle=True, wait=0.4, lose=0.2, regain=0.5, retry=0.1)
    await each_beat_fails(dut, (1, 2, 4), rough)


@block_test(Bench)
async def error_next_to_retry(bench: Bench) -> None:
    """RETRY or SPLIT on a beat, ERROR when it comes again or on one of the two after it."""
    step = bench.width // 8
    for lengths in ([1, 1, 1, 1, 1], [2, 2, 2, 2], [4, 4, 1, 4], [1, 3, 1, 3]):
        for beat in range(sum(lengths) - 2):
            for after in range(3):
                for again in (RETRY, SPLIT):
                    write = bench.rng.random() < 0.5
                    commands = row(bench, lengths, [write] * len(lengths))
                    first = commands[0].addr + beat * step
                    bad = first + after * step
                    todo = {first}

                    def answer(addr, write, todo=todo, first=first, bad=bad, again=again):
                        if addr in todo:
                            todo.clear()
                            return again
                        return ERROR if addr == bad else None

                    lose = bench.rng.choice([0.0, 0.4])
                    bench.bus.faults = Faults(answer=answer, lose=lose, regain=0.5, wait=lose)
                    bench.errors.clear()
                    await bench.run(commands)
                    assert bench.errors == [bad] and not todo
                    await bench.settle()


@cocotb.test()
async def random_errors(dut) -> None:
    """Random commands, each beat fails with some probability, several at once under way."""
    for rough in (
        Faults(),
        Faults(one_cycle=True),
        Faults(wait=0.3, lose=0.2, regain=0.5, retry=0.1, split=0.05),
    ):
        bench = Bench(dut, rough)
        rough.answer = lambda addr, write, rng=bench.rng: ERROR if rng.random() < 0.04 else None
        await bench.reset()
        await bench.run([bench.command() for _ in range(200)], p_valid=0.8)
        await bench.settle()
        assert len(bench.errors) > 20
        await bench.stop()


HANGS = ("stuck", "no grant", "split", "retry", "alive")


async def hang(bench: Bench, kind: str) -> None:
    """The bus stops answering, in one of these ways, after some beats."""
    bus, rng = bench.bus, bench.rng
    await bench.steps(rng.randint(1, 60))
    bus.stuck = kind == "stuck"
    bus.granted = kind not in ("no grant", "retry")
    if kind in ("split", "retry"):
        bus.faults.split_cycles = 1_000_000
        bus.faults.answer = lambda addr, write: SPLIT if kind == "split" else RETRY
    await bench.steps(0 if kind == "alive" else rng.choice([0, 1, 2, 3, 20]))


@cocotb.test()
async def abandon(dut) -> None:
    """A bus that does not answer is given up; the next commands wait until it answers again."""
    recovered = orphans = 0
    bench = Bench(dut)
    await bench.reset()
    for trial in range(100):
        kind = HANGS[trial % len(HANGS)]
        bench.bus.faults = Faults(wait=0.2, lose=0.1, regain=0.6, retry=0.05)
        bench.give([bench.command(words=1 << 10) for _ in range(30)])
        await hang(bench, kind)
        await bench.abandon(cycles=bench.rng.choice([2, 3, 20]))
        recovered += int(dut.m_ahb_htrans.value) == 0
        orphans += int(dut.m_ahb_htrans.value) != 0
        given_up = bench.bus.beat
        beats = bench.bus.beats
        bench.give([bench.command(words=1 << 10, first=1 << 12) for _ in range(6)])
        for _ in range(0 if kind == "alive" else bench.rng.choice([1, 4, 30])):
            await bench.step()
            assert not int(dut.rsp_valid.value) or bench.bus.granted
        ends = bench.rng.choice([OKAY, ERROR, RETRY])
        bus = bench.bus
        if bus.stuck and bus.beat and bus.beat is given_up and not bus.beat.second:
            bus.beat.answer = ends  # how the orphan ends is nobody's business
        bus.faults, bus.stuck, bus.granted, bus.away = Faults(wait=0.1), False, True, 0
        await bench.run([])
        await bench.settle()
        assert not bench.errors and bus.beats > beats
    assert recovered > 20 and orphans > 5, (recovered, orphans)


@cocotb.test()
async def what_it_waits_for(dut) -> None:
    """Grant, answer, grant after SPLIT, none: reported with the address and tag of the beat."""
    bench = Bench(dut, Faults())
    bench.bus.granted = False
    await bench.reset()
    await bench.steps(4)
    assert set(bench.waits) == {0}, "nothing to do, nothing to wait for"

    async def expect(why: int, beat: int) -> None:
        await bench.steps(12)
        assert int(dut.wait_why.value) == why
        command, index = bench.expected[0]
        assert int(dut.wait_addr.value) == commands[0].addr + beat * bench.width // 8
        assert (command, index) == (commands[0], beat)

    commands = row(bench, [4, 4], [False, True])
    bench.give(commands)
    await expect(1, 0)
    bench.bus.stuck = bench.bus.granted = True
    await expect(2, 0)
    bench.bus.granted = False
    assert bench.bus.beat is not None
    bench.bus.beat.answer, bench.bus.stuck = SPLIT, False
    await expect(3, 0)
    bench.bus.granted = True
    await bench.run([])
    await bench.settle()
    assert int(dut.wait_why.value) == 0


@sizes(
    "sim width",
    test="verilator-128",
    nightly="icarus-128 icarus-32 icarus-64",
)
def test_ahb_master(sim: str, width: int) -> None:
    sources = ["rtl/storage/ahb_*.v", "rtl/lib/ram_1r1w_async.v"]
    run_bench(sim, "ahb_master", sources, "tb.ahb_master.test_ahb_master", params={"AHB_W": width})
