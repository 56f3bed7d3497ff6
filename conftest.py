# SPDX-License-Identifier: Apache-2.0
"""What holds for every test: seeds that are numbers, and a wall-clock limit on each simulation."""

import functools
import os
import signal
import sys
import tomllib
from pathlib import Path

import pytest
from openkpu.tb import places, seeds, watchdog
from openkpu.tb.plan import results

PRECOMPILED = Path(__file__).resolve().with_name("scripts") / "precompiled.sh"


@functools.cache
def nightly() -> dict[str, frozenset[str]]:
    """Tests of tb/nightly.toml by file."""
    found = tomllib.loads(
        Path(seeds.__file__).with_name("nightly.toml").read_text(encoding="utf-8")
    )
    return {file: frozenset(tests) for file, tests in found.items()}


class Recorder:
    """Keeps what pytest's tests gave, for the page of the test plan."""

    def __init__(self) -> None:
        self.setup: dict[str, float] = {}  # seconds of tests under way

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The call counts, and a setup that did not get to it."""
        if report.when == "setup" and report.passed:
            self.setup[report.nodeid] = report.duration
        elif report.when in ("setup", "call"):
            seconds = round(self.setup.pop(report.nodeid, 0.0) + report.duration, 2)
            results.keep([results.Result(report.nodeid, report.outcome, seconds=seconds)])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of this project's tests."""
    parser.addoption("--all", action="store_true", help="tests of the nightly run as well")
    parser.addoption(
        "--icarus-tenth",
        type=int,
        metavar="N",
        help="of the tests on Icarus only those that number N takes: ten numbers take all",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only --all runs and --icarus-tenth does not take; alike on every worker.

    A test that is named on the command line by its whole identifier runs in any case.
    """
    named = {str(word).partition("::")[2] for word in config.args}
    left_out = set()
    for item in items:
        if item.name in nightly().get(item.nodeid.partition("::")[0], ()):
            item.add_marker(pytest.mark.nightly)
    if not config.getoption("--all"):
        left_out = {item.nodeid for item in items if item.get_closest_marker("nightly")}
        left_out = {node for node in left_out if node.partition("::")[2] not in named}
    number = config.getoption("--icarus-tenth")
    if number is not None:
        slow = sorted(item.nodeid for item in items if "icarus" in item.name)
        left_out |= set(slow) - set(slow[number % 10 :: 10])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a bad environment before any test; every worker and command inherits the limit."""
    if not hasattr(config, "workerinput"):  # the reports of all workers arrive in one process
        config.pluginmanager.register(Recorder())
        for word in config.args:
            if not (config.invocation_params.dir / word.partition("::")[0]).exists():
                raise pytest.UsageError(
                    f"{word}: no such file or folder, expected tests, for example tb/fifo or"
                    " tb/fifo/test_fifo.py"
                )
    # ... and ends its simulations on SIGTERM as it does on Ctrl-C; scripts/run.sh blocks both
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    os.environ.setdefault(watchdog.VARIABLE, str(watchdog.TEST_SECONDS))
    # what Verilator's makefile puts before the compiler: of hundreds of builds most are small
    if not places.spaced(PRECOMPILED):
        os.environ.setdefault("OBJCACHE", str(PRECOMPILED))
    try:
        seeds.environment()
        watchdog.seconds()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Say why there was nothing to run."""
    config = session.config
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not hasattr(config, "workerinput"):
        where = " ".join(config.args)
        wanted = f" -k {word!r}" if (word := config.option.keyword) else ""
        later = "" if config.getoption("--all") else "; those of the nightly run need ALL=1"
        print(f"\nerror: no test in {where}{wanted}{later}", file=sys.stderr)


def pytest_report_header() -> str:
    """The seeds of the random layers."""
    found, source = seeds.chosen()
    return f"random layers: seeds {', '.join(map(str, found))} ({source}); SEED=n repeats one"
