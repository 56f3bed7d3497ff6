# SPDX-License-Identifier: Apache-2.0
"""Who may import whom: models nothing of the others, tb only models, scripts both."""

import ast
from collections.abc import Iterator

import pytest
from openkpu.checkout import ROOT

FORBIDDEN = {"models": {"tb", "scripts"}, "tb": {"scripts"}}


def imports(text: str, package: str) -> Iterator[str]:
    """Dotted names that Python text imports, wherever in it: by statement or by import_module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package.split(".")[: 1 - node.level or None] if node.level else []
            module = ".".join(filter(None, [*start, node.module]))
            yield from (f"{module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("import_module", "__import__"):
                yield str(node.args[0].value)


def upwards(folder: str, text: str, package: str = "") -> list[str]:
    """What text in ``folder`` imports and must not; ``package``: where relative imports begin."""
    return [
        name
        for name in imports(text, package or f"openkpu.{folder}")
        if name.removeprefix("openkpu.").partition(".")[0] in FORBIDDEN[folder]
    ]


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_no_arrow_upwards(folder: str) -> None:
    """Tests included."""
    files = sorted((ROOT / folder).rglob("*.py"))
    assert len(files) > 30
    found = {}
    for file in files:
        name = file.relative_to(ROOT)
        package = ".".join(("openkpu", *name.parent.parts))
        found[str(name)] = upwards(folder, file.read_text(), package)
    assert not {name: what for name, what in found.items() if what}


@pytest.mark.parametrize(
    ("folder", "text", "names"),
    [
        ("tb", "from openkpu_tools.commands import sim", ["openkpu_tools.commands.sim"]),
        ("tb", "def f():\n    import openkpu_tools.commands.sim", ["openkpu_tools.commands.sim"]),
        ("tb", "from openkpu import scripts", ["openkpu.scripts"]),
        (
            "tb",
            "importlib.import_module('openkpu_tools.commands.sim')",
            ["openkpu_tools.commands.sim"],
        ),
        ("models", "import openkpu_tb.simrun as s", ["openkpu_tb.simrun"]),
        ("tb", "from ..scripts import sim", ["openkpu_tools.commands.sim"]),
        ("tb", "from . import scripts", []),
        ("tb", "from openkpu.models import scripts_of\nimport scriptsome", []),
    ],
)
def test_an_arrow_is_seen(folder: str, text: str, names: list[str]) -> None:
    assert upwards(folder, text) == names
