# SPDX-License-Identifier: Apache-2.0
"""Tests of the device after which every rule of the bus must have held, whoever forgets to ask."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import cocotb

from openkpu_tb.device.device import Device
from openkpu_tb.handle import Handle
from openkpu_tb.runs.run_stream import DISTURBED


def errors(tb: Handle) -> str:
    """How often a rule was broken since the simulation began; a count with unknown bits is one."""
    return str(tb.assert_errors.value)


def checked(allowed: Collection[int] = ()) -> Callable[[Callable[..., Awaitable[None]]], Any]:
    """``cocotb.test()`` that fails when the test broke a rule of the bus besides those allowed.

    The test has the parameters ``device``, which was reset, on a quiet bus, ``tb``, or both.
    ``allowed``: numbers of rules (tb/openkpu_tb/ahb/checkers) that the test breaks on purpose.
    """

    def wrap(test: Callable[..., Awaitable[None]]) -> Any:
        wanted = inspect.signature(test).parameters

        @functools.wraps(test)
        async def run(tb: Handle) -> None:
            before, given = errors(tb), {"tb": tb}
            for name in (
                *DISTURBED,
                "rd_wait",
                "err_lo",
                "err_hi",
                "dead",
            ):  # what a test that failed left
                getattr(tb, f"cfg_{name}").value = 0
            tb.cfg_seed.value = cocotb.RANDOM_SEED & 0xFFFFFFFF
            if "device" in wanted:
                given["device"] = Device(tb, cocotb.RANDOM_SEED)
                await given["device"].reset()
            await test(**{name: given[name] for name in wanted})
            if errors(tb) != before:
                Device(tb).check_rules(allowed)

        del run.__wrapped__  # cocotb looks at the signature
        return cocotb.test()(run)

    return wrap
