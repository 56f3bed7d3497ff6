# SPDX-License-Identifier: Apache-2.0
"""`make timings`: what a command and its children take, its first result, missed goals."""

import sys
from pathlib import Path

from openkpu_tools.benchmarks import timings
from openkpu_tools.benchmarks.timings import Taken, TimedStep

BURN = "import time; t = time.process_time()\nwhile time.process_time() - t < 0.5: pass"
CHILD = f"""
import subprocess, sys, time
print("building", flush=True)
subprocess.run([sys.executable, "-c", {BURN!r}], check=True)
print("image   0  predicted 1", flush=True)
time.sleep(0.2)
print("===== 1 failed, 41 passed, 2 skipped in 0.20s =====")
print("===== 7 passed in 0.20s =====")
"""


def test_children_count(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    (clone / ".venv").mkdir(parents=True)
    (clone / ".venv" / "file").write_bytes(bytes(3_000_000))
    taken = timings.measure_command((sys.executable, "-c", CHILD), clone, tmp_path)
    assert taken.status == 0 and 0.5 <= taken.processor < 10
    assert taken.first is not None and 0.5 <= taken.first <= taken.clock - 0.2
    assert taken.megabytes == 3.0 and taken.tests == 41
    assert (
        timings.measure_command(
            (sys.executable, "-c", "raise SystemExit(3)"), clone, tmp_path
        ).status
        == 3
    )


def test_goals() -> None:
    step = TimedStep("digits", ("true",), seconds=30, megabytes=160)
    assert "30 s, 160 MB: met" in timings.timing_row(step, Taken(0, 29.9, 40, 7.6, 150))
    assert timings.timing_row(step, Taken(0, 29.9, 40, 7.6, 161)).endswith(
        "| 161 | 30 s, 160 MB: missed |"
    )
    assert "missed" in timings.timing_row(step, Taken(0, 31, 40, None, 1))
    assert "failed" in timings.timing_row(step, Taken(2, 1, 1, None, 1))
    assert timings.timing_row(TimedStep("x", ("true",)), Taken(0, 99, 99, None, 0)).endswith(
        "| 0 |  |"
    )
    tests = timings.timing_row(TimedStep("x", ("true",)), Taken(0, 99, 99, None, 0, 5232))
    assert tests.startswith("| x | 5,232 | 99 |")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """What a command prints is not always UTF-8."""
    (tmp_path / "clone").mkdir()
    words = sys.executable, "-c", r"import os; os.write(1, b'\xff\n== 3 passed in 1s ==\n')"
    assert timings.measure_command(words, tmp_path / "clone", tmp_path).tests == 3
