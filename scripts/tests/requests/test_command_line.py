# SPDX-License-Identifier: Apache-2.0
"""Bad requests: exit status 2, one line that names what is wrong, no traceback."""

import contextlib
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from openkpu.checkout import ROOT
from openkpu_tools import command
from openkpu_tools.commands import sim as sim_command
from scripts.tests.checkouts import ran

pytestmark = pytest.mark.check

GOOD = ROOT / "models/tests/data/vectors/raw_pool0.npz"


def sim(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return ran(sys.executable, "-m", "openkpu", "sim", *args, status=None, also=env)


def sim_here(*args: str) -> subprocess.CompletedProcess[str]:
    """The same without an interpreter of its own, which takes longer than the golden model."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in "oe")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = command.run_command(sim_command.main, list(args))
    said = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(args, status, *said)


def complains(result: subprocess.CompletedProcess[str], *words: str) -> None:
    """Status 2 and one line on stderr with all the words.

    A checkout whose path has a space says beside it that it builds elsewhere.
    """
    assert result.returncode == 2, result.stdout + result.stderr
    lines = result.stderr.strip().splitlines()
    (line,) = (line for line in lines if "builds go to" not in line)
    assert line.startswith("error: ")
    for word in words:
        assert word in line


def test_truncated_file(tmp_path: Path) -> None:
    file = tmp_path / "short.npz"
    file.write_bytes(GOOD.read_bytes()[:1000])
    complains(sim_here("--golden", "--vectors", str(file)), "short.npz")


def test_wrong_shape(tmp_path: Path) -> None:
    """A layer whose map does not fit its words."""
    with np.load(GOOD) as data:
        arrays = {key: data[key] for key in data.files if key.startswith("L00_")}
    arrays["L00_x"] = arrays["L00_x"][:-1]
    file = tmp_path / "odd.npz"
    np.savez(file, **arrays)
    complains(sim_here("--golden", "--vectors", str(file)), "odd.npz", "L00_x")


def test_no_layers(tmp_path: Path) -> None:
    """A file without layers is skipped, and said; nothing else left is an error."""
    file = tmp_path / "empty.npz"
    np.savez(file, other=np.zeros(3))
    result = sim_here("--golden", "--vectors", str(file))
    complains(result, "no layer")
    assert "skipped" in result.stdout and "empty.npz" in result.stdout
    both = sim_here("--golden", "--vectors", str(file), str(GOOD))
    assert both.returncode == 0 and "skipped" in both.stdout


def test_missing_simulator(tmp_path: Path) -> None:
    """No iverilog on PATH."""
    complains(sim("--sim", "icarus", PATH=str(tmp_path)), "iverilog")


def test_core_alone() -> None:
    """The core's package without the one of the commands has no commands to run."""
    env = {"PYTHONPATH": str(ROOT / "models")}
    result = ran(sys.executable, "-m", "openkpu", "sim", status=2, env=env, cwd=ROOT / "models")
    complains(result, "no package openkpu_tools")


def test_missing_package(tmp_path: Path) -> None:
    """A package of a group that is not installed is named; a module of the project's own is not
    mistaken for one."""
    code = """
import sys
sys.modules[sys.argv[1]] = None
from openkpu_tools.__main__ import main
sys.exit(main(["stalls", "--help"]))
"""
    for name, status in (("numpy", 2), ("openkpu_tools.commands.stalls", 1)):
        result = ran(sys.executable, "-c", code, name, status=status)
        if status == 2:
            complains(result, "numpy", "make setup")
        else:
            assert "Traceback" in result.stderr
