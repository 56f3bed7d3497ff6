# SPDX-License-Identifier: Apache-2.0
"""docs/claims.md is made from the claims' tests, and from a run in which all passed."""

from openkpu_tb.claims.claim import IDS
from openkpu_tb.simrun import SIMS
from openkpu_tools.documents import claim_table


def test_table_is_current() -> None:
    assert claim_table.current(), "docs/claims.md: run openkpu claim-table"
    rows = claim_table.PAGE.read_text(encoding="utf-8").splitlines()
    rows = [row for row in rows if row.startswith("| C")]
    assert len(rows) == len(IDS)
    for row in rows:
        assert row.split(" | ")[4 : 4 + len(SIMS)] == [claim_table.PASSES] * len(SIMS), row
