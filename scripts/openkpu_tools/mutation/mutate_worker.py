# SPDX-License-Identifier: Apache-2.0
"""Run tests on mutants in one process that stays: pytest starts once, not for each mutant.

Reads requests from stdin, writes answers to stdout, one line of JSON each (Request, Answer). Its
parent is scripts/openkpu_tools/mutation/mutate.py.
"""

import json
import os
import re
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from openkpu_tb import mutants, watchdog

FAILED = re.compile(r"\*\* (\S+) +FAIL ")


@dataclass(frozen=True)
class Request:
    """Run the tests of ``test`` that ``choose`` matches on mutant ``number`` of ``rtl``."""

    number: int
    rtl: str
    test: str
    choose: str
    limit: float  # seconds of one simulation
    seed: int | None = None  # of random tests; None: every test's own
    further: bool = False  # tests of the nightly run alone


@dataclass(frozen=True)
class Answer:
    """What came of it."""

    # passed, failed, hang, absent (in no simulation), none (there is no such test), broken (no test
    # could run)
    outcome: str
    by: str  # the test that failed, or what is broken
    seconds: float
    longest: float  # seconds of the longest simulation


class Watcher:
    """Keeps the first failure and counts the tests that ran."""

    def __init__(self) -> None:
        self.ran, self.failed, self.said = 0, "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of a test is over."""
        self.ran += report.when == "call"
        if report.failed and not self.failed:
            self.failed, self.said = report.nodeid, report.longreprtext

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be collected is no verdict."""
        if report.failed:
            self.said = report.longreprtext


def run_mutant(request: Request) -> Answer:
    """Run the tests in this process."""
    watcher, began = Watcher(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="openkpu_mutant_") as tmp:
        log = Path(tmp) / "log.jsonl"
        os.environ |= {
            mutants.FOLDER: request.rtl,
            mutants.NUMBER: str(request.number),
            mutants.LOG: str(log),
            watchdog.VARIABLE: f"{request.limit:g}",
        }
        os.environ.pop("OPENKPU_SEED", None)
        if request.seed is not None:
            os.environ["OPENKPU_SEED"] = str(request.seed)
        words = ["-x", "-q", "-p", "no:xdist", "--tb=short", "-k", request.choose, request.test]
        words += ["--all", "-m", "nightly"] if request.further else []
        status = pytest.main(words, plugins=[watcher])
        lines = log.read_text().splitlines() if log.exists() else []
    simulations = [json.loads(line) for line in lines]
    longest = max((s["seconds"] for s in simulations), default=0.0)
    held = any(s["held"] for s in simulations) or request.number == 0
    seconds = time.monotonic() - began
    if status == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    if status == pytest.ExitCode.NO_TESTS_COLLECTED and request.further:
        return Answer("none", "", seconds, longest)
    if not watcher.ran or status not in (0, 1) or "could not build" in watcher.said:
        return Answer("broken", (watcher.said or f"status {status}")[-2000:], seconds, longest)
    by = watcher.failed
    if test := FAILED.search(watcher.said):
        by += f" {test[1].rpartition('.')[2]}"
    if watcher.failed and "killed after" in watcher.said:
        return Answer("hang", by, seconds, longest)
    if not held:
        return Answer("absent", by, seconds, longest)
    return Answer("failed" if watcher.failed else "passed", by, seconds, longest)


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    for line in sys.stdin:
        answer = run_mutant(Request(**json.loads(line)))
        answers.write(json.dumps(asdict(answer)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
