# SPDX-License-Identifier: Apache-2.0
"""Pictures of the site: Mermaid's text as SVG, whose boxes lead to a section and to the source.

The same links go into docs/images/device.svg. Text and colours are those of the page around them
(files/site.css), so that a picture is dark where the page is.
"""

import html
import itertools
import posixpath
import re
from functools import cache
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tools.documents import check_links

SETTINGS = (
    '%%{init: {"theme": "neutral", "look": "classic", "layout": "dagre",'
    ' "fontFamily": "sans-serif", "flowchart": {"htmlLabels": false}}}%%\n'
)
ARCHITECTURE = Path("docs/architecture.md")
NODE = re.compile(
    r'(?P<head><g class="node[^>]*id="[\w-]*?flowchart-(?P<name>\w+)-\d+"[^>]*>)'
    r'(?P<rect><rect[^>]* x="(?P<x>[-\d.]+)" y="(?P<y>[-\d.]+)"'
    r' width="(?P<w>[\d.]+)" height="(?P<h>[\d.]+)"[^>]*/>)'
)
NOT_NEEDED = re.compile(
    r'<style>.*?</style>|<defs><symbol.*?</symbol></defs>| data-[\w-]+="[^"]*"| xml:space="\w+"',
    re.DOTALL,
)
# two paths of a thousand points each, whose first line is the straight one
STADIUM = re.compile(
    r'<g class="basic label-container outer-path"><path d="M-(?P<x>[\d.]+) -(?P<r>[\d.]+) C.*?</g>'
)
BOX = re.compile(r'<text x="(?P<x>\d+)" y="(?P<y>\d+)">(?P<name>\w+)</text>')
numbers = itertools.count()


@cache
def modules() -> dict[str, str]:
    """Verilog modules of the device, with the path of each file."""
    return {path.stem: path.relative_to(ROOT).as_posix() for path in ROOT.glob("rtl/*/*.v")} | {
        path.stem: path.relative_to(ROOT).as_posix() for path in ROOT.glob("rtl/*.v")
    }


@cache
def module_anchors() -> dict[str, str]:
    """The heading of docs/architecture.md that a module is described below.

    That is the one with the module's own picture, else the one with a picture that has its box,
    else the first that names it.
    """
    found: dict[int, dict[str, str]] = {0: {}, 1: {}, 2: {}}
    anchor, fence = "", False
    for line in (ROOT / ARCHITECTURE).read_text(encoding="utf-8").splitlines():
        fence ^= line.startswith("```")
        if not fence and (heading := check_links.HEADING.match(line)):
            anchor = check_links.slug(heading[1])
        own = re.match(r"\s*subgraph (\w+?)(?:_inside)?\b", line) if fence else None
        box = re.match(r'\s*(\w+)\["', line) if fence else None
        for rank, names in enumerate(
            ([own[1]] if own else [], [box[1]] if box else [], re.findall(r"`(\w+)`", line))
        ):
            for name in names:
                found[rank].setdefault(name, anchor)
    return found[2] | found[1] | found[0]


def links(name: str, page: str) -> tuple[str, str] | None:
    """Where a module's box leads on a page of the site: its section, its source."""
    if name not in modules():
        return None
    up = posixpath.relpath(".", posixpath.dirname(page) or ".")
    anchor = module_anchors().get(name, "")
    return (
        f"{up}/docs/architecture.html#{anchor}",
        f"{up}/{modules()[name]}.html",
    )


def _linked(part: str, name: str, mark: tuple[float, float], page: str) -> str:
    """A box, or its name, as a link to the section, with a mark that leads to the source."""
    if not (where := links(name, page)):
        return part
    section, source = map(html.escape, where)
    x, y = mark
    return (
        f'<a href="{section}" class="box-link"><title>{name}: its section</title>{part}</a>'
        f'<a href="{source}" class="source-link"><title>{modules()[name]}</title>'
        f'<text x="{x:g}" y="{y:g}" text-anchor="end">.v</text></a>'
    )


def mermaid_svg(text: str, page: str) -> str:
    """A picture as SVG, its boxes linked as from ``page``; ValueError for text that is none."""
    import mmdr  # pyright: ignore[reportMissingImports] # of the group `site`

    svg = mmdr.render(SETTINGS + text, backend="merman").svg()
    svg = NOT_NEEDED.sub("", svg).replace("merman", f"picture{next(numbers)}")

    def box(found: re.Match[str]) -> str:
        x, y, w, h = (float(found[name]) for name in "xywh")
        return found["head"] + _linked(found["rect"], found["name"], (x + w - 4, y + h - 5), page)

    def stadium(found: re.Match[str]) -> str:
        r = float(found["r"])
        x = float(found["x"]) + r
        size = f'x="{-x:g}" y="{-r:g}" width="{2 * x:g}" height="{2 * r:g}" rx="{r:g}"'
        return f'<rect class="basic label-container" {size}/>'

    return NODE.sub(box, STADIUM.sub(stadium, svg))


def device_svg(page: str) -> str:
    """docs/images/device.svg with links, for a page."""
    text = (ROOT / "docs" / "images" / "device.svg").read_text(encoding="utf-8")
    svg = re.sub(r"<!--.*?-->\s*|<style>.*?</style>", "", text, flags=re.DOTALL)

    def box(found: re.Match[str]) -> str:
        x, y = float(found["x"]), float(found["y"])
        width = 7.4 * len(found["name"])  # from its middle, or from its left in a frame's corner
        mark = (x + (width if found["name"].startswith("openkpu_") else width / 2) + 13, y)
        return _linked(found[0], found["name"], mark, page)

    svg = BOX.sub(box, svg)
    return re.sub(r"\n\s*\n", "\n", f'<div class="picture device">{svg.strip()}</div>')


page_now = "README.md"  # that is rendered: hooks.py sets it


def fence(source: str, *_: object, **__: object) -> str:
    """What superfences puts in place of a block of Mermaid."""
    svg = mermaid_svg(source, page_now)
    natural = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+)', svg)
    assert natural is not None, "the renderer gives every picture its size"
    return f'<div class="picture" style="--natural:{float(natural[1]):.0f}px">{svg}</div>'
