# SPDX-License-Identifier: Apache-2.0
"""Break each claim of the patent by hand and see its test fail (tb/claims/claims.toml), on Icarus.

Exit status 1 when a claim's test is red without a fault or green with one, 2 when the request was
not understood.
"""

import os
import tempfile
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tb import mutants, simrun
from openkpu_tb.claims import run_claims
from openkpu_tools import command, registry


def failure(chosen: list[run_claims.Claim], build: str = "") -> str:
    """The assertion that failed, nothing when all is green; SimError for what cannot be built."""
    try:
        run_claims.run_claims("icarus", chosen, build)
    except simrun.SimError as error:
        if "could not build" in str(error):
            raise
        return next((line for line in str(error).splitlines() if "Error:" in line), str(error))
    return ""


def main(argv: list[str] | None = None) -> int:
    """Try the faults of the claims that are named, of all by default."""
    wanted = registry.parse_command("claims", argv).claims or list(run_claims.IDS)
    unknown = [word for word in wanted if word not in run_claims.IDS]
    if unknown:
        ends = f"{run_claims.IDS[0]} to {run_claims.IDS[-1]}"
        raise command.UsageError(f"{unknown[0]!r} is no claim, they are {ends}")
    chosen = [claim for claim in run_claims.CLAIMS if claim.id in wanted]
    said = failure(chosen)
    bad = int(bool(said))
    print(
        f"{'BAD ' if said else 'ok  '} {' '.join(wanted)} unchanged: {said or 'green'}", flush=True
    )
    work = [(claim, fault) for claim in chosen for fault in claim.faults]
    for claim, fault in work:
        with tempfile.TemporaryDirectory(prefix="openkpu_fault_") as tmp:
            mutants.plant(fault, ROOT, Path(tmp))
            os.environ[mutants.FOLDER] = tmp
            said = failure([claim], fault.build)
            del os.environ[mutants.FOLDER]
        bad += not said
        verdict = f"ok   {claim.id:<3} {fault.breaks}: red: {said.strip()[:100]}"
        print(verdict if said else f"BAD  {claim.id:<3} {fault.breaks}: GREEN", flush=True)
    print(f"{len(work)} faults, {bad} not as they should be")
    return 1 if bad else 0
