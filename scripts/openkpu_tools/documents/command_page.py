# SPDX-License-Identifier: Apache-2.0
"""Tables of docs/command-line.md: every command of `openkpu` with its options, from its parser."""

import argparse
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tools.registry import commands


def _cell(text: str) -> str:
    """Text of a cell: one line, and no bar."""
    return " ".join(text.split()).replace("|", "\\|")


def overview() -> str:
    """A row for each command."""
    rows = [f"| [`{name}`](#openkpu-{name}) | {each.text} |" for name, each in commands().items()]
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
    return f"| {shown} | {default} | {_cell(action.help or '')} |"


def options() -> str:
    """A section for each command, with the table of its options."""
    sections = []
    for name, each in commands().items():
        actions = [*each.parser().variables().values()]
        lines = [f"### openkpu {name}", "", f"{each.text[0].upper()}{each.text[1:]}.", ""]
        if actions:
            lines += ["| option | default | meaning |", "|---|---|---|", *map(_row, actions)]
        else:
            lines.append("No options.")
        sections.append("\n".join(lines))
    return "\n\n".join(sections)
