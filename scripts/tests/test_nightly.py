# SPDX-License-Identifier: Apache-2.0
"""The nightly's page: what it keeps of a command, and that the committed one is current."""

import re
import subprocess
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from openkpu_tools import command
from openkpu_tools.verification import nightly


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    steps = (
        nightly.NightlyStep(
            "good", "printf 'noise\\n== 3 passed in 2 s ==\\nbye\\n'", "passes", r"\d+ passed.*"
        ),
        nightly.NightlyStep(
            "bad", "sh -c 'echo 1 failed; exit 3'", "fails", r"\d+ (passed|failed).*"
        ),
        nightly.NightlyStep("mute", "true", "says nothing", r"x"),
    )
    monkeypatch.setattr(nightly, "STEPS", steps)
    monkeypatch.setattr(nightly, "ROOT", tmp_path)
    monkeypatch.setattr(nightly, "DATA", tmp_path / "nightly.json")
    monkeypatch.setattr(nightly, "PAGE", tmp_path / "page.md")
    (tmp_path / "page.md").write_text("# Page\n\n<!-- nightly -->\n<!-- /nightly -->\n\nEnd.\n")
    monkeypatch.setattr(nightly.load_outcomes, "__defaults__", (tmp_path / "nightly.json",))
    monkeypatch.setattr(nightly.store, "__defaults__", (tmp_path / "nightly.json",))
    monkeypatch.setattr(nightly, "commit", lambda: "c0ffee")
    return tmp_path


def test_outcomes_are_kept(place: Path, capsys: pytest.CaptureFixture) -> None:
    assert nightly.main(["--steps", "good", "mute"]) == 0
    page = (place / "page.md").read_text()
    assert "| good | passes | `printf" in page and "| 3 passed in 2 s | 0.0 | 20" in page
    assert "| bad | fails |" in page and "| not run |" in page and "| nothing |" in page
    assert nightly.main(["--steps=bad"]) == 1
    page = (place / "page.md").read_text()
    assert "**FAILED**: 1 failed" in page and "3 passed in 2 s" in page
    assert "failed: bad" in capsys.readouterr().out


def test_the_end_says_what_did_not_run(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """Tests that were skipped, with their reason, and the commands of steps that were left out."""
    tests = nightly.NightlyStep(
        "tests", "printf '2 skipped: no gold\\n3 passed\\nbye\\n'", "", r"\d+ passed"
    )
    monkeypatch.setattr(nightly, "STEPS", (tests, nightly.NightlyStep("mute", "true", "", "x")))
    assert nightly.main(["--steps=tests"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-2:] == ["tests: 2 skipped: no gold", "not run: true"]
    assert nightly.main(["--page"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_result_of_another_rtl_is_told(place: Path) -> None:
    """Its last column; comments and properties are no part of the RTL."""
    rtl = place / "rtl" / "lib" / "one.v"
    rtl.parent.mkdir(parents=True)
    design = "module one(input wire a, output wire b);\n  assign b = a;{}\nendmodule\n"
    rtl.write_text(design.format(""))
    assert nightly.main(["--steps=good"]) == 0

    def told() -> str:
        assert nightly.main(["--page"]) == 0
        (row,) = re.findall(r"^\| good .* \|$", (place / "page.md").read_text(), re.M)
        return row.split("|")[-2].strip()

    assert told() == "as it is"
    formal = '\n`ifdef FORMAL_one\n`include "one_props.vh"\n`endif'
    rtl.write_text("// a comment\n" + design.format(formal))
    (rtl.parent / "one_props.vh").write_text("assert (a == b);\n")
    assert told() == "as it is"
    rtl.write_text(design.format("").replace("= a", "= !a"))
    assert told() == "changed since"
    assert nightly.main(["--check"]) == 0


def test_page_is_compared(place: Path, capsys: pytest.CaptureFixture) -> None:
    assert nightly.main(["--check"]) == 1
    assert nightly.main(["--page"]) == 0
    assert nightly.main(["--check"]) == 0
    (place / "page.md").write_text((place / "page.md").read_text().replace("not run", "3 passed"))
    assert nightly.main(["--check"]) == 1
    assert "is not what nightly.json makes of it" in capsys.readouterr().out
    page = (place / "page.md").read_text()
    assert page.startswith("# Page\n\n<!-- nightly -->\n| step |") and page.endswith("\n\nEnd.\n")
    (place / "page.md").write_text("# Page\n")
    with pytest.raises(command.UsageError, match=r"page\.md: expected the marks .* once"):
        nightly.main(["--page"])


def test_the_commit_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A + for files that differ, not for those that the command itself has just written."""
    for name in ("ROOT", "DATA", "PAGE"):
        monkeypatch.setattr(nightly, name, tmp_path / ("" if name == "ROOT" else name))
    assert nightly.commit() == "no commit"
    for name in ("DATA", "PAGE", "other"):
        (tmp_path / name).write_text("1\n")
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "1"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert re.fullmatch(r"[0-9a-f]{8}", nightly.commit())
    (tmp_path / "DATA").write_text("2\n")
    (tmp_path / "PAGE").write_text("2\n")
    assert re.fullmatch(r"[0-9a-f]{8}", nightly.commit())
    (tmp_path / "other").write_text("2\n")
    assert re.fullmatch(r"[0-9a-f]{8}\+", nightly.commit())


def test_unknown_step() -> None:
    with pytest.raises(
        command.UsageError, match="--steps: no step 'sleep', expected some of tests"
    ):
        nightly.main(["--steps=sleep"])


def test_the_committed_page() -> None:
    assert nightly.main(["--check"]) == 0


def test_the_workflow_runs_every_step_once() -> None:
    text = (ROOT / ".github" / "workflows" / "nightly.yml").read_text(encoding="utf-8")
    named = [
        name for group in re.findall(r'^ +- "([a-z0-9 -]+)"$', text, re.M) for name in group.split()
    ]
    assert sorted(named) == sorted(step.name for step in nightly.STEPS)


def test_the_row_of_mutation_names_no_report() -> None:
    """reports/ is no part of a clone, in which links of the page are checked."""
    names = ("mutation", "wiring")
    (pattern,) = {step.result for step in nightly.STEPS if step.name in names}
    line = "score 100.0 %, 0 survived, 23 s -> a page of the reports"
    assert nightly.results([line, "FAIL below 97 %"], pattern) == [
        "score 100.0 %, 0 survived",
        "FAIL below 97 %",
    ]


def test_the_row_of_coverage_has_every_figure() -> None:
    """Each figure of the table, without hits and the record; nothing of the other tables."""
    table = [
        "coverage                       reached   hit     of      recorded",
        "line                           99.70 %   3358    3368    99.70 %",
        "kind x window x width          100.00 %  60      60      100.00 %",
        "rtl/mac  8  100.00 %  100.00 %  87.79 %  81.99 %  -",
        "layer           pool       none 110/110, max 2/2 64/64",
    ]
    assert nightly.results(table, nightly.COVERED) == [
        "line 99.70 %",
        "kind x window x width 100.00 %",
    ]
