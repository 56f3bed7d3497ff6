# SPDX-License-Identifier: Apache-2.0
"""The test plan names what is there and leaves nothing out; results are kept."""

from pathlib import Path

import pytest

from openkpu_tb import results
from openkpu_tb.plan import plan
from openkpu_tb.results import RunResult

pytestmark = pytest.mark.fixed  # the same with every seed

TEXT = plan.PLAN.read_text(encoding="utf-8")
FORMULA = '"models/tests/layer/test_vectors.py", "models/tests/layer/test_ranges.py"'
XML = """<testsuites><testsuite>
<testcase name="good" classname="tb.fifo.test_fifo"/>
<testcase name="bad" classname="tb.fifo.test_fifo"><failure message="no"/></testcase>
<testcase name="none" classname="tb.fifo.test_fifo"><skipped/></testcase>
</testsuite></testsuites>"""


def test_the_plan_is_whole() -> None:
    """Every register, error, argument, host write, claim, configuration and checker is in it."""
    entries = plan.load_testplan()
    assert len(entries) > 30
    kinds = {item.partition(":")[0] for item in plan.items()}
    assert kinds == {"register", "error", "argument", "write", "claim", "configuration", "bus"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"error:LOCKED", ', "", "error:LOCKED is in no entry"),
        ("error:LOCKED", "error:LOCKT", "windows: covers error:LOCKT, which is no item"),
        ("test_fifo.*", "test_fifo.nothing", "fifos: tb.fifo.test_fifo has no test nothing"),
        ("tb.fifo.test_fifo.*", "tb.fifo.test_ofif.*", "fifos: no module tb.fifo.test_ofif"),
        ("test_layer.py", "test_layers.py", "sizes: no file models/tests/layer/test_layers.py"),
        ('points = ["layer"]', 'points = ["lair"]', "operands: no cross lair"),
        (f"tests = [{FORMULA}", f"test = [{FORMULA}", "formula: expected title, source and tests"),
        (f"tests = [{FORMULA}", f"tests = [] # {FORMULA}", "formula: expected a test"),
        ("docs/registers", "docs/registry", "reset_values: no document docs/registry"),
        ("[fifos]", "[fifos", "testplan.toml: "),
    ],
)
def test_a_damaged_plan(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TEXT
    path = tmp_path / "testplan.toml"
    path.write_text(TEXT.replace(old, new), encoding="utf-8")
    with pytest.raises(plan.PlanError) as caught:
        plan.load_testplan(path)
    assert said in str(caught.value)


def test_results_of_a_simulation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test with its outcome; a failure stays, whatever passes in another build."""
    xml, kept = tmp_path / "results.xml", tmp_path / "results.jsonl"
    xml.write_text(XML, encoding="utf-8")
    found = results.of_simulation(xml, "icarus", 7)
    assert [(r.test.rpartition(".")[2], r.outcome) for r in found] == [
        ("good", "passed"),
        ("bad", "failed"),
        ("none", "skipped"),
    ]
    monkeypatch.setattr(results, "_of_session", None)  # not the file that this very test is kept in
    results.keep_results(found)
    assert not kept.exists()
    monkeypatch.setenv(results.VARIABLE, str(kept))
    results.keep_results(found)
    results.keep_results([RunResult("tb.fifo.test_fifo.bad", "passed", "icarus", 8)])
    with kept.open("a", encoding="utf-8") as out:
        out.write('{"test": "cut o')
    last = results.last(kept)
    assert {test: set(sims) for test, sims in last.items()} == {
        "tb.fifo.test_fifo.good": {"icarus"},
        "tb.fifo.test_fifo.bad": {"icarus"},
        "tb.fifo.test_fifo.none": set(),
    }
    assert last["tb.fifo.test_fifo.bad"]["icarus"].outcome == "failed"
