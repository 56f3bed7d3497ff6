# SPDX-License-Identifier: Apache-2.0
"""The Verilator wrapper among others of its kind on PATH."""

import os
import shutil
import subprocess
from pathlib import Path

from openkpu.tb.simrun import ROOT


def test_two_wrappers_on_path_do_not_call_each_other(tmp_path: Path) -> None:
    """Two checkouts on PATH: the wheel answers, a wrapper asked for its version does not."""
    here, other = ROOT / "scripts" / "bin", tmp_path / "bin"
    other.mkdir()
    shutil.copy(here / "verilator", other)
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
