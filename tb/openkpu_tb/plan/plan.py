# SPDX-License-Identifier: Apache-2.0
"""tb/plan/testplan.toml: entries, the tests that they name, and what of the specification is left.

What the plan has to cover is taken from the sources of the project: registers and errors from the
register description, fields of the layer argument, rows of the table of host writes, claims,
configurations, the three bus checkers.
"""

import ast
import fnmatch
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu.layer import regmap
from openkpu_tb.claims.run_claims import IDS
from openkpu_tb.coverage.model import crosses
from openkpu_tb.device.write_rules import RULES

PLAN = ROOT / "tb" / "plan" / "testplan.toml"
KEYS = {"title", "source", "covers", "tests", "points"}
CHECKERS = ("slave", "master", "arbiter")
DECORATORS = ("cocotb.test", "block_test", "checked", "pyuvm.test")


class PlanError(ValueError):
    """One line for each thing that is wrong with the plan."""


@dataclass(frozen=True)
class Entry:
    """A feature: who asks for it, what shows it."""

    id: str
    title: str
    source: str
    covers: tuple[str, ...]
    tests: tuple[str, ...]
    points: tuple[str, ...]


def items() -> set[str]:
    """Everything that must be covered, as ``kind:name``."""
    names = {
        "register": regmap.OFFSETS,
        "error": [name for name in regmap.ERROR_CODES if name != "NONE"],
        "argument": regmap.LAYER_FIELDS,
        "write": RULES,
        "claim": IDS,
        "configuration": configs.names(),
        "bus": CHECKERS,
    }
    return {f"{kind}:{name}" for kind, some in names.items() for name in some}


def _decorator(node: ast.expr) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


@cache
def cocotb_tests(module: str) -> tuple[str, ...]:
    """Names of the cocotb tests of a module; PlanError when there is no such module."""
    path = ROOT / (module.replace(".", "/") + ".py")
    if not path.is_file():
        raise PlanError(f"no module {module}")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.AsyncFunctionDef, ast.ClassDef)
    return tuple(
        node.name
        for node in tree.body
        if isinstance(node, kinds) and any(_decorator(d) in DECORATORS for d in node.decorator_list)
    )


def expanded(test: str) -> list[str]:
    """The tests that a name of the plan stands for; PlanError when there is none."""
    path, _, name = test.partition("::")
    if "/" in path:
        if not (ROOT / path).is_file():
            raise PlanError(f"no file {path}")
        if name and f"def {name}(" not in (ROOT / path).read_text(encoding="utf-8"):
            raise PlanError(f"{path} has no test {name}")
        return [test]
    module, _, name = test.rpartition(".")
    known = cocotb_tests(module)
    chosen = [case for case in known if name in ("*", case)]
    if not chosen:
        raise PlanError(f"{module} has no test {name}")
    return [f"{module}.{case}" for case in chosen]


def _entry(id: str, table: dict) -> Entry:
    unknown = table.keys() - KEYS
    if unknown or not {"title", "source", "tests"} <= table.keys():
        raise PlanError(f"{id}: expected title, source and tests, got {', '.join(table)}")
    lists = {key: tuple(table.get(key, ())) for key in ("covers", "tests", "points")}
    if not lists["tests"]:
        raise PlanError(f"{id}: expected a test")
    return Entry(id, table["title"], table["source"], **lists)


def load_testplan(path: Path = PLAN) -> list[Entry]:
    """The entries, in the order of the file; PlanError with all that is wrong with them.

    Every test, every coverage cross and every covered item exists, and every item is covered.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"{path.name}: {error}") from None
    wrong: list[str] = []
    entries: list[Entry] = []
    everything, covered = items(), set()
    known_points = {cross.name for cross in crosses()}
    for id, table in tables.items():
        try:
            entry = _entry(id, table)
        except PlanError as error:
            wrong.append(str(error))
            continue
        entries.append(entry)
        for test in entry.tests:
            try:
                expanded(test)
            except PlanError as error:
                wrong.append(f"{id}: {error}")
        for pattern in entry.covers:
            hit = set(fnmatch.filter(everything, pattern))
            covered |= hit
            if not hit:
                wrong.append(f"{id}: covers {pattern}, which is no item of the specification")
        wrong += [f"{id}: no cross {name}" for name in entry.points if name not in known_points]
        if not (ROOT / entry.source.partition("#")[0]).is_file():
            wrong.append(f"{id}: no document {entry.source}")
    wrong += [f"{item} is in no entry" for item in sorted(everything - covered)]
    if wrong:
        raise PlanError("\n".join(f"{path.name}: {line}" for line in wrong))
    return entries
