# SPDX-License-Identifier: Apache-2.0
"""Common part of every block's bench: clock, reset, cycles (CONTRIBUTING.md)."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from openkpu_tb.core.pipeline_bench import reset
from openkpu_tb.handle import Handle

BlockTest = Callable[..., Awaitable[None]]


class BlockBench:
    """A block under its clock; ``inputs`` are 0 until a test drives them."""

    inputs: Sequence[str] = ()

    def __init__(self, dut: Handle) -> None:
        self.dut = dut

    async def reset(self) -> None:
        """Start the clock, set ``inputs`` to 0 and reset for three cycles."""
        await reset(self.dut, *self.inputs)

    async def step(self) -> None:
        """One cycle."""
        await RisingEdge(self.dut.clk)

    async def steps(self, cycles: int) -> None:
        """So many of them."""
        for _ in range(cycles):
            await self.step()

    async def run_until(self, over: Callable[[], object], limit: int, *step: Any) -> int:
        """Step until something holds, with ``step`` for the steps; how often.

        AssertionError when it does not hold after ``limit`` cycles.
        """
        for cycle in range(1, limit + 1):
            await self.step(*step)
            if over():
                return cycle
        raise AssertionError(f"not over in {limit} cycles")

    async def wait_for(self, output: str, limit: int) -> int:
        """Step until an output is high; how often."""
        return await self.run_until(lambda: int(getattr(self.dut, output).value), limit)

    async def pulse(self, **inputs: int) -> None:
        """Inputs for one cycle, 0 behind it."""
        for name, value in inputs.items():
            getattr(self.dut, name).value = value
        await self.step()
        for name in inputs:
            getattr(self.dut, name).value = 0


def block_test(make: Callable[[Handle], Any]) -> Callable[[BlockTest], Any]:
    """Decorator of a cocotb test with the parameters ``bench``, or ``bench`` and ``dut``.

    ``make`` is a class of benches, which are reset first, or a coroutine function that begins one.
    """

    def decorate(test: BlockTest) -> Any:
        @functools.wraps(test)
        async def run(dut: Handle) -> None:
            bench = make(dut)
            if inspect.isawaitable(bench):
                bench = await bench
            else:
                await bench.reset()
            await test(bench, *([bench.dut] if with_dut else []))

        with_dut = "dut" in inspect.signature(test).parameters
        return cocotb.test()(run)

    return decorate
