# SPDX-License-Identifier: Apache-2.0
"""The verilated device and the driver of sw/ as WebAssembly (docs/page.md 3).

A module lies in ``sim_build/wasm_page_<hash of everything it depends on>`` behind a file lock, and
what both of the page's devices share beside it.
"""

import concurrent.futures
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tb import simrun, verilated
from openkpu_tools.command import UsageError

HERE = ROOT / "scripts" / "openkpu_tools" / "page" / "device"
SOURCES = ["rtl/**/*.v", "tb/openkpu_tb/ahb/fabric/*.v", "tb/openkpu_tb/ahb/checkers/*.v"]
SOURCES += ["tb/openkpu_tb/device/tb_probe.v", "scripts/openkpu_tools/page/device/*.v"]
DRIVER = ["sw/openkpu.c", "sw/openkpu_text.c"]
# what the page reads where it lies, and writes
PUBLIC = """
public_flat_rw -module "ahb_storage" -var "mem"
public_flat_rd -module "ai_ram" -var "mem"
public_flat_rd -module "tb_probe" -var "rec"
"""
# a VCD has the signals of these alone: of all modules it would be 70 MB for a digit
RECORDED = ("page", "page_bench", "ahb_storage", "openkpu_top", "openkpu_core", "control")
RECORDED += ("layer_runner", "host_port", "inference_cfg", "storage_port", "dmac", "data_cache")
RECORDED += ("sequencer", "issue_credits", "tile_buffer", "weight_buffer", "mac_stage")
RECORDED += ("post_lanes", "output_stage")
TRANSLATE = ["--cc", "--output-groups", "1", "-Wno-fatal", "-Wno-TIMESCALEMOD", "--no-timing"]
TRANSLATE += ["--x-initial", "fast", "--x-assign", "fast", "--trace-vcd"]
FAST, SLOW = "-O2", "-O0"  # start-up code is large, and runs once
DEFINES = ["VL_IGNORE_UNKNOWN_ARCH", "VM_TRACE=1", "VM_TRACE_VCD=1", "VM_COVERAGE=0"]
DEFINES += ['OPENKPU_PORT="page_port.h"']
CPP = ["em++", "-std=c++17", "-include", "cstdint"]
LINK = ["MODULARIZE=1", "EXPORT_NAME=openkpuDevice", "ENVIRONMENT=web,node"]
LINK += ["ALLOW_MEMORY_GROWTH=1", "EXPORTED_RUNTIME_METHODS=UTF8ToString"]
DEBIAN = {"emcc": "emscripten", "node": "nodejs"}
NODE_MODULES = "/usr/share/nodejs"  # Debian's; a node from elsewhere does not look there
LIST = re.compile(
    r"^VM_(CLASSES|SUPPORT|GLOBAL)_(FAST|SLOW) \+= \\\n((?:  \w+ \\\n)*)", re.MULTILINE
)


def check_tools() -> None:
    """UsageError that names Debian's package of a tool that is missing."""
    for name, package in DEBIAN.items():
        if not shutil.which(name):
            raise UsageError(
                f"{name} is missing, expected Debian's package {package}"
                f" (apt-get install {package})"
            )


def device(params: Mapping[str, int], jobs: int) -> Path:
    """Translate and compile the Verilog unless it is there; the folder of its objects.

    ``params``: of page.v. SimError with the last lines of a tool that fails.
    """
    simrun.prepare_path()
    files = simrun.expand(SOURCES)
    includes = sorted({f.parent for f in ROOT.glob("rtl/**/*.vh")})
    headers = [h for d in includes for h in sorted(d.glob("*.vh"))]
    unseen = [f'tracing_off -file "*/{f.name}"\n' for f in files if f.stem not in RECORDED]
    control = verilated.CONTROL + PUBLIC + "".join(unseen)
    key = (dict(params), _versions(), control, TRANSLATE, FAST, SLOW, DEFINES)
    folder = simrun.builds() / f"wasm_page_{_digest(key, [*files, *headers])}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".done").exists():
            verilated.empty_folder(folder)
            (folder / "control.vlt").write_text(control)
            words = ["verilator", *TRANSLATE, "--top-module", "page", "--prefix", "Vpage"]
            words += ["-Mdir", str(folder), str(folder / "control.vlt")]
            words += [f"-I{simrun.named(d)}" for d in includes]
            words += [f"-G{name}={value}" for name, value in params.items()]
            verilated.build_step(
                [*words, *(str(simrun.named(f)) for f in files)], "Verilator of page"
            )
            _objects(folder, jobs)
            (folder / ".done").touch()
    return folder


