# SPDX-License-Identifier: Apache-2.0
"""What holds for every test: seeds that are numbers, and a wall-clock limit on each simulation."""

import os
import signal

import pytest
from openkpu.tb import seeds, watchdog


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a bad environment before any test; every worker and command inherits the limit."""
    # ... and ends its simulations on SIGTERM as it does on Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ.setdefault(watchdog.VARIABLE, str(watchdog.TEST_SECONDS))
    try:
        seeds.environment()
        watchdog.seconds()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_report_header() -> str:
    """The seeds of the random layers."""
    found, source = seeds.chosen()
    return f"random layers: seeds {', '.join(map(str, found))} ({source}); SEED=n repeats one"
