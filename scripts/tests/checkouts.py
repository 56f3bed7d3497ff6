# SPDX-License-Identifier: Apache-2.0
"""Copies of this checkout, programs for PATH, variables: for tests of the set-up."""

import os
import shutil
import sys
from pathlib import Path

from openkpu.checkout import ROOT

MINE = str(Path(sys.executable).parent)  # is on PATH, and must not help
SET = ("PIP_", "UV_", "OPENKPU", "MAKE", "SEED", "PYTHONPATH")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(SET)}
ENVIRONMENT["PATH"] = os.pathsep.join(
    place
    for place in os.environ["PATH"].split(os.pathsep)
    if place != MINE and not Path(place, "uv").exists()
)


def program(folder: Path, name: str, body: str) -> None:
    """A program for PATH."""
    path = folder / name
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


def bare_python(folder: Path) -> str:
    """This machine's Python, without any package."""
    folder.mkdir(exist_ok=True)
    python = shutil.which("python3", path=ENVIRONMENT["PATH"])
    program(folder, "python3", f'exec {python} -S "$@"')
    return str(folder / "python3")


def copy(folder: Path) -> Path:
    """This checkout, without what it has built and without environment."""
    leave = ("sim_build", ".venv*", ".git", "__pycache__", "waves", "reports", "data")
    return Path(shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*leave)))
