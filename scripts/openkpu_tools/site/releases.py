# SPDX-License-Identifier: Apache-2.0
"""Figures of each release, from what its files record; `make reports RECORD=0.4.0` adds HEAD's.

A figure that a release did not record is left out. ``RELEASES`` keeps them, with the commit that
they were read from, so that a test can read them again.
"""

import json
import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tools.site import bars

RELEASES = Path(__file__).with_name("releases.json")
Text = Callable[[str], str]  # path -> what a release has there, or ""
Figures = dict[str, float]
BENCH = "scripts/openkpu_tools/benchmarks/bench_baseline.json"
FPGA = "scripts/openkpu_tools/flows/fpga_baseline.json"
COVERAGE = ("docs/verification.md", "README.md")
SCORE = r'"mutation": \{\s*"said": \[\s*"score ([\d.]+) %'
LUT = r'"nano_fpga": \{[^}]*"LUT": (\d+)'
DIGITS = (
    r'"networks: digits, small, 32 bits": \{.*?"end to end": \[\s*(\d+)'
    r"|^cycles per inference +(\d+)"
)
YOLOX = (
    r"^\| yolox_nano_224_v5\.kmodel, burst \| ([\d,]+)"
    r"|^ *cycles(?: of the layers)? +(\d+) +stalls"
)
# name of a figure, its unit, its pattern, the files to search; the first match counts
PATTERNS = (
    *(
        (f"{kind} coverage", " %", rf"^\| {kind} \| ([\d.]+) %", COVERAGE)
        for kind in ("line", "branch", "toggle")
    ),
    ("mutation score", " %", SCORE, ("tb/plan/nightly.json",)),
    ("LUT of nano_fpga", "", LUT, (FPGA,)),
    ("cycles of digits on small", "", DIGITS, (BENCH, "README.md")),
    ("cycles of yolox_nano's layers on k210", "", YOLOX, ("docs/benchmarks.md", "README.md")),
)
SEEN = 1.02  # of two figures, by how much one is larger
TESTS = "test functions"
UNITS = {TESTS: "", **{name: unit for name, unit, *_ in PATTERNS}}


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout


def figures_of(commit: str) -> Figures:
    """Figures that the files of a commit record; of the checkout for an empty name."""

    def text(path: str) -> str:
        if commit:
            return _git("show", f"{commit}:{path}")
        there = ROOT / path
        return there.read_text(encoding="utf-8") if there.is_file() else ""

    counted = _git("grep", "-hcE", r"^\s*(async )?def test_", *filter(None, [commit]), "--", "*.py")
    tests = sum(map(int, counted.split()))
    return ({TESTS: tests} if tests else {}) | _recorded(text)


def _recorded(text: Text) -> Figures:
    found: Figures = {}
    for name, _, pattern, files in PATTERNS:
        for path in files:
            if match := re.search(pattern, text(path), re.MULTILINE | re.DOTALL):
                figure = next(group for group in match.groups() if group)
                found.setdefault(name, float(figure.replace(",", "")))
    return found


def load_releases() -> dict[str, dict]:
    """Releases with date, commit and figures."""
    return json.loads(RELEASES.read_text(encoding="utf-8"))


def record_release(version: str, commit: str = "HEAD") -> None:
    """Keep the figures of a commit as those of a release."""
    known = load_releases() if RELEASES.is_file() else {}
    of = _git("rev-parse", "--short=8", commit).strip()
    date = _git("show", "-s", "--format=%cs", commit).strip() or f"{datetime.now(UTC):%Y-%m-%d}"
    known[version] = {"date": date, "commit": of, "figures": figures_of(of)}
    RELEASES.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def with_now() -> dict[str, Figures]:
    """Figures of all releases, and of the checkout."""
    return {name: each["figures"] for name, each in load_releases().items()} | {
        "now": figures_of("")
    }


def trend_table() -> list[list[str]]:
    """A row for each figure, a column for each release; the first row is the head."""
    known = with_now()

    def cell(figures: Figures, name: str) -> str:
        return f"{figures[name]:,.10g}{UNITS[name]}" if name in figures else ""

    rows = [[name, *(cell(figures, name) for figures in known.values())] for name in UNITS]
    return [["figure", *known], *rows]


def trend_charts() -> list[str]:
    """A chart for each figure that differs enough to be seen."""
    known = with_now()
    found = []
    for name, unit in UNITS.items():
        values = {each: {"": f[name]} for each, f in known.items() if name in f}
        figures = [value for each in values.values() for value in each.values()]
        if figures and max(figures) > SEEN * min(figures):
            found.append(bars.bars(name, values, unit))
    return found
