# SPDX-License-Identifier: Apache-2.0
"""docs/claims.md is made from the claims' tests, and from a run in which all passed."""

from openkpu.scripts import claim_table
from openkpu.tb.claims.claim import IDS
from openkpu.tb.simrun import SIMS


def test_table_is_current() -> None:
    assert claim_table.current(), "docs/claims.md: run python -m scripts.claim_table"
    rows = claim_table.PAGE.read_text(encoding="utf-8").splitlines()
    rows = [row for row in rows if row.startswith("| C")]
    assert len(rows) == len(IDS)
    for row in rows:
        assert row.split(" | ")[4 : 4 + len(SIMS)] == [claim_table.PASSES] * len(SIMS), row
