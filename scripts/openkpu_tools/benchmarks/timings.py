# SPDX-License-Identifier: Apache-2.0
"""`make timings`: processor seconds and megabytes of what a newcomer types, from a fresh clone.

The clone of HEAD lies in a temporary folder with a HOME of its own: nothing is there that the
commands do not bring. Prints the table; --record writes it into docs/benchmarks.md. Exit status: 0
when every command passed, 1 otherwise. A goal that is missed is said in the table.
"""

import dataclasses
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tools import marked, registry

PAGE = ROOT / "docs" / "benchmarks.md"
DIGITS = ("make", "sim", "SIM=icarus")
DEVICE = ("make", "sim", "SIM=verilator", "CONFIG=k210", "IMAGES=1")
RESULT = re.compile(r"^ *image +0\b|  image +0 ")
PASSED = re.compile(r"^=.*?\b(\d+) passed\b")  # pytest's last line


@dataclasses.dataclass(frozen=True)
class TimedStep:
    """A command, the most processor seconds and megabytes of .venv that are its goal (0: none)."""

    name: str
    words: tuple[str, ...]
    seconds: float = 0
    megabytes: float = 0
    long: bool = False


@dataclasses.dataclass(frozen=True)
class Taken:
    """Of a command: status, processor and clock seconds, those to the first result, .venv in MB,
    tests that passed in its first run of pytest."""

    status: int
    processor: float
    clock: float
    first: float | None
    megabytes: float
    tests: int | None = None


STEPS = (
    TimedStep("digits on Icarus, the first time", DIGITS, megabytes=160),
    TimedStep("digits on Icarus", DIGITS, seconds=30),
    TimedStep("`k210` on Verilator, the first time", DEVICE),
    TimedStep("`k210` on Verilator", DEVICE),
    TimedStep("`make test`", ("make", "test"), seconds=480, long=True),
    TimedStep("`make check`", ("make", "check"), long=True),
)


def megabytes(folder: Path) -> float:
    """Of all files below a folder, in 10^6 bytes; 0 when it is not there."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files) / 1e6


def measure_command(words: tuple[str, ...], clone: Path, home: Path) -> Taken:
    """Run a command in the clone; what it starts and waits for counts."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
    began, first, tests = time.monotonic(), None, None
    with open(clone.parent / "log", "a", encoding="utf-8") as log:
        process = subprocess.Popen(
            words, cwd=clone, env={**kept, "HOME": str(home)}, encoding="utf-8", errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert process.stdout
        for line in process.stdout:
            log.write(line)
            if first is None and RESULT.search(line):
                first = time.monotonic() - began
            if tests is None and (found := PASSED.search(line)):
                tests = int(found[1])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    took = usage.ru_utime + usage.ru_stime
    clock = time.monotonic() - began
    size = megabytes(clone / ".venv")
    return Taken(process.returncode, took, clock, first, size, tests)


def timing_row(step: TimedStep, taken: Taken) -> str:
    """A line of the table."""
    missed = []
    if step.seconds and taken.processor > step.seconds:
        missed.append(f"{step.seconds:.0f} s")
    if step.megabytes and taken.megabytes > step.megabytes:
        missed.append(f"{step.megabytes:.0f} MB")
    goal = ", ".join(
        [f"{step.seconds:.0f} s"] * bool(step.seconds)
        + [f"{step.megabytes:.0f} MB"] * bool(step.megabytes)
    )
    verdict = f"{goal}: missed" if missed else f"{goal}: met" if goal else ""
    verdict = "failed" if taken.status else verdict
    first = "" if taken.first is None else f"{taken.first:.0f}"
    tests = "" if taken.tests is None else f"{taken.tests:,}"
    return (
        f"| {step.name} | {tests} | {taken.processor:.0f} | {taken.clock:.0f} | {first} |"
        f" {taken.megabytes:.0f} | {verdict} |"
    )


HEAD = (
    "| command | tests | processor s | clock s | s to the first result | .venv MB | goal |",
    "|---|---|---|---|---|---|---|",
)


def table(found: Iterable[tuple[TimedStep, Taken]]) -> str:
    """The table of all steps."""
    return "\n".join([*HEAD, *(timing_row(step, taken) for step, taken in found)]) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = registry.parse_command("timings", argv)
    found: list[tuple[TimedStep, Taken]] = []
    with tempfile.TemporaryDirectory(prefix="openkpu_timings_") as tmp:
        clone, home = Path(tmp) / "clone", Path(tmp) / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        print("\n".join(HEAD), flush=True)
        for step in STEPS:
            if step.long and args.quick:
                continue
            found.append((step, measure_command(step.words, clone, home)))
            print(timing_row(*found[-1]), flush=True)
        if any(taken.status for _, taken in found):
            tail = (clone.parent / "log").read_text(encoding="utf-8").splitlines()[-40:]
            print("\n".join(tail), file=sys.stderr)
            return 1
    if args.record:
        marked.fill(PAGE, "timings", table(found))
    return 0
