# SPDX-License-Identifier: Apache-2.0
"""Checkouts with a space in their path, or read-only."""

import os
import sys
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from openkpu_tb import places
from scripts.tests.checkouts import copy, ran

pytestmark = pytest.mark.check


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of this test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def test_ordinary_checkout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert places.builds(tmp_path) == tmp_path / "sim_build"
    assert places.tool_root(tmp_path) == tmp_path
    assert capsys.readouterr().err == ""


def test_space_in_the_path(tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Builds go elsewhere, which is said; tools reach the checkout by a path without a space."""
    root = tmp_path / "x y"
    root.mkdir()
    folder = places.builds(root)
    assert folder.is_relative_to(cache) and folder.is_dir() and not places.spaced(folder)
    assert "has a space in its path: builds go to" in capsys.readouterr().err
    link = places.tool_root(root)
    assert places.tool_root(root) == link and not places.spaced(link) and link.samefile(root)
    assert not list(root.iterdir())


def test_two_checkouts_do_not_meet(tmp_path: Path) -> None:
    assert places.cache(tmp_path / "a b") != places.cache(tmp_path / "a c")


def test_read_only_checkout(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """/proc: nobody can make a file there, whatever rights he has."""
    assert places.builds(Path("/proc")).is_relative_to(cache)
    assert "/proc cannot be written: builds go to" in capsys.readouterr().err


def test_nowhere_to_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc")
    with pytest.raises(places.PlaceError, match=r"^/proc/openkpu/\S+: cannot be made: "):
        places.builds(Path("/proc"))


@pytest.mark.parametrize("name", ["plain", "x y"])
def test_shell_and_python_agree(name: str, tmp_path: Path) -> None:
    """where.sh puts the environment beside the builds, or into the checkout."""
    root = tmp_path / name
    root.mkdir()
    script = f'root="{root}"; . "{ROOT}/scripts/where.sh"; echo "$venv"'
    found = ran("sh", "-c", script, env=os.environ)
    place = places.cache(root) / "venv" if " " in name else root / ".venv"
    assert found.stdout == f"{place}\n" and found.stderr == ""


def test_make_in_a_path_with_a_space(tmp_path: Path) -> None:
    """A copy with a space in its path, -C from elsewhere, this environment as its own."""
    root = tmp_path / "x y"
    copy(root)
    venv = places.cache(root.resolve()) / "venv"
    venv.parent.mkdir(parents=True)
    mine = Path(sys.prefix)
    venv.symlink_to(mine)
    vectors = f"VECTORS={ROOT / 'models/tests/data/vectors/raw_pool7.npz'}"
    words = ("make", "-C", root, "sim", "SIM=icarus", "CONFIG=nano", vectors, "REPORT=r s.json")
    result = ran(*words, cwd="/")
    assert "3 of 3 layers run, 0 mismatching bytes" in result.stdout
    assert "builds go to" in result.stderr
    assert (root / "r s.json").is_file() and not (root / "sim_build").exists()
