# SPDX-License-Identifier: Apache-2.0
"""An access that the device refuses fails the test, unless the test asks for the answer."""

import asyncio
import re
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
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
