# SPDX-License-Identifier: Apache-2.0
"""The wheel, installed into an empty folder and used from another one."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from openkpu.checkout import ROOT
from openkpu.kmodel import loads, run

from models.tests.test_kmodel_containers import CONTAINERS, X

pytestmark = pytest.mark.check

VECTOR = ROOT / "models" / "tests" / "data" / "vectors" / "raw_pool0.npz"
TREE = ("openkpu", "models", "tb", "scripts", "rtl")
FILES = ("setup.py", "pyproject.toml", "MANIFEST.in", "configs.toml", "LICENSE")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "-q"]

LAYER = """
from openkpu.layer import golden, vectors
layer = vectors.load_cases([{vector!r}])[0]
found = golden.run_layer(layer.arg, layer.x, layer.weights, layer.bn, layer.act)
assert (found.y == layer.y).all() and found.macs
print(golden.__file__)
"""
MODEL = """
import numpy as np
from openkpu.kmodel import load, run
np.savez({result!r}, **run(load({model!r}), np.load({x!r})).outputs)
"""
KIT = """
from openkpu_tb.ahb import beat_master, host, host_agent, monitor, responder, signals
print(signals.Signals("s_", hready_out="hreadyout").names["hready_out"])
"""
SIM = """
import sys
from openkpu_tools.commands.sim import main
sys.exit(main(["--sim", "icarus", "--config", "nano", "--vectors", {vector!r}]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, for setuptools leaves its work beside the sources."""
    base = tmp_path_factory.mktemp("wheel")
    source = base / "source"
    for name in TREE:
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, source / name, ignore=skipped)
    for name in FILES:
        shutil.copy(ROOT / name, source)
    stale = source / "build" / "lib" / "openkpu" / "models"
    stale.mkdir(parents=True)
    (stale / "stale.py").touch()
    command = [*PIP, "wheel", ".", "--no-deps", "--no-build-isolation", "--no-index", "-w", base]
    result = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    (found,) = base.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the package and nothing else."""
    target = tmp_path_factory.mktemp("installed")
    command = [*PIP, "install", "--no-deps", "--no-index", "--target", target, wheel]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return target


@pytest.fixture(scope="module")
def numpy_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with numpy, and no other package."""
    folder = tmp_path_factory.mktemp("numpy")
    packages = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if (packages / name).exists():
            (folder / name).symlink_to(packages / name)
    return folder


def python(code: str, cwd: Path, *path: Path, site: bool = False, **env: str) -> str:
    """What a new interpreter prints that knows the folders of ``path`` (and its own packages)."""
    start = f"import sys; sys.path[:0] = {[str(p) for p in path]!r}\n"
    result = subprocess.run(
        [sys.executable, "-I", *([] if site else ["-S"]), "-c", start + code],
        cwd=cwd,
        env={**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **env},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_content(wheel: Path) -> None:
    """One package and its metadata; data files and sources are there, tests are not."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read("openkpu-0.2.0.dist-info/METADATA").decode()
        commands = archive.read("openkpu-0.2.0.dist-info/entry_points.txt").decode()
    assert {name.partition("/")[0] for name in names} == {"openkpu", "openkpu-0.2.0.dist-info"}
    assert "Version: 0.2.0" in metadata and "Requires-Dist: numpy" in metadata
    assert "openkpu = openkpu.__main__:main" in commands
    for file in ("configs.toml", "models/openkpu/digits/network.npz", "rtl/host/openkpu.rdl"):
        assert f"openkpu/{file}" in names
    for file in ("rtl/include/fields.toml", "tb/openkpu_tb/ahb/checkers/ahb_slave_checker.v"):
        assert f"openkpu/{file}" in names
    for folder in ("rtl", "tb/device", "tb/openkpu_tb/ahb/fabric"):
        sources = (ROOT / folder).rglob("*.v*")
        assert {f"openkpu/{f.relative_to(ROOT)}" for f in sources} <= names
    assert not [name for name in names if "/tests/" in name or "/test_" in name]
    assert not [name for name in names if "stale" in name or "__pycache__" in name]


def test_golden_model(installed: Path, numpy_only: Path, tmp_path: Path) -> None:
    """A layer runs, with no other package than numpy."""
    said = python(LAYER.format(vector=str(VECTOR)), tmp_path, installed, numpy_only)
    assert Path(said.strip().splitlines()[-1]).is_relative_to(installed)


def test_reader(installed: Path, numpy_only: Path, tmp_path: Path) -> None:
    """A kmodel is read and run; the result is the checkout's."""
    model, x, result = (tmp_path / name for name in ("m.kmodel", "x.npy", "y.npz"))
    model.write_bytes(CONTAINERS["v3"])
    np.save(x, X)
    code = MODEL.format(model=str(model), x=str(x), result=str(result))
    python(code, tmp_path, installed, numpy_only)
    expected = run(loads(CONTAINERS["v3"], "m"), X).outputs
    with np.load(result) as found:
        assert expected and set(found.files) == set(expected)
        assert all((found[name] == value).all() for name, value in expected.items())


def test_ahb_kit(installed: Path, tmp_path: Path) -> None:
    """The kit is imported by its name in the package."""
    assert python(KIT, tmp_path, installed, site=True) == "hreadyout\n"


@pytest.mark.nightly
def test_simulation(installed: Path, tmp_path: Path) -> None:
    """The installed RTL runs vectors; builds go to the cache, not into the package."""
    before = {p for p in installed.rglob("*") if p.suffix != ".pyc" and p.name != "__pycache__"}
    code = SIM.format(vector=str(VECTOR))
    said = python(code, tmp_path, installed, site=True, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert "3 of 3 layers run, 0 mismatching bytes" in said
    assert list((tmp_path / "cache" / "openkpu").glob("*/sim_build/icarus_tb_top_*"))
    after = {p for p in installed.rglob("*") if p.suffix != ".pyc" and p.name != "__pycache__"}
    assert after == before
