# SPDX-License-Identifier: Apache-2.0
"""Removes what builds and runs have left in the checkout, the environment excepted."""

import os
import shutil

from openkpu.checkout import ROOT
from openkpu_tools import registry

MADE = ("sim_build", "waves", "reports", ".pytest_cache", ".ruff_cache", ".hypothesis")
MADE += (".venv/bytecode",)  # of scripts/run.sh


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    registry.parse_command("clean", argv)
    for name in MADE:
        shutil.rmtree(ROOT / name, ignore_errors=True)
    for folder, names, _ in os.walk(ROOT):
        names[:] = [name for name in names if name not in (".git", ".venv")]
        if "__pycache__" in names:
            names.remove("__pycache__")
            shutil.rmtree(os.path.join(folder, "__pycache__"))
    return 0
