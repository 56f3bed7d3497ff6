# SPDX-License-Identifier: Apache-2.0
"""Names that grep finds: what one module imports from another says what it is.

A public function or class of a module that another module uses may share its name with one other
module's at most, used or not: `load` in fourteen modules is fourteen places to look at.
"""

import ast
from collections import defaultdict
from collections.abc import Mapping, Set
from pathlib import Path

import pytest

from openkpu.checkout import ROOT

PACKAGES = {"openkpu": "models", "openkpu_tb": "tb", "openkpu_tools": "scripts"}
MOST = 2  # modules that may define the same name, if another module uses one of them
ALLOWED = {"main"}  # the list of commands calls it in every command's module
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def module_of(path: Path, root: Path) -> str:
    """The name by which a file is imported."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def trees(root: Path) -> dict[str, ast.Module]:
    """Every Python file of the packages and the tests, by the name that imports it."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in sorted((root / folder).rglob("*.py")):
            inside = path.is_relative_to(root / folder / package)
            name = module_of(path, root / folder if inside else root)
            found[name] = ast.parse(path.read_text())
    return found


def definitions(modules: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Public names of the packages' modules, each with the modules that define it."""
    found = defaultdict(set)
    for module, tree in modules.items():
        if module.partition(".")[0] in PACKAGES:
            for node in tree.body:
                if isinstance(node, DEFINITIONS) and not node.name.startswith("_"):
                    found[node.name].add(module)
    return found


def used(modules: Mapping[str, ast.Module]) -> set[tuple[str, str]]:
    """(module, name) of what others import by name or reach through the module."""
    found = set()
    for tree in modules.values():
        called = {}  # name in this file: the module that it is
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                found |= {(node.module or "", name.name) for name in node.names}
                for name in node.names:
                    if f"{node.module}.{name.name}" in modules:
                        called[name.asname or name.name] = f"{node.module}.{name.name}"
            elif isinstance(node, ast.Import):
                called |= {name.asname or name.name: name.name for name in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and (of := called.get(ast.unparse(node.value))):
                found.add((of, node.attr))
    return found


def shared(root: Path, allowed: Set[str] = ALLOWED) -> dict[str, list[str]]:
    """Names that other modules use and that too many define, with the modules that do."""
    modules = trees(root)
    uses = used(modules)
    return {
        name: sorted(where)
        for name, where in definitions(modules).items()
        if len(where) > MOST
        and name not in allowed
        and any((module, name) in uses for module in where)
    }


@pytest.mark.check
def test_names_say_what_they_are() -> None:
    assert not shared(ROOT), "give the ones that other modules use a name of their own"


@pytest.mark.check
def test_allowed_names_are_shared() -> None:
    """Without the list exactly these are found."""
    assert set(shared(ROOT, set())) == ALLOWED


@pytest.mark.parametrize(
    ("use", "found"),
    [
        ("from openkpu.a import load", True),
        ("def f():\n    from openkpu.a import load as it", True),
        ("from openkpu import a\na.load()", True),
        ("from openkpu import a as b\nx = [b.load]", True),
        ("import openkpu.a\nopenkpu.a.load()", True),
        ("from openkpu.a import store", False),
        ("from openkpu import a\nx.load()", False),
        ("def load(): ...", False),
    ],
)
@pytest.mark.parametrize("where", ["tb/openkpu_tb/user.py", "models/tests/test_user.py"])
def test_a_shared_name_is_found(use: str, found: bool, where: str, tmp_path: Path) -> None:
    """Three modules define ``load``, two ``store``."""
    for name in "abc":
        path = tmp_path / "models" / "openkpu" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "def load(): ...\n" if name == "c" else "class store: ...\ndef load(): ...\n"
        )
    user = tmp_path / where
    user.parent.mkdir(parents=True)
    user.write_text(use)
    said = shared(tmp_path)
    assert set(said) == ({"load"} if found else set())
    (tmp_path / "models" / "openkpu" / "c.py").unlink()
    assert not shared(tmp_path), "two are allowed"
