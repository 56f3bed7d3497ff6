# SPDX-License-Identifier: Apache-2.0
"""A module as a C++ class of Verilator, without cocotb, and programs that are linked with it.

A model lives in ``sim_build/native_<top>_<hash of everything it depends on>`` behind a file lock,
as the builds of ``simrun`` do; a program beside it.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tb import simrun

# repeated modules stay functions of their own: less C++ to compile, and faster
CONTROL = "`verilator_config\n" + "".join(
    f'no_inline -module "{name}"\n'
    for name in ("mac_unit", "post_lane", "operand_column", "ram_1r1w")
)
ARGS = ["--cc", "--build", "-j", "1", "--output-groups", "1", "-Wno-fatal", "-Wno-TIMESCALEMOD"]
ARGS += ["--no-timing", "--x-initial", "unique", "--x-assign", "unique"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
# of the driver, as C99; -Wconversion has nothing against bytes that are shifted into words
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]


def model(
    top: str,
    sources: Sequence[str | Path],
    params: Mapping[str, int],
    *,
    control: str = "",
    flags: Sequence[str] = (),
) -> Path:
    """Build the class ``V<top>`` unless it is there; the folder of its headers and libraries.

    ``control``: lines of a Verilator control file. SimError with Verilator's or g++'s last lines.
    """
    simrun.prepare_path()
    files = simrun.expand(sources)
    folders = sorted({f.parent for f in ROOT.glob("rtl/**/*.vh")})
    headers = [h for d in folders for h in sorted(d.glob("*.vh"))]
    version = simrun._version("verilator")
    key = repr((top, dict(params), control, ARGS, list(flags), CONTROL, simrun.MAKEFLAGS, version))
    digest = hashlib.sha256(key.encode())
    for file in [*files, *headers]:
        digest.update(f"{simrun.called(file)}\n".encode() + file.read_bytes())
    folder = simrun.builds() / f"native_{top}_{digest.hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".done").exists():
            empty_folder(folder)  # a build that was ended leaves files that make takes for finished
            (folder / "control.vlt").write_text(CONTROL + control)
            words = ["verilator", *ARGS, *flags, "--top-module", top, "--prefix", f"V{top}"]
            words += ["-Mdir", str(folder), str(folder / "control.vlt")]
            words += [f"-I{simrun.named(d)}" for d in folders]
            words += [f"-G{name}={value}" for name, value in params.items()]
            same = hashlib.sha256(repr((version, simrun.MAKEFLAGS)).encode()).hexdigest()[:8]
            runtime = simrun.builds() / f"runtime_native_{same}"
            if runtime.exists():
                simrun._take_runtime(runtime, folder)
            with simrun._environment(MAKEFLAGS=simrun.MAKEFLAGS):
                build_step([*words, *(str(simrun.named(f)) for f in files)], f"Verilator of {top}")
            if not runtime.exists():
                simrun._keep_runtime(folder, runtime)
            (folder / ".done").touch()
    return folder


def empty_folder(folder: Path) -> None:
    """Remove what a build has left, its lock excepted."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != ".lock":
            path.unlink()


def program(
    folder: Path, top: str, sources: Sequence[str | Path], name: str, flags: Sequence[str] = ()
) -> Path:
    """Compile C (as C99, all warnings are errors) and C++ sources and link them with a model."""
    simrun.prepare_path()
    include = Path(verilator_root()) / "include"
    digest = hashlib.sha256(repr([str(s) for s in sources] + list(flags)).encode())
    own = [ROOT / "sw", ROOT / "include"]
    for file in sorted(
        f for d in [*own, *{(ROOT / s).parent for s in sources}] for f in d.glob("*")
    ):
        digest.update(file.read_bytes() if file.is_file() else b"")
    target = folder / f"{name}_{digest.hexdigest()[:12]}"
    if target.exists():
        return target
    work = folder / f"{target.name}.{os.getpid()}"
    work.mkdir()
    includes = [*(f"-I{d}" for d in own), f"-I{folder}", f"-I{include}", f"-I{include / 'vltstd'}"]
    objects = []
    for source in (ROOT / s for s in sources):
        objects.append(str(work / f"{source.stem}.o"))
        if source.suffix == ".c":
            words = ["gcc", "-std=c99", *WARNINGS]
        else:
            words = ["g++", "-std=c++17", "-DVM_TRACE=0"]
        words += ["-O1", "-g", *flags, *includes, "-c", str(source), "-o", objects[-1]]
        build_step(words, f"{source.name}")
    libraries = [str(folder / f"libV{top}.a"), str(folder / "libverilated.a")]
    linked = [
        "g++",
        *flags,
        *objects,
        *libraries,
        "-lpthread",
        "-latomic",
        "-o",
        str(work / "made"),
    ]
    build_step(linked, name)
    (work / "made").rename(target)
    shutil.rmtree(work)
    return target


def verilator_root() -> str:
    """The folder of Verilator's headers."""
    found = os.environ.get("VERILATOR_ROOT")
    if found:
        return found
    said = subprocess.run(["verilator", "-V"], capture_output=True, text=True).stdout
    for line in said.splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "VERILATOR_ROOT" and value.strip():
            return value.strip()
    raise simrun.ToolError("verilator -V names no VERILATOR_ROOT")


def build_step(words: list[str], what: str) -> None:
    """A step of a build; SimError with its last lines."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-simrun.LOG_TAIL :])
        raise simrun.SimError(f"{what} failed:\n{said}")
