# SPDX-License-Identifier: Apache-2.0
"""`make lint`: the type checker is one of its linters, and finds what it should."""

import shutil
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from openkpu_tools.verification import lint
from scripts.tests.checkouts import ran

pytestmark = pytest.mark.check

SOUND = "import numpy as np\n\n\ndef half(x: np.ndarray) -> np.ndarray:\n    return x // 2\n"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (SOUND, ""),
        (SOUND + "\n\nhalf('four')\n", "reportArgumentType"),
        (SOUND.replace("numpy", "nump"), "reportMissingImports"),
        ("from openkpu.layer import argumend\n", "reportAttributeAccessIssue"),
        ("import os\n\nos.environ.get('A').lower()\n", "reportOptionalMemberAccess"),
        ("1 + 2\n", "reportUnusedExpression"),  # a warning
    ],
    ids=["sound", "argument", "import", "own import", "optional", "warning"],
)
def test_types_are_checked(text: str, rule: str, tmp_path: Path) -> None:
    """In a checkout with the settings of this one, wherever its environment lies."""
    (types,) = (check for check in lint.checks() if check.title == "types of Python")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "openkpu").symlink_to(ROOT / "models" / "openkpu")
    (tmp_path / "models" / "made.py").write_text(text)
    found = ran(*types.command, "models/made.py", cwd=tmp_path, status=None)
    assert (found.returncode != 0) == bool(rule), found.stdout + found.stderr
    assert rule in found.stdout, found.stdout
