# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, SIGTERM, a closed pipe end a real simulation: no traceback, process or folder stays."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from openkpu.checkout import ROOT, python_path
from scripts.tests.checkouts import ENVIRONMENT, bare_python, copy, eventually, program, running

pytestmark = pytest.mark.check

SIM = ["sim", "--sim", "icarus", "--config", "nano", "--images", "300"]


def start(words: list[str], folder: Path) -> subprocess.Popen[str]:
    """A command whose temporary files go to ``folder``, in a group of its own."""
    env = {
        k: v for k, v in os.environ.items() if k not in ("OPENKPU_SEED", "MAKEFLAGS", "MAKELEVEL")
    }
    return subprocess.Popen(
        words,
        cwd=ROOT,
        env={**env, "PYTHONPATH": python_path(), "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def until(process: subprocess.Popen[str], word: str) -> None:
    """Read its output up to a line with ``word``."""
    assert process.stdout is not None and process.stderr is not None
    for line in process.stdout:
        if word in line:
            return
    raise AssertionError(f"no {word!r}: {process.stderr.read()}")


def nothing_left(folder: Path) -> None:
    eventually(lambda: not running(folder), 10)
    assert not list(folder.iterdir())


def said(err: str) -> list[str]:
    """Lines of stderr, less that of a checkout whose path has a space: it builds elsewhere."""
    return [line for line in err.splitlines() if line and "builds go to" not in line]


@pytest.mark.tier(nightly=["1", "2", "15"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_to_the_command(number: signal.Signals, tmp_path: Path) -> None:
    process = start([sys.executable, "-m", "openkpu", *SIM], tmp_path)
    until(process, "image   0")
    assert len(running(tmp_path)) >= 2, "no simulator is seen: the test is blind"
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert said(err) == ["interrupted" if number == signal.SIGINT else "terminated"]
    nothing_left(tmp_path)


@pytest.mark.tier(nightly=["15", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_to_make(number: signal.Signals, tmp_path: Path) -> None:
    """Ctrl-C reaches the whole group of the terminal, SIGTERM make alone."""
    process = start(["make", "sim", "SIM=icarus", "CONFIG=nano", "IMAGES=300"], tmp_path)
    until(process, "image   0")
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode != 0 and "Traceback" not in err, err
    nothing_left(tmp_path)


@pytest.mark.nightly
def test_reader_of_a_simulation_goes_away(tmp_path: Path) -> None:
    """The next line finds no reader: the simulation ends with it, not 300 images later."""
    process = start([sys.executable, "-m", "openkpu", *SIM], tmp_path)
    until(process, "image   0")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(60) == 141 and said(err) == []
    nothing_left(tmp_path)


@pytest.mark.tier(nightly=["words1-2"])
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["openkpu", "regress", "--seeds=1", "--jobs=1"], 143),
        (["pytest", "-p", "conftest"], 2),  # the file is elsewhere: conftest.py is named
    ],
)
def test_sigterm_to_tests_ends_their_simulations(
    words: list[str], status: int, tmp_path: Path
) -> None:
    folder, file = tmp_path / "tmp", tmp_path / "test_one.py"
    folder.mkdir()
    file.write_text(
        "from openkpu_tb.simrun import run_bench\n"
        "def test_it():\n"
        "    run_bench('icarus', 'fifo_sync',\n"
        "        ['rtl/lib/fifo_sync.v', 'rtl/lib/ram_1r1w_async.v'],\n"
        "        'tb.harness.hang_tests', testcase='waits_for_ever',\n"
        f"        env={{'OKPU_PIDS': {str(tmp_path / 'pids')!r}}})\n"
    )
    process = start([sys.executable, "-m", *words, str(file)], folder)
    eventually((tmp_path / "pids").exists)
    assert len(running(folder)) >= 2, "no simulator is seen: the test is blind"
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status and "Traceback" not in err, err
    eventually(lambda: not running(folder), 10)


@pytest.mark.parametrize(
    "words", [["openkpu", "sim", "--golden"], ["pytest", "-q", "models/tests/layer/test_airam.py"]]
)
def test_ctrl_c_in_the_first_second(words: list[str], tmp_path: Path) -> None:
    """Python starts, imports, has hardly begun: one line at most, or what pytest says.

    Not so late that the tests are over: then it may reach a callback of Python's own.
    """
    statuses = set()
    for tenth in range(10):
        process = start(["scripts/run.sh", "-m", *words], tmp_path)
        while b"python" not in Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[0]:
            time.sleep(0.001)  # run.sh; then env, which an interrupt ends without a word
        time.sleep(0.035 * tenth)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        statuses.add(process.returncode)
        assert "Traceback" not in out + err, f"after {0.035 * tenth:.2f} s: {out + err}"
        assert said(err) in (["interrupted"], []), err
    assert statuses & {130, 2} and statuses <= {130, 2, 0}
    nothing_left(tmp_path)


def test_ctrl_c_while_make_begins(tmp_path: Path) -> None:
    """The parser, the set-up's look at what is there, the first second of the command."""
    for delay in [*(0.006 * n for n in range(40)), 0.3, 0.4, 0.5]:
        process = start(["make", "predict", "CONFIG=nano", "MATMUL=4x4x4"], tmp_path)
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert "Traceback" not in out + err, f"after {delay:.3f} s: {out + err}"
        assert process.returncode in (0, 2, -signal.SIGINT), err
    nothing_left(tmp_path)


def test_ctrl_c_while_make_installs(tmp_path: Path) -> None:
    """One line, and nothing goes on."""
    root, tools = copy(tmp_path / "kpu"), tmp_path / "bin"
    folder, pid = tmp_path / "tmp", tmp_path / "pid"
    folder.mkdir()
    env = {**ENVIRONMENT, "OPENKPU_PYTHON": bare_python(tools), "TMPDIR": str(folder)}
    program(tools, "uv", f"echo $$ >{pid}; exec sleep 60")
    env["PATH"] = os.pathsep.join([str(tools), env["PATH"]])
    process = subprocess.Popen(
        ["make", "predict", "CONFIG=nano"],
        cwd=root,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    eventually(lambda: process.poll() is not None or (pid.exists() and pid.read_text().strip()))
    assert process.poll() is None, process.communicate()
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert "Traceback" not in err
    assert "setup: interrupted; the next run installs the rest" in err.splitlines()
    assert not Path("/proc", pid.read_text().strip()).exists()
