# SPDX-License-Identifier: Apache-2.0
"""Run the claims' tests on both simulators and write docs/claims.md (--check: only compare).

The page is made from tb/claims/claims.toml when all of them pass. Exit status 1 when one fails, or
when --check finds another text.
"""

from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tb.claims import run_claims
from openkpu_tb.simrun import SIMS
from openkpu_tools import registry
from openkpu_tools.documents import generated

PAGE = ROOT / "docs" / "claims.md"
HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- written by `openkpu claim-table`; do not edit -->
# The claims of the patent document and their tests

Every test monitors the whole device, configuration `{config}`, cycle by cycle: bus beats, FIFOs,
AI RAM ports, registers. It asserts order, time and address of these events as well as exact
results. The last column lists one-line changes of the Verilog that make the test fail;
`openkpu claims` tries all of them.

| claim | text | modules | test | {sims} | fails when |
|---|---|---|---|{rules}|---|
"""
LOOKS = "\n## Observations of each test\n\n"


def link(path: str) -> str:
    """Markdown link to a file, from docs/."""
    return f"[`{Path(path).name}`](../{path})"


def page() -> str:
    """The whole page, of tests that pass."""
    text = HEAD.format(
        config=run_claims.CONFIG, sims=" | ".join(SIMS), rules="|".join("---" for _ in SIMS)
    )
    for claim in run_claims.CLAIMS:
        module, _, test = claim.test.rpartition(".")
        cells = [
            claim.id,
            claim.text,
            ", ".join(link(path) for path in claim.modules),
            f"[`{test}`](../{module.replace('.', '/')}.py)",
            *("passes" for _ in SIMS),
            "; ".join(fault.breaks for fault in claim.faults),
        ]
        text += "| " + " | ".join(cells) + " |\n"
    return text + LOOKS + "".join(f"- {claim.id}: {claim.doc}\n" for claim in run_claims.CLAIMS)


def main(argv: list[str] | None = None) -> int:
    """See above."""
    check = registry.parse_command("claim-table", argv).check
    others = [("icarus", build) for build in run_claims.OTHERS]
    for sim, build in () if check else (*((sim, "") for sim in SIMS), *others):
        run_claims.run_claims(sim, build=build)
    return generated.write_or_compare("openkpu claim-table", {PAGE: page()}, check)
