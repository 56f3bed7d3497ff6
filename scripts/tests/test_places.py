# SPDX-License-Identifier: Apache-2.0
"""Checkouts with a space in their path, or read-only; what setup.sh asks for and blames."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from openkpu.tb import places
from openkpu.tb.simrun import ROOT

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
    found = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    place = places.cache(root) / "venv" if " " in name else root / ".venv"
    assert found.stdout == f"{place}\n" and found.stderr == ""


def fake_checkout(folder: Path) -> Path:
    """setup.sh with an environment that is ready, and no tool but those of the test on PATH."""
    (folder / "scripts").mkdir(parents=True)
    for name in ("setup.sh", "where.sh"):
        shutil.copy(ROOT / "scripts" / name, folder / "scripts")
    (folder / "pyproject.toml").write_text('[project]\ndependencies = ["a==1"]\n')
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / ".installed").write_text("a==1\n")
    tool(folder / ".venv" / "bin", "python", "echo libpython")
    return folder


def tool(folder: Path, name: str, body: str) -> None:
    """A program for PATH."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def setup(root: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(root.parent / "bin"), os.environ["PATH"]])
    return subprocess.run(
        [str(root / "scripts/setup.sh"), *words],
        env={**os.environ, "PATH": path, **env},
        capture_output=True,
        text=True,
    )


def test_icarus_needs_no_lz4(tmp_path: Path) -> None:
    """WAVES=1 asks for the headers with Verilator only."""
    root, tools = fake_checkout(tmp_path / "kpu"), tmp_path / "bin"
    tool(tools, "g++", 'case " $* " in *" -E "*) exit 1 ;; esac')  # no header is there
    tool(tools, "iverilog", 'echo "Icarus Verilog version 12.0 (stable)"')
    tool(tools, "id", "echo 0")
    tool(tools, "apt-get", 'echo "E: nothing here" >&2; exit 100')
    good = setup(root, "icarus", "fst")
    assert (good.returncode, good.stdout, good.stderr) == (0, "", "")
    needs = setup(root, "verilator", "fst")
    assert needs.returncode == 2 and "liblz4-dev" in needs.stderr, needs.stderr
    assert "E: nothing here" in needs.stderr


def test_apt_is_not_blamed_for_a_log(tmp_path: Path) -> None:
    """Where no temporary file can be made, that is what is said."""
    root, tools = fake_checkout(tmp_path / "kpu"), tmp_path / "bin"
    tool(tools, "iverilog", "exit 1")
    tool(tools, "id", "echo 0")
    tool(tools, "apt-get", "exit 0")
    result = setup(root, "icarus", TMPDIR="/proc/none")
    assert result.returncode == 2, result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith("setup: no temporary file can be made in /proc/none")
    assert "could not install" not in line


def test_no_place_for_the_environment(tmp_path: Path) -> None:
    root = fake_checkout(tmp_path / "x y")
    result = setup(root, XDG_CACHE_HOME="/proc")
    assert result.returncode == 2 and result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("setup: /proc/openkpu/") and line.endswith("/venv: cannot be written")


def test_make_in_a_path_with_a_space(tmp_path: Path) -> None:
    """A copy with a space in its path, -C from elsewhere, this environment as its own."""
    root = tmp_path / "x y"
    leave = shutil.ignore_patterns("sim_build", ".venv", ".git", "__pycache__", "waves", "reports")
    shutil.copytree(ROOT, root, ignore=leave)
    venv = places.cache(root.resolve()) / "venv"
    venv.parent.mkdir(parents=True)
    mine = Path(os.sys.prefix)
    venv.symlink_to(mine)
    vectors = "VECTORS=models/tests/data/vectors/raw_pool7.npz"
    env = {k: v for k, v in os.environ.items() if k not in ("SEED", "MAKEFLAGS", "MAKELEVEL")}
    result = subprocess.run(
        ["make", "-C", str(root), "sim", "SIM=icarus", "CONFIG=nano", vectors, "REPORT=r s.json"],
        cwd="/",
        env=env,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "3 of 3 layers run, 0 mismatching bytes" in result.stdout
    assert "builds go to" in result.stderr
    assert (root / "r s.json").is_file() and not (root / "sim_build").exists()
