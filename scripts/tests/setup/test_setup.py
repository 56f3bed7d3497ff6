# SPDX-License-Identifier: Apache-2.0
"""The Verilator wrapper: by itself, and among others of its kind on PATH."""

import os
import shutil
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from scripts.tests.checkouts import ran

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
    asked = ran(other / "verilator", "--version", status=1, OPENKPU_ASKS="1")
    assert not asked.stdout, "this recursion would never end"
    path = os.pathsep.join([str(other), str(here), os.environ["PATH"]])
    assert ran("verilator", "--version", PATH=path).stdout.startswith("Verilator 5.")


WRAPPERS = [str(path.relative_to(ROOT)) for path in (ROOT / "scripts" / "bin").iterdir()]


@pytest.mark.parametrize("name", [*WRAPPERS, "scripts/run.sh"])
def test_by_itself(name: str, tmp_path: Path) -> None:
    """From any folder, without this environment's programs on PATH."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    assert ran(ROOT / name, "--version", cwd=tmp_path, env=env).stdout


def test_by_itself_without_environment(tmp_path: Path) -> None:
    """One line that says what brings it."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    result = ran(wrapper(tmp_path) / "verilator", "--version", status=2, env=env)
    assert not result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith("verilator: ") and "expected one: 'make setup', or pip" in line
