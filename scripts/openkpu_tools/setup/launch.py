# SPDX-License-Identifier: Apache-2.0
"""What make does for every target: launch VENV TARGET, by this machine's own Python.

OPENKPU_GIVEN names the variables that the user has typed, OPENKPU_GOALS the targets. They become
the words of the command, its parser looks at them, what it needs is set up, and the environment's
Python continues as the command. No other part of the environment is used: a command never sees a
variable that another program has exported.
"""

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MAKE = ("MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MFLAGS")  # would reach a make in the command


def _quit(number: int, _frame: FrameType | None) -> NoReturn:
    """End at once: there is nothing to clean up yet."""
    os.write(2, b"\ninterrupted\n" if number == signal.SIGINT else b"\nterminated\n")
    os._exit(128 + number)


def main(venv: str, target: str) -> int:
    """Run a target; returns the exit status unless another program has taken over."""
    for number in SIGNALS:
        signal.signal(number, _quit)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # scripts/make.sh blocks them until now
    from openkpu.checkout import ROOT  # with the signals unblocked
    from openkpu_tb import watchdog
    from openkpu_tools import command, registry
    from openkpu_tools.setup import setup_env

    names = os.environ.pop("OPENKPU_GIVEN", "").split()
    given = {name: os.environ.get(name, "") for name in names}
    goals = os.environ.pop("OPENKPU_GOALS", "").split() or [target]
    for name in (*registry.variables(), *MAKE):
        os.environ.pop(name, None)
    os.environ[command.BY_MAKE] = "1"
    words: list[str] = []
    more = False  # another program continues

    def prepare(_argv: list[str] | None) -> int:
        nonlocal more
        words[:] = registry.words_of(target, goals, given)
        entry = registry.COMMANDS[target]
        args = entry.parser().parse_args(words)
        try:
            watchdog.seconds()
        except ValueError as error:
            raise command.UsageError(str(error)) from None
        if entry.bare:
            return entry.run(words)
        more = bool(entry.module)
        return setup_env.main([venv, *entry.groups(args)])

    status = command.run_command(prepare)
    if status or not more:
        return status
    sys.stdout.flush()
    os.environ[command.BY_MAKE] = "1"
    run = str(ROOT / "scripts" / "run.sh")
    os.execv(run, [run, "-m", "openkpu_tools", target, *words])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
