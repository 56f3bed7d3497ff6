# SPDX-License-Identifier: Apache-2.0
"""Files that follow from others: written by a command, compared with --check."""

from collections.abc import Mapping
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tools import command


def write_or_compare(words: str, texts: Mapping[Path, str], check: bool) -> int:
    """Write the files that differ from what a command, ``words``, makes; with ``check`` name them
    alone, with MISMATCH for the exit status."""
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        where = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        if check:
            print(f"{where} is stale; run {words}")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[path])
            print(f"wrote {where}")
    return command.MISMATCH if check and stale else 0
