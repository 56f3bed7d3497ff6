# SPDX-License-Identifier: Apache-2.0
"""Navigation of the site: documents in the order in which docs/README.md gives them to a reader."""

import posixpath
import re
from pathlib import Path

from openkpu_tools.documents import check_links
from openkpu_tools.site import api, sources

INDEX = Path("docs/README.md")
RELEASES = "releases.md"  # made for the site
PROJECT = ("CONTRIBUTING.md", "CHANGELOG.md")
Nav = list[dict[str, "str | Nav"]]


def title(root: Path, path: str) -> str:
    """The first heading of a document."""
    return re.sub(r"[`*]", "", check_links.titles(root / path)[0])


def reading_paths(root: Path) -> dict[str, list[str]]:
    """Readers of the table "Where to start" with their documents, paths from the root."""
    text = (root / INDEX).read_text(encoding="utf-8")
    table = text.partition("## Where to start")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!you \|)([^|]*[^|\s-][^|]*) \| (.*) \|$", table, re.MULTILINE)
    return {f"You {who.replace('`', '')}": _documents(links) for who, links in rows}


def _documents(text: str) -> list[str]:
    """Documents that a text of docs/README.md links to, each once."""
    names = (match[1].partition("#")[0] for match in check_links.LINK.finditer(text))
    paths = (posixpath.normpath(posixpath.join(INDEX.parent.as_posix(), name)) for name in names)
    return list(dict.fromkeys(path for path in paths if path.endswith(".md")))


def navigation(root: Path) -> Nav:
    """Each document once: below the first reader whom docs/README.md sends to it, or elsewhere."""
    seen: set[str] = set(PROJECT)

    def new(paths: list[str]) -> Nav:
        fresh = [path for path in dict.fromkeys(paths) if path not in seen]
        seen.update(fresh)
        return [{title(root, path): path} for path in fresh]

    readers: Nav = [{who: new(paths)} for who, paths in reading_paths(root).items()]
    seen.add(INDEX.as_posix())
    rest = _documents((root / INDEX).read_text(encoding="utf-8"))
    decisions = "docs/decisions/README.md"
    rest = [path for path in rest if path != decisions]
    reference = new(rest)
    pages = sorted(path.relative_to(root).as_posix() for path in root.glob("docs/decisions/*.md"))
    chosen = new([decisions, *pages])
    others = [
        path.relative_to(root).as_posix()
        for folder in ("models", "tb")
        for path in sorted((root / folder).rglob("README.md"))
    ]
    return [
        {"OpenKPU": "README.md"},
        {"Documents": [{"Where to start": INDEX.as_posix()}, *readers, {"Reference": reference}]},
        {"Decisions": chosen},
        {"Python": api.navigation()},
        {"Sources": sources.INDEX},
        {
            "Project": [
                {"Releases": RELEASES},
                *({title(root, p): p} for p in PROJECT),
                *new(others),
            ]
        },
    ]
