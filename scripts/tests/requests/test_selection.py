# SPDX-License-Identifier: Apache-2.0
"""Which tests run: further sizes at night or when named; the part that a flow is given."""

import ast
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from openkpu_tb import results, tiers, tool_tests
from openkpu_tools.flows import eda, fpga
from openkpu_tools.setup import setup_env
from scripts.tests.checkouts import eventually, program, ran

PATHS = "tb/device/layers/test_paths.py"
NIGHT, SECOND, FIRST = "::test_two_rows", "::test_lanes_of_pools[2]", "::test_driver[verilator]"


def collected(*words: str) -> str:
    found = ran(sys.executable, "-m", "pytest", "--collect-only", "-q", *words, status=None)
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


def test_a_skip_names_the_command_that_runs_it() -> None:
    """Packages that may be missing belong to a group, which the reason names."""
    groups, found = setup_env.groups(), 0
    for path in (
        file for root in ("models", "scripts", "tb") for file in (ROOT / root).rglob("*.py")
    ):
        text = path.read_text(encoding="utf-8")
        for call in ast.walk(ast.parse(text if "importorskip" in text else "")):
            name = call.func if isinstance(call, ast.Call) else None
            if not isinstance(name, ast.Attribute) or name.attr != "importorskip":
                continue
            assert isinstance(call, ast.Call)
            reason = next(
                (ast.literal_eval(k.value) for k in call.keywords if k.arg == "reason"), ""
            )
            said = re.fullmatch(r"make setup GROUPS=(\w+) brings .+", reason)
            assert said and said[1] in groups, f"{path}:{call.lineno}: {reason!r}"
            found += 1
    assert found > 10


def before(folder: Path) -> str:
    """PATH with a folder in front."""
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_check_ends_with_what_did_not_run(tmp_path: Path) -> None:
    """Tests are the first of its steps: what pytest says of them is repeated behind the last."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "check.sh", tmp_path / "scripts")
    lines = ["2 skipped: make setup GROUPS=lint brings it", "7 of another tier: make test"]
    lines.append("1 of a tool that has not changed, asic: make check RECORD=1")
    said = "\\n".join(["== not run ==", *lines, "3 passed"])
    program(tmp_path / "scripts", "run.sh", f"printf '{said}\\n'")
    program(tmp_path, "make", 'echo "ran $*"')
    done = ran(tmp_path / "scripts" / "check.sh", 1, PATH=before(tmp_path))
    assert done.stdout.splitlines()[-3:] == lines


@pytest.mark.parametrize("failing", ["coverage", "formal", "lint", "bench"])
def test_check_fails_with_any_of_its_steps(failing: str, tmp_path: Path) -> None:
    """In either row; the steps behind it run all the same, and each has a line at the end."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "check.sh", tmp_path / "scripts")
    program(tmp_path / "scripts", "run.sh", "")
    program(tmp_path, "make", f'echo "ran $*"; [ "$1" != {failing} ]')
    done = ran(tmp_path / "scripts" / "check.sh", 1, status=1, PATH=before(tmp_path))
    said = dict(re.findall(r"^(.+): (good|FAILED) \(\d+ s\)$", done.stdout, re.M))
    assert [step for step, verdict in said.items() if verdict == "FAILED"] == [failing]
    steps = "tests", "coverage", "test plan", "formal", "asic", "fpga", "lint", "mutation", "bench"
    steps += ("reports",)
    assert set(said) == {*steps} and done.stdout.count("ran ") == len(steps) - 1


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_check_ends_both_rows(number: int, status: int, tmp_path: Path) -> None:
    """Ctrl-C reaches the foreground alone, a step that answers it with a status of its own."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "check.sh", tmp_path / "scripts")
    program(tmp_path / "scripts", "run.sh", "")
    slow = f"{sys.executable} -c 'import time; time.sleep(60)' || exit 1"
    program(tmp_path, "make", f'echo "$1 $$" >>"{tmp_path}/ran"\n{slow}')
    env = {**os.environ, "PATH": before(tmp_path)}
    words = [tmp_path / "scripts" / "check.sh", "1"]
    done = subprocess.Popen(
        words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    ran = tmp_path / "ran"
    eventually(lambda: ran.exists() and len(ran.read_text().splitlines()) == 2)
    os.killpg(done.pid, number)
    assert done.wait(30) == status
    steps = dict(line.split() for line in ran.read_text().splitlines())
    assert set(steps) == {"asic", "coverage"}
    for process in steps.values():
        eventually(lambda process=process: not Path(f"/proc/{process}").exists())


INNER = "import pytest\n\ndef test_inner():\n    pytest.skip('a run of its own')\n"
OUTER = """
import subprocess, sys

def test_outer():
    words = [sys.executable, "-m", "pytest", "-p", "conftest", {inner!r}]
    done = subprocess.run(words, capture_output=True, text=True)
    assert "1 skipped" in done.stdout, done.stdout + done.stderr
"""


@pytest.mark.check
def test_results_are_those_of_the_session_alone(tmp_path: Path) -> None:
    """A pytest that a test starts keeps none, although the variable was exported."""
    kept, inner, outer = (tmp_path / n for n in ("kept.jsonl", "test_in.py", "test_out.py"))
    inner.write_text(INNER)
    outer.write_text(OUTER.format(inner=str(inner)))
    words = (sys.executable, "-m", "pytest", "-p", "conftest", "-n1", outer)
    ran(*words, cwd=tmp_path, also={results.VARIABLE: str(kept)})
    (line,) = kept.read_text().splitlines()
    assert "test_outer" in line and '"passed"' in line


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
    command = (sys.executable, "-m", "pytest", *jobs.split(), *words.split())
    found = ran(*command, status=status)
    (line,) = [line for line in found.stderr.splitlines() if line]
    assert line.startswith(said) and ("nightly" in line) == (status == 5 and "--all" not in words)


@pytest.mark.check
def test_regress_says_it_once() -> None:
    """A test that is not there is no failure of a seed."""
    words = ("regress", "--seeds=3", "nothere")
    found = ran(sys.executable, "-m", "openkpu", *words, status=2)
    said = found.stdout + found.stderr
    assert said.count("nothere: No such file") == 1, said
    assert "to repeat" not in said and "seed 2" not in said


def test_part(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[fpga.Target] = []

    def measure(config: object, target: fpga.Target, *rest: object) -> dict:
        asked.append(target)
        raise eda.ToolError("enough")

    monkeypatch.setattr(fpga, "measure_fpga", measure)
    for words in (["--config=nano_fpga"], ["--config=nano_fpga", "--part=85k"]):
        assert fpga.main(words) == 1
    assert [target.part for target in asked] == ["45k", "85k"]
    assert {target.mhz for target in asked} == {75}
    assert "nano_fpga on LFE5U-85F" in capsys.readouterr().out
