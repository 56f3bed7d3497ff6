# SPDX-License-Identifier: Apache-2.0
"""Recorded figures (baseline.toml), one table per suite, and the comparison with them.

Seeds are fixed, so a suite gives the same figures again; any fall below the record is a failure.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from openkpu_tb.coverage.points import Figure

BASELINE = Path(__file__).with_name("baseline.toml")
HEAD = """# SPDX-License-Identifier: Apache-2.0
# Recorded coverage: hit and total of every figure. A figure that falls below its record is a
# failure. `make coverage RECORD=1` writes the table `full`, `make coverage SHARE=1 RECORD=1` the
# table `share`; both the table of docs/verification.md.
"""
Figures = dict[str, Figure]  # kind -> figure, in the order of the summary


class BaselineError(ValueError):
    """A file of records that cannot be used."""


def load_baseline(path: Path = BASELINE) -> dict[str, Figures]:
    """Records by suite; an absent file holds none. BaselineError names what is wrong."""
    if not path.exists():
        return {}
    try:
        suites = tomllib.loads(path.read_text(encoding="utf-8"))
        return {
            suite: {kind: Figure(*(int(n) for n in pair)) for kind, pair in table.items()}
            for suite, table in suites.items()
        }
    except (tomllib.TOMLDecodeError, AttributeError, TypeError, ValueError) as error:
        raise BaselineError(f"{path.name}: {error}") from None


def save(suites: Mapping[str, Figures], path: Path = BASELINE) -> None:
    """Write the records of all suites."""
    text = HEAD
    for suite in sorted(suites):
        text += f"\n[{suite}]\n"
        text += "".join(f"{kind} = [{f.hit}, {f.total}]\n" for kind, f in suites[suite].items())
    path.write_text(text, encoding="utf-8")


def compare_records(record: Figures, now: Figures) -> list[str]:
    """One sentence for every kind that fell below its record, is missing or was never recorded."""
    said = []
    for kind in sorted({*record, *now}, key=[*record, *now].index):
        if kind not in now:
            said.append(f"{kind}: not measured, recorded {record[kind]}")
        elif kind not in record:
            said.append(f"{kind}: {now[kind]}, but nothing is recorded")
        elif not now[kind].total:
            said.append(f"{kind}: nothing to cover, recorded {record[kind]}")
        elif now[kind].hit * record[kind].total < record[kind].hit * now[kind].total:
            said.append(f"{kind}: {now[kind]}, recorded {record[kind]}")
    return said
