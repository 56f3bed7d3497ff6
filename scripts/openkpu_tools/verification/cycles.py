# SPDX-License-Identifier: Apache-2.0
"""Cycles of layers, digits and a model against their record (tb/device/cycles.json).

``--record`` records the figures of the present RTL. Exit status: 0 as recorded, 1 otherwise.
"""

import os
import subprocess
import sys

from openkpu.checkout import ROOT
from openkpu_tb.device import cycles
from openkpu_tools import registry

TESTS = ["tb/device/test_cycles.py", "tb/device/test_device.py"]
CHOICE = "test_cycles or test_vectors_verilator or test_digits_verilator"


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = registry.parse_command("cycles", argv)
    if args.record:
        cycles.FILE.unlink(missing_ok=True)  # what is measured no more goes
    words = [sys.executable, "-m", "pytest", "-q", "-n", str(args.jobs), *TESTS, "-k", CHOICE]
    words += ["--all"] if args.record else []  # the nightly run's figures are in the record, too
    env = {**os.environ, **({cycles.RECORD: "1"} if args.record else {})}
    status = subprocess.run(words, cwd=ROOT, env=env).returncode
    if args.record:
        print(f"recorded: {cycles.FILE.relative_to(ROOT)}")
    return int(status != 0)
