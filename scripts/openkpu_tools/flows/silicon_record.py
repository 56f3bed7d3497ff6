# SPDX-License-Identifier: Apache-2.0
"""The figures that `make fpga` and `make asic` keep of each configuration.

``--record`` writes them, ``--baseline`` compares a run with them; ``openkpu silicon`` makes the
tables of docs/silicon.md. A request that could not be met is refused before the flow, which can
take an hour.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from openkpu.checkout import REPORTS
from openkpu_tb.simrun import builds
from openkpu_tools import command


def checked(args: argparse.Namespace) -> argparse.Namespace:
    """The arguments; UsageError for both of ``--baseline`` and ``--record``,
    and for one of them without a checkout, which has the records."""
    command.apart(args, ("baseline", "record"))
    command.in_checkout(args, "baseline", "record")
    return args


def check_whole(args: argparse.Namespace) -> None:
    """UsageError for a variant of a configuration beside ``--baseline`` or ``--record``."""
    why = "a record is of a configuration as it is"
    command.apart(args, ("params", "record"), ("params", "baseline"), why=why)


def load_figures(file: Path) -> dict[str, dict[str, Any]]:
    """Figures by configuration; none when nothing is recorded yet."""
    return json.loads(file.read_text()) if file.exists() else {}


def expect(file: Path, name: str, baseline: bool) -> None:
    """Raises UsageError when ``baseline`` is set and ``file`` has no record of ``name``."""
    known = sorted(load_figures(file))
    if baseline and name not in known:
        raise command.UsageError(
            f"no figures are recorded for {name}, expected one of {', '.join(known)},"
            f" or {command.option('record', True)}"
        )


def keep_figures(file: Path, name: str, figures: dict[str, Any]) -> None:
    """Record ``figures`` of a configuration; figures without a new value stay as they are, those
    that are None go."""
    known = load_figures(file)
    merged = known.get(name, {}) | figures
    known[name] = {title: value for title, value in merged.items() if value is not None}
    file.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def page_rows(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines of a table with an empty line behind it; whole numbers have commas."""

    def line(cells: Sequence[object]) -> str:
        words = (f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells)
        return f"| {' | '.join(words)} |"

    return [line(head), "|" + "---|" * len(head), *map(line, rows), ""]


def path_rows(paths: list[dict]) -> list[str]:
    """The table of the worst paths."""
    ways = (", ".join(f"{name} {ns}" for name, ns in path["boxes"].items()) for path in paths)
    rows = [
        (path["ns"], path["from"], path["to"], way) for path, way in zip(paths, ways, strict=True)
    ]
    return page_rows(("ns", "from", "to", "boxes on the way (ns)"), rows)


def measured(
    kind: str, name: str, measure: Callable[[Path], dict], page: Callable[[dict], str]
) -> dict:
    """Figures that ``measure`` finds in a temporary folder; printed, and in reports/``kind``."""
    began, out = time.monotonic(), REPORTS / kind
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{kind}_", dir=builds()) as tmp:
        found = measure(Path(tmp))
    text = page(found)
    (out / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
    (out / f"{name}.md").write_text(text)
    print(f"{text}after {time.monotonic() - began:.0f} s")
    return found
