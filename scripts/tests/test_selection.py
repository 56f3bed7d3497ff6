# SPDX-License-Identifier: Apache-2.0
"""Which tests run: further sizes at night or when named; the part that a flow is given."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from openkpu.checkout import ROOT, python_path
from openkpu_tb import tiers, tool_tests
from openkpu_tools.flows import eda, fpga

PATHS = "tb/device/layers/test_paths.py"
NIGHT, SECOND, FIRST = "::test_two_rows", "::test_lanes_of_pools[2]", "::test_driver[verilator]"


def collected(*words: str) -> str:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *words]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode in (0, 5), found.stdout + found.stderr
    return found.stdout


@pytest.mark.check
@pytest.mark.parametrize(
    ("words", "there"),
    [
        ((), (SECOND, FIRST)),
        (("--tier=test",), (FIRST,)),
        (("--tier=check",), (SECOND,)),
        (("--all",), (NIGHT, SECOND, FIRST)),
        (("--all", "-m", "nightly"), (NIGHT,)),
        (("--all", "--icarus-tenth=3"), (NIGHT, SECOND, FIRST)),
    ],
)
def test_tiers(words: tuple[str, ...], there: tuple[str, ...]) -> None:
    said = collected(PATHS, "tb/device/test_driver.py", *words)
    listed = said.partition("not run")[0]
    assert [name for name in (NIGHT, SECOND, FIRST) if name in listed] == list(there)


def test_a_test_that_is_named_runs() -> None:
    assert NIGHT in collected(f"{PATHS}{NIGHT}")


def test_the_end_names_the_command_of_another_tier() -> None:
    said = collected(PATHS, "--tier=test").partition("not run")[2]
    for tier in ("check", "nightly"):
        assert re.search(rf"^[1-9]\d* of another tier: make {tier}$", said, re.M), said


class Made:
    """An item of pytest as the tiers see it."""

    def __init__(self, identifier: str, **patterns: list[str]) -> None:
        self.nodeid = f"test_x.py::test_x[{identifier}]"
        self.callspec = type("Spec", (), {"id": identifier})
        self.mark = pytest.mark.tier(**patterns).mark

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [self.mark] if name == "tier" else []


@pytest.mark.parametrize(
    ("patterns", "said"),
    [
        ({"nightly": ["a*"]}, []),
        ({"check": ["a[0]"]}, []),
        ({"check": ["b"]}, ["test_x.py::test_x: 'b' fits no parameter"]),
        ({"weekly": ["a"]}, ["test_x.py::test_x: tier 'weekly', expected check or nightly"]),
    ],
)
def test_a_pattern_that_fits_nothing_is_an_error(
    patterns: dict[str, list[str]], said: list[str]
) -> None:
    items = [Made(identifier, **patterns) for identifier in ("a", "a[0]")]
    for item in items:
        item.mark = items[0].mark
    assert tiers.stale(items)[: len(said)] == said and bool(tiers.stale(items)) == bool(said)


def test_a_tool_that_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its digest follows names and contents; recorded, it has not changed until a file does."""
    monkeypatch.setattr(tool_tests, "ROOT", tmp_path)
    digest = functools.partial(tool_tests.tool_digest, root=tmp_path)
    source, table = tmp_path / "tool.py", tmp_path / "tools.toml"
    source.write_text("a = 1\n")
    table.write_text(
        '[one]\ninputs = ["tool*.py"]\ngreen = ""\n\n[two]\ninputs = ["x"]\ngreen = ""\n'
    )
    monkeypatch.setattr(tool_tests, "TABLE", table)
    monkeypatch.setattr(tool_tests, "tool_digest", digest)
    first = digest(["tool*.py"])
    tool_tests.record_passed(["one"])
    assert (
        tool_tests.tools_table()["one"]["green"] == first
        and not tool_tests.tools_table()["two"]["green"]
    )
    (tmp_path / "x").touch()
    assert tool_tests.unchanged() == {"one"}
    source.write_text("a = 2\n")
    assert tool_tests.unchanged() == set()
    source.write_text("a = 1\n")
    source.rename(tmp_path / "tools.py")
    assert tool_tests.unchanged() == set()
    with pytest.raises(ValueError, match="nothere matches no file"):
        digest(["nothere"])


@pytest.mark.check
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (
            "nothere",
            4,
            "ERROR: nothere: no such file or folder, expected tests, for example tb/fifo",
        ),
        (
            "tb/fifo tb/nothere.py::test_x",
            4,
            "ERROR: tb/nothere.py::test_x: no such file or folder",
        ),
        ("tb/fifo -k nothere", 5, "error: no test in tb/fifo -k 'nothere'; those of the nightly"),
        ("tb/fifo -k nothere --all", 5, "error: no test in tb/fifo -k 'nothere'"),
        ("rtl", 5, "error: no test in rtl; those of the nightly run need ALL=1"),
    ],
)
@pytest.mark.parametrize("jobs", ["", "-n 1"])
def test_why_there_is_nothing_to_run(words: str, status: int, said: str, jobs: str) -> None:
    command = [sys.executable, "-m", "pytest", *jobs.split(), *words.split()]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == status, found.stdout
    (line,) = [line for line in found.stderr.splitlines() if line]
    assert line.startswith(said) and ("nightly" in line) == (status == 5 and "--all" not in words)


@pytest.mark.check
def test_regress_says_it_once() -> None:
    """A test that is not there is no failure of a seed."""
    command = [sys.executable, "-m", "openkpu", "regress", "--seeds=3", "nothere"]
    found = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": python_path()},
    )
    said = found.stdout + found.stderr
    assert found.returncode == 2 and said.count("nothere: No such file") == 1, said
    assert "to repeat" not in said and "seed 2" not in said


def test_part(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[fpga.Target] = []

    def measure(config: object, target: fpga.Target, *rest: object) -> dict:
        asked.append(target)
        raise eda.ToolError("enough")

    monkeypatch.setattr(fpga, "measure", measure)
    for words in (["--config=nano_fpga"], ["--config=nano_fpga", "--part=45k"]):
        assert fpga.main(words) == 1
    assert [target.part for target in asked] == ["85k", "45k"]
    assert {target.mhz for target in asked} == {80}
    assert "nano_fpga on LFE5U-45F" in capsys.readouterr().out
