# SPDX-License-Identifier: Apache-2.0
"""The AHB kit on a slave that is not this device, and the README's example."""

import re

import pytest

from openkpu.checkout import ROOT
from openkpu_tb.simrun import SIMS, run_bench

SLAVE = ["tb/ahb/tests/mailbox.v"]


@pytest.mark.tier(nightly=["verilator-2", "verilator-0"], check=["icarus-2"])
@pytest.mark.parametrize("waits", [0, 2])
@pytest.mark.parametrize("sim", SIMS)
def test_foreign_slave(sim: str, waits: int) -> None:
    """Data, wait states and answers, on both simulators."""
    env = {"WAITS": str(waits)}
    run_bench(sim, "mailbox", SLAVE, "tb.ahb.tests.kit_tests", params={"WAITS": waits}, env=env)


def test_broken_slave() -> None:
    """An answer that breaks the protocol fails."""
    params = {"WAITS": 0, "BROKEN": 1}
    env = {"BROKEN": "1"}
    run_bench("icarus", "mailbox", SLAVE, "tb.ahb.tests.kit_tests", params=params, env=env)


def test_example_of_the_readme() -> None:
    """What the README shows is what runs here."""
    page = (ROOT / "tb" / "openkpu_tb" / "ahb" / "README.md").read_text()
    (shown,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    code = (ROOT / "tb" / "ahb" / "tests" / "example.py").read_text()
    assert code.endswith('"""\n\n' + shown)
    run_bench("icarus", "mailbox", SLAVE, "tb.ahb.tests.example", params={"WAITS": 2})
