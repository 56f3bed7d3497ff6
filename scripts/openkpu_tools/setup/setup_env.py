# SPDX-License-Identifier: Apache-2.0
"""Sets up what a target needs, and nothing twice: setup_env.py VENV NAME...

A NAME is a group of pyproject.toml (what all need is always there), a tool of the distribution
(TOOLS), or ``all``. Packages are those of constraints.txt, by their hashes. This machine's own
Python runs it, before there is any package. Exit status: 0, 2 with one line, 130 after Ctrl-C.
"""

import contextlib
import fcntl
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NOT_ALL = ("setup", "train", "peer", "site")  # groups that ``all`` does not bring
PIP = importlib.util.find_spec("pip")  # this Python's own
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# lines can be overwritten
TERMINAL = sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
OFFLINE = re.compile(r"connection|dns error|name resolution|timed? ?out|unreachable", re.IGNORECASE)
STEP = re.compile(r" ?(Collecting|Download\w+|Prepar\w+|Building|Install\w+|Unpacking|Setting)\b.*")
CELLS = Path("/usr/share/qflow/tech/osu018/osu018_stdcells.lib")


class SetupError(Exception):
    """One line about what cannot be set up."""


# ---- packages that are wanted
def groups(root: Path = ROOT) -> dict[str, set[str]]:
    """Names of the packages of each group of pyproject.toml; "" has the ones that all need."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {"": project["dependencies"], **project.get("optional-dependencies", {})}

    def packages(group: str) -> Iterator[str]:
        for word in found[group]:
            if others := re.match(r"openkpu\[(.*)\]", word):
                for other in others[1].split(","):
                    yield from packages(other.strip())
            else:
                yield re.split("[=<>!~ ]", word)[0]

    return {group: set(packages(group)) for group in found}


def pins(wanted: set[str], root: Path = ROOT) -> dict[str, str]:
    """Entries of constraints.txt for packages and what these need, by an entry's first line.

    Who needs a package is what uv wrote below it. SetupError when a package has no entry.
    """
    entries = []
    for text in re.split(r"\n(?=\w)", (root / "constraints.txt").read_text(encoding="utf-8")):
        if text[0].isalnum():
            parents = set(re.findall(r"^ +# +(?:via )?([\w.-]+)", text, re.MULTILINE))
            entries.append((re.split("[= ]", text)[0], parents, text))
    if lost := wanted - {name for name, *_ in entries}:
        raise SetupError(f"constraints.txt has no {min(lost)}, expected it as pyproject.toml says")
    need, more = set(), wanted
    while more:
        need |= more
        more = {name for name, parents, _ in entries if parents & need} - need
    return {
        text.splitlines()[0].rstrip(" \\"): re.sub(r"\n *#.*", "", text)
        for name, _, text in entries
        if name in need
    }


# ---- programs
def good(*words: str | Path) -> bool:
    """The command is there and ends well."""
    with contextlib.suppress(OSError):
        quiet = subprocess.DEVNULL
        return not subprocess.run(words, stdin=quiet, stdout=quiet, stderr=quiet).returncode
    return False


def header(name: str) -> bool:
    """g++ finds this header."""
    return good("sh", "-c", f"echo '#include <{name}>' | g++ -E -x c++ -")


def icarus() -> bool:
    """It is there, 11 or later."""
    return good("sh", "-c", "iverilog -V | grep -qE '^Icarus Verilog version (1[1-9]|[2-9][0-9])'")


# asked for when all these words are among the names; what for; package; whether it is there
TOOLS: tuple[tuple[str, str, str, Callable[[], object]], ...] = (
    ("icarus", "SIM=icarus", "iverilog", icarus),
    ("verilator", "SIM=verilator", "g++", lambda: shutil.which("g++")),
    # Icarus brings its own writer of waves; Verilator's is compiled here
    ("verilator fst", "WAVES=1", "liblz4-dev", lambda: header("lz4.h")),
    ("verilator fst", "WAVES=1", "zlib1g-dev", lambda: header("zlib.h")),
    ("asic", "make asic", "opensta", lambda: shutil.which("sta")),
    ("asic", "make asic", "qflow-tech-osu018", CELLS.exists),
)


class Setup:
    """What is to be set up, in a virtual environment and on this machine."""

    def __init__(self, venv: Path, names: set[str]) -> None:
        self.venv, self.names = venv, names
        self.python, self.stamp = venv / "bin" / "python", venv / ".groups"
        self.begun = venv / ".begun"  # names of packages whose installation has not ended
        self.lock = -1
        own = groups()
        self.names |= set(own) - set(NOT_ALL) if "all" in names else set()
        self.unknown = self.names - {"all", *own, *" ".join(row[0] for row in TOOLS).split()}
        self.wanted = set().union(*(own[name] for name in ("", *names) if name in own))

    def missing(self) -> dict[str, str]:
        """Packages that are not installed yet."""
        known = self.installed() if os.access(self.python, os.X_OK) else set()
        return {head: text for head, text in pins(self.wanted).items() if head not in known}

    def installed(self) -> set[str]:
        """The first lines of the entries of packages that are installed."""
        with contextlib.suppress(OSError):
            return set(self.stamp.read_text(encoding="utf-8").splitlines())
        return set()

    def tools(self) -> list[tuple[str, str, Callable[[], object]]]:
        """Tools that are missing."""
        return [
            (what, package, found)
            for who, what, package, found in TOOLS
            if set(who.split()) <= self.names and not found()
        ]

    def ready(self) -> bool:
        """There is nothing to do."""
        return not self.missing() and not self.tools() and self.library()

    def library(self) -> bool:
        """The simulators load Python as a shared library; asked once."""
        return "sim" not in self.names or "libpython" in self.installed()

    def run(self) -> None:
        """Set up what is missing, one process at a time in one environment."""
        with self.alone():
            if packages := self.missing():
                self.install(packages)
            for what, package, found in self.tools():
                self.apt(what, package)
                if not found():
                    raise SetupError(f"{package} has not brought what {what} needs; is it too old?")
            if not self.library():
                code = "import find_libpython as f, sys; sys.exit(not f.find_libpython())"
                if not good(self.python, "-c", code):
                    text = (self.venv / "pyvenv.cfg").read_text(encoding="utf-8")
                    version = re.search(r"3\.\d+", text)
                    assert version is not None, "venv writes its version there"
                    self.apt("cocotb", f"libpython{version[0]}")
                self.note({"libpython"})

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock of the environment, beside it."""
        place = Path(os.path.realpath(self.venv))
        try:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=place):
                pass
            self.lock = os.open(f"{place}.lock", os.O_CREAT | os.O_WRONLY)
        except OSError:
            raise SetupError(f"{self.venv}: cannot be written") from None
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another set-up of {self.venv}")
            fcntl.flock(self.lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            os.close(self.lock)

    def attend(self, what: str, *words: object) -> tuple[int, str]:
        """(status, output) of a program; says now and then how far it is.

        It holds the lock for as long as it lives, whatever becomes of this process.
        """
        began, said = time.monotonic(), list[str]()
        columns = (shutil.get_terminal_size().columns if TERMINAL else 80) - 1
        with subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[self.lock],
            process_group=0,  # pip is two processes
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            reader = threading.Thread(target=said.extend, args=(process.stdout,))
            reader.start()
            try:
                while reader.is_alive():
                    reader.join(1 if TERMINAL else 5)
                    step = next((line for line in reversed(said) if STEP.match(line)), "").strip()
                    text = f"setup: {what}, {time.monotonic() - began:.0f} s  {step}"[:columns]
                    if reader.is_alive():
                        print(f"\r{text}\x1b[K" if TERMINAL else text, end="" if TERMINAL else "\n")
                        sys.stdout.flush()
                status = process.wait()
            finally:
                print("\r\x1b[K" if TERMINAL else "", end="", flush=True)
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGTERM)
        return status, "".join(said)

    # ---- the distribution's packages
    def apt(self, what: str, package: str) -> None:
        """Install it, as root or through sudo; else SetupError says what to install."""
        if not shutil.which("apt-get"):
            raise SetupError(f"{what} is missing; please install: {package}")
        root = good("sh", "-c", '[ "$(id -u)" = 0 ]')
        if not root and not good("sudo", "-n", "true"):
            raise SetupError(f"{what} is missing; please run: apt-get install {package}")
        say(f"installing {package} for {what}")
        words = [*([] if root else ["sudo", "-n"]), "env", "DEBIAN_FRONTEND=noninteractive"]
        words += ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300"]
        install = (f"installing {package}", *words, "install", "-y", package)
        status, said = self.attend(*install)
        if status:
            self.attend("reading apt's lists", *words, "update")
            status, said = self.attend(*install)
        if status:
            print(*said.splitlines()[-3:], sep="\n", file=sys.stderr)
            raise SetupError(f"apt-get could not install {package}; please install it")

    # ---- Python's packages
    def install(self, packages: dict[str, str]) -> None:
        """Install entries of constraints.txt: with uv, or with pip where uv is not to be had."""
        count = f"{len(packages)} package{'s' * (len(packages) != 1)}"
        say(f"installing {count} into {self.venv}")
        self.repair()
        said = ""
        for command in self.installers():
            failed, said = self.put(packages, count, command)
            if not failed:
                return
        log = self.venv / "setup.log"
        log.write_text(said, encoding="utf-8")
        errors = [line for line in said.splitlines() if line.lower().startswith("error")]
        why = "no package index can be reached" if OFFLINE.search(said) else (errors or ["?"])[-1]
        raise SetupError(f"{count} could not be installed: {why} (all of it in {log})")

    def installers(self) -> Iterator[list[object]]:
        """Commands that install, the best first; pip brings uv."""
        new = not good(self.python, "-c", "")
        if new:
            self.create(pip=not (PIP or self.uv()))
        if not self.uv():
            failed, _ = self.put(pins(groups()["setup"]), "uv", self.pip())
            if new and not PIP and not failed:  # a fifth of what a simulation needs
                self.attend("removing pip", *self.uv("uninstall"), "pip", "setuptools")
        if self.uv():
            yield self.uv("install")
        yield self.pip()

    def uv(self, command: str = "") -> list[object]:
        """Words of its command; none when it is not there."""
        path = shutil.which("uv", path=f"{self.venv}/bin{os.pathsep}{os.environ['PATH']}")
        return [path, "pip", command, "--python", self.python] if path else []

    def pip(self) -> list[object]:
        """Words of its command; it is in the environment when this Python has none."""
        words = [sys.executable, "-m", "pip", "--python", self.python]
        if not PIP:
            words = [self.python, "-m", "pip"]
            if not good(*words, "--version"):
                self.create(pip=True)
        quiet = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
        return [*words, "install", *quiet, "--no-compile", "--retries", "2"]

    def create(self, pip: bool) -> None:
        """The environment, without packages but ``pip``."""
        if pip and not importlib.util.find_spec("ensurepip"):
            self.apt("the virtual environment", "python3-venv")
        if not good(self.python, "-c", ""):  # or it is one of a Python that is gone
            for path in self.venv.iterdir():
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        self.begun.write_text("pip setuptools", encoding="utf-8")
        words = [sys.executable, "-m", "venv", *([] if pip else ["--without-pip"]), self.venv]
        failed, said = self.attend("making the environment", *words)
        if failed:
            raise SetupError(f"{self.venv}: {(said.splitlines() or ['cannot be made'])[-1]}")
        self.begun.unlink()

    def put(self, packages: dict[str, str], what: str, command: list[object]) -> tuple[int, str]:
        """(status, output) of an installer."""
        listed = self.venv / "requirements.txt"
        listed.write_text("\n".join(packages.values()) + "\n", encoding="utf-8")
        names = [re.split("[= ]", head)[0] for head in packages]
        self.begun.write_text(" ".join(names), encoding="utf-8")
        words = ["--no-deps", "--require-hashes", "-r", listed]
        tool = "uv" if command[1] == "pip" else "pip"  # uv pip ..., python -m pip ...
        failed, said = self.attend(f"installing {what} with {tool}", *command, *words)
        if not failed:
            self.note(set(packages))
            self.begun.unlink()
        return failed, said

    def note(self, heads: set[str]) -> None:
        """These are installed, and no other version of them is."""
        names = {re.split("[= ]", head)[0] for head in heads}
        others = {head for head in self.installed() if re.split("[= ]", head)[0] not in names}
        self.stamp.write_text("\n".join(sorted(others | heads)) + "\n", encoding="utf-8")

    def repair(self) -> None:
        """What a broken-off run has begun counts as not installed, so that it is installed."""
        begun = self.begun.read_text(encoding="utf-8").split() if self.begun.exists() else []
        for folder in self.venv.glob("lib/python*/site-packages/*.dist-info"):
            if re.sub("[-_.]+", "-", folder.stem.rpartition("-")[0]).lower() in begun:
                shutil.rmtree(folder)


def say(text: str) -> None:
    """A line for whoever waits."""
    print(f"setup: {text}", flush=True)


def check_environment() -> None:
    """SetupError for a variable of the environment that nothing could work with."""
    place = os.environ.get("TMPDIR")
    try:
        with tempfile.TemporaryFile(dir=place or None):
            pass
    except OSError as error:
        raise SetupError(
            f"TMPDIR={place}: {error.strerror}, expected a folder for temporary files"
        ) from None


def main(argv: list[str]) -> int:
    """Set up for the names of ``argv`` behind the environment; returns the exit status."""
    try:
        check_environment()
        setup = Setup(Path(argv[0]), set(argv[1:]))
        if setup.unknown:
            known = ", ".join(name for name in groups() if name)
            raise SetupError(
                f"GROUPS={min(setup.unknown)}: no such group, expected some of {known}"
            )
        if not setup.ready():
            setup.run()
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("\nsetup: interrupted; the next run installs the rest", file=sys.stderr)
        return 130
    else:
        return 0
    return 2


if __name__ == "__main__":
    for number in SIGNALS:  # scripts/where.sh blocks them until now
        signal.signal(number, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    sys.exit(main(sys.argv[1:]))
