# SPDX-License-Identifier: Apache-2.0
"""The AI RAM itself: its latency, one memory, or two where its words are no power of two."""

import random
from collections import deque

import cocotb
from cocotb.triggers import RisingEdge

from openkpu_tb.core.pipeline_bench import start_clock
from openkpu_tb.simrun import run_bench
from openkpu_tb.tiers import sizes


@cocotb.test()
async def any_word(dut) -> None:
    """Words are written whole, then in part while others are read. A read sees the writes of the
    cycles before; of the word that is written in its own cycle nothing is expected."""
    start_clock(dut)
    path, latency = int(dut.PATH.value), int(dut.READ.value)
    words = 64 * int(dut.ROWS.value) // path
    ram = [random.getrandbits(8 * path) for _ in range(words)]
    dut.we.value, dut.re.value = 0, 0
    await RisingEdge(dut.clk)  # the first one may come before any value
    dut.we.value, dut.wbe.value, dut.re.value = 1, (1 << path) - 1, 0
    for at, word in enumerate(ram):
        dut.waddr.value, dut.wdata.value = at, word
        await RisingEdge(dut.clk)
    second = 1 << (words - 1).bit_length() - 1  # where a second memory begins
    ends = (0, second - 1, second, words - 1)
    due: deque[int | None] = deque([None] * latency)
    for _ in range(3000):
        at, to = (random.choice((random.randrange(words), *ends)) for _ in range(2))
        reads, writes = random.random() < 0.8, random.random() < 0.6
        be, word = random.getrandbits(path), random.getrandbits(8 * path)
        dut.re.value, dut.raddr.value = int(reads), at
        dut.we.value, dut.waddr.value = int(writes), to
        dut.wbe.value, dut.wdata.value = be, word
        await RisingEdge(dut.clk)
        want = due.popleft()
        assert want is None or int(dut.rdata.value) == want, f"{latency} cycles behind a read"
        due.append(ram[at] if reads and not (writes and at == to) else None)
        if writes:
            mask = sum(0xFF << 8 * i for i in range(path) if be >> i & 1)
            ram[to] = (ram[to] & ~mask) | (word & mask)


# of 20 rows the words beyond 64 lie in a memory of their own
@sizes(
    "sim rows latency cut",
    test="icarus-20-3-1",
    check="verilator-20-3-0 icarus-16-3-1 verilator-20-1-0",
)
def test_memory(sim: str, rows: int, latency: int, cut: int) -> None:
    params = {"ROWS": rows, "PATH": 16, "READ": latency, "CUT": cut}
    run_bench(sim, "ai_ram", ["rtl/cache/ai_ram.v"], "tb.ai_ram.test_memory", params=params)
