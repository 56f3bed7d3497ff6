# SPDX-License-Identifier: Apache-2.0
"""The page of the test plan says what tests gave."""

import pytest

from openkpu_tb import tool_tests
from openkpu_tb.plan import plan
from openkpu_tb.results import RunResult
from openkpu_tools.verification import testplan


def entry(id: str, *tests: str) -> plan.Entry:
    return plan.Entry(id, f"title of {id}", "README.md", (), tests, ("layer",))


def test_page() -> None:
    """An entry without a passing test comes first, then one with a failure."""
    fifo, unit = "tb.fifo.test_fifo", "tb.mac_unit.test_mac_unit"
    file = "models/tests/layer/test_airam.py"
    found = {
        f"{fifo}.random_traffic": {
            "icarus": RunResult("", "passed"),
            "verilator": RunResult("", "failed"),
        },
        f"{fifo}.one_word_per_cycle": {"icarus": RunResult("", "passed")},
        f"{unit}.choice": {"icarus": RunResult("", "passed")},
        f"{file}::test_a[1]": {"": RunResult("", "passed")},
    }
    entries = [
        entry("whole", f"{unit}.choice", file),
        entry("part", f"{unit}.*"),
        entry("broken", f"{fifo}.random_traffic", f"{fifo}.one_word_per_cycle"),
        entry("never", f"{fifo}.reset_empties"),
    ]
    made = testplan.testplan_rows(entries, found)
    assert [(row.entry.id, row.state) for row in made] == [
        ("never", "no passing test"),
        ("broken", "failed"),
        ("part", "partly run"),
        ("whole", "passed"),
    ]
    text = testplan.testplan_page(made)
    assert "4 entries: 1 no passing test, 1 failed, 1 partly run, 1 passed." in text
    assert f"- {fifo}.random_traffic: failed" in text and "| 2 of 2 | layer |" in text
    assert text.index("title of never") < text.index("title of whole")


def test_unchanged_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of a tool that is as it was count as passed; those of a changed one do not."""
    file = "scripts/tests/flows/test_equivalence.py"
    tools = {
        "equivalence": {"inputs": ["scripts/openkpu_tools/flows/equivalence.py", file], "green": ""}
    }
    monkeypatch.setattr(tool_tests, "tools_table", lambda: tools)
    for unchanged, state in ({"equivalence"}, "passed"), (set(), "no passing test"):
        monkeypatch.setattr(tool_tests, "unchanged", lambda now=unchanged: now)
        (row,) = testplan.testplan_rows([entry("netlists", file)], {})
        assert row.state == state
    monkeypatch.setattr(tool_tests, "unchanged", lambda: {"equivalence"})
    failed = {f"{file}::test_a": {"": RunResult("", "failed")}}
    (row,) = testplan.testplan_rows([entry("netlists", file)], failed)
    assert row.state == "no passing test"
