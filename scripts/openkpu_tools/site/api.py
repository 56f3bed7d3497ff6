# SPDX-License-Identifier: Apache-2.0
"""Pages of the Python package openkpu: a page for each room, made from the docstrings."""

import ast
import html
import re
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tools.documents import check_links

FOLDER = "python/"
PACKAGE = ROOT / "models" / "openkpu"
LEFT_OUT = ("models", "judges")  # names of before 0.3; commands of a checkout
CITATION = re.compile(rf"\b(docs/[\w/-]+\.md)((?:,?\s+sections?)?\s+({check_links.NUMBER}))?")


def rooms() -> dict[str, list[str]]:
    """Names of the modules of each room, which stand for its page."""
    found = {"openkpu": [_name(path) for path in sorted(PACKAGE.glob("[a-z]*.py"))]}
    for folder in sorted(PACKAGE.iterdir()):
        if (folder / "__init__.py").is_file() and folder.name not in LEFT_OUT:
            paths = (path for path in sorted(folder.rglob("*.py")) if _public(path))
            found[folder.name] = [_name(path) for path in paths]
    return found


def _public(path: Path) -> bool:
    """A module; of a package what defines something itself."""
    if path.name == "__init__.py":
        return bool(re.search(r"^(def|class) ", path.read_text(encoding="utf-8"), re.MULTILINE))
    return not path.name.startswith("_")


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _purpose(room: str) -> str:
    """What the docstring of a room says."""
    folder = PACKAGE if room == "openkpu" else PACKAGE / room
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    return ast.get_docstring(tree) or ""


def navigation() -> list[dict]:
    """Entries of the pages."""
    return [{"Rooms": f"{FOLDER}index.md"}, *({room: f"{FOLDER}{room}.md"} for room in rooms())]


def pages() -> dict[str, str]:
    """Markdown of each page, and of their index."""
    made, rows = {}, []
    for room, modules in rooms().items():
        text = [f"# {room}", "", _purpose(room), ""]
        for module in modules:
            text += [f"::: {module}", ""]
        made[f"{FOLDER}{room}.md"] = "\n".join(text)
        rows.append(f"| [{room}]({room}.md) | {_purpose(room).splitlines()[0]} |")
    index = ["# Python", "", "The package `openkpu`, which needs numpy alone.", ""]
    made[f"{FOLDER}index.md"] = "\n".join([*index, "| room | holds |", "|---|---|", *rows, ""])
    return made


def with_citations(page: str) -> tuple[str, list[str]]:
    """A page with its citations of documents as links, and a line for each that is broken."""
    broken = []

    def link(found: re.Match[str]) -> str:
        path, number = ROOT / found[1], found[3]
        if not path.is_file():
            broken.append(f"{found[1]}: no such document")
            return found[0]
        anchor = ""
        if number:
            heads = (head for head in check_links.titles(path) if _number(head) == number)
            if (head := next(heads, None)) is None:
                broken.append(f"{found[1]}: no section {number}")
                return found[0]
            anchor = f"#{check_links.slug(head)}"
        target = html.escape(f"../{found[1].removesuffix('.md')}.html{anchor}")
        return f'<a href="{target}">{found[0]}</a>'

    return CITATION.sub(link, page), broken


def _number(head: str) -> str:
    found = re.match(rf"({check_links.NUMBER})\.?\s", head)
    return found[1] if found else ""
