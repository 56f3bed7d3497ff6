# SPDX-License-Identifier: Apache-2.0
"""openkpu COMMAND ...: every command of the project under one name; `make` runs the same.

`python -m openkpu` comes here as well.

Exit status: 0 good, 1 a mismatch or a failure, 2 a request that cannot be met, 130 after Ctrl-C,
143 after SIGTERM.
"""

import contextlib
import importlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _quit(number: int, _frame: FrameType | None) -> NoReturn:
    """End at once: modules are being imported, and there is nothing to clean up yet."""
    os.write(2, b"\ninterrupted\n" if number == signal.SIGINT else b"\nterminated\n")
    os._exit(128 + number)


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns its exit status."""
    words = sys.argv[1:] if argv is None else argv
    for number in SIGNALS:
        signal.signal(number, _quit)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # scripts/run.sh blocks them until now
    if sys.flags.optimize:  # checks would be left out, and a wrong answer would pass
        print(
            "error: -O or PYTHONOPTIMIZE is set, expected Python with assertions", file=sys.stderr
        )
        return 2
    from openkpu_tools import command, registry  # with assertions, and signals unblocked

    if found := registry.commands().get(words[0] if words else ""):
        with contextlib.suppress(ModuleNotFoundError):  # dispatch says what is missing
            importlib.import_module(found.module.partition(":")[0])
    return command.run_command(registry.dispatch, words)


if __name__ == "__main__":
    sys.exit(main())
