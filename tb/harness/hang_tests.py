# SPDX-License-Identifier: Apache-2.0
"""Benches that never end, for test_harness.py: one in simulated time, one in Python."""

import os
import subprocess
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge


def begin() -> None:
    """Leave the ids of this process and of a child, and a line in the log."""
    child = subprocess.Popen(["sleep", "600"])
    Path(os.environ["OKPU_PIDS"]).write_text(f"{os.getpid()} {child.pid}")
    cocotb.log.info("the hang begins")


@cocotb.test()
async def waits_for_ever(dut: Any) -> None:
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    begin()
    while True:
        await RisingEdge(dut.clk)


@cocotb.test()
async def computes_for_ever(dut: Any) -> None:
    begin()
    while True:
        pass
