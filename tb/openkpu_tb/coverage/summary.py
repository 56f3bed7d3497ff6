# SPDX-License-Identifier: Apache-2.0
"""One page about a coverage run, in Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass

from openkpu_tb.coverage.baseline import Figures
from openkpu_tb.coverage.model import crosses
from openkpu_tb.coverage.points import KINDS, Figure, Sources, add_figures, by_folder
from openkpu_tb.coverage.sampler import Hits
from openkpu_tb.coverage.waivers import Waiver

Table = list[Sequence[str]]  # heading, then rows


@dataclass
class CoverageResult:
    """What a coverage run gave."""

    suite: str
    simulations: int
    sources: Sources
    hits: Hits
    waivers: list[Waiver]
    record: Figures
    fallen: list[str]  # sentences of baseline.compare_records

    @property
    def figures(self) -> Figures:
        """Every figure that is recorded."""
        found = {
            kind: add_figures([f.figure(kind) for f in self.sources.values()]) for kind in KINDS
        }
        for name, bins in self.hits.items():
            found[f"functional-{name}"] = functional(bins)
        return found


def functional(bins: dict) -> Figure:
    """Bins that were hit."""
    return Figure(sum(count > 0 for count in bins.values()), len(bins))


def figures_table(figures: Figures, beside: Figures, title: str) -> Table:
    """Kind, what was reached, and beside it another suite's or a record's; "-" where nothing is."""
    rows: Table = [("coverage", "reached", "hit", "of", title)]
    titles = {f"functional-{c.name}": c.title for c in crosses()}
    for kind in {**figures, **beside}:
        whole = figures.get(kind)
        cells = (whole.percent, str(whole.hit), str(whole.total)) if whole else ("-", "-", "-")
        other = beside[kind].percent if kind in beside else "-"
        rows.append((titles.get(kind, kind), *cells, other))
    return rows


def folder_table(sources: Sources) -> Table:
    """Code coverage of every folder of rtl/."""
    rows: Table = [("folder", "files", *KINDS)]
    for folder, files in by_folder(sources).items():
        parts = (add_figures([f.figure(kind) for f in files]).percent for kind in KINDS)
        rows.append((folder, str(len(files)), *parts))
    return rows


def cross_table(hits: Hits) -> Table:
    """Bins of every value of every point."""
    rows: Table = [("cross", "point", "bins hit by value")]
    for cross in crosses():
        for at, (point, values) in enumerate(cross.points.items()):
            if len(values) > 20:  # register words: the report lists them
                continue
            parts = []
            for value in values:
                figure = functional({b: n for b, n in hits[cross.name].items() if b[at] == value})
                parts.append(f"{value} {figure.hit}/{figure.total}")
            rows.append((cross.name, point, ", ".join(parts)))
    return rows


def coverage_markdown(result: CoverageResult) -> str:
    """The page in Markdown."""
    parts = [f"# Coverage ({result.suite})", _about(result), _verdict(result)]
    for table in (
        figures_table(result.figures, result.record, "recorded"),
        folder_table(result.sources),
        cross_table(result.hits),
    ):
        parts.append(markdown_table(table))
    parts += [f"Left out of the toggles ({len(result.waivers)}):"]
    parts += ["\n".join(f"- `{w.signal}` of `{w.file}`: {w.reason}" for w in result.waivers)]
    parts += [_rule()]
    return "\n\n".join(parts) + "\n"


def _about(result: CoverageResult) -> str:
    return (
        f"{len(result.sources)} files of rtl/, configuration nano, {result.simulations} "
        "simulations on Verilator, added up."
    )


def _verdict(result: CoverageResult) -> str:
    if result.fallen:
        return "FAIL, below the record:\n" + "\n".join(f"- {line}" for line in result.fallen)
    return "PASS: no figure is below its record."


def _rule() -> str:
    excluded = ", ".join(f"{len(c.excluded)} of {c.name}" for c in crosses() if c.excluded)
    return (
        "The nets `unused` take bits that nobody needs and are always 0: terms and toggles of them "
        "do not count. Bins that the specification rules out do not count: "
        f"{excluded} (tb/openkpu_tb/coverage/model.py has the rules)."
    )


def markdown_table(table: Table) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])
