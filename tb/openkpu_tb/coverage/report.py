# SPDX-License-Identifier: Apache-2.0
"""The coverage report: an index, a page per source file, a page per functional cross.

Not by genhtml: lcov's files have neither the names of branch arms, nor terms, nor bits of signals.
"""

from html import escape
from pathlib import Path

from openkpu_tb.coverage.model import crosses
from openkpu_tb.coverage.points import KINDS, Arm, SourceFile, add_figures, by_folder
from openkpu_tb.coverage.summary import (
    CoverageResult,
    Table,
    figures_table,
    folder_table,
    functional,
)
from openkpu_tb.look import html_page


def write_coverage_report(result: CoverageResult, folder: Path, root: Path) -> None:
    """Write the report into ``folder``; sources are read below ``root``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in result.sources.items():
        text = (root / name).read_text(encoding="utf-8")
        (folder / page_of(name)).write_text(file_page(name, source, text), encoding="utf-8")
    for cross in crosses():
        page = cross_page(cross.title, list(cross.points), result.hits[cross.name])
        (folder / f"{cross.name}.html").write_text(page, encoding="utf-8")
    (folder / "index.html").write_text(index_page(result), encoding="utf-8")


def page_of(name: str) -> str:
    """File name of a source file's page."""
    return name.replace("/", "_") + ".html"


def rows(table: Table) -> str:
    """An HTML table of plain text."""
    lines = [
        "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>"
        for tag, row in zip(["th"] + ["td"] * (len(table) - 1), table, strict=True)
    ]
    return "<table>" + "\n".join(lines) + "</table>"


def index_page(result: CoverageResult) -> str:
    """Figures, folders, files, crosses, waivers."""
    body = [f"<p>Suite {escape(result.suite)}, {result.simulations} simulations, nano.</p>"]
    body += [f'<p class="fail">{escape(line)}</p>' for line in result.fallen]
    body += [
        rows(figures_table(result.figures, result.record, "recorded")),
        rows(folder_table(result.sources)),
    ]
    links = ", ".join(f'<a href="{c.name}.html">{escape(c.title)}</a>' for c in crosses())
    body += [f"<p>Functional coverage: {links}</p>"]
    heads = "".join(f"<th>{head}</th>" for head in ("file", *KINDS))
    body += [f"<table><tr>{heads}</tr>"]
    for folder, files in by_folder(result.sources).items():
        body.append(_file_row(f"<b>{folder}</b>", files))
        names = [n for n in sorted(result.sources) if str(Path(n).parent) == folder]
        for name in names:
            link = f'<a href="{page_of(name)}">{escape(Path(name).name)}</a>'
            body.append(_file_row(link, [result.sources[name]]))
    body += ["</table>", "<p>Not counted among the toggles:</p><ul>"]
    body += [f"<li>{w.file}: {w.signal}: {escape(w.reason)}</li>" for w in result.waivers]
    body += ["</ul>"]
    return html_page("OpenKPU coverage", body)


def _file_row(label: str, files: list[SourceFile]) -> str:
    cells = []
    for kind in KINDS:
        figure = add_figures([f.figure(kind) for f in files])
        cells.append(f'<td class="{_colour(figure.hit, figure.total)}">{figure}</td>')
    return f"<tr><td>{label}</td>{''.join(cells)}</tr>"


def _colour(hit: int, total: int) -> str:
    return "" if not total else "hit" if hit == total else "part" if hit else "miss"


def file_page(name: str, source: SourceFile, text: str) -> str:
    """Annotated source: line counts, branch arms, toggles of what the line declares."""
    declared: dict[int, list[str]] = {}
    for (line, signal), bits in source.signals.items():
        seen = sum(count > 0 for count in bits.values())
        title = _missing_bits(bits)
        declared.setdefault(line, []).append(
            f'<span class="{_colour(seen, len(bits))}" title="{escape(title)}">'
            f"{escape(signal)} {seen}/{len(bits)}</span>"
        )
    body = ['<p><a href="index.html">index</a></p>']
    body += [f"<p>{kind}: {source.figure(kind)}</p>" for kind in KINDS]
    heads = ("line", "count", "branch arms", "terms", "toggles", "source")
    body += ['<table class="source"><tr>' + "".join(f"<th>{h}</th>" for h in heads) + "</tr>"]
    for number, code in enumerate(text.splitlines(), 1):
        count = source.lines.get(number)
        arms = source.arms.get(number, [])
        colour = "" if count is None else "hit" if count else "miss"
        if colour == "hit" and any(not arm.count for arm in arms):
            colour = "part"
        shown, terms = _arms(arms), _terms(source.terms.get(number, []))
        signals = " ".join(declared.get(number, []))
        body.append(
            f'<tr id="L{number}"><td class="n">{number}</td>'
            f'<td class="n">{"" if count is None else count}</td><td>{shown}</td><td>{terms}</td>'
            f"<td>{signals}</td>"
            f'<td class="{colour}">{escape(code)}</td></tr>'
        )
    body += ["</table>"]
    for steps in source.steps.values():
        body += ["<h2>States and transitions</h2>", f"<p>{_arms(steps)}</p>"]
    body += ["<h2>Toggles that never happened</h2>", rows(_missing_table(source))]
    return html_page(name, body)


def _arms(arms: list[Arm]) -> str:
    return " ".join(
        f'<span class="{"hit" if arm.count else "miss"}">{escape(arm.name)} {arm.count}</span>'
        for arm in arms
    )


def _terms(terms: list[Arm]) -> str:
    """The number of an expression's deciding terms that were hit; the texts of the others."""
    missing = [term for term in terms if not term.count]
    met = f"{len(terms) - len(missing)}/{len(terms)}" if terms else ""
    return " ".join(filter(None, [met, _arms(missing)]))


def _missing_table(source: SourceFile) -> Table:
    table: Table = [("line", "signal", "bits and edges")]
    for (line, signal), bits in sorted(source.signals.items()):
        missing = _missing_bits(bits)
        if missing:
            table.append((str(line), signal, missing))
    return table


def _missing_bits(bits: dict[str, int], most: int = 12) -> str:
    """Bits and edges without a toggle, the first few by name."""
    missing = [bit.lstrip(":") for bit, count in bits.items() if not count]
    more = f" and {len(missing) - most} more" if len(missing) > most else ""
    return ", ".join(missing[:most]) + more


def cross_page(title: str, points: list[str], bins: dict[tuple[str, ...], int]) -> str:
    """Every bin with its count, those never hit first."""
    body = ['<p><a href="index.html">index</a></p>', f"<p>{functional(bins).percent}</p>"]
    body += ["<table><tr>" + "".join(f"<th>{escape(p)}</th>" for p in (*points, "hits")) + "</tr>"]
    for bin, count in sorted(bins.items(), key=lambda item: item[1] > 0):
        cells = "".join(f"<td>{escape(value)}</td>" for value in bin)
        body.append(f'<tr class="{"hit" if count else "miss"}">{cells}<td>{count}</td></tr>')
    body += ["</table>"]
    return html_page(title, body)
