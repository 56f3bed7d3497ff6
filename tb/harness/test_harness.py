# SPDX-License-Identifier: Apache-2.0
"""What runs the tests: a hang ends, a seed is a number, regress says what failed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from openkpu.checkout import ROOT, python_path
from openkpu_tb import seeds, simrun, verilated, watchdog
from openkpu_tb.simrun import SIMS, SimError, ToolError, check_tool, run_bench

pytestmark = pytest.mark.fixed  # the same with every seed


def alive(pid: int) -> bool:
    """The process is there and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.check
@pytest.mark.parametrize("case", ["waits_for_ever", "computes_for_ever"])
@pytest.mark.parametrize("sim", SIMS)
def test_hang(sim: str, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation that never ends is killed with its children; test, seed and log are printed."""
    sources = ["rtl/lib/fifo_sync.v", "rtl/lib/ram_1r1w_async.v"]
    monkeypatch.setenv(watchdog.VARIABLE, "4")
    monkeypatch.setenv("OPENKPU_SEED", "77")
    pids = tmp_path / "pids"
    began = time.monotonic()
    with pytest.raises(SimError) as caught:
        run_bench(
            sim,
            "fifo_sync",
            sources,
            "tb.harness.hang_tests",
            testcase=case,
            env={"OKPU_PIDS": str(pids)},
        )
    text = str(caught.value)
    assert text.startswith(f"tb.harness.hang_tests on {sim} (seed 77) killed after 4 s"), text
    assert "the hang begins" in text and case in text, text
    found = [int(pid) for pid in pids.read_text().split()]
    end = time.monotonic() + 10
    while any(map(alive, found)) and time.monotonic() < end:
        time.sleep(0.05)
    assert len(found) == 2 and not any(map(alive, found)), found
    assert time.monotonic() - began < 120


@pytest.mark.check
def test_waiting_for_a_core_is_no_overrun() -> None:
    """A process that shares its core gets the whole of its limit."""
    core = str(min(os.sched_getaffinity(0)))
    burn = "import time\nwhile time.process_time() < {}: pass"
    words = ["taskset", "-c", core, sys.executable, "-c"]
    with (
        subprocess.Popen([*words, burn.format(60)]) as other,
        subprocess.Popen([*words, burn.format(1.5)]) as own,
    ):
        try:
            assert watchdog.wait_for(own, 2.2) == 0
            with pytest.raises(subprocess.TimeoutExpired):
                watchdog.wait_for(other, 0.5)
        finally:
            other.kill()


def test_a_simulation_without_a_test_fails() -> None:
    """What skips all its tests has shown nothing."""
    sources = ["rtl/lib/fifo_sync.v", "rtl/lib/ram_1r1w_async.v"]
    with pytest.raises(SimError, match="0 of 1 failed, 1 skipped"):
        run_bench("icarus", "fifo_sync", sources, "tb.harness.skipped_tests")


@pytest.mark.check
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PYTHONOPTIMIZE", "1"),  # leaves out assertions
        ("COCOTB_TEST_FILTER", "passes"),
        ("COCOTB_TESTCASE", "passes"),
        ("COCOTB_LOG_LEVEL", "none"),
        ("GPI_EXTRA", "none"),
        ("GPI_USERS", "none"),
        ("PYGPI_USERS", "none"),
        ("SIM_CMD_PREFIX", "true"),
    ],
)
def test_exported_variables_change_no_verdict(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of cocotb and Python that a shell has for others: both tests run, one fails."""
    monkeypatch.setenv(name, value)
    sources = ["rtl/lib/fifo_sync.v", "rtl/lib/ram_1r1w_async.v"]
    with pytest.raises(SimError, match="TESTS=2 PASS=1 FAIL=1 SKIP=0"):
        run_bench("icarus", "fifo_sync", sources, "tb.harness.failing_tests")
    assert os.environ[name] == value


@pytest.mark.nightly
def test_objects_of_verilator_are_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second build takes what the first one compiled of Verilator itself."""
    monkeypatch.setattr(simrun, "builds", lambda: tmp_path)
    logs = []
    for top, more in (("fifo_regs", []), ("fifo_sync", ["rtl/lib/ram_1r1w_async.v"])):
        folder = simrun.build_bench("verilator", top, [f"rtl/lib/{top}.v", *more])
        logs.append((folder / "build.log").read_text())
    assert [log.count("verilated_vpi.cpp") for log in logs] == [1, 0], "\n".join(logs)


@pytest.mark.check
@pytest.mark.parametrize("text", ["", "soon", "-1", "nan", "inf"])
def test_limit_that_is_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(watchdog.VARIABLE, text)
    with pytest.raises(ToolError, match=f"{watchdog.VARIABLE}='{text}'"):
        check_tool("icarus")


@pytest.mark.check
def test_tests_have_a_limit() -> None:
    """Every simulation of a test has one, and a worker inherits it."""
    limit = watchdog.seconds()
    assert limit and limit > 60


@pytest.mark.check
def test_seeds_follow_the_commit(tmp_path: Path) -> None:
    """Three of them, the same for a commit, others for another; without git they are stated."""
    found, source = seeds.of_commit(tmp_path)
    assert (found, source) == (seeds.FALLBACK, "no git commit here")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    seen = []
    for step in (["init", "-q"], ["commit", "-q", "-m", "1"], ["commit", "-q", "-m", "2"]):
        more = ["--allow-empty"] if step[0] == "commit" else []
        subprocess.run([*git, *step, *more], cwd=tmp_path, check=True)
        if more:
            found, source = seeds.of_commit(tmp_path)
            assert source.startswith("commit ") and len(set(found)) == 3, source
            assert (found, source) == seeds.of_commit(tmp_path)
            seen.append(found)
    assert seen[0] != seen[1]
    below = tmp_path / "below"
    below.mkdir()
    assert seeds.of_commit(below)[0] == seeds.FALLBACK, "somebody else's commit"


@pytest.mark.check
def test_seeds_of_coverage(monkeypatch: pytest.MonkeyPatch) -> None:
    """One, the same for every commit, unless OPENKPU_SEED names another."""
    monkeypatch.delenv("OPENKPU_SEED", raising=False)
    monkeypatch.setenv(seeds.COVERAGE, "somewhere")
    assert seeds.chosen_seeds()[0] == seeds.FALLBACK[:1]
    monkeypatch.setenv("OPENKPU_SEED", "9")
    assert seeds.chosen_seeds() == ((9,), "OPENKPU_SEED")


@pytest.mark.check
@pytest.mark.parametrize("text", ["abc", "", "-1", "1.5", "4294967296", " 1"])
def test_seed_that_is_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENKPU_SEED", text)
    with pytest.raises(seeds.SeedError, match=f"^OPENKPU_SEED={text!r}: expected a whole number"):
        seeds.environment()


def python(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a module as make does, without the OPENKPU_SEED of this run unless ``env`` has one."""
    base = {
        k: v for k, v in os.environ.items() if k != "OPENKPU_SEED" and not k.startswith("PYTEST_")
    }
    return subprocess.run(
        [sys.executable, "-m", *args],
        cwd=ROOT,
        env={**base, "PYTHONPATH": python_path(), **env},
        capture_output=True,
        text=True,
    )


@pytest.mark.check
@pytest.mark.parametrize("count", ["0", "abc", "", "-1"])
def test_regress_without_seeds(count: str) -> None:
    """Refused in one line that names the variable, before any test."""
    result = python("openkpu_tools.verification.regress", f"--seeds={count}")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"error: --seeds={count!r}: expected a whole number from 1 to 1000000\n"


@pytest.mark.check
@pytest.mark.parametrize("seed", ["abc", "", "-1", "5"])
def test_regress_with_a_seed(seed: str) -> None:
    result = python("openkpu_tools.verification.regress", "--seeds=1", OPENKPU_SEED=seed)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: OPENKPU_SEED=")


@pytest.mark.check
def test_pytest_with_a_bad_seed() -> None:
    """`make test SEED=abc` ends before any test."""
    result = python("pytest", "tb/harness", OPENKPU_SEED="abc")
    assert result.returncode == 4 and "passed" not in result.stdout
    assert (
        result.stderr.strip()
        == "ERROR: OPENKPU_SEED='abc': expected a whole number from 0 to 4294967295"
    )


@pytest.mark.check
def test_regress_says_what_failed(tmp_path: Path) -> None:
    """Progress by seed, behind a failure as well; the commands that repeat them, and the status."""
    file = tmp_path / "test_one.py"
    file.write_text(
        "import logging, os\n"
        "def test_it():\n"
        "    logging.error('runner.py:674 ERROR: Failed 1 of 1 tests.')\n"
        "    assert os.environ['OPENKPU_SEED'] not in '24'\n"
    )
    result = python("openkpu_tools.verification.regress", "--seeds=5", "--jobs=1", str(file))
    assert result.returncode == 1, result.stdout
    lines = result.stdout.splitlines()
    said = [line.partition(" of 5")[0] for line in lines if line.startswith("seed ")]
    numbers = (1, 2, 2, 3, 4, 4, 5)
    assert said == [f"seed {seed}, {seed}" for seed in numbers]
    assert "seed 2, 2 of 5 failed" in lines
    assert lines[-3] == "2 of 5 seeds failed; to repeat:"
    for line, seed in zip(lines[-2:], (2, 4), strict=True):
        assert line.startswith(f"  make test SEED={seed} TESTS="), line
        assert line.endswith("test_one.py::test_it"), line
    good = python("openkpu_tools.verification.regress", "--seeds=1", "--jobs=1", str(file))
    assert good.returncode == 0 and good.stdout.splitlines()[-1].startswith("1 seeds passed in")


def test_a_build_that_was_ended_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A native model leaves nothing of a build that was interrupted to the next one."""
    found: list[list[str]] = []

    def ended(words: list[str], _: str) -> None:
        folder = Path(words[words.index("-Mdir") + 1])
        found.append(sorted(path.name for path in folder.iterdir()))
        (folder / "half.gch").touch()
        (folder / "half").mkdir()
        if len(found) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(simrun, "builds", lambda: tmp_path)
    monkeypatch.setattr(simrun, "_keep_runtime", lambda *_: None)
    monkeypatch.setattr(verilated, "build_step", ended)
    with pytest.raises(KeyboardInterrupt):
        verilated.model("openkpu_top", ["rtl/openkpu_top.v"], {})
    verilated.model("openkpu_top", ["rtl/openkpu_top.v"], {})
    assert found == [[".lock", "control.vlt"]] * 2
