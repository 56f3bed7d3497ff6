# SPDX-License-Identifier: Apache-2.0
"""README.md: its test is a whole file that runs, fails when its bench does, and is named."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from openkpu.checkout import ROOT

TEXT = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
(FILE,) = re.findall(
    r"^\*\*A test of your own\*\* is one file in this folder, `(\w+\.py)`", TEXT, re.M
)
(PROGRAM,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
COMMANDS = re.findall(r'^make test TESTS="(.*?)"', TEXT, re.M)


def pytest_of(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """What pytest says of the file, in a folder that is not the checkout's."""
    (folder / FILE).write_text(program, encoding="utf-8")
    paths = os.pathsep.join((str(ROOT), str(folder)))
    words = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", FILE, "-k", "verilator"]
    return subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_the_commands_name_the_file() -> None:
    assert len(COMMANDS) == 2
    for words in COMMANDS:
        assert words.startswith("tb/uvm -k ") and FILE.removesuffix(".py") in words


@pytest.mark.check
def test_the_file_runs(tmp_path: Path) -> None:
    result = pytest_of(tmp_path, PROGRAM)
    assert result.returncode == 0 and "1 passed" in result.stdout, result.stdout + result.stderr


@pytest.mark.check
def test_the_file_can_fail(tmp_path: Path) -> None:
    """What it wants of the coverage is looked at, in the simulator."""
    wanted = '"stream", "lost or refused", "BUS_ERROR"'
    assert wanted in PROGRAM
    result = pytest_of(tmp_path, PROGRAM.replace(wanted, '"list", "quiet", "BAD_POOL"'))
    assert result.returncode == 1 and "assert not missing" in result.stdout, result.stdout
