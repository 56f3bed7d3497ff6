# SPDX-License-Identifier: Apache-2.0
"""Everything that is too long for every push, one command after the other: `make nightly`.

Keeps of each command what it said at its end, its time, date and commit, in reports/nightly.json
and, as a table, in reports/nightly.md; ``--steps`` chooses some commands, the others keep what they
had. ``--record`` keeps them in tb/plan/nightly.json and in the table of docs/verification.md
instead, the page of a release; ``--page`` writes that table alone, ``--check`` compares it. The
table shows which results are of an RTL that has changed since. The last line is what a release
would lack, or "complete"; ``--release`` says just that.

Exit status 1 when a command failed, --check finds another table, or --release one that is not
complete: a step that did not run, failed, or ran on another RTL.
"""

import json
import os
import re
import shlex
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import combinations, product
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tools import command, marked, registry
from openkpu_tools.design import rtl_digest

REPORTS = ROOT / "reports"  # of runs between releases
DATA = ROOT / "tb" / "plan" / "nightly.json"
PAGE = ROOT / "docs" / "verification.md"
# a figure of the table: reached, hit, of; without the record beside it
COVERED = r"\| (?P<said>[^|]+) \| (?P<share>\d+\.\d\d %) \| \d+ \| \d+ \| \d+\.\d\d % \|"
SCORE = r"(?P<said>score.* survived).*|FAIL.*"  # followed by a file of reports
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


PYTEST = r"=* ?(\d+ (passed|failed).*)"
RESULTS = {  # of a target of make
    **dict.fromkeys(("test", "sweep", "control"), PYTEST),
    "regress": r"\d+ of \d+ items passed.*|\d+ seeds? passed.*|\d+ of \d+ seeds failed.*",
    "coverage": COVERED,
    "formal": r"\d+ of \d+ (properties|faults).*",
    "mutate": SCORE,
    "soak": r"every byte.*|memory:.*|FAIL.*",
    "asic": r"reached.*|worse than.*|FAIL.*",
    "fpga": r"mapped.*|worse than.*|FAIL.*",
    "equivalence": r"\d+ of \d+ modules.*",
    "gates": r"the netlist is exact.*|FAIL.*",
}
ABOUT = ("scripts", "tb/plan")  # tests of tools, and of tests
WHOLE = ("tb/device", "tb/soc", "tb/uvm")  # benches of the whole device
SEEDS = 10  # that every block's simulations run with
# kind of random items, name of the step, how many, what for, configuration on Icarus
OF_A_KIND = (
    ("product", "products", 300, "random products", "nano_fp16"),
    ("elementwise", "element-wise", 300, "random element-wise layers", "nano"),
    ("pool", "pools", 300, "random pooling tasks", "nano"),
    ("list", "lists", 100, "random lists of all kinds", "nano_fp16"),
    ("graph", "graphs", 100, "random graphs, compiled", "nano"),
)


def of_a_kind(count: int, kind: str, config: str, sim: str = "verilator") -> str:
    """Random items of a kind."""
    return f"regress N={count} SEED=1 KIND={kind} CONFIG={config} SIM={sim}"


