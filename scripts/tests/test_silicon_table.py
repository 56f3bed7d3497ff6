# SPDX-License-Identifier: Apache-2.0
"""The README's tables of area and clock are the recorded figures."""

import re

import pytest
from openkpu.scripts import silicon_table
from openkpu.tb.simrun import ROOT


@pytest.mark.parametrize("name", ["fpga", "asic"])
def test_readme(name: str) -> None:
    text = (ROOT / "README.md").read_text()
    found = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", text, re.DOTALL)
    assert found, f"README.md has no table {name}"
    assert found[1].splitlines() == getattr(silicon_table, f"{name}_table")()
