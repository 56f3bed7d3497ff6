# SPDX-License-Identifier: Apache-2.0
"""One page about a coverage run, as text and as Markdown."""

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


def figures_table(figures: Figures, record: Figures) -> Table:
    """Kind, what was reached, what is recorded."""
    rows: Table = [("coverage", "reached", "hit", "of", "recorded")]
    titles = {f"functional-{c.name}": c.title for c in crosses()}
    for kind, figure in figures.items():
        recorded = record[kind].percent if kind in record else "-"
        name = titles.get(kind, kind)
        rows.append((name, figure.percent, str(figure.hit), str(figure.total), recorded))
    return rows


def records_table(full: Figures | None, share: Figures | None) -> Table:
    """Kind, what is recorded of the whole run, and of the share; "-" where nothing is."""
    full, share = full or {}, share or {}
    rows: Table = [("coverage", "reached", "hit", "of", "by the share")]
    titles = {f"functional-{c.name}": c.title for c in crosses()}
    for kind in sorted({*full, *share}, key=[*full, *share].index):
        whole = full.get(kind)
        figures = (whole.percent, str(whole.hit), str(whole.total)) if whole else ("-", "-", "-")
        part = share[kind].percent if kind in share else "-"
        rows.append((titles.get(kind, kind), *figures, part))
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
        figures_table(result.figures, result.record),
        folder_table(result.sources),
        cross_table(result.hits),
    ):
        parts.append(markdown_table(table))
    parts += [f"Left out of the toggles ({len(result.waivers)}):"]
    parts += ["\n".join(f"- `{w.signal}` of `{w.file}`: {w.reason}" for w in result.waivers)]
    parts += [_rule()]
    return "\n\n".join(parts) + "\n"


def text(result: CoverageResult) -> str:
    """The page as plain text."""
    parts = [f"coverage ({result.suite})", _about(result), _verdict(result)]
    for table in (
        figures_table(result.figures, result.record),
        folder_table(result.sources),
        cross_table(result.hits),
    ):
        parts.append(text_table(table))
    waived = [f"  {w.file}: {w.signal}: {w.reason}" for w in result.waivers]
    parts += [f"left out of the toggles ({len(result.waivers)}):\n" + "\n".join(waived), _rule()]
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


def text_table(table: Table) -> str:
    """Columns of equal width, the last one as it is."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    rows = ["  ".join(v.ljust(w) for v, w in zip(row, widths, strict=True)) for row in table]
    return "\n".join(row.rstrip() for row in rows)
