# SPDX-License-Identifier: Apache-2.0
"""step_counter counts, and says zero; nothing looks at its highest count (scripts/mutate.py)."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge
from openkpu.tb.simrun import run

SOURCES = ["tb/mutation/example/step_counter.v"]


@cocotb.test()
async def counts(dut) -> None:
    """Up when enabled, from zero, round at sixteen."""
    Clock(dut.clk, 10, "ns").start()
    dut.rst.value, dut.en.value = 1, 0
    for _ in range(2):
        await FallingEdge(dut.clk)
    dut.rst.value = 0
    count = 0
    for step in range(60):
        enabled = step % 3 != 1
        dut.en.value = int(enabled)
        await FallingEdge(dut.clk)
        count = (count + enabled) % 16
        assert dut.count.value == count
        assert dut.zero.value == (count == 0)


def test_step_counter() -> None:
    run("icarus", "step_counter", SOURCES, "tb.mutation.example.test_step_counter")
