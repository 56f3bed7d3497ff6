# SPDX-License-Identifier: Apache-2.0
"""Run the claims' tests on both simulators and write docs/claims.md from them (--check: only look).

Exit status 1 when a claim's test fails, or when --check finds another text than the tests give.
"""

import re
import sys
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tb.claims import run_claims
from openkpu_tb.claims.mutations import MUTATIONS
from openkpu_tb.simrun import SIMS
from openkpu_tools import command, registry

PAGE = ROOT / "docs" / "claims.md"
PASSES, FAILS = "passes", "FAILS"
HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- written by `openkpu claim-table`; do not edit -->
# The claims of the patent document and their tests

Every test monitors the whole device, configuration `{config}`, cycle by cycle: bus beats, FIFOs,
AI RAM ports, registers. It asserts order, time and address of these events as well as exact
results. The last column lists one-line changes of the Verilog that make the test fail;
`openkpu claims` tries all of them on a copy of the tree.

| claim | text | modules | test | {sims} | fails when |
|---|---|---|---|{rules}|---|
"""
LOOKS = "\n## Observations of each test\n\n"


def link(path: str) -> str:
    """Markdown link to a file, from docs/."""
    return f"[`{Path(path).name}`](../{path})"


def page(status: dict[str, dict[str, str]]) -> str:
    """The whole page; ``status``: simulator -> claim -> word."""
    text = HEAD.format(
        config=run_claims.CONFIG, sims=" | ".join(SIMS), rules="|".join("---" for _ in SIMS)
    )
    notes = []
    for claim in run_claims.claims():
        source = claim.module.replace(".", "/") + ".py"
        cells = [
            claim.id,
            claim.text,
            ", ".join(link(path) for path in claim.modules),
            f"[`{claim.test}`](../{source})",
            *(status[sim][claim.id] for sim in SIMS),
            "; ".join(m.breaks for m in MUTATIONS if m.claim == claim.id),
        ]
        text += "| " + " | ".join(cells) + " |\n"
        notes.append(f"- {claim.id}: {claim.doc}\n")
    return text + LOOKS + "".join(notes)


def shape(text: str) -> str:
    """The page without what only a run can tell."""
    return re.sub(rf"\| ({PASSES}|{FAILS}) (?=\|)", "| ? ", text)


def current() -> bool:
    """docs/claims.md is what the tests give, the outcome of the run aside."""
    word = {sim: {claim.id: PASSES for claim in run_claims.claims()} for sim in SIMS}
    return PAGE.exists() and shape(PAGE.read_text(encoding="utf-8")) == shape(page(word))


def main(argv: list[str] | None = None) -> int:
    """See above."""
    if registry.parse_command("claim-table", argv).check:
        if current():
            return 0
        print("docs/claims.md is not what `openkpu claim-table` writes")
        return 1
    status: dict[str, dict[str, str]] = {}
    good = True
    for sim in SIMS:
        found = run_claims.run_claim_tests(sim)
        if sim == "icarus" and found["C6"] is None:
            found |= run_claims.run_ungated(sim)
        status[sim] = {id: FAILS if text else PASSES for id, text in found.items()}
        for id, text in found.items():
            print(f"{sim:<9} {id:<3} {status[sim][id]}{': ' + text if text else ''}", flush=True)
            good &= text is None
    PAGE.write_text(page(status), encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(command.run_command(main))
