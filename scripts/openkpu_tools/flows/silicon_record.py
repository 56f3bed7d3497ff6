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


def checked(args: argparse.Namespace) -> argparse.Namespace:
    """The arguments; UsageError for both of ``--baseline`` and ``--record``,
    and for one of them without a checkout, which has the records."""
    command.apart(args, ("baseline", "record"))
    command.in_checkout(args, "baseline", "record")
    return args


def load_figures(file: Path) -> dict[str, dict[str, Any]]:
    """Figures by configuration; none when nothing is recorded yet."""
    return json.loads(file.read_text()) if file.exists() else {}


def expect(file: Path, name: str, baseline: bool) -> None:
    """Raises UsageError when ``baseline`` is asked and ``file`` knows nothing of ``name``."""
    known = sorted(load_figures(file))
    if baseline and name not in known:
        raise command.UsageError(
            f"no figures are recorded for {name}, expected one of {', '.join(known)},"
            f" or {command.option('record', True)}"
        )


def keep_figures(file: Path, name: str, figures: dict[str, Any]) -> None:
    """Record ``figures`` of a configuration; what they do not tell stays as it is."""
    known = load_figures(file)
    known[name] = known.get(name, {}) | figures
    file.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
