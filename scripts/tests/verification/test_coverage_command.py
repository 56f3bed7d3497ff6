# SPDX-License-Identifier: Apache-2.0
"""What the coverage command says and returns, without its simulations."""

from pathlib import Path

import pytest

from openkpu_tb.coverage import report, summary
from openkpu_tools.verification import coverage as command
from scripts.tests.conftest import Refused
from tb.coverage.test_report import small_result


@pytest.fixture
def result(tmp_path: Path) -> summary.CoverageResult:
    return small_result(tmp_path)


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command without its simulations, in a folder of its own."""
    monkeypatch.setattr(command, "OUT", tmp_path / "out")
    monkeypatch.setattr(command, "DATA", tmp_path / "data")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "run_steps", lambda steps, data: [])
    monkeypatch.setattr(report, "write_coverage_report", lambda result, out, root: None)


def test_command_without_data(quick: None, refused: Refused) -> None:
    """Runs that left nothing."""
    refused(["coverage", "--share"], "no simulation has left code coverage", printed=True)


@pytest.mark.parametrize(
    ("fallen", "failed", "status"), [([], [], 0), (["line: less"], [], 1), ([], ["models"], 1)]
)
def test_status_of_the_command(
    quick: None,
    result: summary.CoverageResult,
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
    monkeypatch.setattr(command, "run_steps", lambda steps, data: failed)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "page.md"))
    assert command.main(["--share"]) == status
    assert (tmp_path / "page.md").read_text() == summary.coverage_markdown(result)
    said = capsys.readouterr().out
    assert all(word in said for word in (*fallen, *failed))
    assert not (tmp_path / "data").exists()


def test_finished_steps_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interrupted run goes on with the step that it was in; other sources begin anew."""
    monkeypatch.setattr(command, "DATA", tmp_path / "data")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    source = tmp_path / "rtl" / "x.v"
    source.parent.mkdir()
    source.write_text("module x; endmodule")
    log = tmp_path / "log.py"
    log.write_text(
        "import os, pathlib, sys\n"
        f"with open({str(tmp_path / 'ran')!r}, 'a') as f: f.write(sys.argv[1])\n"
        f"(pathlib.Path(os.environ[{command.instrument.FOLDER!r}]) / 'left').touch()\n"
        f"sys.exit(pathlib.Path({str(tmp_path / 'bad')!r}).exists() and sys.argv[1] == 'b')"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    steps = [command.CoverageStep(word, ("log", word)) for word in "ab"]
    (tmp_path / "bad").touch()
    data = command.opened()
    assert command.run_steps(steps, data) == ["b"]
    (tmp_path / "bad").unlink()
    assert command.opened() == data and command.run_steps(steps, data) == []
    assert (
        tmp_path / "ran"
    ).read_text() == "abb" and "a: finished before" in capsys.readouterr().out
    assert len(list(data.glob("*/left"))) == 2

    source.write_text("module x(input wire a); endmodule")
    command.sources_digest.cache_clear()  # a command reads the sources once
    other = command.opened()
    assert other != data and not data.exists()
    assert command.run_steps(steps, other) == [] and (tmp_path / "ran").read_text() == "abbab"

    (tmp_path / "configs.toml").write_text("[nano]")
    command.sources_digest.cache_clear()
    assert command.opened() != other and not other.exists()
