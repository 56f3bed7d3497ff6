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
from packaging.requirements import Requirement

from models.tests.kmodel.test_kmodel_containers import CONTAINERS, X
from openkpu import __version__
from openkpu.checkout import ROOT
from openkpu.kmodel import loads_kmodel, run_kmodel
from openkpu_tools.registry import COMMANDS
from scripts.tests.checkouts import ran

pytestmark = pytest.mark.check

INFO = f"openkpu-{__version__}.dist-info"
VECTOR = ROOT / "models" / "tests" / "data" / "vectors" / "raw_pool0.npz"
TREE = ("models", "tb", "scripts", "rtl", "include", "sw")
FILES = ("setup.py", "pyproject.toml", "MANIFEST.in", "configs.toml")
FILES = (*FILES, "LICENSE", "NOTICE", "README.md")
OF_A_CHECKOUT = (
    "benchmarks",
    "documents",
    "foreign",
    "mutation",
    "page",
    "setup",
    "site",
    "verification",
)
NUMPY = ("numpy==1.26.*", "numpy")
OTHER = ("3.11", "3.12", "3.13")
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
from openkpu.kmodel import load_kmodel, run_kmodel
np.savez({result!r}, **run_kmodel(load_kmodel({model!r}), np.load({x!r})).outputs)
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


def python_of(version: str) -> str | Path | None:
    """An interpreter: of pyenv, whose commands find none that is not selected, or of the PATH."""
    if pyenv := shutil.which("pyenv"):
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=True).stdout
        for found in sorted(Path(root.strip()).glob(f"versions/{version}.*/bin/python3")):
            return found
    return shutil.which(f"python{version}")


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
    ran(*command, cwd=source)
    (found,) = base.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the package and nothing else."""
    target = tmp_path_factory.mktemp("installed")
    command = [*PIP, "install", "--no-deps", "--no-index", "--target", target, wheel]
    ran(*command)
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
    """Output of a new interpreter with the folders of ``path`` (and its packages) in its path."""
    start = f"import sys; sys.path[:0] = {[str(p) for p in path]!r}\n"
    words = (sys.executable, "-I", *([] if site else ["-S"]), "-c", start + code)
    return ran(*words, cwd=cwd, also=env).stdout


def test_content(wheel: Path) -> None:
    """One package and its metadata; data files and sources are there, tests are not."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(f"{INFO}/METADATA").decode()
        file_list = archive.read("openkpu/share/rtl/openkpu.f").decode()
        commands = archive.read(f"{INFO}/entry_points.txt").decode()
    packages = {"openkpu", "openkpu_tb", "openkpu_tools"}
    assert {name.partition("/")[0] for name in names} == {*packages, INFO}
    assert f"Version: {__version__}\n" in metadata
    needs = [
        Requirement(line.partition(": ")[2])
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist:")
    ]
    (always,) = (need for need in needs if need.marker is None)
    assert (always.name, str(always.specifier)) == ("numpy", ">=1.26")
    assert not [need for need in needs if "==" in str(need.specifier)], "ranges, not pins"
    for word in ("Summary: A CNN", "License-Expression: Apache-2.0", "Requires-Python: >=3.11"):
        assert f"\n{word}" in metadata
    for version in OTHER:
        assert f"\nClassifier: Programming Language :: Python :: {version}" in metadata
    assert (ROOT / "README.md").read_text()[:500] in metadata
    for extra in ("sim", "verilator", "models", "plots", "flows", "dev"):
        assert f"\nProvides-Extra: {extra}\n" in metadata
    assert "openkpu = openkpu_tools.__main__:main" in commands
    listed = file_list.split()
    assert [f for f in listed if f.endswith(".v")] == sorted(
        str(f.relative_to(ROOT)) for f in ROOT.glob("rtl/**/*.v")
    )
    assert {f"openkpu/share/{f}" for f in listed if f[0] != "+"} <= names
    assert "+incdir+rtl/include" in listed
    more = ("rtl/include/fields.toml", "include/openkpu_regs.h")
    for file in ("configs.toml", "rtl/host/openkpu.rdl", *more):
        assert f"openkpu/share/{file}" in names
    assert {
        *("openkpu/digits/network.npz", "openkpu_tb/coverage/waivers.toml"),
        *(f"{root}/py.typed" for root in ("openkpu", "openkpu_tb", "openkpu_tools")),
    } <= names
    driver = {f"openkpu/share/{f.relative_to(ROOT)}" for f in (ROOT / "sw").glob("*.*")}
    assert driver and driver <= names, "what `openkpu export` writes is compiled with the driver"
    for folder in ("rtl", "tb/openkpu_tb"):
        sources = [f for f in (ROOT / folder).rglob("*.v*") if f.suffix in (".v", ".vh", ".vlt")]
        assert {f"openkpu/share/{f.relative_to(ROOT)}" for f in sources} <= names
    roots = {"openkpu": "models", "openkpu_tb": "tb", "openkpu_tools": "scripts"}
    left = {f"openkpu_tools/{room}" for room in OF_A_CHECKOUT}
    flows = {"openkpu_tb/claims/run_claims.py", "openkpu_tb/plan/plan.py"}
    for name in ("board", "formal", "proofs", "soc", "soc_job"):
        flows.add(f"openkpu_tools/flows/{name}.py")
    for package, root in roots.items():
        modules = {str(f.relative_to(ROOT / root)) for f in (ROOT / root / package).rglob("*.py")}
        there = {name for name in modules if "/".join(name.split("/")[:2]) not in left} - flows
        assert there <= names and not (modules - there) & names
    for name, each in COMMANDS.items():
        module = each.module.partition(":")[0].replace(".", "/")
        assert (f"{module}.py" in names) != each.checkout or name == "waves", name
    assert not [name for name in names if "/tests/" in name or "/test_" in name]
    assert not [name for name in names if "stale" in name or "__pycache__" in name]


