# SPDX-License-Identifier: Apache-2.0
"""Which tools changed since their own tests passed last (tb/plan/tools.toml)."""

import hashlib
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from openkpu.checkout import ROOT

TABLE = ROOT / "tb" / "plan" / "tools.toml"


def tools_table() -> dict[str, dict]:
    """Inputs and recorded digest of every tool."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def tool_digest(patterns: Iterable[str], root: Path = ROOT) -> str:
    """Of names and contents of all files that match; ValueError for a pattern without a file."""
    found = hashlib.sha256()
    for pattern in patterns:
        files = sorted(path for path in root.glob(pattern) if path.is_file())
        if not files:
            raise ValueError(f"{TABLE.name}: {pattern} matches no file")
        for path in files:
            found.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def unchanged() -> set[str]:
    """Tools whose inputs are those of the last passing run."""
    return {
        name for name, tool in tools_table().items() if tool_digest(tool["inputs"]) == tool["green"]
    }


def record_passed(passed: Iterable[str]) -> None:
    """Write the digests of tools whose tests have passed."""
    text, tools = TABLE.read_text(encoding="utf-8"), tools_table()
    for name in passed:
        now = tool_digest(tools[name]["inputs"])
        text = re.sub(
            rf'(?ms)(^\[{re.escape(name)}\]$.*?^green = )"[^"]*"', rf'\g<1>"{now}"', text, count=1
        )
    TABLE.write_text(text, encoding="utf-8")
