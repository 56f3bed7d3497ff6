# SPDX-License-Identifier: Apache-2.0
"""dmac with ahb_master: every channel, every alignment, back-pressure, rate, abort, faults."""

import cocotb
import pytest
from cocotb.triggers import RisingEdge

from openkpu_tb.ahb.responder import Faults
from openkpu_tb.core.block_bench import block_test
from openkpu_tb.core.descriptor import layout, split_fields
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes
from tb.storage_port.bench import CHANNELS, Bench, abort


@cocotb.test()
async def random_streams(dut) -> None:
    """All channels at once, any alignment and length, fast and slow consumers, retries."""
    rough = Faults(wait=0.2, lose=0.1, regain=0.5, retry=0.05, split=0.02)
    for faults, speeds in (
        (Faults(), (1, 1, 1, 1)),
        (Faults(wait=0.3), (0.3, 0.9, 0.1, 0.5)),
        (rough, (1, 0.2, 0.7, 0.1)),
    ):
        bench = Bench(dut, faults)
        dut = bench.dut
        await bench.reset()
        for reader, speed in zip(bench.readers.values(), speeds, strict=True):
            reader.speed = speed
        bench.write_speed = speeds[1]
        bench.random_work(reads=8, writes=6)
        await bench.run()
        await bench.settle()
        written = {a for a, _ in bench.bus.memory.items()}
        assert written == set(bench.bus.writes), "a write touched a neighbour"
        await bench.stop()


@block_test(Bench)
async def every_alignment(bench: Bench) -> None:
    """Reads of each offset and length, writes of each length, around a 1 KB boundary."""
    lanes = bench.lanes
    for off in range(lanes):
        for length in [*range(1, lanes + 2), 3 * lanes - 1]:
            bench.read(CHANNELS[(off + length) % 4], 0x400 - lanes + off, length)
    for i in range(1, 3 * lanes + 1):
        bench.write(0x1_0400 * i - lanes * (i % 3), bench.rng.randbytes(i))
    await bench.run()
    await bench.settle()
    lengths = sum(range(1, 3 * lanes + 1))
    assert len(bench.bus.writes) == len(set(bench.bus.writes)) == lengths, "a neighbour was touched"


@cocotb.test()
async def announced(dut) -> None:
    """Every burst is announced once, in order and before it begins: m_ahb_ahead (fields.toml)."""
    bench = Bench(dut, Faults(wait=0.3, lose=0.2, regain=0.5))
    bursts: dict[bool, list[int]] = {False: [], True: []}
    ahead = layout("ahead")

    async def listen() -> None:
        while True:
            await RisingEdge(dut.clk)
            word = split_fields(ahead, int(dut.m_ahb_ahead.value))
            if word["valid"]:
                beats = word["beats"] << word["size"]
                bursts[bool(word["write"])] += range(word["addr"], word["addr"] + beats)
            done = {False: bench.bus.reads, True: bench.bus.writes}
            assert all(len(done[way]) <= len(bursts[way]) for way in bursts), "not announced"

    await bench.reset()
    listener = cocotb.start_soon(listen())
    for _ in range(3):
        bench.anew()
        bench.random_work(reads=8, writes=6)
        await bench.run()
    await bench.settle()
    listener.cancel()
    assert bursts == {False: bench.bus.reads, True: bench.bus.writes}


