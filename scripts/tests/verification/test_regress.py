# SPDX-License-Identifier: Apache-2.0
"""What `make regress` runs with which seed; tb/harness has the command's manners."""

import os
from unittest import mock

import pytest

from openkpu.checkout import ROOT
from openkpu_tools.verification import regress

pytest_plugins = ["pytester"]


def test_regress_repeats_what_takes_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything once, then what another seed changes; tests that are named always."""
    ran = []
    monkeypatch.delenv("OPENKPU_SEED", raising=False)
    monkeypatch.setattr(regress, "run_seed", lambda *words: (ran.append(words), (0, []))[1])
    assert regress.main(["--seeds=3"]) == 0
    again = ["-m", "not fixed", "tb"]
    assert ran == [(1, [], "2"), (2, again, "2"), (3, again, "2")]
    ran.clear()
    assert regress.main(["--seeds=2", "--seed=6"]) == 0
    assert [(seed, tests == regress.SEEDED) for seed, tests, _ in ran] == [(6, True), (7, True)]
    ran.clear()
    assert regress.main(["--seeds=2", "--jobs=1", "tb/fifo"]) == 0
    assert ran == [(1, ["tb/fifo"], "1"), (2, ["tb/fifo"], "1")]


def test_a_tenth_of_the_slow_ones(pytester: pytest.Pytester) -> None:
    """Ten numbers take each of its tests once, every number all others."""
    pytester.makeconftest((ROOT / "conftest.py").read_text())
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.parametrize("sim", ["icarus", "verilator"])
        @pytest.mark.parametrize("bench", range(13))
        def test_bench(sim, bench): pass
        """
    )
    taken: list[str] = []
    for number in range(2, 12):
        with mock.patch.dict(os.environ):  # conftest.py sets what builds of this worker would use
            found = pytester.runpytest("--collect-only", "-q", f"--icarus-tenth={number}").outlines
        tests = [line for line in found if "::" in line]
        assert sum("verilator" in test for test in tests) == 13
        taken += [test for test in tests if "icarus" in test]
    assert len(taken) == len(set(taken)) == 13
