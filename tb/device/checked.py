# SPDX-License-Identifier: Apache-2.0
"""Tests of the device after which every rule of the bus must have held, whoever forgets to ask."""

import functools
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import cocotb

from openkpu_tb.device.device import Device
from openkpu_tb.handle import Handle

Test = Callable[[Handle], Awaitable[None]]


def errors(tb: Handle) -> str:
    """How often a rule was broken since the simulation began; a count with unknown bits is one."""
    return str(tb.assert_errors.value)


def checked(allowed: Collection[int] = ()) -> Callable[[Test], Any]:
    """``cocotb.test()`` that fails when the test broke a rule of the bus besides those allowed.

    ``allowed``: numbers of rules (tb/openkpu_tb/ahb/checkers) that the test breaks on purpose.
    """

    def wrap(test: Test) -> Any:
        @functools.wraps(test)
        async def run(tb: Handle) -> None:
            before = errors(tb)
            await test(tb)
            if errors(tb) != before:
                Device(tb).check_rules(allowed)

        return cocotb.test()(run)

    return wrap
