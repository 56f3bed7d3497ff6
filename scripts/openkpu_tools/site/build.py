# SPDX-License-Identifier: Apache-2.0
"""`make site`: the documents, sources, registers, charts and Python pages as a site of HTML.

Its front is the page of `make page` where there is one, else the README. A link, citation or name
of a docstring that leads nowhere, and anything that a reader's browser would load from another
host, fails the build: exit status 1 with a line for each. 2: the folder cannot be written.
"""

# types are checked without the group `site`
# pyright: reportMissingImports=false
import logging
import re
import shutil
import time
from html import escape
from pathlib import Path

from openkpu.checkout import REPORTS
from openkpu.layer.regdesc import compile_map
from openkpu_tools import command, registry
from openkpu_tools.entries.documents import PAGE
from openkpu_tools.site import built

SETTINGS = Path(__file__).with_name("mkdocs.yml")
MARK = "search/search_index.json"  # a folder that has it is a site, which is replaced
FRONT = "index.html"
LINKS = ("../../docs/{page}.md#{anchor}", "docs/{page}.html#{anchor}")  # in a checkout, here
LEFT = ("*.jsonl", "*.vcd", "*.xml", "*.dat")  # data of reports
MATHJAX = re.compile(r"<script[^>]*mathjax.*?</script>", re.IGNORECASE | re.DOTALL)
NO_MATHJAX = "<script>var MathJax = { Hub: { Queue() {} } };</script>"  # pages call it
BAR = (  # above the page of `make page`
    ("README.html", "OpenKPU"),
    ("docs/README.html", "Documents"),
    ("docs/benchmarks.html", "Benchmarks"),
    ("docs/registers.html", "Registers"),
    ("python/index.html", "Python"),
    ("sources.html", "Sources"),
    ("releases.html", "Releases"),
)


def as_front(page: str) -> str:
    """The text of a page with a bar of links, its own links to documents leading into the site.

    ValueError where it has no body.
    """
    links = " ".join(f'<a href="{to}">{escape(name)}</a>' for to, name in BAR)
    style = "display:flex;flex-wrap:wrap;gap:.2em 1.2em;padding:.5em 1em;font:15px sans-serif"
    bar = f'<nav aria-label="Site" style="{style}">{links}</nav>'
    found, count = re.subn(r"<body\b[^>]*>", lambda body: body[0] + bar, page, count=1)
    if not count:
        raise ValueError("expected HTML with a <body>")
    return found.replace(*LINKS)


def make(out: Path, front: Path | None) -> None:
    """Build into ``out``; raises MkDocs' errors, and UsageError for a front that is no page."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from peakrdl_html import HTMLExporter

    config = load_config(str(SETTINGS), site_dir=str(out), strict=True)
    text = ""
    if front:
        try:
            text = as_front(front.read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            raise command.UsageError(f"{front}: {error}") from None
        config.extra |= {"front": FRONT, "homepage": FRONT}
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    config.plugins.on_shutdown()
    if front:
        (out / FRONT).write_text(text, encoding="utf-8")
    HTMLExporter().export(compile_map("openkpu").node, str(out / "registers"))
    if (REPORTS / FRONT).is_file():  # of make reports
        shutil.copytree(REPORTS, out / "reports", ignore=shutil.ignore_patterns(*LEFT))
    index = out / "registers" / "index.html"  # asks another host for MathJax, for formulas
    index.write_text(MATHJAX.sub(NO_MATHJAX, index.read_text(encoding="utf-8")), encoding="utf-8")


def checked(out: Path) -> Path:
    """The folder; UsageError for one with files that are no site, which would be lost."""
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise command.UsageError(f"{out}: has files that are no site, expected an empty folder")
    return out.resolve()


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = registry.parse_command("site", argv)
    from mkdocs.exceptions import Abort, BuildError, ConfigurationError, PluginError

    out, began = checked(args.out), time.monotonic()
    front = args.page / FRONT
    if not front.is_file():
        if args.page != PAGE:
            raise command.UsageError(f"{front}: no such file, expected the page of `make page`")
        front = None
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    try:
        make(out, front)
    except (Abort, BuildError, ConfigurationError, PluginError) as error:
        print(f"the site is not built: {error}")
        return command.MISMATCH
    for line in (found := built.faults(out)):
        print(line)
    files = [path for path in out.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    pages = sum(path.suffix == ".html" for path in files)
    print(
        f"{out}: {pages} pages, {len(files)} files, {size:.1f} MB,"
        f" after {time.monotonic() - began:.1f} s ({time.process_time():.1f} s of the processor)"
    )
    print(f"front: {front or 'the README; make page builds the device for the browser'}")
    return command.MISMATCH if found else 0
