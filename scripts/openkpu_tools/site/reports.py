# SPDX-License-Identifier: Apache-2.0
"""`make reports`: pages of what commands left in reports, their index, and the trend of releases.

Markdown and JUnit XML become HTML with the look of the site; what a command writes as HTML has it.
``reports/index.html`` links all of them and has the trend. Exit status 2 when the folder cannot be
written.
"""

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

import markdown

from openkpu_tb.look import html_page
from openkpu_tools import registry
from openkpu_tools.site import bars, releases

OWN = "index.html"
TITLES = {  # of reports whose page has no heading
    "nightly.md": "Nightly", "bench.md": "Benchmarks", "coverage/index.html": "Coverage",
}  # fmt: skip
HEADING = re.compile(r"^# (.*)$", re.MULTILINE)


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """Cells of HTML; the first row is the head."""
    lines = [
        "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in row) + "</tr>"
        for tag, row in zip(["th"] + ["td"] * (len(rows) - 1), rows, strict=True)
    ]
    return "<table>" + "\n".join(lines) + "</table>"


def of_markdown(path: Path, home: str) -> str:
    """The page of a report in Markdown."""
    text = path.read_text(encoding="utf-8")
    heading = HEADING.search(text)
    title = heading[1] if heading else TITLES.get(path.name, path.stem)
    inner = markdown.markdown(
        HEADING.sub("", text, count=1) if heading else text,
        extensions=["tables", "fenced_code", "sane_lists"],
    )
    return html_page(title, [*_pictures(path), inner], home)


def _pictures(path: Path) -> Iterator[str]:
    """Pictures that a command drew beside its page, with names that begin like it."""
    for picture in sorted(path.parent.glob(f"{path.stem}_*.png")):
        name = escape(picture.name)
        yield f'<p><img src="{name}" alt="{escape(picture.stem)}" loading="lazy"></p>'


def of_junit(path: Path, home: str) -> str:
    """The page of a regression: counts, what failed, every item."""
    suite = ElementTree.parse(path).getroot()
    cases = list(suite.iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None]
    state = "miss" if failed else "hit"
    body = [f'<p class="{state}">{len(cases) - len(failed)} of {len(cases)} items passed</p>']
    for case in failed:
        said = case.findtext("failure") or ""
        body.append(f"<h2>{escape(case.get('name', ''))}</h2><pre>{escape(said)}</pre>")
    rows = [["items", "seed and item", "seconds", "result"]]
    for case in cases:
        result = "failed" if case in failed else "passed"
        cells = (case.get("classname", ""), case.get("name", ""), case.get("time", ""), result)
        rows.append([escape(cell) for cell in cells])
    return html_page("Random regression", [*body, html_table(rows)], home)


def written(folder: Path) -> list[tuple[Path, str]]:
    """Write the pages; (path, title) of all that the index links, in their order."""
    found = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        home = "../" * (len(name.parts) - 1) + OWN
        if path.suffix == ".md" and name.parts[0] != "coverage":
            page, text = path.with_suffix(".html"), of_markdown(path, home)
        elif path.name == "junit.xml":
            page, text = path.with_name(OWN), of_junit(path, home)
        elif name.as_posix() == "coverage/index.html":
            page, text = path, ""
        else:
            continue
        if text:
            page.write_text(text, encoding="utf-8")
        title = re.search(r"<title>(.*?)</title>", page.read_text(encoding="utf-8"))
        found.append((page, title[1] if title else page.stem))
    return found


def result_line(page: Path) -> str:
    """The first paragraph or verdict of a report, as text."""
    text = page.read_text(encoding="utf-8").partition("<main>")[2]
    paragraphs = (re.sub(r"<[^>]+>", "", p) for p in re.findall(r"<p\b[^>]*>(.*?)</p>", text, re.S))
    line = " ".join(next((p for p in paragraphs if p.strip()), "").split())
    return line if len(line) < 160 else line[:157] + "..."


def index(folder: Path, found: list[tuple[Path, str]]) -> str:
    """The page that links the reports, with the trend."""
    rows = [["report", "says", "written"]]
    for page, title in found:
        source = next(iter(page.parent.glob(f"{page.stem}.md")), page)  # when the command wrote it
        when = datetime.fromtimestamp(source.stat().st_mtime, UTC)
        link = f'<a href="{escape(page.relative_to(folder).as_posix())}">{title}</a>'
        rows.append([link, result_line(page), f"<time>{when:%Y-%m-%d %H:%M}</time>"])
    body = [html_table(rows) if found else "<p>No command has left a report.</p>"]
    plain = ", ".join(
        f'<a href="{escape(path.name)}">{escape(path.name)}</a>'
        for path in sorted(folder.glob("*.json*"))
    )
    body += [f"<p>Data: {plain}</p>"] if plain else []
    body += ["<h2>Trend of the releases</h2>", *trend()]
    return html_page("Reports", body, OWN, bars.STYLE + GRID)


GRID = (
    ".charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),1fr));"
    "gap:1rem 2rem}.chart{margin:0}time{white-space:nowrap}"
)


def trend() -> list[str]:
    """HTML of the table and the charts of the releases."""
    rows = [[escape(cell) for cell in row] for row in releases.trend_table()]
    charts = "".join(releases.trend_charts())
    return [html_table(rows), f'<div class="charts">{charts}</div>']


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = registry.parse_command("reports", argv)
    if args.record:
        releases.record_release(args.record)
        print(f"{releases.RELEASES.name}: {json.dumps(releases.load_releases()[args.record])}")
    args.folder.mkdir(parents=True, exist_ok=True)
    found = written(args.folder)
    (args.folder / OWN).write_text(index(args.folder, found), encoding="utf-8")
    print(f"{args.folder / OWN}: {len(found)} reports")
    return 0
