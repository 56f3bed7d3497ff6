# SPDX-License-Identifier: Apache-2.0
"""What a claim's test says about itself; docs/claims.md is made from it."""

import functools
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cocotb

from openkpu_tb.device.device import Device

IDS = tuple(f"C{n}" for n in range(1, 11))
VERDICTS = "OKPU_VERDICTS"  # environment: file that takes a JSON line for every claim that was run


@dataclass(frozen=True)
class Claim:
    """A claim and the cocotb test that shows it."""

    id: str  # C1 .. C10
    text: str  # what is claimed, in own words
    modules: tuple[str, ...]  # Verilog files that do it, relative to the root
    test: str  # name of the cocotb test
    module: str  # where it is
    doc: str  # what the test looks at


CLAIMS: dict[str, Claim] = {}


def claim(id: str, *, text: str, modules: list[str]) -> Callable[[Any], Any]:
    """Make a coroutine (device) the cocotb test of a claim; it runs after a reset."""

    def register(function: Any) -> Any:
        if id not in IDS or id in CLAIMS:
            raise ValueError(f"claim {id}: unknown, or it has a test already")
        if not function.__name__.startswith(f"{id.lower()}_"):
            raise ValueError(f"claim {id}: the test's name is {function.__name__}")
        doc = " ".join((function.__doc__ or "").split())
        CLAIMS[id] = Claim(id, text, tuple(modules), function.__name__, function.__module__, doc)
        return cocotb.test()(_recorded(id, function))

    return register


def _recorded(id: str, function: Any) -> Any:
    """The coroutine as a test that also writes its verdict."""

    @functools.wraps(function)
    async def test(tb: Any) -> None:
        device = Device(tb, seed=cocotb.RANDOM_SEED)
        await device.reset()
        try:
            await function(device)
            device.check_rules()
        except BaseException as error:
            keep_verdict(id, str(error).strip().partition("\n")[0] or type(error).__name__)
            raise
        keep_verdict(id, None)

    del test.__wrapped__  # cocotb looks at the signature
    return test


def keep_verdict(id: str, failure: str | None) -> None:
    """Append the verdict on a claim (or part of one) to the file of the run, if there is one."""
    path = os.environ.get(VERDICTS)
    if path:
        with open(path, "a", encoding="utf-8") as out:
            out.write(json.dumps({"id": id, "failure": failure}) + "\n")
