# SPDX-License-Identifier: Apache-2.0
"""What holds for every test: seeds that are numbers, and a wall-clock limit on each simulation."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openkpu_tb import places, results, seeds, tiers, tool_tests, watchdog

PRECOMPILED = Path(__file__).resolve().with_name("scripts") / "precompiled.sh"


LEFT_OUT = pytest.StashKey[Counter]()  # tests by tier that this run leaves to another command


class Workers:
    """What the workers get, and what they left to other commands: all say the same."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_configure_node(self, node: Any) -> None:
        """Its simulations keep their results where this session does."""
        node.workerinput[results.VARIABLE] = results.target()

    def pytest_testnodedown(self, node: Any) -> None:
        """A worker is done."""
        self.config.stash[LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


class Recorder:
    """Keeps what pytest's tests gave, for the page of the test plan."""

    def __init__(self) -> None:
        self.setup: dict[str, float] = {}  # seconds of tests under way
        self.tools: dict[str, bool] = {}  # tools whose tests ran: all passed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The call counts, and a setup that did not get to it."""
        for name, value in report.user_properties:
            if name == "tool":
                self.tools[str(value)] = self.tools.get(str(value), True) and not report.failed
        if report.when == "setup" and report.passed:
            self.setup[report.nodeid] = report.duration
        elif report.when in ("setup", "call"):
            seconds = round(self.setup.pop(report.nodeid, 0.0) + report.duration, 2)
            results.keep_results(
                [results.RunResult(report.nodeid, report.outcome, seconds=seconds)]
            )


RECORDER = pytest.StashKey[Recorder]()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Record the tools whose tests have all passed, with --record-tools in a whole run.

    Say why there was nothing to run.
    """
    config = session.config
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not hasattr(config, "workerinput"):
        where = " ".join(config.args)
        wanted = f" -k {word!r}" if (word := config.option.keyword) else ""
        later = "" if config.getoption("--all") else "; those of the nightly run need ALL=1"
        print(f"\nerror: no test in {where}{wanted}{later}", file=sys.stderr)
    recorder = session.config.stash.get(RECORDER, None)
    whole = session.config.args_source is not pytest.Config.ArgsSource.ARGS
    if recorder and whole and session.config.getoption("--record-tools"):
        tool_tests.record_passed(name for name, passed in recorder.tools.items() if passed)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of this project's tests."""
    parser.addoption(
        "--tier",
        choices=tiers.TAKEN,
        default="push",
        help="tests of `make test`, of `make check`, of both (push), or all",
    )
    parser.addoption("--all", action="store_true", help="the same as --tier=all")
    parser.addoption(
        "--record-tools",
        action="store_true",
        help="run the tests of unchanged tools as well, and record those that pass",
    )
    parser.addoption(
        "--icarus-tenth",
        type=int,
        metavar="N",
        help="of the tests on Icarus only those that number N takes: ten numbers take all",
    )


@pytest.hookimpl(tryfirst=True)  # before -m looks at marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of other tiers and what --icarus-tenth does not take; alike on every worker.

    A test that is named on the command line by its whole identifier runs in any case.
    """
    wrong = tiers.stale(items)
    named = {str(word).partition("::")[2] for word in config.args}
    if wrong and not any(named):
        raise pytest.UsageError("; ".join(wrong))
    taken = tiers.TAKEN["all" if config.getoption("--all") else str(config.getoption("--tier"))]
    tier = {item.nodeid: tiers.settle(item) for item in items}
    left_out = {
        node
        for node, own in tier.items()
        if own not in taken and node.partition("::")[2] not in named
    }
    if config.args_source is not pytest.Config.ArgsSource.ARGS and not config.getoption("--all"):
        still = tool_tests.unchanged() if not config.getoption("--record-tools") else set()
        for item in items:
            tool = item.get_closest_marker("tool")
            if tool and tool.args[0] in still and item.nodeid not in left_out:
                left_out.add(item.nodeid)
                tier[item.nodeid] = f"tool {tool.args[0]}"
    config.stash[LEFT_OUT] = Counter(tier[node] for node in left_out)
    worker = getattr(config, "workeroutput", None)  # xdist adds it
    if worker is not None:
        worker["left_out"] = dict(config.stash[LEFT_OUT])
    number = config.getoption("--icarus-tenth")
    if number is not None:
        slow = sorted(item.nodeid for item in items if "icarus" in item.name)
        left_out |= set(slow) - set(slow[number % 10 :: 10])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a bad environment before any test; every worker and command inherits the limit."""
    if sys.flags.optimize:
        raise pytest.UsageError("-O or PYTHONOPTIMIZE is set, expected Python with assertions")
    given = getattr(config, "workerinput", os.environ)
    if given.get(results.VARIABLE):
        results.adopt(given[results.VARIABLE])
    if not hasattr(config, "workerinput"):  # the reports of all workers arrive in one process
        config.stash[RECORDER] = Recorder()
        config.pluginmanager.register(config.stash[RECORDER])
        if config.pluginmanager.hasplugin("xdist"):
            config.pluginmanager.register(Workers(config))
        for word in config.args:
            if not (config.invocation_params.dir / word.partition("::")[0]).exists():
                raise pytest.UsageError(
                    f"{word}: no such file or folder, expected tests, for example tb/fifo or"
                    " tb/fifo/test_fifo.py"
                )
    # ... and ends its simulations on SIGTERM as it does on Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ.setdefault(watchdog.VARIABLE, str(watchdog.TEST_SECONDS))
    # what Verilator's makefile puts before the compiler: of hundreds of builds most are small
    if not places.spaced(PRECOMPILED):
        os.environ.setdefault("OBJCACHE", str(PRECOMPILED))
    try:
        seeds.environment()
        watchdog.seconds()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(trylast=True)
def pytest_sessionstart() -> None:
    """Signals that scripts/run.sh blocked arrive: pytest answers none while plugins are set up."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """An interrupt waits until a test module is imported: half of hypothesis breaks its plugin."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        return (yield)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test of a tool says so in its report, which may come from a worker."""
    if tool := item.get_closest_marker("tool"):
        item.user_properties.append(("tool", tool.args[0]))


def pytest_report_header() -> str:
    """The seeds of the random layers."""
    found, source = seeds.chosen_seeds()
    return f"random layers: seeds {', '.join(map(str, found))} ({source}); SEED=n repeats one"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What did not run: a line for each reason of a skip, and one for each tier left out."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    left_out = terminalreporter.config.stash.get(LEFT_OUT, Counter())
    if reasons or left_out:
        terminalreporter.section("not run")
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}")
    for tier, count in sorted(left_out.items()):
        if tier.startswith("tool "):
            line = f"{count} of a tool that has not changed, {tier[5:]}: make check RECORD=1"
        else:
            line = f"{count} of another tier: {tiers.COMMANDS.get(tier, 'make test')}"
        terminalreporter.write_line(line)
