# SPDX-License-Identifier: Apache-2.0
"""Where the project's files lie that are no Python: RTL, configurations, Verilog of the benches."""

import os
import tomllib
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_TOP = _PACKAGE.parents[1]
# installed into a folder of a checkout (pip install --target) it is no part of that checkout
IN_CHECKOUT = _PACKAGE.parent.name == "models" and (_TOP / "configs.toml").is_file()
# the top folder of the checkout; of an installed package a folder that holds the same names
ROOT = _TOP if IN_CHECKOUT else _PACKAGE / "share"
REPORTS = (ROOT if IN_CHECKOUT else Path.cwd()) / "reports"


def source_roots(root: Path = ROOT) -> list[Path]:
    """Folders that Python imports from: the ones in pyproject.toml, in order.

    For an installed package the single folder that contains it.
    """
    settings = root / "pyproject.toml"
    if not settings.is_file():
        return [_PACKAGE.parent]
    tools = tomllib.loads(settings.read_text(encoding="utf-8"))["tool"]
    return [root / name for name in tools["pytest"]["ini_options"]["pythonpath"]]


def python_path(root: Path = ROOT) -> str:
    """PYTHONPATH for another interpreter that imports the same modules."""
    return os.pathsep.join(map(str, source_roots(root)))
