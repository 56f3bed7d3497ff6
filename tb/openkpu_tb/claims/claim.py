# SPDX-License-Identifier: Apache-2.0
"""The decorator of a claim's test, tb/claims."""

import functools
from collections.abc import Awaitable, Callable
from typing import Any

import cocotb

from openkpu_tb.device.device import Device


def claim(function: Callable[[Device], Awaitable[None]]) -> Any:
    """Make a coroutine (device) a cocotb test: after a reset, with the bus rules checked."""

    @functools.wraps(function)
    async def test(tb: Any) -> None:
        device = Device(tb, seed=cocotb.RANDOM_SEED)
        await device.reset()
        await function(device)
        device.check_rules()

    del test.__wrapped__  # cocotb looks at the signature
    return cocotb.test()(test)
