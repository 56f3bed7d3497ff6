# SPDX-License-Identifier: Apache-2.0
"""`make help`: the targets, and the variables of one, from the list of commands."""

import argparse
import textwrap

from openkpu_tools import registry
from openkpu_tools.command import UsageError
from openkpu_tools.registry import COMMANDS

EXAMPLES = """\
make sim SIM=icarus                    handwritten digits on the RTL
make sim SIM=verilator CONFIG=k210 VECTORS=models/tests/data/vectors   replay layer vectors
make sim SIM=verilator CONFIG=k210 MODEL=face.kmodel IMAGE=photo.jpg PNG=found.png   a K210 model
make help COMMAND=sim                  the variables of a target
"""
WIDTH = 100


def of_variable(name: str, action: argparse.Action) -> str:
    """A variable with its values and meaning."""
    value = "=1" if action.nargs == 0 else f"={'|'.join(action.choices or ())}".rstrip("=")
    usual = action.default if action.default not in (None, False, "", []) else ""
    text = (action.help or "").replace("%%", "%") + (f" ({usual})" if str(usual) else "")
    return f"  {name + value:<28}  {text}"


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    wanted = registry.parse_command("help", argv).command
    if wanted:
        if wanted not in COMMANDS:
            hint = registry.near(wanted, COMMANDS, "'make help' lists them")
            raise UsageError(f"no target {wanted!r}, {hint}")
        print(f"make {wanted}: {COMMANDS[wanted].text}\n")
        for name, action in COMMANDS[wanted].parser().variables().items():
            print(of_variable(name, action))
        return 0
    print(EXAMPLES)
    for name, entry in COMMANDS.items():
        print(f"  make {name:<17} {entry.text}")
        names = " ".join(entry.parser().variables())
        for line in textwrap.wrap(names, WIDTH - 24):
            print(f"{'':<24} {line}")
    return 0
