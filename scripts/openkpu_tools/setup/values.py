# SPDX-License-Identifier: Apache-2.0
"""Values on make's command line that no target can take, found before anything is installed.

Needs the standard library only. Each command looks at its arguments again, more closely: this is
for a machine on which the command cannot run yet.
"""

import argparse
import ast
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu_tb import seeds, watchdog
from openkpu_tools import command
from openkpu_tools.verification import nightly

Check = Callable[[str, str], object]  # of a variable's name and value; ValueError


def choices(file: str, name: str) -> list[str]:
    """The words of a constant, or its keys, read from a module that may need packages."""
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            value = node.value
            assert isinstance(value, ast.Dict | ast.Tuple), f"{name}: expected a dict or a tuple"
            own = value.keys if isinstance(value, ast.Dict) else value.elts
            return [str(ast.literal_eval(each)) for each in own if each is not None]
    raise LookupError(f"{file} has no {name}")


def one_of(found: Callable[[], list[str]]) -> Check:
    """One of the words that are found."""

    def check(name: str, value: str) -> None:
        known = [word for word in found() if word]
        if value not in known:
            raise ValueError(f"{name}={value}: expected {', '.join(known[:-1])} or {known[-1]}")

    return check


def number(least: int) -> Check:
    """A whole number, not below ``least``."""
    return lambda name, value: seeds.number(name, value, least)


def real(name: str, value: str) -> None:
    """A number."""
    try:
        command.real(value)
    except argparse.ArgumentTypeError as error:
        raise ValueError(f"{name}: {error}") from None


def files(name: str, value: str) -> None:
    """Files or folders that are there; a product's sizes are none."""
    for word in value.split():
        if not (Path(word).exists() or (name == "MATMUL" and re.fullmatch(r"\d+x\d+x\d+", word))):
            raise ValueError(f"{name}={word}: no such file")


def folder(name: str, value: str) -> None:
    """A file in a folder that is there."""
    if not Path(value).resolve().parent.is_dir():
        raise ValueError(f"{name}={value}: the folder does not exist")


def tests(name: str, value: str) -> None:
    """What comes first is a path of tests, or an option of pytest."""
    first = value.split()[0]
    if not first.startswith("-"):
        files(name, first.partition("::")[0])


def module(name: str, value: str) -> None:
    """A module or folder of the RTL."""
    for word in value.split():
        folders = (ROOT / word, ROOT / "rtl" / word)
        if not (
            any(f.is_dir() for f in folders) or [*(ROOT / "rtl").rglob(f"{Path(word).name}.v")]
        ):
            raise ValueError(f"{name}={word}: expected a module or a folder of the RTL")


CHECKS: dict[str, Check] = {
    "SIM": one_of(lambda: choices("tb/openkpu_tb/simrun.py", "SIMS")),
    "CONFIG": one_of(lambda: [*configs.names(), "all"]),
    "BUS": one_of(lambda: choices("models/openkpu/configs.py", "BUSES")),
    "VIA": one_of(lambda: choices("scripts/openkpu_tools/commands/run_model.py", "WAYS")),
    "MAPS": one_of(lambda: choices("scripts/openkpu_tools/commands/run_model.py", "MAPS")),
    "ROUNDING": one_of(lambda: choices("models/openkpu/arithmetic/activation.py", "ROUNDINGS")),
    "TYPE": one_of(lambda: choices("scripts/openkpu_tools/commands/run_matmul.py", "TYPES")),
    "KIND": one_of(lambda: choices("tb/openkpu_tb/runs/regress_items.py", "ITEM_KINDS")),
    "PART": one_of(lambda: choices("scripts/openkpu_tools/flows/fpga.py", "PARTS")),
    "LEVEL": one_of(lambda: choices("scripts/openkpu_tools/mutation/mutate.py", "LEVELS")),
    "STEPS": lambda _, value: nightly.chosen(value),
    "MODULE": module,
    "TESTS": tests,
    **dict.fromkeys(("JOBS", "N", "SEEDS", "IMAGES", "ACTIONS"), number(1)),
    **dict.fromkeys(("SEED", "ITEM"), number(0)),
    **dict.fromkeys(("MINUTES", "MHZ", "SCALE", "BIAS"), real),
    **dict.fromkeys(("VECTORS", "MODEL", "IMAGE", "NETWORK", "INPUT", "DETECTOR", "MATMUL"), files),
    **dict.fromkeys(("PNG", "OUTPUT", "REPORT"), folder),
    watchdog.VARIABLE: lambda *_: watchdog.seconds(),
}


def check(given: Mapping[str, str]) -> None:
    """UsageError for the first value of ``given``, by variable, that no target can take."""
    for name, value in given.items():
        if value and name in CHECKS:
            try:
                CHECKS[name](name, value)
            except ValueError as error:
                raise command.UsageError(str(error)) from None