def steps() -> Iterator[tuple[str, str, str]]:
    """Name, words of make and purpose of each step."""
    every = "every test on both simulators:"
    about, layers = " ".join(ABOUT), f"{WHOLE[0]}/layers"
    blocks = " ".join(["tb", *(f"--ignore={folder}" for folder in (*WHOLE, ABOUT[-1]))])
    yield "tests-models", "test ALL=1 TESTS=models", f"{every} models, compiler, prediction"
    yield "tests-scripts", f"test ALL=1 TESTS='{about}'", f"{every} tools, documents, tests"
    yield "tests-layers", f"test ALL=1 TESTS={layers}", f"{every} layers on the whole device"
    others = f"{WHOLE[0]} --ignore={layers}"
    yield "tests-device", f"test ALL=1 TESTS='{others}'", f"{every} the whole device otherwise"
    for folder, what in (("soc", "driver and computer"), ("uvm", "the device by pyuvm")):
        yield f"tests-{folder}", f"test ALL=1 TESTS=tb/{folder}", f"{every} {what}"
    yield "tests-blocks", f"test ALL=1 TESTS='{blocks}'", f"{every} blocks"
    yield "seeds-1-2", "regress SEEDS=2", "every test with seed 1, simulations with 2"
    for seed in range(3, SEEDS, 2):  # short steps: a seed that fails repeats one other
        words, both = f"regress SEEDS=2 SEED={seed}", f"seeds {seed} and {seed + 1}"
        yield f"seeds-{seed}-{seed + 1}", words, f"the simulations with {both}"
    yield "random", "regress N=500 SEED=1 SIM=verilator", "random layers, three ways, disturbed"
    yield "random-icarus", "regress N=50 SEED=1 SIM=icarus", "the same with unknown values"
    for kind, name, count, what, _ in OF_A_KIND:
        for config in ("small", "k210"):
            yield f"{name}-{config}", of_a_kind(count, kind, config), what
    for kind, name, count, what, config in OF_A_KIND:
        words = of_a_kind(count // 10, kind, config, "icarus")
        yield f"{name}-icarus", words, f"{what}, with unknown values"
    yield "float16", of_a_kind(300, "float16", "k210_fp16"), "random products of float16"
    yield "coverage", "coverage", "of code and function"
    yield "formal", "formal", "properties proven"
    yield "formal-faults", "formal MUTANTS=1", "proofs can fail"
    yield "mutation", "mutate N=400 SEED=7", "faults that the tests find"
    wiring = "mutate N=200 SEED=1 KIND=wiring MODULE='host control storage'"
    yield "wiring", wiring, "signals mistaken for others that the tests find"
    yield "soak", "soak MINUTES=60", "an hour in one simulation"
    yield "sweep", "sweep", "host writes in every cycle"
    yield "control", "control", "random host actions"
    worse = "not 3 % worse"
    for config in ("small", "k210"):
        words = f"asic CONFIG={config} BASELINE=1"
        yield f"asic-{config}", words, f"area and clock in standard cells, {worse}"
    for config in ("compact", "small"):
        words = f"fpga CONFIG={config}_fpga MAP=1 BASELINE=1"
        yield f"fpga-{config}", words, f"area on an ECP5, {worse}"
    yield "equivalence", "equivalence", "synthesis kept the RTL"
    yield "gates", "gates", "the netlist computes"


STEPS = tuple(
    NightlyStep(name, f"make {words}", what, RESULTS[words.split()[0]])
    for name, words, what in steps()
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
    """The lines with the result, or the named groups of a pattern; else the last line."""
    found = [match for line in lines if (match := re.fullmatch(pattern, line.strip(" =\n")))]
    named = [" ".join(filter(None, match.groupdict().values())) or match[0] for match in found]
    said = [" ".join(text.split()) for text in named]
    return said or [line.strip() for line in lines if line.strip()][-1:] or ["nothing"]


def run_step(step: NightlyStep, skipped: list[str]) -> Outcome:
    """Run a command; its output passes through, and ``skipped`` gets reasons of skipped tests."""
    began, of, rtl = time.monotonic(), commit(), rtl_digest(ROOT)
    last: deque[str] = deque(maxlen=TAIL)
    env = {
        k: v for k, v in os.environ.items() if k not in ("OPENKPU_SEED", "MAKEFLAGS", "MAKELEVEL")
    }
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


def load_outcomes(path: Path) -> dict[str, Outcome]:
    """The outcomes that are kept."""
    if not path.exists():
        return {}
    return {name: Outcome(**values) for name, values in json.loads(path.read_text()).items()}


def store(kept: dict[str, Outcome], record: bool) -> None:
    """Keep outcomes, in the order of the steps, and write their table."""
    data = DATA if record else REPORTS / DATA.name
    data.parent.mkdir(parents=True, exist_ok=True)
    known = {step.name: asdict(kept[step.name]) for step in STEPS if step.name in kept}
    data.write_text(json.dumps(known, indent=1) + "\n")
    if record:
        marked.fill(PAGE, "nightly", table(kept))
    else:
        data.with_suffix(".md").write_text(f"{table(kept)}\n")


def of_rtl(outcome: Outcome, rtl: str) -> str:
    """Whether a result is of the RTL with this digest, in words."""
    return "as it is" if outcome.rtl == rtl else "changed since" if outcome.rtl else "not known"


def lacking(kept: dict[str, Outcome]) -> list[str]:
    """A line for each step whose result a release cannot have."""
    rtl, lines = rtl_digest(ROOT), []
    for step in STEPS:
        o = kept.get(step.name)
        why = "not run" if o is None else "failed" if o.status else of_rtl(o, rtl)
        if why != "as it is":
            lines.append(f"{step.name}: {why}: {step.command}")
    return lines


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
        end = f"{o.seconds / 60:.1f} | {o.date} | {o.commit} | {of_rtl(o, rtl)} |"
        lines.append(f"{start} {verdict} | {end}")
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
    alone = ("page", "check", "release")  # run nothing
    command.apart(args, *combinations(alone, 2), *product(("steps", "record"), alone))
    due, looks = chosen(args.steps), any(getattr(args, name) for name in alone)
    record = args.record or looks
    kept = load_outcomes(DATA if record else REPORTS / DATA.name)
    if args.check:
        good = marked.part(PAGE, "nightly") == table(kept)
        if not good:
            print(f"{PAGE.relative_to(ROOT)} is not what {DATA.relative_to(ROOT)} makes of it")
        return int(not good)
    failed, skipped = [], list[str]()
    for step in [] if looks else due:
        print(f"nightly: {step.command}", flush=True)
        kept[step.name] = run_step(step, skipped)
        failed += [step.name] if kept[step.name].status else []
        store(kept, record)
    if args.page:
        store(kept, record)
    lines = lacking(kept)
    for line in [*skipped, *lines]:
        print(line)
    where = PAGE if record else REPORTS / "nightly.md"
    said = f"{len(lines)} of {len(STEPS)} steps missing for a release" if lines else "complete"
    print(f"{where.relative_to(ROOT)}: {said}")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed or (args.release and lines)))
