# SPDX-License-Identifier: Apache-2.0
"""The claims under pytest: all of them on both simulators."""

import pytest

from openkpu.checkout import ROOT
from openkpu_tb.claims import run_claims


@pytest.mark.check
@pytest.mark.parametrize("sim", [pytest.param("icarus", marks=pytest.mark.nightly), "verilator"])
def test_claims(sim: str) -> None:
    """One simulation runs all ten."""
    run_claims.run_claims(sim)


@pytest.mark.check
@pytest.mark.parametrize("build", run_claims.OTHERS)
def test_other_builds(build: str) -> None:
    """C6 without the gate; C4 with full FIFOs."""
    run_claims.run_claims("icarus", build=build)


def test_table_of_the_claims() -> None:
    """Every claim has its test and a fault, all faults have a place, and all files are there."""
    assert tuple(f"C{n}" for n in range(1, 11)) == run_claims.IDS
    for claim in run_claims.CLAIMS:
        assert claim.doc and claim.text and claim.modules and claim.faults
        assert claim.test.rpartition(".")[2].startswith(f"{claim.id.lower()}_")
        for module in claim.modules:
            assert (ROOT / module).is_file(), f"{claim.id}: {module}"
        for fault in claim.faults:
            fault.planted((ROOT / fault.file).read_text(encoding="utf-8"))
