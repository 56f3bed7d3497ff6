# SPDX-License-Identifier: Apache-2.0
"""Runs pytest on the tests of a tier, or on named tests, in place of this process."""

import os
import signal
import sys
from typing import NoReturn

from openkpu.checkout import ROOT
from openkpu_tb import results
from openkpu_tb.places import writable
from openkpu_tools import command, registry

HOSTILE = "tb/device/hostile/test_hostile.py"
RANDOM = "tb/device/actions/test_control_random.py"
SWEEP_SECONDS = "7200"  # of its simulations, unless OPENKPU_SIM_SECONDS says otherwise


def _replaced(words: list[str], *more: str) -> NoReturn:
    """Go on as another program."""
    sys.stdout.flush()
    os.chdir(ROOT)
    os.execv(words[0], [*words, *more])


def _pytest(*words: str) -> NoReturn:
    # signals wait until conftest.py looks for them
    signal.pthread_sigmask(signal.SIG_BLOCK, command.SIGNALS)
    _replaced([sys.executable, "-m", "pytest"], *words)


def main(argv: list[str] | None = None) -> int:
    """The first tier, every tier, or the tests that are named; a whole run keeps its results."""
    args = registry.parse_command("test", argv)
    reports = ROOT / "reports"
    if not args.tests and writable(ROOT):
        reports.mkdir(exist_ok=True)
        (reports / "results.jsonl").unlink(missing_ok=True)
        os.environ[results.VARIABLE] = str(reports / "results.jsonl")
    which = ["--all"] if args.all else [] if args.tests else ["--tier=test"]
    many = ["-n", str(args.jobs), "--dist", "worksteal", "--durations=60", "--durations-min=10"]
    _pytest(*many, *which, *args.tests)


def check(argv: list[str] | None = None) -> int:
    """The second tier: tests and what else every push runs."""
    args = registry.parse_command("check", argv)
    more = ["--record-tools"] if args.record else []
    _replaced([str(ROOT / "scripts" / "check.sh")], str(args.jobs), *more)


def sweep(argv: list[str] | None = None) -> int:
    """The sweep of writes in whole, on Verilator."""
    args = registry.parse_command("sweep", argv)
    os.environ["OKPU_SWEEP"] = "whole"
    os.environ.setdefault("OPENKPU_SIM_SECONDS", SWEEP_SECONDS)
    _pytest(
        "-n", str(args.jobs), HOSTILE, "-k", "(test_sweep or test_weights_that_wait) and verilator"
    )


def control(argv: list[str] | None = None) -> int:
    """Random actions of a host, on Verilator."""
    os.environ["ACTIONS"] = str(registry.parse_command("control", argv).actions)
    _pytest(RANDOM, "-k", "verilator")
