# SPDX-License-Identifier: Apache-2.0
"""Run the tests of the claims in the table tb/claims/claims.toml."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu_tb.mutants import Fault
from openkpu_tb.runs import launch

CONFIG = "nano"
# a small weight buffer and pixel FIFO, so that small networks do not fit the one and fill the other
PARAMS = {"PROBE": 1, "WBUF_ROWS": 64, "PIX_FIFO_DEPTH": 16}
# other builds, each for a test of its own: without the gate the other half of C6; with a buffer for
# weights of as many channels as there are parameters the full FIFOs of C4
OTHERS = {
    "ungated": ("tb.claims.array_tests.ungated_operands_toggle", {"GATE": 0}),
    "roomy": ("tb.claims.dma_tests.full_fifos", {"WBUF_ROWS": 1024}),
}


@dataclass(frozen=True)
class ClaimFault(Fault):
    """A fault that a claim's test has to see."""

    breaks: str  # what is wrong then
    build: str = ""  # of OTHERS, for its test


@dataclass(frozen=True)
class Claim:
    """A claim and the cocotb test that shows it."""

    id: str  # C1 .. C10
    test: str  # module.coroutine
    text: str  # what is claimed, in own words
    modules: tuple[str, ...]  # Verilog files that do it, relative to the root
    faults: tuple[ClaimFault, ...]

    @property
    def doc(self) -> str:
        """What the test looks at."""
        module, _, name = self.test.rpartition(".")
        return " ".join(getattr(import_module(module), name).doc.split())


CLAIMS = tuple(
    Claim(
        **{
            **row,
            "modules": tuple(row["modules"]),
            "faults": tuple(ClaimFault(**fault) for fault in row["faults"]),
        }
    )
    for row in tomllib.loads((ROOT / "tb/claims/claims.toml").read_text(encoding="utf-8"))["claim"]
)
IDS = tuple(claim.id for claim in CLAIMS)


def run_claims(sim: str, chosen: Sequence[Claim] = CLAIMS, build: str = "") -> None:
    """Run the tests of some claims in one simulation; SimError when one fails.

    ``build``: of OTHERS, and its test in place of them.
    """
    other, more = OTHERS.get(build, ("", {}))
    tests = [name.rpartition(".") for name in ([other] if other else [c.test for c in chosen])]
    params = {**launch.parameters(configs.load_config(CONFIG)), **PARAMS, **more}
    launch.run_device(
        sim,
        ",".join(dict.fromkeys(module for module, *_ in tests)),
        params,
        testcase=[name for *_, name in tests],
        env={f"OKPU_{name}": str(value) for name, value in params.items()},
    )
