# SPDX-License-Identifier: Apache-2.0
"""Tables of docs/command-line.md: every command of `openkpu` with its options, from its parser."""

import argparse
import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path

from openkpu.checkout import ROOT

# meaning of options whose parsers have no help for them, the same in every command
USUAL = {
    "config": "a table of configs.toml",
    "images": "inferences of the stream",
    "disturb": "random wait states and bus grants, RETRY and SPLIT",
    "jobs": "processes at a time",
    "kind": "items of this kind only: layer, product, elementwise, pool, float16, network, list",
    "minutes": "how long",
    "n": "number of mutants",
    "seed": "of the random values",
    "seeds": "number of seeds, from 1 on",
    "set": "which layers",
    "sim": "icarus or verilator",
    "steps": "names of the steps to run, in quotes; default: all",
    "page": "run nothing, write the table of the page from the kept results",
    "check": "run nothing, compare the table with the kept results",
    "tests": "paths or options of pytest; default: every test",
}


class _Made(BaseException):
    """Carries the parser that a command has made."""


@contextlib.contextmanager
def _caught() -> Iterator[None]:
    """parse_args raises its parser meanwhile."""

    def stop(parser: argparse.ArgumentParser, *_: object) -> None:
        raise _Made(parser)

    before = argparse.ArgumentParser.parse_args
    argparse.ArgumentParser.parse_args = stop  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        argparse.ArgumentParser.parse_args = before  # type: ignore[method-assign]


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser that a command makes; RuntimeError for one that makes none."""
    from openkpu.__main__ import COMMANDS

    try:
        with _caught():
            importlib.import_module(COMMANDS[name][0]).main([])
    except _Made as made:
        return made.args[0]
    raise RuntimeError(f"openkpu {name} parses no arguments")


def _cell(text: str) -> str:
    """Text of a cell: one line, and no bar."""
    return " ".join(text.split()).replace("|", "\\|")


def overview() -> str:
    """A row for each command."""
    from openkpu.__main__ import COMMANDS

    rows = [f"| [`{name}`](#openkpu-{name}) | {text} |" for name, (_, text) in COMMANDS.items()]
    return "\n".join(["| command | does |", "|---|---|", *rows])


def _row(action: argparse.Action) -> str:
    """A row for an option or a positional argument."""
    words = action.option_strings or [action.dest]
    name = words[-1]
    value = ""
    if action.nargs != 0:
        value = (
            "\\|".join(map(str, action.choices)) if action.choices else str(action.metavar or "")
        )
        value = value or ("" if not action.option_strings else action.dest.upper())
    several = " ..." if action.nargs in ("+", "*") else ""
    shown = f"`{name}`" + (f" {value}{several}" if value else several)
    default = ""
    if action.default not in (None, False, argparse.SUPPRESS, "", []):
        default = action.default
        if isinstance(default, Path) and default.suffix:  # a file of the reports
            default = default.parent
        default = f"`{_cell(str(default).removeprefix(f'{ROOT}/'))}`"
    return f"| {shown} | {default} | {_cell(action.help or USUAL.get(action.dest, ''))} |"


def options() -> str:
    """A section for each command, with the table of its options."""
    from openkpu.__main__ import COMMANDS

    sections = []
    for name, (_, text) in COMMANDS.items():
        actions = [
            a for a in parser_of(name)._actions if a.dest != "help" and a.help != argparse.SUPPRESS
        ]
        lines = [f"### openkpu {name}", "", f"{text[0].upper()}{text[1:]}.", ""]
        if actions:
            lines += ["| option | default | meaning |", "|---|---|---|", *map(_row, actions)]
        else:
            lines.append("No options.")
        sections.append("\n".join(lines))
    return "\n\n".join(sections)
