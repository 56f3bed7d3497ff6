# SPDX-License-Identifier: Apache-2.0
"""The nightly's page: the recorded outcome of a command, and that the committed page is current."""

import re
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from openkpu_tools import command
from openkpu_tools.design import rtl_digest
from openkpu_tools.verification import nightly
from scripts.tests.checkouts import ran


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    passed = r"\d+ (passed|failed).*"
    steps = (
        ("good", "printf '2 skipped: no gold\\n== 3 passed in 2 s ==\\nbye\\n'", "passes", passed),
        ("bad", "sh -c 'echo 1 failed; exit 3'", "fails", passed),
        ("mute", "true", "says nothing", r"x"),
    )
    monkeypatch.setattr(nightly, "STEPS", tuple(nightly.NightlyStep(*step) for step in steps))
    places = {"ROOT": "", "REPORTS": "reports", "DATA": "nightly.json", "PAGE": "page.md"}
    for name, where in places.items():
        monkeypatch.setattr(nightly, name, tmp_path / where)
    (tmp_path / "page.md").write_text("# Page\n\n<!-- nightly -->\n<!-- /nightly -->\n\nEnd.\n")
    monkeypatch.setattr(nightly, "commit", lambda: "c0ffee")
    return tmp_path


@pytest.mark.parametrize("record", [True, False])
def test_outcomes_are_kept(record: bool, place: Path, capsys: pytest.CaptureFixture) -> None:
    """Recorded in the page of a release, or only in reports. The last lines list work that did not
    run: skipped tests, with their reason, and the commands of other steps."""
    before, more = (place / "page.md").read_text(), ["--record"] * record
    page = place / ("page.md" if record else "reports/nightly.md")
    assert nightly.main(["--steps", "good", "mute", *more]) == 0
    said = capsys.readouterr().out.splitlines()[-3:]
    assert said[:2] == ["good: 2 skipped: no gold", f"bad: not run: {nightly.STEPS[1].command}"]
    assert said[2] == f"{page.relative_to(place)}: 1 of 3 steps missing for a release"
    text = page.read_text()
    assert "| good | passes | `printf" in text and "| 3 passed in 2 s | 0.0 | 20" in text
    assert "| bad | fails |" in text and "| not run |" in text and "| nothing |" in text
    assert nightly.main(["--steps=bad", *more]) == 1
    text = page.read_text()
    assert "**FAILED**: 1 failed" in text and "3 passed in 2 s" in text
    assert "failed: bad" in capsys.readouterr().out
    assert record or (place / "page.md").read_text() == before
    assert (place / "nightly.json").exists() == record


def test_a_release_is_complete(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """It fails for a step that did not run, failed, or ran on another RTL; reports do not count."""
    rtl = place / "rtl" / "one.v"
    rtl.parent.mkdir()
    rtl.write_text("module one;\n")
    for words, lacks in (
        ([], "good: not run"),
        (["--record"], "bad: failed"),
        (["--record"], ""),
    ):
        if not lacks:
            bad = nightly.NightlyStep("bad", "true", "", "x")
            steps = (nightly.STEPS[0], bad, nightly.STEPS[2])
            monkeypatch.setattr(nightly, "STEPS", steps)
        nightly.main(words)
        capsys.readouterr()
        assert nightly.main(["--release"]) == bool(lacks)
        said = capsys.readouterr().out
        assert f"{lacks}: " in said if lacks else said == f"{nightly.PAGE.name}: complete\n"
    rtl.write_text("module two;\n")
    assert nightly.main(["--release"]) == 1
    assert "mute: changed since: true" in capsys.readouterr().out


def test_a_result_of_another_rtl_is_marked(place: Path) -> None:
    """In the last column of its row; comments and properties are not part of the RTL."""
    rtl = place / "rtl" / "lib" / "one.v"
    rtl.parent.mkdir(parents=True)
    design = "module one(input wire a, output wire b);\n  assign b = a;{}\nendmodule\n"
    rtl.write_text(design.format(""))
    assert nightly.main(["--record", "--steps=good"]) == 0

    def rtl_state() -> str:
        assert nightly.main(["--page"]) == 0
        (row,) = re.findall(r"^\| good .* \|$", (place / "page.md").read_text(), re.M)
        return row.split("|")[-2].strip()

    assert rtl_state() == "as it is"
    formal = '\n`ifdef FORMAL_one\n`include "one_props.vh"\n`endif'
    rtl.write_text("// a comment\n" + design.format(formal))
    (rtl.parent / "one_props.vh").write_text("assert (a == b);\n")
    assert rtl_state() == "as it is"
    rtl.write_text(design.format("").replace("= a", "= !a"))
    assert rtl_state() == "changed since"
    assert nightly.main(["--check"]) == 0


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("module a; wire  [ 3:0]  b;\nendmodule", True),
        ("// a comment\nmodule a; wire [3:0] b; // another\nendmodule", True),
        ("module a;\n`ifdef FORMAL\nassert(b);\n`endif\nwire [3:0] b; endmodule", True),
        ("module a; wire [2:0] b; endmodule", False),
    ],
)
def test_the_design_is_its_text_without_layout(text: str, same: bool, tmp_path: Path) -> None:
    rtl = tmp_path / "rtl"
    rtl.mkdir()
    (rtl / "a.v").write_text("module a; wire [3:0] b; endmodule")
    (rtl / "a_props.vh").write_text("assert(b);")
    before = rtl_digest(tmp_path)
    (rtl / "a.v").write_text(text)
    (rtl / "a_props.vh").write_text("assert(c);")
    assert (rtl_digest(tmp_path) == before) == same


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


def test_the_commit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A + marks changed files, except for the files that the command itself has just written."""
    for name in ("ROOT", "DATA", "PAGE"):
        monkeypatch.setattr(nightly, name, tmp_path / ("" if name == "ROOT" else name))
    assert nightly.commit() == "no commit"
    for name in ("DATA", "PAGE", "other"):
        (tmp_path / name).write_text("1\n")
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "1"]):
        ran("git", *words, cwd=tmp_path)
    assert re.fullmatch(r"[0-9a-f]{8}", nightly.commit())
    (tmp_path / "DATA").write_text("2\n")
    (tmp_path / "PAGE").write_text("2\n")
    assert re.fullmatch(r"[0-9a-f]{8}", nightly.commit())
    (tmp_path / "other").write_text("2\n")
    assert re.fullmatch(r"[0-9a-f]{8}\+", nightly.commit())


def test_the_workflow_runs_every_step_once() -> None:
    text = (ROOT / ".github" / "workflows" / "nightly.yml").read_text(encoding="utf-8")
    named = [
        name for group in re.findall(r'^ +- "([a-z0-9 -]+)"$', text, re.M) for name in group.split()
    ]
    assert sorted(named) == sorted(step.name for step in nightly.STEPS)


def test_the_row_of_mutation_names_no_report() -> None:
    """reports/ is not part of a clone, where the links of the page are checked."""
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
        "| coverage | reached | hit | of | recorded |",
        "| line | 99.70 % | 3358 | 3368 | 99.70 % |",
        "| kind x window x width | 100.00 % | 60 | 60 | 100.00 % |",
        "| rtl/mac | 8 | 100.00 % | 100.00 % | 87.79 % | 81.99 % | - |",
        "| layer | pool | none 110/110, max 2/2 64/64 |",
    ]
    assert nightly.results(table, nightly.COVERED) == [
        "line 99.70 %",
        "kind x window x width 100.00 %",
    ]
