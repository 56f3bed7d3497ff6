# SPDX-License-Identifier: Apache-2.0
"""What `make test REST=1` leaves out is what the coverage share runs, with the same seed."""

import os
import subprocess
import sys

import pytest
from openkpu.scripts import coverage
from openkpu.tb.coverage import instrument
from openkpu.tb.coverage.share import ALIKE
from openkpu.tb.simrun import ROOT

pytestmark = pytest.mark.fixed  # the same with every seed


def collected(*words: str, **more: str) -> set[str]:
    """Tests that pytest would run."""
    environment = {k: v for k, v in os.environ.items() if k not in ("SEED", instrument.FOLDER)}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *words]
    done = subprocess.run(
        command, cwd=ROOT, env=environment | more, capture_output=True, text=True, check=True
    )
    return {line for line in done.stdout.splitlines() if "::" in line}


def test_left_out_is_run_for_coverage() -> None:
    (step,) = coverage.suite("share", 2)
    files = [word for word in step.command if word.endswith(".py")]
    choice = step.command[-1]
    share = collected(*files, "-k", choice, **{instrument.FOLDER: "/nowhere"})
    assert share >= ALIKE, f"not run for coverage: {sorted(ALIKE - share)}"
    both = {name.partition("::")[0] for name in ALIKE}
    everything, rest = collected(*both), collected(*both, "--beside-coverage")
    assert everything - rest == ALIKE, "REST=1 leaves out others"
    # its seed would follow the commit
    text = {name: (ROOT / name).read_text(encoding="utf-8") for name in both}
    for name in sorted(ALIKE):
        file, _, test = name.partition("::")
        body = text[file].partition(f"def {test.partition('[')[0]}(")[2].partition("\ndef ")[0]
        assert body and "SEED" not in body, name
