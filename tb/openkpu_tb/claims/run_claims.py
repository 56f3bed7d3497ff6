# SPDX-License-Identifier: Apache-2.0
"""Runs the claims' tests outside a simulator and tells what became of each claim.

``python -m openkpu_tb.claims.run_claims icarus C1 C5`` (or ``ungated``) prints verdicts as JSON.
"""

import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from openkpu import configs
from openkpu_tb import simrun
from openkpu_tb.claims.claim import CLAIMS, IDS, VERDICTS, Claim
from openkpu_tb.runs import launch

CONFIG = "nano"
MODULES = tuple(f"tb.claims.{n}_tests" for n in ("flow", "dma", "array", "memory", "control"))
UNGATED = "tb.claims.ungated_tests"
# a small weight buffer and pixel FIFO, so that small networks do not fit the one and fill the other
PARAMS = {"PROBE": 1, "WBUF_ROWS": 64, "PIX_FIFO_DEPTH": 16}
Verdicts = dict[str, str | None]  # claim -> what failed, None when nothing did


def claims() -> list[Claim]:
    """All claims in order; KeyError when one has no test."""
    for module in MODULES:
        import_module(module)
    return [CLAIMS[id] for id in IDS]


def run_claim_tests(sim: str, wanted: Sequence[str] | None = None) -> Verdicts:
    """Run the tests of some claims (all by default) in one simulation."""
    found = [c for c in claims() if wanted is None or c.id in wanted]
    modules = [m for m in MODULES if any(c.module == m for c in found)]
    names = None if wanted is None else [c.test for c in found]
    return _simulate(sim, modules, names, [c.id for c in found], PARAMS)


def run_ungated(sim: str = "icarus") -> Verdicts:
    """Run the part of C6 that needs a build without the gate."""
    return _simulate(sim, [UNGATED], None, ["C6"], {**PARAMS, "GATE": 0})


def _simulate(
    sim: str, modules: list[str], names: list[str] | None, ids: list[str], more: dict[str, int]
) -> Verdicts:
    """Verdicts on ``ids``; a claim that left none failed with the simulation."""
    params = {**launch.parameters(configs.load_config(CONFIG)), **more}
    with tempfile.TemporaryDirectory(prefix="openkpu_claims_") as tmp:
        path = Path(tmp) / "verdicts"
        path.touch()
        trouble = "the simulation ended before it"
        try:
            launch.run_device(
                sim,
                ",".join(modules),
                params,
                testcase=names,
                env={VERDICTS: str(path), **{f"OKPU_{k}": str(v) for k, v in params.items()}},
            )
        except simrun.SimError as error:
            trouble = str(error)
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    left = {line["id"]: line["failure"] for line in lines}
    return {id: left.get(id, trouble) for id in ids}


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the simulation too
    what, *ids = sys.argv[1:]
    print(json.dumps(run_ungated() if what == "ungated" else run_claim_tests(what, ids or None)))
