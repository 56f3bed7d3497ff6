# SPDX-License-Identifier: Apache-2.0
"""A limit in time for simulator processes: the net below the benches' own limits in cycles.

A bench counts cycles; that does not help when the simulator itself, or Python inside it, is stuck.
OPENKPU_SIM_SECONDS is the limit of one simulation in seconds; unset or 0 means none. Tests set it
(conftest.py); a command that a user started may take as long as it needs. Time in which the process
was ready and other processes had the cores does not count: on a busy machine a simulation, or a
mutant's, would fail for what is not its fault.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:  # commands that simulate nothing need no cocotb
    from cocotb_tools.runner import Runner

VARIABLE = "OPENKPU_SIM_SECONDS"
TEST_SECONDS = 1800  # of one simulation in a test, several times the longest on a busy machine


GRACE = 5.0  # seconds


class Overrun(Exception):
    """A simulation took longer than its limit and was killed."""


def seconds() -> float | None:
    """The limit that the environment sets; None: none. ValueError when it is no number."""
    text = os.environ.get(VARIABLE, "0")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ValueError(f"{VARIABLE}={text!r}: expected seconds, 0 for no limit")
    return value or None


def _kept_waiting(pid: int) -> float:
    """Seconds that a process was ready and had no core; 0 where the system does not count them."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def wait_for(process: subprocess.Popen, limit: float | None) -> int:
    """Its status; subprocess.TimeoutExpired after ``limit`` seconds of its own."""
    if limit is None:
        return process.wait()
    began = time.monotonic()
    while (left := limit + _kept_waiting(process.pid) - (time.monotonic() - began)) > 0:
        try:
            return process.wait(left)
        except subprocess.TimeoutExpired:
            continue
    raise subprocess.TimeoutExpired(process.args, limit)


def watched(runner: Runner, limit: float | None, gently: bool = False) -> Runner:
    """The runner, whose commands are killed with all their children after ``limit`` seconds.

    Overrun then comes out of ``runner.test``. ``gently``: they get GRACE seconds to clean up first,
    as compilers do with their temporary files.
    """

    def execute(
        cmds: Sequence[list[str]], cwd: PathLike[str] | str, stdout: TextIO | None = None
    ) -> None:
        for cmd in cmds:
            process = subprocess.Popen(
                cmd,
                cwd=cwd,
                env=runner.env,
                stdout=stdout,
                stderr=subprocess.STDOUT if stdout else None,
                process_group=0,
            )
            try:
                status = wait_for(process, limit)
            except subprocess.TimeoutExpired:
                raise Overrun(f"killed after {limit:g} s ({VARIABLE})") from None
            finally:
                # also what a simulator that has ended left running, and on Ctrl-C
                _kill(process, GRACE if gently else 0)
            if status:
                raise RuntimeError(f"{cmd[0]} ended with status {status}")

    runner._execute_cmds = execute
    return runner


def _kill(process: subprocess.Popen, grace: float) -> None:
    """End every process of the group; the ones that do not end by themselves within ``grace``."""
    try:
        if grace:
            os.killpg(process.pid, signal.SIGTERM)
            end = time.monotonic() + grace
            while time.monotonic() < end:
                process.poll()
                os.killpg(process.pid, 0)
                time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        process.wait()
