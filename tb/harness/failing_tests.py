# SPDX-License-Identifier: Apache-2.0
"""A simulation with a test that passes and one that fails."""

import sys

import cocotb


@cocotb.test()
async def passes(dut) -> None:
    assert dut is not None


@cocotb.test()
async def fails(dut) -> None:
    assert sys.flags.optimize, "assertions hold everywhere, not only where cocotb rewrites them"