IMPORT_ALL = """
import importlib, pkgutil, sys
bad = []
for root in ("openkpu", "openkpu_tb", "openkpu_tools"):
    package = importlib.import_module(root)
    for found in pkgutil.walk_packages(package.__path__, root + "."):
        if found.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if error.name.partition(".")[0] in ("openkpu", "openkpu_tb", "openkpu_tools"):
                bad.append(f"{found.name}: {error}")
        except Exception as error:
            bad.append(f"{found.name}: {error!r}")
print(*bad, sep=chr(10))
"""


def test_every_module_imports(installed: Path, tmp_path: Path) -> None:
    """In an installed package, with the extras that are there."""
    assert python(IMPORT_ALL, tmp_path, installed, site=True).split() == []


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
    expected = run_kmodel(loads_kmodel(CONTAINERS["v3"], "m"), X).outputs
    with np.load(result) as found:
        assert expected and set(found.files) == set(expected)
        assert all((found[name] == value).all() for name, value in expected.items())


def openkpu(*words: str, cwd: Path, path: list[Path]) -> subprocess.CompletedProcess[str]:
    """The command with the packages of some folders alone."""
    code = f"import sys; sys.path[:0] = {[str(p) for p in path]!r}; sys.argv[0] = 'openkpu'"
    code += "; from openkpu_tools.__main__ import main; sys.exit(main())"
    run = (sys.executable, "-I", "-S", "-c", code, *words)
    return ran(*run, cwd=cwd, status=None, PATH="/usr/bin:/bin")


def test_commands_with_numpy_alone(installed: Path, numpy_only: Path, tmp_path: Path) -> None:
    both = [installed, numpy_only]
    found = openkpu("predict", "--config=nano", "--matmul", "8x8x8", cwd=tmp_path, path=both)
    assert found.returncode == 0 and "configuration nano" in found.stdout, found.stderr
    variant = ["--config=nano", "--params", "POOL_LANES=0", "N_Z=4"]
    found = openkpu("predict", *variant, cwd=tmp_path, path=both)
    assert "configuration nano, POOL_LANES=0 N_Z=4 (72 MACs)" in found.stdout, found.stderr
    found = openkpu("sim", "--golden", "--images=1", *variant, cwd=tmp_path, path=both)
    assert "configuration nano, POOL_LANES=0 N_Z=4 (72 MACs)" in found.stdout, found.stderr
    found = openkpu("sim", "--golden", "--vectors", str(VECTOR), cwd=tmp_path, path=both)
    assert found.returncode == 0 and "3 of 3 layers run, 0 mis" in found.stdout, found.stderr
    model = tmp_path / "m.kmodel"
    model.write_bytes(CONTAINERS["v3"])
    found = openkpu("kmodel", str(model), cwd=tmp_path, path=both)
    assert found.returncode == 0 and "conv" in found.stdout, found.stderr
    listed = openkpu("--help", cwd=tmp_path, path=both).stdout
    shown = {line.split()[0] for line in listed.splitlines() if line.startswith("  ")}
    assert shown == {n for n, each in COMMANDS.items() if each.module and not each.checkout}
    assert {"predict", "sim", "synth", "stalls"} <= shown and "registers" not in shown


