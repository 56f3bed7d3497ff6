# SPDX-License-Identifier: Apache-2.0
"""The source roots: pyproject.toml lists them once for each tool, and all lists are the same."""

import os
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import openkpu
import openkpu_tb
import openkpu_tools
from openkpu.checkout import ROOT, source_roots
from scripts.tests.checkouts import ran

TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
ROOTS = TOOLS["pytest"]["ini_options"]["pythonpath"]
RUN = ROOT / "scripts" / "run.sh"
SIZES = [("rtl", ".v", 450), *((name, ".py", 500) for name in ("models", "tb", "scripts"))]


def test_every_list_is_the_same() -> None:
    assert ROOTS == [".", "models", "tb", "scripts"]
    assert TOOLS["ruff"]["src"] == ROOTS
    assert TOOLS["pyright"]["extraPaths"] == ROOTS
    assert source_roots() == [ROOT / name for name in ROOTS]
    wheel = TOOLS["setuptools"]
    assert wheel["packages"]["find"]["where"] == ROOTS[1:]
    packages = {"openkpu": openkpu, "openkpu_tb": openkpu_tb, "openkpu_tools": openkpu_tools}
    assert list(wheel["package-dir"]) == list(packages)
    assert TOOLS["importlinter"]["root_packages"] == list(packages)
    for root, (name, package) in zip(ROOTS[1:], packages.items(), strict=True):
        assert wheel["package-dir"][name] == f"{root}/{name}"
        assert package.__path__ == [str(ROOT / root / name)]


def test_rooms() -> None:
    """A folder has one meaning, and no more modules than a reader can overlook."""
    named = ran("git", "ls-files", "*.py", cwd=ROOT).stdout.split()
    rooms = Counter(Path(name).parent for name in named)
    assert len(rooms) > 50 and not {str(k): n for k, n in rooms.items() if n > 16}


def test_run_script() -> None:
    """scripts/run.sh has the same ones as the path, and nothing that its caller exported."""
    code = "import os; print(os.environ['PYTHONPATH'])"
    said = ran(RUN, "-c", code, PYTHONPATH="/elsewhere")
    found = said.stdout.strip().split(os.pathsep)
    assert found == [str(ROOT / name).removesuffix("/.") for name in ROOTS]


def test_flags_for_other_programs() -> None:
    """Flags that a caller has exported do not reach what compiles a bench; its compiler does."""
    flags: dict[str, str] = dict.fromkeys(
        ("CFLAGS", "CPPFLAGS", "CXXFLAGS", "LDFLAGS", "LDLIBS", "OPT"), "-m32"
    )
    said = ran(RUN, "-c", "import os; print(*os.environ)", CXX="c++", also=flags)
    assert not set(flags) & set(said.stdout.split()) and "CXX" in said.stdout.split()


@pytest.mark.parametrize("forbidden", ["", "1"])
def test_compiled_code_is_kept(forbidden: str) -> None:
    """Beside the sources, or in the environment for a caller who wants none there."""
    code = "import sys; print(sys.dont_write_bytecode, sys.pycache_prefix)"
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPYCACHEPREFIX"}
    said = ran(RUN, "-c", code, env=env, PYTHONDONTWRITEBYTECODE=forbidden)
    dropped, place = said.stdout.split()
    assert dropped == "False"
    if forbidden:
        assert Path(place).parent.samefile(sys.prefix) and Path(place).name == "bytecode"
    else:
        assert place == "None"


@pytest.mark.parametrize(
    "name",
    ["openkpu.layer.golden", "openkpu_tb.simrun", "openkpu_tools.command", "tb.fifo.test_fifo"],
)
def test_a_module_from_anywhere(name: str) -> None:
    """run.sh finds a module of each root from another folder, where the checkout has it."""
    code = f"import {name} as m; print(m.__file__)"
    said = ran(RUN, "-c", code, cwd="/", env=os.environ)
    file = f"{name.replace('.', '/')}.py"
    assert said.stdout.strip() in {str(root / file) for root in source_roots()}


def test_run_by_a_link(tmp_path: Path) -> None:
    """A link to run.sh in a folder of PATH runs this checkout."""
    (tmp_path / "okpu").symlink_to(RUN)
    said = ran(tmp_path / "okpu", "-c", "import openkpu as m; print(m.__file__)", cwd=tmp_path)
    assert said.stdout.strip() == str(ROOT / "models/openkpu/__init__.py")


@pytest.mark.parametrize(("folder", "suffix", "most"), SIZES)
def test_sizes_of_files(folder: str, suffix: str, most: int) -> None:
    """As CONTRIBUTING.md has them."""
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    assert f"No module above {most} lines" in text
    lines = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / folder).rglob(f"*{suffix}")
    }
    assert len(lines) > 50
    assert not {name: n for name, n in lines.items() if n > most}
