# SPDX-License-Identifier: Apache-2.0
"""Every test with one seed after the other: `make regress SEEDS=10`.

With N= instead of SEEDS= it is random_regress.py that runs. SEED is the first seed, 1 by default.
Seed 1 runs all of the tests, the others those of ``tb`` that are not marked ``fixed``: the rest
would run the same again. What Icarus adds to Verilator, unknown values, hardly depends on a seed,
and it is far slower: seeds from 2 on run a tenth of its tests each, ten of them all.
The others go on behind a seed that fails; the last lines repeat each failed test. Exit status: 0
all passed, 1 a test failed, 2 bad request.
"""

import os
import re
import shlex
import subprocess
import sys
import time

from openkpu_tb import seeds
from openkpu_tools import command, registry
from openkpu_tools.command import option
from openkpu_tools.verification import random_regress

JOBS = 2  # processes at a time
NOTHING_RUN = 4, 5  # of pytest: a word that it does not take, no test; it has said which
SEEDED = ["-m", "not fixed", "tb"]  # tests that another seed changes
# a log line that a test captured may begin with ERROR too, with more than one space behind it
SUMMARY = re.compile(r"(?:FAILED|ERROR) (\S+\.py(?:::.*?)?)(?: - .*)?$")


def failed(line: str) -> str | None:
    """The test that a line of pytest's summary says has failed."""
    found = SUMMARY.match(line)
    return found[1] if found else None


def run_seed(seed: int, tests: list[str], jobs: str) -> tuple[int, list[str]]:
    """(pytest's status, tests that failed) with this seed; the output passes through."""
    words = [sys.executable, "-m", "pytest", "-q", "-n", jobs, "--dist", "worksteal", *tests]
    words += [f"--icarus-tenth={seed}"] if tests == SEEDED else []
    process = subprocess.Popen(
        words, env={**os.environ, "OPENKPU_SEED": str(seed)}, stdout=subprocess.PIPE, text=True
    )
    found = []
    with command.ending(process):
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            found += [name for name in [failed(line)] if name]
        return process.wait(), found


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = registry.parse_command("regress", argv)
    if args.n and not args.seeds:
        return random_regress.run_random_items(args)
    for name in ("sim", "config", "params", "kind", "cluster"):
        command.needs(args, name, "n", "a number of random items")
    n, seeds_option = option("n"), option("seeds")
    if args.n:
        raise command.UsageError(f"{n} and {seeds_option} together, expected one of them")
    if not args.seeds:
        raise command.UsageError(f"no {n} and no {seeds_option}, expected one of them")
    if (given := seeds.environment()) is not None:
        what = f"regress has seeds of its own, {seeds_option} of them, expected none"
        raise command.UsageError(f"OPENKPU_SEED={given}: {what}")
    count, jobs, first = args.seeds, str(args.jobs or JOBS), 1 if args.seed is None else args.seed
    if first + count > seeds.LIMIT:
        what = f"{option('seed', first)} and {option('seeds', count)}"
        raise command.UsageError(f"{what}: expected seeds below {seeds.LIMIT}")
    began, repeats, lost = time.monotonic(), [], 0
    for seed in range(first, first + count):
        place = f"seed {seed}, {seed - first + 1} of {count}"
        print(f"{place}, {time.monotonic() - began:.0f} s so far", flush=True)
        status, names = run_seed(seed, args.tests or ([] if seed == 1 else SEEDED), jobs)
        if status in NOTHING_RUN:
            return 2
        if status:
            print(f"{place} failed", flush=True)
            lost += 1
            for test in names or [" ".join(args.tests)]:
                where = f" TESTS={shlex.quote(test)}" if test else ""
                repeats.append(f"  make test SEED={seed}{where}")
    if lost:
        print(f"{lost} of {count} seeds failed; to repeat:", *repeats, sep="\n")
        return 1
    print(f"{count} seeds passed in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(command.run_command(main))
