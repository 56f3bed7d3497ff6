# SPDX-License-Identifier: Apache-2.0
"""An access that the device refuses fails the test, unless the test asks for the answer."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from openkpu.checkout import ROOT
from openkpu.layer.argument import LayerArg
from openkpu_tb.ahb.host_agent import ERROR, Transfer
from openkpu_tb.device.device import Device

pytestmark = pytest.mark.fixed  # the same with every seed

TB = ROOT / "tb"
KIT = TB / "openkpu_tb"


def device_that_refuses(*addresses: int) -> Device:
    """A device whose bus answers ERROR at these addresses, and OKAY with 0 at others."""

    async def send(transfers: list[Transfer]) -> None:
        for transfer in transfers:
            transfer.resp = ERROR if transfer.addr in addresses else 0

    device = Device.__new__(Device)
    device.send = send
    return device


PLACES = ("device", "runs", "uvm", "claims")
EVERYTHING = range(0x400)
USES: dict[str, Callable[[Device], Coroutine[Any, Any, object]]] = {
    "transfer": lambda d: d.transfer(Transfer(0, False)),
    "write": lambda d: d.write(0, 1),
    "write_many": lambda d: d.write_many({0x10: 1, 0x18: 1}),
    "read": lambda d: d.read(0x10),
    "read_until": lambda d: d.read_until(0x10, lambda _: True, 1, "ready"),
    "push": lambda d: d.push([1, 2]),
    "counters": lambda d: d.counters(),
    "unmask": lambda d: d.unmask(),
    "soft_reset": lambda d: d.soft_reset(),
    "clear": lambda d: d.clear(),
    "error": lambda d: d.error(),
    "configure": lambda d: d.configure({"AI_CNN_MODE": 1, "eight_bit_mode": 1}),
    "bring": lambda d: d.bring([LayerArg.make(1, 1, 1)], 1),
    "start": lambda d: d.start(),
}
CYCLES = {"reset", "wait", "wait_cycles", "wait_at_most", "finish"}  # need a clock
MEMORIES = {"load_map", "read_map", "place_tables", "run_layer"}  # past the bus, or made of others


def test_every_method_is_tried() -> None:
    found = re.findall(r"    async def ([a-z]\w+)", (KIT / "device/device.py").read_text())
    assert set(found) == {*USES, *CYCLES, *MEMORIES, "attempt"}


@pytest.mark.parametrize("name", USES)
def test_a_refusal_fails(name: str) -> None:
    device = device_that_refuses(*EVERYTHING)
    device.tb = type("Bench", (), {"cycle": type("Value", (), {"value": 0})})
    with pytest.raises(AssertionError, match=r"answered with an error: (read|write) 0x"):
        asyncio.run(USES[name](device))


def test_one_refusal_of_many_fails() -> None:
    """The upper half of a word that is pushed."""
    with pytest.raises(AssertionError, match=r"2 accesses .* write 0x4: 1, write 0x4: 1"):
        asyncio.run(device_that_refuses(4).push([1, 2]))


def test_an_attempt_gives_the_answers() -> None:
    done = asyncio.run(device_that_refuses(4).attempt(Transfer(0, False), Transfer(4, False)))
    assert [t.resp for t in done] == [0, ERROR]


def test_who_attempts_looks_at_the_answer() -> None:
    """Nothing else gets past the check: ``send`` is called by Device and by pyuvm's driver only."""
    callers, attempts = set(), 0
    folders = [top / name for top in (TB, KIT) for name in PLACES]
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        if path.name == Path(__file__).name:
            continue
        text = path.read_text(encoding="utf-8")
        callers |= {path.name} if re.search(r"\b(bus|self)\.send\((piece|list)", text) else set()
        for found in re.finditer(r"device\.attempt\(", text):
            attempts += 1
            assert "resp == ERROR" in text[found.end() :][:160], f"{path.name}: answer dropped"
    assert callers == {"device.py", "agents.py"} and attempts == 4
