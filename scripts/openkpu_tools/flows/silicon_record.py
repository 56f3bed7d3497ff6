# SPDX-License-Identifier: Apache-2.0
"""The figures that `make fpga` and `make asic` keep of each configuration.

``--record`` writes them, ``--baseline`` compares a run with them; ``openkpu silicon`` makes the
tables of docs/silicon.md. A request that could not be met is refused before the flow, which can
take an hour.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from openkpu_tools import command


def options(parser: argparse.ArgumentParser) -> None:
    """Add ``--baseline`` and ``--record``, of which a run takes one."""
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--baseline", action="store_true", help="compare with what is recorded")
    either.add_argument("--record", action="store_true", help="record the figures")


def load(file: Path) -> dict[str, dict[str, Any]]:
    """Figures by configuration; none when nothing is recorded yet."""
    return json.loads(file.read_text()) if file.exists() else {}


def expect(file: Path, name: str, baseline: bool) -> None:
    """Raises UsageError when ``baseline`` is asked and ``file`` knows nothing of ``name``."""
    known = sorted(load(file))
    if baseline and name not in known:
        raise command.UsageError(
            f"no figures are recorded for {name}, expected one of {', '.join(known)}, or RECORD=1"
        )


def keep(file: Path, name: str, figures: dict[str, Any]) -> None:
    """Record ``figures`` of a configuration; what they do not tell stays as it is."""
    known = load(file)
    known[name] = known.get(name, {}) | figures
    file.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
