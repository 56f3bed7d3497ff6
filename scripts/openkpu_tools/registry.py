# SPDX-License-Identifier: Apache-2.0
"""The commands of the project, of which there is this one list; standard library alone.

make and `openkpu` have their commands from here, with what each accepts and needs; `make help` and
docs/command-line.md are made of it. A new command is a function with ``@entry`` in entries/.
"""

import argparse
import difflib
from collections.abc import Iterable, Mapping

from openkpu import __version__
from openkpu.checkout import IN_CHECKOUT
from openkpu_tools import entry
from openkpu_tools.command import JOBS, OWN, UsageError
from openkpu_tools.entries import documents, flows, running, verification
from openkpu_tools.entry import Entry

COMMANDS = {  # in the order of these rooms
    name: each
    for room in (running, verification, flows, documents)
    for name, each in entry.COMMANDS.items()
    if each.options.__module__ == room.__name__
}
EXTRAS = ("sim", "verilator", "models", "plots", "flows")  # of an installed package
# besides options, on make's command line: they are of programs that a command starts
ENVIRONMENT = ("PYTHON", "PATH", "SHELL", "TMPDIR", "XDG_CACHE_HOME")


def commands() -> dict[str, Entry]:
    """The commands of `openkpu`: in a checkout all, of an installed package those that it has."""
    return {
        name: each
        for name, each in COMMANDS.items()
        if each.module and (IN_CHECKOUT or not each.checkout)
    }


def parse(name: str, argv: list[str] | None) -> argparse.Namespace:
    """The arguments of a command; UsageError names what is wrong."""
    return COMMANDS[name].parser().parse_args(argv)


def usage() -> str:
    """The list of commands."""
    lines = [f"  {name:<17} {each.text}" for name, each in commands().items()]
    head = f"openkpu {__version__}\nusage: openkpu COMMAND ... (openkpu COMMAND --help tells more)"
    return "\n".join([head, "", *lines])


def dispatch(argv: list[str] | None) -> int:
    """The command that the first word names, with the words behind it."""
    name, *rest = argv or [""]
    if name in ("-h", "--help"):
        print(usage())
        return 0
    if name == "--version":
        print(f"openkpu {__version__}")
        return 0
    known = commands()
    if name not in known:
        if name in COMMANDS:
            raise UsageError(f"{name} works on a checkout of the project, which this is not")
        said = f"unknown command {name!r}" if name else "no command"
        raise UsageError(f"{said}, {near(name, known, 'expected one of ' + ', '.join(known))}")
    try:
        return known[name].run(rest)
    except ModuleNotFoundError as error:
        raise UsageError(missing(name, rest, error)) from None


def missing(name: str, words: list[str], error: ModuleNotFoundError) -> str:
    """What a command says of a module that is not installed: the extra that has it."""
    if (error.name or "openkpu").partition(".")[0] in OWN:
        raise error
    each = COMMANDS[name]
    said = f"the Python module {error.name} is missing"
    if IN_CHECKOUT:
        return f"{said}; 'make setup' installs it"
    groups = each.groups(each.parser().parse_args([*each.words, *words]))
    extras = ",".join(group for group in groups if group in EXTRAS) or "dev"
    return f"{said}; pip install 'openkpu[{extras}]' installs it"


def near(word: str, known: Iterable[str], otherwise: str) -> str:
    """A question for a word that is close to one of the known, or what is said otherwise."""
    found = difflib.get_close_matches(word, known, 1, 0.5)
    return f"did you mean {found[0]}?" if found else otherwise


def variables() -> set[str]:
    """What options and arguments of all commands are called by make."""
    return {name for each in COMMANDS.values() for name in each.parser().variables()}


def words_of(goal: str, goals: list[str], given: Mapping[str, str]) -> list[str]:
    """The words of a command for make's variables; UsageError for a target that is none, and for a
    variable that no target uses.

    One that another target of ``goals`` uses is left out; JOBS is allowed with all of them.
    """
    for each in goals:
        if each not in COMMANDS:
            hint = near(each, COMMANDS, "'make help' lists them")
            raise UsageError(f"no target {each!r}, {hint}")
    parsers = {each: COMMANDS[each].parser() for each in goals}
    used = list(dict.fromkeys(n for parser in parsers.values() for n in parser.variables()))
    mine = {}
    for name, value in given.items():
        if name in ENVIRONMENT or name.startswith("OPENKPU_"):
            continue
        if name not in [*used, "JOBS"]:
            every = variables()
            if name not in every:
                hint = near(name, every, "'make help' lists those there are")
                raise UsageError(f"unknown variable {name}, {hint}")
            some = f"some of {' '.join(used)}" if used else "no variable"
            raise UsageError(f"make {' '.join(goals)} takes no {name}, expected {some}")
        if name in parsers[goal].variables():
            mine[name] = value
        elif name == "JOBS":
            _checked(value)
    return parsers[goal].words(mine)


def _checked(jobs: str) -> None:
    try:
        JOBS(jobs)
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"JOBS={error}") from None
