# SPDX-License-Identifier: Apache-2.0
"""docs/claims.md is made from the table of the claims and their tests."""

from openkpu_tools.documents import claim_table


def test_table_is_current() -> None:
    assert claim_table.current(), "docs/claims.md: run openkpu claim-table"
