# SPDX-License-Identifier: Apache-2.0
"""Who may import whom, tests included; every module has one name.

The layers inside the packages are import-linter's contracts (pyproject.toml), which `make lint`
runs; here is what holds for the tests around them. That every import is a file says basedpyright.
"""

import ast
import functools
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from openkpu.checkout import ROOT, python_path, source_roots
from scripts.tests.checkouts import ran

pytestmark = pytest.mark.check

FORBIDDEN = {
    "models": {"openkpu_tb", "openkpu_tools", "tb", "scripts"},
    "tb": {"openkpu_tools", "scripts"},
    "scripts": set(),
}
PACKAGES = {"openkpu": "models", "openkpu_tb": "tb", "openkpu_tools": "scripts"}
OLD = ("openkpu.models", "openkpu.tb", "openkpu.scripts")
FOLDERS = {  # importable by accident, for a source root holds more than its package
    path.name for root in source_roots() for path in root.iterdir() if path.is_dir()
} - {*PACKAGES, *FORBIDDEN}


@functools.cache
def nodes(text: str) -> tuple[ast.AST, ...]:
    """Of Python text, the ones that can import or change where Python looks."""
    kinds = ast.Import, ast.ImportFrom, ast.Call, ast.Name, ast.Attribute
    return tuple(node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds))


@functools.cache
def imports(text: str) -> tuple[str, ...]:
    """Dotted names that Python text imports, wherever in it: by statement, by import_module or run
    by run_module."""
    return tuple(_imports(text))


def _imports(text: str) -> Iterator[str]:
    for node in nodes(text):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from (f"{module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("import_module", "__import__", "run_module"):
                yield str(node.args[0].value)


def wrong(folder: str, text: str) -> list[str]:
    """What text in ``folder`` imports and must not."""
    found = []
    for name in imports(text):
        first, _, rest = name.partition(".")
        below = PACKAGES.get(rest.partition(".")[0]) == first  # models.openkpu: a second name
        outside = first in FORBIDDEN[folder] or first in FOLDERS or not first
        if below or outside or name.startswith(tuple(f"{old}." for old in OLD)):
            found.append(name)
    return found


def files(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert len(found) > 30
    return found


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_no_arrow_upwards(folder: str) -> None:
    """Nor an import by a second name, a relative one, or one of an old name."""
    found = {
        str(file.relative_to(ROOT)): what
        for file in files(folder)
        if (what := wrong(folder, file.read_text())) and file != Path(__file__).resolve()
    }
    # python -m openkpu runs the commands, which the core alone can do without
    program = {"models/openkpu/__main__.py": ["openkpu_tools"]}
    assert found == (program if folder == "models" else {})


@pytest.mark.parametrize(
    ("folder", "text", "names"),
    [
        ("tb", "from openkpu_tools.commands import sim", ["openkpu_tools.commands.sim"]),
        ("tb", "def f():\n    import openkpu_tools.sim", ["openkpu_tools.sim"]),
        ("tb", "importlib.import_module('scripts.sim')", ["scripts.sim"]),
        ("models", "import openkpu_tb.simrun as s", ["openkpu_tb.simrun"]),
        ("models", "from tb.fifo import test_fifo", ["tb.fifo.test_fifo"]),
        ("scripts", "from models.openkpu import configs", ["models.openkpu.configs"]),
        ("scripts", "from tb import openkpu_tb", ["tb.openkpu_tb"]),
        ("scripts", "import fifo", ["fifo"]),
        ("scripts", "from tests.checkouts import copy", ["tests.checkouts.copy"]),
        ("tb", "from openkpu.models import golden", ["openkpu.models.golden"]),
        ("models", "from . import layer", ["..layer"]),
        ("scripts", "from models.tests import oracle\nfrom tb.fifo import test_fifo", []),
        ("tb", "from openkpu import models_of\nimport openkpu_tools_of_others", []),
    ],
)
def test_an_arrow_is_seen(folder: str, text: str, names: list[str]) -> None:
    assert wrong(folder, text) == names


def test_nothing_patches_paths() -> None:
    """No module changes where Python looks; scripts/where.sh does, before there is any."""
    patched = {
        str(file.relative_to(ROOT))
        for folder in FORBIDDEN
        for file in files(folder)
        if file != Path(__file__).resolve()
        for node in nodes(file.read_text())
        if (isinstance(node, ast.Name) and node.id == "__path__")
        or (
            isinstance(node, ast.Attribute)
            and node.attr in ("path", "addsitedir")
            and ast.unparse(node) in ("sys.path", "site.addsitedir")
        )
    }
    assert not patched


def late(text: str) -> list[str]:
    """Imports of the project or of Python itself inside functions, without a comment why."""
    lines = text.splitlines()
    return [
        lines[node.lineno - 1].strip()
        for function in ast.walk(ast.parse(text))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in [node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name]
        if name.partition(".")[0] in {*PACKAGES, *FORBIDDEN, *sys.stdlib_module_names}
        if "#" not in lines[node.lineno - 1]
    ]


def test_an_import_inside_a_function_says_why() -> None:
    """Its package is optional; of the project's own modules a comment names that package."""
    sample = "def f():\n    import json\n    import onnx\n    import tb  # needs cocotb\n"
    assert late(f"import os\n{sample}") == ["import json"]
    found = {
        str(file.relative_to(ROOT)): lines
        for folder in FORBIDDEN
        for file in files(folder)
        if (lines := late(file.read_text()))
    }
    # after its first, which says why: signals
    launch = [
        "from openkpu_tb import watchdog",
        "from openkpu_tools import command, registry",
        "from openkpu_tools.setup import setup_env",
    ]
    assert found == {"scripts/openkpu_tools/setup/launch.py": launch}


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("models/openkpu/compare.py", "", ""),
        ("models/openkpu/arithmetic/words.py", "from openkpu.layer import golden", "arithmetic"),
        ("models/openkpu/network/kept.py", "from openkpu.prediction import cycles", "arithmetic"),
        ("models/openkpu/kmodel/errors.py", "from openkpu.prediction import bound", "arithmetic"),
        ("models/openkpu/prediction/bound.py", "import openkpu_tb.places", "arithmetic"),
        ("tb/openkpu_tb/places.py", "import openkpu_tools", "arithmetic"),
        ("scripts/openkpu_tools/flows/synth.py", "import openkpu_tools.verification.lint", "comm"),
        ("tb/openkpu_tb/core/registers.py", "from openkpu_tb.device import device", "benches"),
        ("models/openkpu/layer/layout.py", "from openkpu.layer import golden", "no circles"),
    ],
)
def test_contracts(tmp_path: Path, file: str, line: str, contract: str) -> None:
    """They hold; an import that runs against the layers, or in a circle, breaks one."""
    pytest.importorskip("importlinter", reason="make setup GROUPS=lint brings import-linter")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package, root in PACKAGES.items():
        shutil.copytree(ROOT / root / package, tmp_path / root / package)
    with (tmp_path / file).open("a") as source:
        source.write(f"{line}\n")
    linter = Path(sys.executable).parent / "lint-imports"
    said = ran(linter, "--no-cache", cwd=tmp_path, status=None, PYTHONPATH=python_path(tmp_path))
    broken = [row for row in said.stdout.splitlines() if row.endswith(" BROKEN")]
    if not contract:
        assert said.returncode == 0 and not broken and " 0 broken" in said.stdout, said
    else:
        assert said.returncode == 1 and contract in said.stdout, said
        assert any(row.startswith(contract) for row in said.stdout.splitlines())
