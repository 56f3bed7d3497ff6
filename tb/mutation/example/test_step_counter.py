# SPDX-License-Identifier: Apache-2.0
"""step_counter counts, and says zero; nothing looks at its highest count."""

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from openkpu_tb.simrun import run_bench

SOURCES = ["tb/mutation/example/step_counter.v"]


async def reset(dut) -> None:
    """Two cycles of it."""
    Clock(dut.clk, 10, "ns").start()
    dut.rst.value, dut.en.value = 1, 0
    for _ in range(2):
        await FallingEdge(dut.clk)
    dut.rst.value = 0


@cocotb.test()
async def starts(dut) -> None:
    """At zero, and stays there while it is not enabled."""
    await reset(dut)
    for _ in range(3):
        await FallingEdge(dut.clk)
        assert dut.count.value == 0 and dut.zero.value == 1


@cocotb.test()
async def counts(dut) -> None:
    """Up when enabled, from zero, round at sixteen."""
    await reset(dut)
    count = 0
    for step in range(60):
        enabled = step % 3 != 1
        dut.en.value = int(enabled)
        await FallingEdge(dut.clk)
        count = (count + enabled) % 16
        assert dut.count.value == count
        assert dut.zero.value == (count == 0)


def simulate(testcase: str) -> None:
    module = "tb.mutation.example.test_step_counter"
    run_bench("icarus", "step_counter", SOURCES, module, testcase=testcase)


def test_step_counter() -> None:
    simulate("starts")


@pytest.mark.nightly
def test_longer() -> None:
    """What mutation asks where the usual run finds nothing."""
    simulate("counts")