def lacks(name: str, extras: str) -> str:
    return f"{name} needs more packages: pip install 'openkpu[{extras}]'"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sim", lacks("sim", "sim")),
        ("stream", lacks("stream", "sim,verilator")),
        ("sim --golden --png=a.png", lacks("sim", "models")),
        ("kmodel m.kmodel --image=p.png", lacks("kmodel", "models")),
        ("compile net.tflite", lacks("compile", "models")),
        ("compile net.tflite --calibration=p.png", lacks("compile", "models,quantise")),
        ("quantise net.tflite --calibration=p.png", lacks("quantise", "models,quantise")),
        ("predict --model=n.onnx --calibration=p.png", lacks("predict", "models,quantise")),
        ("stalls report.json", lacks("stalls", "plots")),
        *((name, lacks(name, "flows")) for name in ("synth", "fpga", "asic", "equivalence")),
        ("gates", lacks("gates", "sim,verilator,flows")),
        ("features", lacks("features", "models,flows")),
        ("fpga --config=none", "--config: unknown configuration 'none'"),
        ("registers", "registers works on a checkout, which this is not"),
        ("lint", "lint works on a checkout, which this is not"),
        ("nonsense", "unknown command 'nonsense', expected one of sim, compile,"),
    ],
)
def test_an_extra_that_is_missing(
    words: str, said: str, installed: Path, numpy_only: Path, tmp_path: Path
) -> None:
    """One line, before anything is read or built."""
    for name in ("report.json", "net.tflite", "n.onnx", "m.kmodel", "p.png"):
        (tmp_path / name).touch()
    found = openkpu(*words.split(), cwd=tmp_path, path=[installed, numpy_only])
    assert (found.returncode, found.stdout) == (2, "")
    (line,) = found.stderr.splitlines()
    assert line.startswith(f"error: {said}")


def test_the_workflow_has_every_interpreter() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    for name, words in (("python", OTHER), ("numpy", NUMPY)):
        assert f"{name}: [{', '.join(f'{chr(34)}{word}{chr(34)}' for word in words)}]" in text


@pytest.mark.nightly
@pytest.mark.parametrize("numpy", NUMPY)
@pytest.mark.parametrize("version", OTHER)
def test_other_interpreters(version: str, numpy: str, wheel: Path, tmp_path: Path) -> None:
    """The oldest and the newest Python and numpy that are named, in an empty environment."""
    if version == "3.13" and numpy != "numpy":
        pytest.skip("numpy 1.26 is older than Python 3.13")
    if (interpreter := python_of(version)) is None:
        pytest.skip(f"no Python {version} here")
    venv = tmp_path / "venv"
    ran(interpreter, "-m", "venv", venv)
    ran(venv / "bin" / "python", "-m", "pip", "-q", "install", numpy, wheel, env=os.environ)
    model = tmp_path / "m.kmodel"
    model.write_bytes(CONTAINERS["v3"])
    for words in (
        ["sim", "--golden", "--vectors", VECTOR],
        ["predict", "--config=nano", "--matmul", "8x8x8"],
        ["kmodel", model],
    ):
        ran(venv / "bin" / "openkpu", *words, cwd=tmp_path, env=os.environ)


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


def test_a_folder_of_a_checkout_is_no_checkout(tmp_path: Path) -> None:
    """Of a package that pip install --target put below a checkout, ROOT is its own share."""
    package = tmp_path / "deps" / "openkpu"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copy(ROOT / "models" / "openkpu" / "checkout.py", package)
    for name in ("pyproject.toml", "configs.toml"):
        shutil.copy(ROOT / name, tmp_path)
    code = "from openkpu.checkout import IN_CHECKOUT, ROOT; print(IN_CHECKOUT, ROOT)"
    done = ran(sys.executable, "-c", code, cwd=package.parent, env={})
    assert done.stdout.split() == ["False", str(package / "share")]
