# SPDX-License-Identifier: Apache-2.0
"""The fabric alone: random bursts against a memory of Python's, under every kind of disturbance.

Asserts the data, that no rule was broken, and that the disturbances asked for did happen.
"""

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge

from openkpu_tb.ahb.beat_master import Beat, BeatMaster
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes

SOURCES = ["tb/openkpu_tb/ahb/fabric/*.v", "tb/openkpu_tb/ahb/checkers/*.v"]
DEPTH = 1024  # words
OPTIONS = ["loss_prob", "rival_prob", "rd_wait", "seq_wait", "wr_wait", "wait_prob"]
OPTIONS += ["retry_prob", "split_prob", "err_lo", "err_hi", "top", "dead"]
OPTIONS += ["err1_lo", "err1_hi", "err2_lo", "err2_hi"]
MODES: dict[str, dict[str, int]] = {
    "quiet": {},
    "slow": {"rd_wait": 3, "seq_wait": 1, "wr_wait": 5},
    "waits": {"wait_prob": 100},
    "loss": {"loss_prob": 60, "rival_prob": 100, "wait_prob": 60},
    "retry": {"retry_prob": 60, "wait_prob": 60},
    "split": {"split_prob": 60, "rival_prob": 100},
    "all": {"loss_prob": 40, "rival_prob": 90, "wait_prob": 90, "retry_prob": 30, "split_prob": 30},
}


def random_beats(rng: random.Random, count: int, lanes: int) -> list[Beat]:
    """Bursts of 1..40 beats, all sizes, some wrapping; every write has its own data."""
    beats: list[Beat] = []
    largest = lanes.bit_length() - 1
    while len(beats) < count:
        size = rng.choice([0, 1, *range(2, largest + 1), largest])
        length, step, write = rng.randint(1, 40), 1 << size, rng.random() < 0.5
        if rng.random() < 0.2:
            length = rng.choice([4, 8, 16])
            span = length * step
            start = rng.randrange(0, 4 * DEPTH, step)
            base = start // span * span
            addrs = [base + (start + i * step) % span for i in range(length)]
        else:
            start = rng.randrange(0, 4 * DEPTH - length * step, step)
            addrs = [start + i * step for i in range(length)]
            length = 0
        for i, addr in enumerate(addrs):
            data = rng.getrandbits(8 << size) if write else 0
            beats.append(Beat(addr, write, size, data, wrap=length if i == 0 else 0))
    return beats


async def start(dut, mode: dict[str, int]) -> None:
    """Clock, configuration, reset."""
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    for name in OPTIONS:
        getattr(dut, f"cfg_{name}").value = mode.get(name, 0)
    dut.cfg_seed.value = cocotb.RANDOM_SEED & 0xFFFFFFFF
    dut.rst.value = 1
    await ClockCycles(dut.clk, 3)
    dut.rst.value = 0


@cocotb.test()
async def random_bursts(dut):
    """Data written is read back; the counters and the recorder agree with what was done."""
    mode = MODES[os.environ["MODE"]]
    rng = random.Random(cocotb.RANDOM_SEED)
    master = BeatMaster(dut, rng, busy=0.1)
    await start(dut, mode)
    fill = [Beat(4 * i, True, 2, rng.getrandbits(32)) for i in range(DEPTH)]
    await master.run(fill)
    memory = bytearray()
    for beat in fill:
        memory += beat.data.to_bytes(4, "little")
    beats = random_beats(rng, 1500, master.lanes)
    await master.run(beats)
    for number, beat in enumerate(beats):
        span = slice(beat.addr, beat.addr + (1 << beat.size))
        assert not beat.error, f"beat {number}: ERROR at {beat.addr:#x}"
        if beat.write:
            memory[span] = beat.data.to_bytes(1 << beat.size, "little")
        else:
            expected = int.from_bytes(memory[span], "little")
            assert beat.data == expected, f"beat {number} at {beat.addr:#x}"
    await FallingEdge(dut.clk)
    assert int(dut.errors.value) == 0, f"rules broken: {int(dut.rules.value):#x}"
    writes = len(fill) + sum(b.write for b in beats)
    assert int(dut.wr_beats.value) == writes
    assert int(dut.rd_beats.value) == len(beats) - sum(b.write for b in beats)
    refused = int(dut.refusals.value)
    assert (refused > 20) == bool(mode.get("retry_prob") or mode.get("split_prob"))
    if not mode.get("split_prob"):  # a SPLIT takes the grant away too
        assert (int(dut.losses.value) > 20) == bool(mode.get("loss_prob"))
    assert int(dut.rec_count.value) == writes + int(dut.rd_beats.value) + refused


@cocotb.test()
async def error_window(dut):
    """ERROR inside the windows and behind the storage, and only there; nothing was written."""
    rng = random.Random(cocotb.RANDOM_SEED)
    master = BeatMaster(dut, rng)
    await start(dut, {"wait_prob": 60})
    await master.run([Beat(4 * i, True, 2, i) for i in range(64)])
    dut.cfg_err_lo.value, dut.cfg_err_hi.value = 0x40, 0x60
    dut.cfg_err1_lo.value, dut.cfg_err1_hi.value = 0x80, 0x84
    dut.cfg_err2_lo.value, dut.cfg_err2_hi.value = 0x88, 0x90
    beats = [Beat(4 * i, True, 2, 0xBAD) for i in range(14, 26)]
    beats += [Beat(4 * i, True, 2, i) for i in range(31, 38)]
    beats += [Beat(4 * DEPTH + 16, True), Beat(0x8000_0000, False)]
    await master.run(beats)
    assert [b.addr for b in beats if b.error] == [
        *range(0x40, 0x60, 4),
        *(0x80, 0x88, 0x8C),
        4 * DEPTH + 16,
        0x8000_0000,
    ]
    dut.cfg_err_hi.value = dut.cfg_err1_hi.value = dut.cfg_err2_hi.value = 0
    check = [Beat(4 * i, False) for i in range(64)]
    await master.run(check)
    changed = [14, 15, 24, 25]
    assert [b.data for b in check] == [0xBAD if i in changed else i for i in range(64)]
    await FallingEdge(dut.clk)
    assert int(dut.error_answers.value) == 13
    assert int(dut.errors.value) == 0, f"rules broken: {int(dut.rules.value):#x}"


@cocotb.test()
async def reset_keeps_contents(dut):
    """The storage is non-volatile."""
    master = BeatMaster(dut, random.Random(cocotb.RANDOM_SEED))
    await start(dut, {})
    await master.run([Beat(4 * i, True, 2, i * i) for i in range(32)])
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    beats = [Beat(4 * i, False) for i in range(32)]
    await master.run(beats)
    assert [b.data for b in beats] == [i * i for i in range(32)]


@sizes(
    "sim mode width",
    test="icarus-quiet-32",
    check="icarus-all-32 verilator-all-32 verilator-all-64 verilator-quiet-32 verilator-split-32 "
    "verilator-waits-32",
    nightly="icarus-all-64 icarus-all-128 icarus-loss-32 icarus-retry-32 icarus-slow-32 "
    "icarus-split-32 icarus-waits-32 verilator-all-128 verilator-loss-32 verilator-retry-32 "
    "verilator-slow-32",
)
def test_fabric(sim: str, mode: str, width: int) -> None:
    tests = None if mode == "quiet" else "random_bursts"
    params = {"AHB_W": width, "DEPTH": DEPTH}
    more = {"env": {"MODE": mode}, "testcase": tests}
    run_bench(sim, "ahb_fabric", SOURCES, "tb.ahb.fabric.test_fabric", params=params, **more)
