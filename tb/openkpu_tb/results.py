# SPDX-License-Identifier: Apache-2.0
"""What each test gave the last time, kept for the page of the test plan.

Only when OPENKPU_RESULTS names a file: every simulation adds a JSON line for each of its cocotb
tests, pytest one for each of its own. `make test` sets it. A session of pytest removes the variable
from the environment: what a test starts is not a run of the plan.
"""

import json
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "OPENKPU_RESULTS"
_of_session: str | None = None  # the file that this process's session of pytest keeps results in


def adopt(path: str | None) -> None:
    """Results go to this file from now on; the variable of the environment is gone."""
    global _of_session
    _of_session = path
    os.environ.pop(VARIABLE, None)


def target() -> str | None:
    """The file that results go to."""
    return os.environ.get(VARIABLE) or _of_session


PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class RunResult:
    """One run of a test: ``module.test`` for cocotb's, pytest's node otherwise."""

    test: str
    outcome: str  # passed, failed or skipped
    sim: str = ""
    seed: int | None = None
    seconds: float = 0.0  # on the wall clock; of pytest's tests with what their fixtures took


def of_simulation(xml: Path, sim: str, seed: int) -> list[RunResult]:
    """The tests in a results.xml of cocotb."""
    found = []
    for case in ElementTree.parse(xml).iter("testcase"):
        bad = any(case.find(tag) is not None for tag in ("failure", "error"))
        skipped = case.find("skipped") is not None
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        outcome = FAILED if bad else SKIPPED if skipped else PASSED
        seconds = round(float(case.get("time", 0)), 2)
        found.append(RunResult(name, outcome, sim, seed, seconds))
    return found


def keep_results(results: Iterable[RunResult]) -> None:
    """Add to the file, if there is one; a line is one write, so that processes do not mix."""
    path = target()
    if not path:
        return
    for result in results:
        line = json.dumps(asdict(result)) + "\n"
        out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(out, line.encode())
        finally:
            os.close(out)


def last(path: Path) -> dict[str, dict[str, RunResult]]:
    """test -> simulator (or "") -> its last result that was not skipped; a test that runs in
    several builds counts as failed when one of them failed since it began to be kept.

    A line that is no result, as a killed process leaves it, is left out.
    """
    found: dict[str, dict[str, RunResult]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            result = RunResult(**json.loads(line))
        except (json.JSONDecodeError, TypeError):
            continue
        of_test = found.setdefault(result.test, {})
        before = of_test.get(result.sim)
        if result.outcome == SKIPPED or (before and before.outcome == FAILED):
            continue
        of_test[result.sim] = result
    return found
