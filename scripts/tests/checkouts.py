# SPDX-License-Identifier: Apache-2.0
"""Programs that tests run, copies of this checkout, programs for PATH, variables."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from openkpu.checkout import ROOT, python_path

MINE = str(Path(sys.executable).parent)  # is on PATH, and must not help
SET = ("PIP_", "UV_", "OPENKPU", "MAKE", "PYTHONPATH")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(SET)}
ENVIRONMENT["PATH"] = os.pathsep.join(
    place
    for place in os.environ["PATH"].split(os.pathsep)
    if place != MINE and not Path(place, "uv").exists()
)
UNSET = ("OPENKPU_SEED", "MAKEFLAGS", "MAKELEVEL", "PYTHONUNBUFFERED")


def ran(
    *words: object,
    cwd: Path | str = ROOT,
    status: int | None = 0,
    env: Mapping[str, str] | None = None,
    also: Mapping[str, str] = MappingProxyType({}),
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """A program that has ended with ``status`` (None: any), and what it said; it finds this
    checkout's modules. ``env``: its whole environment, with ``also`` and ``more`` besides."""
    if env is None:
        kept = {name: value for name, value in os.environ.items() if name not in UNSET}
        env = {**kept, "PYTHONPATH": python_path()}
    given = {**env, **also, **more}
    done = subprocess.run([*map(str, words)], cwd=cwd, env=given, capture_output=True, text=True)
    assert status in (None, done.returncode), done.stdout + done.stderr
    return done


def eventually(holds: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something holds, AssertionError when it does not within so many seconds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.05)


def running(folder: Path) -> dict[int, str]:
    """Processes that have ``folder`` as TMPDIR, and their names; zombies left out."""
    found, mark = {}, f"TMPDIR={folder}\0".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "comm").read_text().strip()
        except OSError:
            continue
    return found


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