def _versions() -> list[str]:
    said = subprocess.run(["emcc", "--version"], capture_output=True, text=True)
    return [said.stdout.partition("\n")[0], simrun._version("verilator")]


def _digest(key: object, files: Sequence[Path]) -> str:
    digest = hashlib.sha256(repr(key).encode())
    for file in files:
        digest.update(f"{simrun.called(file)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _runtime() -> Path:
    """The folder of what all verilated devices share."""
    folder = simrun.builds() / f"wasm_runtime_{_digest((_versions(), FAST, DEFINES), [])}"
    folder.mkdir(exist_ok=True)
    return folder


def _listed(folder: Path) -> list[tuple[Path, Path, str]]:
    """(source, object, optimization) of every file that Verilator lists."""
    found, shared = [], Path(verilated.verilator_root()) / "include"
    for kind, speed, names in LIST.findall((folder / "Vpage_classes.mk").read_text()):
        place, out = (shared, _runtime()) if kind == "GLOBAL" else (folder, folder)
        for name in re.findall(r"\w+", names):
            made = out / f"{name}.o"
            found.append((place / f"{name}.cpp", made, FAST if speed == "FAST" else SLOW))
    return found


def _flags(folder: Path) -> list[str]:
    shared = Path(verilated.verilator_root()) / "include"
    include = [folder, shared, shared / "vltstd", ROOT / "sw", ROOT / "include", HERE]
    return [*(f"-I{d}" for d in include), *(f"-D{define}" for define in DEFINES)]


def _objects(folder: Path, jobs: int) -> None:
    """Compile what is not there, ``jobs`` files at a time; the largest first."""

    def made(step: tuple[Path, Path, str]) -> None:
        source, target, speed = step
        part = target.with_suffix(f".{os.getpid()}.o")  # the object is there when it is whole
        words = [*CPP, speed, *_flags(folder), "-c", str(source), "-o", str(part)]
        verilated.build_step(words, f"{source.name} as WebAssembly")
        part.rename(target)

    missing = [step for step in _listed(folder) if not step[1].exists()]
    missing.sort(key=lambda step: -step[0].stat().st_size)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(made, missing))


def module(params: Mapping[str, int], jobs: int) -> Path:
    """The device with page.cpp and the driver, linked; the folder with page.js and page.wasm."""
    base = device(params, jobs)
    own = sorted(f for d in (HERE, ROOT / "sw", ROOT / "include") for f in d.glob("*.[ch]*"))
    folder = base / f"page_{_digest((_versions(), LINK, FAST), own)}"
    if (folder / "page.wasm").exists():
        return folder
    work = base / f"{folder.name}.{os.getpid()}"
    work.mkdir()
    objects = [str(made) for _, made, _ in _listed(base)]
    for source in (HERE / "page.cpp", *(ROOT / name for name in DRIVER)):
        objects.append(str(work / f"{source.stem}.o"))
        compiler = CPP if source.suffix == ".cpp" else ["emcc", "-std=c99"]
        words = [*compiler, FAST, *_flags(base), "-c", str(source), "-o", objects[-1]]
        verilated.build_step(words, f"{source.name} as WebAssembly")
    modules = os.pathsep.join(filter(None, [os.environ.get("NODE_PATH"), NODE_MODULES]))
    settings = [word for flag in LINK for word in ("-s", flag)]
    with simrun._environment(NODE_PATH=modules):
        link = ["em++", FAST, *objects, "-o", str(work / "page.js"), *settings]
        verilated.build_step(link, "the page's device")
    work.rename(folder)
    return folder
