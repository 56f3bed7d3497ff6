# SPDX-License-Identifier: Apache-2.0
"""The claims under pytest: all of them on both simulators."""

import pytest

from openkpu.checkout import ROOT
from openkpu_tb.claims import run_claims
from openkpu_tb.claims.claim import IDS
from openkpu_tb.claims.mutations import MUTATIONS


@pytest.mark.check
@pytest.mark.parametrize("sim", [pytest.param("icarus", marks=pytest.mark.nightly), "verilator"])
def test_claims(sim: str, subtests: pytest.Subtests) -> None:
    """One simulation runs all ten; each claim is reported by itself."""
    verdicts = run_claims.run_claim_tests(sim)
    assert tuple(verdicts) == IDS
    for claim in run_claims.claims():
        with subtests.test(msg=f"{claim.id} {claim.test}"):
            assert verdicts[claim.id] is None, verdicts[claim.id]


@pytest.mark.check
def test_ungated() -> None:
    """C6, the build without the gate."""
    assert run_claims.run_ungated() == {"C6": None}


def test_mutations_fit() -> None:
    """Every mutation can be applied: `openkpu claims` tries them."""
    for mutation in MUTATIONS:
        text = (ROOT / mutation.file).read_text(encoding="utf-8")
        assert text.count(mutation.old) == 1, f"{mutation.file}: {mutation.old!r}"
        assert mutation.new != mutation.old
    assert {m.claim for m in MUTATIONS} == set(IDS)


def test_modules_of_the_claims() -> None:
    """Every claim has its texts, and names files that are there."""
    for claim in run_claims.claims():
        assert claim.doc and claim.text and claim.modules
        for module in claim.modules:
            assert (ROOT / module).is_file(), f"{claim.id}: {module}"
