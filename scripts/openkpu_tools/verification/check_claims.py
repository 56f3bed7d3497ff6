# SPDX-License-Identifier: Apache-2.0
"""Break each claim of the patent by hand and see its test fail (tb/openkpu_tb/claims/mutations.py).

Works on a copy of the tree, on Icarus. Exit status 1 when a claim's test is red without a mutation
or green with one, 2 when the request was not understood.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from openkpu.checkout import ROOT, python_path
from openkpu_tb.claims.claim import IDS
from openkpu_tb.claims.mutations import MUTATIONS, Mutation
from openkpu_tools import command, registry

PARTS = ("rtl", "tb", "models", "scripts", "configs.toml", "pyproject.toml")


def copy_tree(target: Path) -> None:
    """What a simulation needs, without builds and caches."""
    leave = shutil.ignore_patterns("__pycache__", "sim_build")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=leave)
        else:
            shutil.copy(source, target / part)


def apply(tree: Path, mutation: Mutation) -> str:
    """Change the file in the copy; its text before."""
    path = tree / mutation.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        raise SystemExit(f"{mutation.file}: {mutation.old!r} does not occur exactly once")
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    return text


def verdicts(tree: Path, *words: str) -> dict[str, str | None]:
    """Run tests of the copy; what became of each claim."""
    process = subprocess.Popen(
        [sys.executable, "-m", "openkpu_tb.claims.run_claims", *words],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": python_path(tree)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with command.ending(process):
        out, err = process.communicate()
    if process.returncode:
        raise SystemExit(f"openkpu_tb.claims.run_claims {' '.join(words)}: {err[-2000:]}")
    return json.loads(out.splitlines()[-1])


def main(argv: list[str] | None = None) -> int:
    """Try the mutations of the claims that are named, of all by default."""
    wanted = registry.parse_command("claims", argv).claims or list(IDS)
    unknown = [word for word in wanted if word not in IDS]
    if unknown:
        raise command.UsageError(f"{unknown[0]!r} is no claim, they are {IDS[0]} to {IDS[-1]}")
    bad = 0
    with tempfile.TemporaryDirectory(prefix="openkpu_mutants_") as tmp:
        tree = Path(tmp)
        copy_tree(tree)
        for id, failure in verdicts(tree, "icarus", *wanted).items():
            bad += failure is not None
            print(
                f"{'ok  ' if failure is None else 'BAD '} {id:<3} unchanged: {failure or 'green'}"
            )
        for mutation in MUTATIONS:
            if mutation.claim not in wanted:
                continue
            before = apply(tree, mutation)
            words = ["icarus", mutation.claim] if mutation.gate else ["ungated"]
            failure = verdicts(tree, *words)[mutation.claim]
            (tree / mutation.file).write_text(before, encoding="utf-8")
            shutil.rmtree(tree / "sim_build", ignore_errors=True)
            bad += failure is None
            seen = "GREEN" if failure is None else f"red: {failure.splitlines()[0][:100]}"
            verdict = "BAD " if failure is None else "ok  "
            print(f"{verdict} {mutation.claim:<3} {mutation.breaks}: {seen}", flush=True)
    tried = sum(m.claim in wanted for m in MUTATIONS)
    print(f"{tried} mutations, {bad} not as they should be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(command.run_command(main))
