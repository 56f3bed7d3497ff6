# SPDX-License-Identifier: Apache-2.0
"""Everything that is too long for every push, one command after the other: `make nightly`.

Keeps of each command what it said at its end, its time, date and commit in tb/plan/nightly.json and
writes the table of docs/verification.md from that. ``--steps`` chooses some, the others keep what
they had; ``--page`` writes the table alone, ``--check`` compares it. The table shows which results
are of an RTL that has changed since. Exit status 1 when a command failed, or --check finds another
table.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tools import command, marked, registry

DATA = ROOT / "tb" / "plan" / "nightly.json"
PAGE = ROOT / "docs" / "verification.md"
# a figure of the table: reached, hit, of; without the record beside it
COVERED = r"(?P<said>.*?\d+\.\d\d %) +\d+ +\d+ +\d+\.\d\d %"
FORMAL = re.compile(r"`ifdef FORMAL.*?`endif", re.S)  # is no part of the design
SCORE = r"(?P<said>score.* survived).*|FAIL.*"  # behind it stands a file of reports
SKIPPED = re.compile(r"\d+ skipped: .*")  # in pytest's summary: why
TAIL = 200  # lines at the end of a command among which its result is looked for


@dataclass(frozen=True)
class NightlyStep:
    """A command; what it is for; which of its last lines are its result."""

    name: str
    command: str
    what: str
    result: str

    @property
    def words(self) -> list[str]:
        """Of the command."""
        return shlex.split(self.command)


# kind of random items, name of the step, how many, what for
OF_A_KIND = (
    ("product", "products", 300, "random products"),
    ("elementwise", "element-wise", 300, "random element-wise layers"),
    ("pool", "pools", 300, "random pooling tasks"),
    ("list", "lists", 100, "random lists of all kinds"),
    ("graph", "graphs", 100, "random graphs, compiled"),
)
STEPS = (
    NightlyStep(
        "tests", "make test ALL=1", "every test on both simulators", r"=* ?(\d+ (passed|failed).*)"
    ),
    NightlyStep(
        "seeds",
        "make regress SEEDS=10",
        "the simulations with ten seeds",
        r"\d+ seeds? passed.*|seed .* failed.*",
    ),
    NightlyStep(
        "random",
        "make regress N=500 SEED=1 SIM=verilator",
        "random layers, three ways, disturbed",
        r"\d+ of \d+ items passed.*",
    ),
    NightlyStep(
        "random-icarus",
        "make regress N=50 SEED=1 SIM=icarus",
        "the same with unknown values",
        r"\d+ of \d+ items passed.*",
    ),
    *(
        NightlyStep(
            f"{name}-{config}",
            f"make regress N={count} SEED=1 KIND={kind} CONFIG={config} SIM=verilator",
            what,
            r"\d+ of \d+ items passed.*",
        )
        for kind, name, count, what in OF_A_KIND
        for config in ("small", "k210")
    ),
    *(
        NightlyStep(
            f"{name}-icarus",
            f"make regress N={count // 10} SEED=1 KIND={kind} CONFIG={config} SIM=icarus",
            f"{what}, with unknown values",
            r"\d+ of \d+ items passed.*",
        )
        for kind, name, count, what in OF_A_KIND
        for config in ("nano_fp16" if kind in ("product", "list") else "nano",)
    ),
    NightlyStep(
        "float16",
        "make regress N=300 SEED=1 KIND=float16 CONFIG=k210_fp16 SIM=verilator",
        "random products of float16",
        r"\d+ of \d+ items passed.*",
    ),
    NightlyStep("coverage", "make coverage", "of code and function", COVERED),
    NightlyStep("formal", "make formal", "properties proven", r"\d+ of \d+ properties.*"),
    NightlyStep(
        "formal-faults", "make formal MUTANTS=1", "proofs can fail", r"\d+ of \d+ faults.*"
    ),
    NightlyStep(
        "mutation",
        "make mutate N=400 SEED=7",
        "faults that the tests find",
        SCORE,
    ),
    NightlyStep(
        "wiring",
        "make mutate N=200 SEED=1 KIND=wiring MODULE='host control storage'",
        "signals mistaken for others that the tests find",
        SCORE,
    ),
    NightlyStep(
        "soak",
        "make soak MINUTES=60",
        "an hour in one simulation",
        r"every byte.*|memory:.*|FAIL.*",
    ),
    NightlyStep(
        "sweep", "make sweep", "host writes in every cycle", r"=* ?(\d+ (passed|failed).*)"
    ),
    NightlyStep("control", "make control", "random host actions", r"=* ?(\d+ (passed|failed).*)"),
    *(
        NightlyStep(
            f"asic-{config}",
            f"make asic CONFIG={config} BASELINE=1",
            "area and clock in standard cells, not 3 % worse",
            r"reached.*|worse than.*|FAIL.*",
        )
        for config in ("small", "k210")
    ),
    *(
        NightlyStep(
            f"fpga-{config}",
            f"make fpga CONFIG={config}_fpga MAP=1 BASELINE=1",
            "area on an ECP5, not 3 % worse",
            r"mapped.*|worse than.*|FAIL.*",
        )
        for config in ("compact", "small")
    ),
    NightlyStep(
        "equivalence", "make equivalence", "synthesis kept the RTL", r"\d+ of \d+ modules.*"
    ),
    NightlyStep("gates", "make gates", "the netlist computes", r"the netlist is exact.*|FAIL.*"),
)


@dataclass(frozen=True)
class Outcome:
    """What a command said, and when."""

    said: list[str]
    status: int
    seconds: int
    date: str
    commit: str
    rtl: str = ""  # digest of what was tested; "" is not known


def rtl_digest(root: Path) -> str:
    """Of the design in ``root``/rtl: its text without comments, blanks and properties."""
    files = [path for path in (root / "rtl").rglob("*.v*") if not path.stem.endswith("_props")]
    state = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.relative_to(root).as_posix()):
        text = FORMAL.sub("", re.sub(r"//.*", "", path.read_text(encoding="utf-8")))
        state.update("\0".join([path.relative_to(root).as_posix(), *text.split()]).encode())
    return state.hexdigest()[:16]


def commit() -> str:
    """The commit that is tested, with a + when files differ from it, this command's own aside."""
    own = [f":!{path.relative_to(ROOT)}" for path in (DATA, PAGE)]
    words = (["rev-parse", "--short=8", "HEAD"], ["status", "--porcelain", "-uno", "--", ".", *own])
    found, changed = (
        subprocess.run(["git", *w], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        for w in words
    )
    return f"{found}{'+' if changed else ''}" if found else "no commit"


def results(lines: Sequence[str], pattern: str) -> list[str]:
    """The lines that tell the result, or the ``said`` of a pattern; else the last line."""
    found = [match for line in lines if (match := re.fullmatch(pattern, line.strip(" =\n")))]
    said = [" ".join((match.groupdict().get("said") or match[0]).split()) for match in found]
    return said or [line.strip() for line in lines if line.strip()][-1:] or ["nothing"]


def run(step: NightlyStep, skipped: list[str]) -> Outcome:
    """Run a command; its output passes through, and ``skipped`` gets reasons of skipped tests."""
    began, of, rtl = time.monotonic(), commit(), rtl_digest(ROOT)
    last: deque[str] = deque(maxlen=TAIL)
    env = {k: v for k, v in os.environ.items() if k not in ("SEED", "MAKEFLAGS", "MAKELEVEL")}
    process = subprocess.Popen(
        step.words, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    with command.ending(process):
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last.append(line)
            if SKIPPED.fullmatch(line.rstrip()):
                skipped.append(f"{step.name}: {line.rstrip()}")
        status = process.wait()
    seconds = round(time.monotonic() - began)
    today = datetime.now(UTC).date().isoformat()
    return Outcome(results(list(last), step.result), status, seconds, today, of, rtl)


def load_outcomes(path: Path = DATA) -> dict[str, Outcome]:
    """The outcomes that are kept."""
    if not path.exists():
        return {}
    return {name: Outcome(**values) for name, values in json.loads(path.read_text()).items()}


def store(kept: dict[str, Outcome], path: Path = DATA) -> None:
    """Keep outcomes, in the order of the steps."""
    known = {step.name: asdict(kept[step.name]) for step in STEPS if step.name in kept}
    path.write_text(json.dumps(known, indent=1) + "\n")


def table(kept: dict[str, Outcome]) -> str:
    """The table of the page."""
    lines = [
        "| step | what for | command | result | minutes | date | commit | RTL |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rtl = rtl_digest(ROOT)
    for step in STEPS:
        start = f"| {step.name} | {step.what} | `{step.command}` |"
        if step.name not in kept:
            lines.append(f"{start} not run | | | | |")
            continue
        o = kept[step.name]
        said = "<br>".join(text.replace("|", "\\|") for text in o.said)
        verdict = said if o.status == 0 else f"**FAILED**: {said}"
        same = "as it is" if o.rtl == rtl else "changed since" if o.rtl else "not known"
        lines.append(f"{start} {verdict} | {o.seconds / 60:.1f} | {o.date} | {o.commit} | {same} |")
    return "\n".join(lines)


def chosen(names: Sequence[str]) -> list[NightlyStep]:
    """The steps of these names; UsageError for one that is not there."""
    known = {step.name: step for step in STEPS}
    words = [*names] or list(known)
    for word in words:
        if word not in known:
            raise command.UsageError(
                f"{command.option('steps')}: no step {word!r}, expected some of {', '.join(known)}"
            )
    return [step for step in STEPS if step.name in words]


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = registry.parse_command("nightly", argv)
    command.apart(args, ("page", "check"), ("steps", "page"), ("steps", "check"))
    steps, kept = chosen(args.steps), load_outcomes()
    if args.check:
        good = marked.part(PAGE, "nightly") == table(kept)
        if not good:
            print(f"{PAGE.relative_to(ROOT)} is not what {DATA.relative_to(ROOT)} makes of it")
        return int(not good)
    failed, skipped = [], list[str]()
    for step in [] if args.page else steps:
        print(f"nightly: {step.command}", flush=True)
        kept[step.name] = run(step, skipped)
        failed += [step.name] if kept[step.name].status else []
        store(kept)
        marked.fill(PAGE, "nightly", table(kept))
    marked.fill(PAGE, "nightly", table(kept))
    print(f"{PAGE.relative_to(ROOT)}: {len(kept)} of {len(STEPS)} steps")
    for line in [*skipped, *(f"not run: {s.command}" for s in STEPS if s not in steps)]:
        print(line)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(command.run_command(main))
