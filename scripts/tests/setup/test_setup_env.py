# SPDX-License-Identifier: Apache-2.0
"""What the set-up installs, asks for and blames: packages by need, tools of the distribution."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from scripts.tests.checkouts import ENVIRONMENT, program

pytestmark = pytest.mark.check

PROJECT = """
[project]
dependencies = ["a==1"]
[project.optional-dependencies]
setup = ["uv==1"]
sim = ["b==2"]
plots = ["d==4"]
"""
CONSTRAINTS = "".join(
    f"{name} \\\n    --hash=sha256:{number:064}\n    # via\n    #   {via}\n"
    for number, (name, via) in enumerate(
        {"a==1": "openkpu (pyproject.toml)\n    #   b", "b==2": "openkpu", "c==3": "b"}.items()
    )
)
CONSTRAINTS += "d==4 ; python_version < '4' \\\n    --hash=sha256:4\n    # via openkpu\nuv==1\n"
GOOD_UV = 'echo "$@" >>"$LOG"; grep -oE "^[a-z]+==[0-9]" "${!#}" >>"$LOG"'


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder that is first on PATH: a uv that says what it is asked for, and root's rights."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program(folder, "uv", GOOD_UV)
    program(folder, "id", "echo 0")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with packages a (all), b with c and a (sim), d (plots), without environment."""
    return checkout(tmp_path / "kpu")


def checkout(folder: Path) -> Path:
    for name in ("setup.sh", "where.sh", "openkpu_tools/setup/setup_env.py"):
        (folder / "scripts" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "scripts" / name, folder / "scripts" / name)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "constraints.txt").write_text(CONSTRAINTS)
    return folder


def ready(root: Path) -> Path:
    """The same with an environment that has everything."""
    venv = root / ".venv"
    (venv / "bin").mkdir(parents=True)
    program(venv / "bin", "python", "exit 0")
    (venv / ".groups").write_text("a==1\nb==2\nc==3\nlibpython\n")
    return root


