# SPDX-License-Identifier: Apache-2.0
"""The Verilator wrapper: by itself, and among others of its kind on PATH."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from openkpu.checkout import ROOT

pytestmark = pytest.mark.check


def wrapper(root: Path) -> Path:
    """The folder of programs of another checkout, which has no environment."""
    (root / "scripts" / "bin").mkdir(parents=True)
    for file in ("where.sh", "bin/verilator"):
        shutil.copy(ROOT / "scripts" / file, root / "scripts" / file)
    return root / "scripts" / "bin"


def test_two_wrappers_on_path_do_not_call_each_other(tmp_path: Path) -> None:
    """Two checkouts on PATH: the wheel answers, a wrapper asked for its version does not."""
    here, other = ROOT / "scripts" / "bin", wrapper(tmp_path)
    asked = subprocess.run(
        [other / "verilator", "--version"],
        env={**os.environ, "OPENKPU_ASKS": "1"},
        capture_output=True,
        text=True,
    )
    assert (asked.returncode, asked.stdout) == (1, ""), "this recursion would never end"
    path = os.pathsep.join([str(other), str(here), os.environ["PATH"]])
    found = subprocess.run(
        ["verilator", "--version"], env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert found.returncode == 0 and found.stdout.startswith("Verilator 5."), found.stderr


WRAPPERS = [str(path.relative_to(ROOT)) for path in (ROOT / "scripts" / "bin").iterdir()]


@pytest.mark.parametrize("name", [*WRAPPERS, "scripts/run.sh"])
def test_by_itself(name: str, tmp_path: Path) -> None:
    """From any folder, without this environment's programs on PATH."""
    result = subprocess.run(
        [ROOT / name, "--version"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0 and result.stdout, result.stderr


def test_by_itself_without_environment(tmp_path: Path) -> None:
    """One line that says what brings it."""
    result = subprocess.run(
        [wrapper(tmp_path) / "verilator", "--version"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 2 and result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("verilator: ") and line.endswith("run 'make setup'")
