# SPDX-License-Identifier: Apache-2.0
"""What `make regress` runs with which seed; tb/harness has the command's manners."""

import pytest
from openkpu.scripts import regress


def test_regress_repeats_what_takes_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything once, then what another seed changes; tests that are named always."""
    ran = []
    monkeypatch.delenv("SEED", raising=False)
    monkeypatch.setattr(regress, "run", lambda *words: (ran.append(words), (0, []))[1])
    assert regress.main(["--seeds=3"]) == 0
    again = ["-m", "not fixed", "tb"]
    assert ran == [(1, [], "2"), (2, again, "2"), (3, again, "2")]
    ran.clear()
    assert regress.main(["--seeds=2", "--jobs=1", "tb/fifo"]) == 0
    assert ran == [(1, ["tb/fifo"], "1"), (2, ["tb/fifo"], "1")]