@cocotb.test()
async def full_rate(dut) -> None:
    """0 wait states: a stream moves a word per cycle, across requests and in both directions."""
    for channel, lengths in (
        ("weight", [2000]),
        ("pixel", [1500, 1500]),
        ("bias", [64] * 20),
        ("pixel", [64] * 20),
        ("weight", [700, 3, 900, 65]),
    ):
        depth = {
            "weight": dut.WGT_FIFO_DEPTH,
            "pixel": dut.PIX_FIFO_DEPTH,
            "bias": dut.BIAS_FIFO_DEPTH,
        }
        if int(depth[channel].value) < 16:
            continue  # half a FIFO does not cover the latency of the storage
        bench = Bench(dut)
        dut = bench.dut
        await bench.reset()
        addr = 0x1000
        for length in lengths:
            bench.read(channel, addr, length)
            addr += length + -length % bench.lanes
        await bench.run()
        await bench.settle()
        reader = bench.readers[channel]
        cycles = reader.last_word - reader.first_word + 1
        limit = reader.words
        if reader.words < 24 or bench.lanes == 16:
            limit += 4  # very short requests cannot hide the latency of the queue
        assert cycles <= limit, f"{channel} {lengths[:3]}: {reader.words} words, {cycles} cycles"
        if len(lengths) == 1 and int(depth[channel].value) >= 32:
            assert bench.monitor.bursts["INCR16"] >= reader.words // 16 - 2, "bursts are too short"
        await bench.stop()
    bench = Bench(dut)
    dut = bench.dut
    await bench.reset()
    for i in range(4):
        bench.read("weight", 0x2000 + 0x400 * i, 0x400)
    bench.write(0x1_0000, bench.rng.randbytes(0x1000))
    await bench.run()
    await bench.settle()
    done = bench.monitor.done
    cycles = done[-1].cycle - done[0].cycle + 1
    share = len(done) / cycles
    assert share >= 0.97, f"reads and writes together used {share:.3f} of the bus"
    half = [b.write for b in done[len(done) // 4 : len(done) // 2]]
    assert 0.3 <= sum(half) / len(half) <= 0.7, "reads and writes do not share the bus"


@cocotb.test()
async def priorities(dut) -> None:
    """With requests on all channels, the order is list, pixel, bias, weight."""
    bench = Bench(dut)
    dut = bench.dut
    bench.bus.granted = False
    bench.offer_rate = 1.0  # all ask in the same cycle
    await bench.reset()
    for i in range(2):  # fill the queue of the master, which accepts in order of arrival
        bench.read("pixel", 0x5000 + 0x400 * i, bench.lanes)
    await bench.steps(12)
    base = {"pixel": 0x1000, "weight": 0x2000, "bias": 0x3000, "list": 0x4000}
    for c in base:
        bench.read(c, base[c], bench.lanes)
    await bench.steps(12)
    bench.bus.granted = True
    await bench.run()
    await bench.settle()
    order = [a >> 12 for a in bench.bus.reads[:: bench.lanes]]
    assert order == [5, 5, 4, 1, 3, 2]


@block_test(Bench)
async def back_pressure(bench: Bench, dut) -> None:
    """A consumer that stalls stalls its own channel only; no data are lost; WB_FIFO_FULL is an
    AND."""
    for stopped in CHANNELS:
        for c, r in bench.readers.items():
            r.speed = 0.0 if c == stopped else 1.0
            bench.read(c, 0x1000 * CHANNELS.index(c), 100 * bench.lanes)
        await bench.steps(700)
        for c, r in bench.readers.items():
            assert bool(r.waiting) == (c == stopped)
        assert not bench.full_seen, "WB_FIFO_FULL with only one FIFO full"
        bench.readers[stopped].speed = 1.0
        await bench.run()
    for c in ("weight", "bias"):
        bench.readers[c].speed = 0.0
        bench.read(c, 0x5000, 100 * bench.lanes)
    await bench.steps(300)
    assert int(dut.weight_bias_full.value), "both FIFOs are full"
    for r in bench.readers.values():
        r.speed = 0.6
    await bench.run()
    await bench.settle()
    assert not int(dut.weight_bias_full.value) and not int(dut.reading.value)


@cocotb.test()
async def abort_any_time(dut) -> None:
    """Abort after a random number of cycles on a rough bus; what follows is right."""
    bench = Bench(dut, Faults(wait=0.2, lose=0.1, regain=0.5, retry=0.03, split=0.02))
    dut = bench.dut
    await bench.reset()
    for trial in range(25):
        for reader in bench.readers.values():
            reader.speed = bench.rng.choice([0.1, 0.5, 1.0])
        bench.random_work(reads=3, writes=2)
        await bench.steps(bench.rng.randint(1, 120))
        await abort(bench, hold=1 + trial % 4)
        bench.monitor.check()
        for reader in bench.readers.values():
            reader.speed = 1.0
        bench.random_work(reads=1, writes=1)
        await bench.run()
    await bench.settle()


@pytest.mark.tier(check=["verilator-32-16-20-3-fault_tests"], nightly=["icarus-64-16-20-3-*"])
@pytest.mark.parametrize("module", ["test_storage_port", "fault_tests"])
@sizes(
    "sim width pix wgt bias",
    test="icarus-64-16-20-3 verilator-32-16-20-3",
    nightly="icarus-32-16-64-32 icarus-128-16-64-32 verilator-32-16-64-32 verilator-128-16-64-32",
)
def test_storage_port(sim: str, width: int, pix: int, wgt: int, bias: int, module: str) -> None:
    depths = {"PIX_FIFO_DEPTH": pix, "WGT_FIFO_DEPTH": wgt, "BIAS_FIFO_DEPTH": bias}
    sources = ["rtl/storage/*.v", "rtl/lib/fifo_*.v", "rtl/lib/ram_1r1w.v"]
    sources += ["rtl/lib/ram_1r1w_async.v"]
    params = {"AHB_W": width, **depths}
    run_bench(sim, "storage_port", sources, f"tb.storage_port.{module}", params=params)
