# SPDX-License-Identifier: Apache-2.0
"""What the coverage command says and returns, without its simulations."""

from pathlib import Path

import pytest
from openkpu.scripts import coverage as command
from openkpu.tb.coverage import instrument, report, summary
from openkpu.tb.coverage.test_report import small_result


@pytest.fixture
def result(tmp_path: Path) -> summary.Result:
    return small_result(tmp_path)


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command without its simulations, in a folder of its own."""
    monkeypatch.setattr(command, "OUT", tmp_path / "out")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "run", lambda steps, data, brief: [])
    monkeypatch.setattr(report, "write", lambda result, out, root: None)


def test_command_without_data(quick: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs that left nothing: one line, status 2."""
    assert command.main(["--share"]) == 2
    assert capsys.readouterr().err == "coverage: no simulation has left code coverage\n"


@pytest.mark.parametrize(
    ("fallen", "failed", "status"), [([], [], 0), (["line: less"], [], 1), ([], ["models"], 1)]
)
def test_status_of_the_command(
    quick: None,
    result: summary.Result,
    fallen: list[str],
    failed: list[str],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A figure that fell or a red test fails the command; the summary goes to the run's page."""
    result.fallen = fallen
    monkeypatch.setattr(command, "collect", lambda name, data, out: result)
    monkeypatch.setattr(command, "run", lambda steps, data, brief: failed)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "page.md"))
    assert command.main(["--share"]) == status
    assert (tmp_path / "page.md").read_text() == summary.markdown(result)
    said = capsys.readouterr().out
    assert all(word in said for word in (*fallen, *failed))
    assert not (tmp_path / "out/data").exists()


@pytest.mark.parametrize("share", [True, False])
def test_the_share_is_brief(
    share: bool, result: summary.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CI's share tells its tests to do less, the whole does not, whatever the environment has."""
    told = 'import os, pathlib; pathlib.Path("said").write_text(str(os.environ.get(NAME)))'
    told = told.replace("NAME", repr(instrument.BRIEF))
    step = command.Step("one", ("timeit", "-n1", "-r1", told))
    monkeypatch.setattr(command, "OUT", tmp_path / "out")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "suite", lambda name, jobs: [step])
    monkeypatch.setattr(command, "collect", lambda name, data, out: result)
    monkeypatch.setattr(report, "write", lambda result, out, root: None)
    monkeypatch.setenv(instrument.BRIEF, "left over")
    command.main(["--share"] if share else [])
    assert (tmp_path / "said").read_text() == ("1" if share else "None")
