# SPDX-License-Identifier: Apache-2.0
"""The assignment of modules to the benches that judge their mutants: tb/mutation/benches.toml."""

import hashlib
import os
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from openkpu import files
from openkpu_tools.command import UsageError

LEVELS = ("block", "device")
SIZES = "sizes"  # further sizes of the blocks


@dataclass(frozen=True)
class Bench:
    """Tests of one file that are run on a mutant, up to the first that fails."""

    name: str
    level: str  # one of LEVELS, or SIZES
    test: str  # file, or file::test, relative to the root
    choose: str  # pytest's -k
    modules: tuple[str, ...] = ()  # empty: all
    seed: int | None = None  # of its random tests; None: every test's own
    further: bool = False  # its tests of the nightly run alone

    @property
    def folder(self) -> str:
        """Where the bench lies; another bench if anything there changes."""
        return str(Path(self.test.partition("::")[0]).parent)


@dataclass(frozen=True)
class MutantPlan:
    """What is mutated, and what judges it."""

    rtl: str  # pattern of the sources, relative to the root
    includes: str
    equivalent: str  # file with the equivalent mutants
    verdicts: str  # file with recorded answers of benches
    strict: tuple[str, ...]  # folders in which no mutant may survive
    goal: float  # percent that must be killed
    shared: tuple[str, ...]  # what all benches use
    benches: tuple[Bench, ...]

    def judges(self, module: str, level: str) -> list[Bench]:
        """Benches of a level for a module, in the order in which they are asked."""
        own = [b for b in self.benches if b.level == level]
        return [b for b in own if not b.modules or module in b.modules]


def _benches(
    level: str,
    *,
    name: str,
    test: str = "",
    modules: Sequence[str] = (),
    sims: Sequence[str] = ("verilator",),  # Icarus, which simulates x, after the faster one
    choose: str = "",
    seed: int | None = None,
    nightly: bool = False,
) -> Iterator[Bench]:
    """The benches of a row of the plan: one for each simulator, and its further sizes."""
    if level == "block":
        test, modules = test or f"tb/{name}/test_{name}.py", modules or [name]
    for sim in sims:
        other = {"verilator": "icarus", "icarus": "verilator"}[sim]
        words = choose or f"{sim} or not {other}"
        bench = Bench(f"{name} ({sim})", level, test, words, tuple(modules), seed, nightly)
        yield bench
        if level == "block" and sim == "verilator":  # on Icarus they take hours
            more = {"name": f"{bench.name}, further sizes", "level": SIZES, "further": True}
            yield replace(bench, **more)


def load_benches(root: Path, name: str) -> MutantPlan:
    """Read a plan; UsageError, one line, for one that does not hold together."""
    try:
        data = tomllib.loads(files.read_bytes(root / name, UsageError).decode())
        rows = [(level, row) for level in LEVELS for row in data.pop(level, [])]
        plan = MutantPlan(
            **{**data, "strict": tuple(data["strict"]), "shared": tuple(data["shared"])},
            benches=tuple(bench for level, row in rows for bench in _benches(level, **row)),
        )
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}: {error}") from None
    except (KeyError, TypeError) as error:
        raise UsageError(f"{name}: {type(error).__name__} {error}") from None
    known = {path.stem for path in root.glob(plan.rtl)}
    for bench in plan.benches:
        if not (root / bench.test.partition("::")[0]).is_file():
            raise UsageError(f"{name}: {bench.name}: there is no {bench.test}")
        if unknown := sorted(set(bench.modules) - known):
            raise UsageError(f"{name}: {bench.name}: there is no module {unknown[0]}")
    return plan


@cache
def sources_digest(root: Path, pattern: str) -> str:
    """A digest of the sources that match, or that lie in a folder."""
    digest = hashlib.sha256()
    found = root / pattern
    files = found.rglob("*") if found.is_dir() else root.glob(pattern)
    for file in sorted(files):
        if file.suffix in (".py", ".v", ".vh", ".vlt", ".toml") and file.is_file():
            digest.update(f"{os.path.relpath(file, root)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def bench_digest(root: Path, plan: MutantPlan, bench: Bench) -> str:
    """What the verdict of a bench depends on, the mutated folder aside."""
    parts = [bench.test, bench.choose, str(bench.seed), sources_digest(root, bench.folder)]
    parts += [sources_digest(root, pattern) for pattern in plan.shared]
    parts += ["further"] if bench.further else []
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
