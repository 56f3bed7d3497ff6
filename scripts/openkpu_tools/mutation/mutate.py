# SPDX-License-Identifier: Apache-2.0
"""Change the RTL in many places, one at a time, and see the tests fail.

One build of a bench holds all mutants (mutate_schemata.py); which one lives is said when a
simulation starts. Benches of the module are asked first, then further sizes of the benches
(tests of the nightly run), then the device; the first test that fails kills the mutant.
Results are saved as they arrive, so that a repeated command resumes where it ended; ``--record``
writes the results used to the repository, so that the next commit judges changed mutants only.
Exit status 1 when a mutant survives where none may, or the score is below the goal.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tb.simrun import builds
from openkpu_tools import command, registry
from openkpu_tools.entries.verification import LEVELS
from openkpu_tools.mutation import (
    mutate_benches,
    mutate_equivalent,
    mutate_page,
    mutate_places,
    mutate_run,
    mutate_schemata,
    mutate_source,
)
from openkpu_tools.mutation.mutate_page import MutantVerdict
from openkpu_tools.mutation.mutate_places import Mutation

PLAN = "tb/mutation/benches.toml"
REPORTS = ROOT / "reports"
GROUPS = {"logic": mutate_places.LOGIC, "wiring": mutate_places.WIRING}


def places(plan: mutate_benches.MutantPlan) -> dict[str, list[Mutation]]:
    """{module: its mutations}; SyntaxTrouble for a file that does not parse."""
    sources = [
        mutate_source.Source(f.read_bytes(), str(f.relative_to(ROOT)), ROOT / plan.includes)
        for f in sorted(ROOT.glob(plan.rtl))
    ]
    ports = {source.called: source.inputs() for source in sources}
    return {source.called: mutate_places.find(source, ports) for source in sources}


def chosen(
    found: dict[str, list[Mutation]], names: Sequence[str] | None
) -> dict[str, list[Mutation]]:
    """The modules that are asked for, by name or folder; UsageError when there are none."""
    if names is None:
        return found
    folders = {m: {str(Path(p.file).parent) for p in own} for m, own in found.items()}
    picked = {}
    for name in names:
        own = {m: found[m] for m in found if m == name or {name, f"rtl/{name}"} & folders[m]}
        if not own:
            raise command.UsageError(
                f"{command.option('module', name)}: expected a module or a folder of the RTL"
            )
        picked |= own
    return picked


def mutant_verdicts(
    judge: mutate_run.Judge, equivalent: dict[Mutation, str], last: str, jobs: int
) -> list[MutantVerdict]:
    """The verdict on every mutant, printed as it comes; UsageError for a wrong equivalent."""
    verdicts: dict[int, MutantVerdict] = {}
    spent = dict.fromkeys(range(1, len(judge.mutants) + 1), 0.0)
    for level in LEVELS[: LEVELS.index(last) + 1]:
        # an equivalent one is asked of the quick benches too: none of them may fail
        alive = [
            n
            for n in spent
            if n not in verdicts and (level == "block" or judge.mutants[n - 1] not in equivalent)
        ]
        if not alive:
            break
        print(f"{level}: {len(alive)} mutants", flush=True)
        with ThreadPoolExecutor(jobs) as pool:
            work = {pool.submit(judge.judge, n, level): n for n in alive}
            try:
                for done, job in enumerate(as_completed(work), 1):
                    number, (answer, seconds) = work[job], job.result()
                    spent[number] += seconds
                    if answer is None:
                        continue
                    mutation = judge.mutants[number - 1]
                    hang = answer.outcome == "hang"
                    verdict = MutantVerdict(number, mutation, level, answer.by, hang, spent[number])
                    if mutation in equivalent:
                        said = f"listed as equivalent, but killed by {answer.by}"
                        raise command.UsageError(f"{mutation.file}:{mutation.line}: {said}")
                    verdicts[number] = verdict
                    print(f"[{done}/{len(alive)}] {mutate_page.verdict_line(verdict)}", flush=True)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                judge.stop()
                raise
    for number, mutation in enumerate(judge.mutants, 1):
        if number not in verdicts:
            reason = equivalent.get(mutation, "")
            status = "equivalent" if reason else "survived"
            verdicts[number] = MutantVerdict(number, mutation, status, reason, False, spent[number])
    return [verdicts[n] for n in sorted(verdicts)]


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0 when the goal is met, 1 when not, 2 for a bad request."""
    args = registry.parse_command("mutate", argv)
    plan = mutate_benches.load_benches(ROOT, args.plan)
    found = places(plan)
    everything = [m for own in found.values() for m in own]
    equivalent = mutate_equivalent.load_equivalents(
        ROOT / plan.equivalent, plan.equivalent, everything
    )
    kinds = GROUPS.get(args.kind, (args.kind,))
    mutants = mutate_schemata.draw_mutations(chosen(found, args.module), args.n, args.seed, kinds)
    print(f"{len(mutants)} mutants of {len(everything)} places, seed {args.seed}", flush=True)
    recorded = ROOT / plan.verdicts
    if set(kinds) <= set(mutate_places.WIRING):  # a whole run keeps its own alone
        recorded = recorded.with_stem(f"{recorded.stem}_wiring")
    store = mutate_run.Store(args.reports / "mutation" / "results.jsonl", recorded)
    judge = mutate_run.Judge(ROOT, plan, mutants, store)
    began, whole = time.monotonic(), False
    try:
        with judge.working(builds() / "mutants", args.jobs):
            verdicts = mutant_verdicts(judge, equivalent, args.level, args.jobs)
        whole = args.module is None and args.kind == "logic" and args.level == LEVELS[-1]
    finally:
        if args.record:
            store.record(recorded, whole)
    failed = mutate_page.failures(verdicts, plan.strict, plan.goal)
    asked = f"MODULE='{' '.join(args.module)}' " if args.module else ""
    title = f"`make mutate {asked}N={args.n} SEED={args.seed}`: {len(mutants)} mutants"
    page = mutate_page.mutation_markdown(verdicts, title, failed)
    more = {"n": args.n, "seed": args.seed, "module": args.module}
    mutate_page.write_mutation_page(args.reports, page, mutate_page.data(verdicts, failed, **more))
    for verdict in verdicts:
        if verdict.status == "survived":
            print(mutate_page.verdict_line(verdict))
    alive = sum(v.status == "survived" for v in verdicts)
    print(
        f"score {mutate_page.score(verdicts):.1f} %, {alive} survived, "
        f"{time.monotonic() - began:.0f} s -> {args.reports.name}/mutation.md"
    )
    for reason in failed:
        print(f"FAIL {reason}")
    return int(bool(failed))