def start(root: Path, *words: str, **env: str) -> subprocess.Popen[str]:
    tools = root.parent / "bin"
    path = os.pathsep.join([str(tools), ENVIRONMENT["PATH"]])
    return subprocess.Popen(
        [str(root / "scripts/setup.sh"), *words],
        env={**ENVIRONMENT, "PATH": path, "LOG": str(tools / "log"), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def setup(root: Path, *words: str, **env: str) -> tuple[int, str, str]:
    """(status, stdout, stderr)"""
    process = start(root, *words, **env)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def installed(tools: Path) -> list[str]:
    """What uv was asked to install, call after call."""
    log = tools / "log"
    return log.read_text().splitlines() if log.exists() else []


# ---- packages by need
def test_a_group_when_it_is_needed(root: Path, tools: Path) -> None:
    """The group and what it needs; then nothing; then only what another group adds."""
    assert setup(root, "sim", LOG=str(tools / "log"))[0] == 0
    words, *packages = installed(tools)
    assert packages == ["a==1", "b==2", "c==3"]
    assert "--require-hashes" in words and "--no-deps" in words
    listed = (root / ".venv/requirements.txt").read_text()
    assert listed.count("--hash=sha256:") == 3 and "#" not in listed
    assert setup(root, "sim") == (0, "", "")
    assert len(installed(tools)) == 4
    assert setup(root, "plots")[0] == 0
    assert installed(tools)[5:] == ["d==4"]


def test_another_version_is_installed(root: Path, tools: Path) -> None:
    """... and the old one is forgotten, so that going back installs it again."""
    old = (root / "constraints.txt").read_text()
    for text in (old, old.replace("a==1", "a==2"), old):
        (root / "constraints.txt").write_text(text)
        assert setup(root)[0] == 0
    assert [line for line in installed(tools) if "==" in line] == ["a==1", "a==2", "a==1"]


def test_unknown_group(root: Path, tools: Path) -> None:
    status, _, said = setup(root, "nothere")
    assert (status, said) == (
        2,
        "error: GROUPS=nothere: no such group, expected some of setup, sim, plots\n",
    )
    assert not (root / ".venv").exists()


def test_environment_of_an_older_version(root: Path, tools: Path) -> None:
    """It has packages and another kind of stamp: it is kept, and gets what it lacks."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / ".venv"], check=True)
    (root / ".venv/.installed").write_text("a==1\n")
    (root / ".venv/mine").touch()
    assert setup(root)[0] == 0
    assert installed(tools)[1:] == ["a==1"] and (root / ".venv/mine").exists()


def test_environment_of_a_python_that_is_gone(root: Path, tools: Path) -> None:
    """It is made again."""
    ready(root)
    (root / ".venv/bin/python").unlink()
    (root / ".venv/bin/python").symlink_to("/nothere/python3")
    (root / ".venv/old").touch()
    assert setup(root, "sim")[0] == 0
    assert installed(tools)[1:] == ["a==1", "b==2", "c==3"]
    assert not (root / ".venv/old").exists()
    assert subprocess.run([root / ".venv/bin/python", "-c", ""]).returncode == 0


def test_two_at_once(root: Path, tools: Path) -> None:
    """One installs, the other waits and finds it done."""
    program(tools, "uv", f"{GOOD_UV}; sleep 2")
    both = [start(root, "sim") for _ in range(2)]
    said = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert len(installed(tools)) == 4
    assert sum("waiting for another set-up" in out for out, _ in said) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_broken_off(root: Path, tools: Path, number: signal.Signals) -> None:
    """One line; no installer goes on; what was half there is installed by the next run."""
    packages = root / ".venv/lib/python3/site-packages"
    half, other = packages / "B-2.dist-info", packages / "bb-2.dist-info"
    program(tools, "uv", f'mkdir -p {half} {other}; echo $$ >"$LOG.pid"; exec sleep 60')
    process = start(root, "sim")
    pid = tools / "log.pid"
    while not (pid.exists() and pid.read_text().strip()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert said.strip() == "setup: interrupted; the next run installs the rest"
    assert not Path("/proc", pid.read_text().strip()).exists()
    program(tools, "uv", GOOD_UV)
    assert setup(root, "sim")[0] == 0
    assert installed(tools)[1:] == ["a==1", "b==2", "c==3"]
    assert other.exists() and not half.exists()


def test_killed_installer_holds_the_lock(root: Path, tools: Path) -> None:
    """The set-up is killed, its installer lives on: the next one waits for that."""
    program(tools, "uv", 'echo begun >>"$LOG"; sleep 3; echo ended >>"$LOG"')
    process = start(root)
    while not installed(tools):
        time.sleep(0.05)
    process.kill()
    process.wait()
    program(tools, "uv", 'echo next >>"$LOG"')
    status, out, _ = setup(root)
    assert status == 0 and "waiting for another set-up" in out
    assert installed(tools) == ["begun", "ended", "next"]


def test_quiet_unless_it_fails(root: Path, tools: Path) -> None:
    """A warning of the installer's own is not shown; a failure is one line, and a file has all."""
    warning = "WARNING: Location '/opt/x' is ignored"
    program(tools, "uv", f'echo "{warning}"')
    assert "WARNING" not in "".join(setup(root)[1:])
    program(tools, "uv", f'echo "{warning}"; echo "error: it is full"; exit 1')
    python = root / ".venv/bin/python"  # pip fails alike
    python.unlink()
    program(python.parent, "python", f'[ "$*" = "-m pip --version" ] || exec {tools}/uv')
    (root / ".venv/.groups").unlink()
    program(python.parent, "python", f'case "$*" in *install*) exec {tools}/uv;; esac')
    status, _, said = setup(root)
    log = root / ".venv/setup.log"
    assert (status, said) == (
        2,
        f"error: 1 package could not be installed: error: it is full (all of it in {log})\n",
    )
    assert warning in log.read_text()


NOWHERE = "http://127.0.0.1:1/simple"


def test_without_a_network(root: Path) -> None:
    """One line, and soon."""
    env = {"PIP_INDEX_URL": NOWHERE, "UV_DEFAULT_INDEX": NOWHERE, "PIP_CONFIG_FILE": os.devnull}
    began = time.monotonic()
    status, _, said = setup(root, "sim", **env)
    assert time.monotonic() - began < 60
    start = "error: 3 packages could not be installed: no package index can be reached (all of it"
    assert status == 2 and said.startswith(start) and len(said.splitlines()) == 1, said


@pytest.mark.parametrize("right", [True, False])
def test_hashes_are_looked_at(root: Path, right: bool) -> None:
    """A package whose file is another one is refused; both are what pip gets from the index."""
    name = "iniconfig==2.3.1"
    (root / "pyproject.toml").write_text(PROJECT.replace("a==1", name))
    real = (ROOT / "constraints.txt").read_text()
    (entry,) = re.findall(rf"^{re.escape(name)} .*(?:\n    --hash.*)+\n", real, re.MULTILINE)
    entry = entry if right else re.sub("sha256:[0-9a-f]{8}", "sha256:00000000", entry)
    (root / "constraints.txt").write_text(f"{entry}    # via openkpu\nuv==0\n")
    status, _, said = setup(root)
    assert status == (0 if right else 2), said
    found = [*(root / ".venv").rglob("iniconfig")]
    assert bool(found) == right and ("HASH" in said) != right


# ---- tools of the distribution, places
def test_icarus_needs_no_lz4(root: Path, tools: Path) -> None:
    """WAVES=1 asks for the headers with Verilator only."""
    ready(root)
    program(tools, "g++", 'case " $* " in *" -E "*) exit 1 ;; esac')  # no header is there
    program(tools, "iverilog", 'echo "Icarus Verilog version 12.0 (stable)"')
    program(tools, "apt-get", 'echo "E: nothing here" >&2; exit 100')
    assert setup(root, "icarus", "fst") == (0, "", "")
    status, _, said = setup(root, "verilator", "fst")
    assert status == 2 and "liblz4-dev" in said and "E: nothing here" in said


def test_without_root_the_line_is_printed(root: Path, tools: Path) -> None:
    ready(root)
    program(tools, "iverilog", 'echo "Icarus Verilog version 10.3 (stable)"')  # too old
    program(tools, "id", "echo 1000")
    program(tools, "sudo", "exit 1")
    program(tools, "apt-get", "exit 0")
    asked = "error: SIM=icarus is missing; please run: apt-get install iverilog\n"
    assert setup(root, "sim", "icarus") == (2, "", asked)


@pytest.mark.parametrize("place", ["/proc/none", "/proc"])
@pytest.mark.parametrize("state", ["nothing", "all"])
def test_no_place_for_temporary_files(root: Path, tools: Path, place: str, state: str) -> None:
    """That is what is said, before anything is installed or blamed."""
    if state == "all":
        ready(root)
    program(tools, "iverilog", "exit 1")
    status, out, said = setup(root, "icarus", TMPDIR=place)
    assert (status, out) == (2, "")
    (line,) = said.splitlines()
    assert line.startswith(f"error: TMPDIR={place}: ") and "expected a folder" in line
    assert not (root / ".venv").exists() or state == "all"


def test_python_that_is_none(root: Path) -> None:
    said = "error: OPENKPU_PYTHON=nothere: expected Python 3.11 or later\n"
    assert setup(root, OPENKPU_PYTHON="nothere") == (2, "", said)


def test_no_place_for_the_environment(tmp_path: Path) -> None:
    root = checkout(tmp_path / "x y")
    status, out, said = setup(root, XDG_CACHE_HOME="/proc")
    assert status == 2 and out == ""
    (line,) = said.splitlines()
    assert line.startswith("error: /proc/openkpu/") and line.endswith("/venv: cannot be written")
