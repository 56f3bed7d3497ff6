# SPDX-License-Identifier: Apache-2.0
"""What a built site must be: every link inside leads somewhere, and nothing loads from elsewhere."""

import posixpath
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {  # elements and attributes that a browser follows by itself
    ("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"),
    ("video", "src"), ("audio", "src"), ("object", "data"), ("embed", "src"), ("image", "href"),
    ("use", "href"), ("input", "src"), ("track", "src"),
}  # fmt: skip
NOT_LOADED = {"canonical", "next", "prev", "edit", "alternate", "author", "license"}  # rel of link
URL = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")
OTHERS = ("registers/",)  # pages whose links a script makes


class Page(HTMLParser):
    """What a page names: ids, links, and what is loaded with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name.removeprefix("xlink:"): value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        self.style = tag == "style"
        self.loaded += [found for found in _urls(values.get("style", ""))]
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        for name, value in values.items():
            free = tag == "link" and set(values.get("rel", "").split()) & NOT_LOADED
            if (tag, name) in LOADED and not free:
                self.loaded.append(value)
            if name == "srcset":
                self.loaded += [part.split()[0] for part in value.split(",") if part.split()]
        if "mermaid" in values.get("class", "").split():
            self.loaded.append("https://unpkg.com/mermaid")  # the theme would fetch its renderer

    def handle_data(self, data: str) -> None:
        if self.style:
            self.loaded += _urls(data)

    def handle_endtag(self, tag: str) -> None:
        self.style = False


def _urls(css: str) -> list[str]:
    return [one or other for one, other in URL.findall(css)]


def foreign(target: str) -> bool:
    """A browser would ask another host for it."""
    parts = urlsplit(target)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "ftp", "ws", "wss")


def faults(folder: Path) -> list[str]:
    """A line for each thing of the site in ``folder`` that is not as it must be."""
    pages = {
        path.relative_to(folder).as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.html"))
    }
    found = [line for name, page in pages.items() for line in _of_page(folder, name, page, pages)]
    for path in sorted(folder.rglob("*.css")):
        for target in _urls(path.read_text(encoding="utf-8")):
            if foreign(target):
                found.append(f"{path.relative_to(folder)}: loads {target} from another host")
    return found


def _of_page(folder: Path, name: str, page: Page, pages: dict[str, Page]) -> Iterator[str]:
    for target in page.loaded:
        if foreign(target):
            yield f"{name}: loads {target} from another host"
    if name.startswith(OTHERS) or name == "404.html":  # which a server shows at any place
        return
    for target in [*page.loaded, *page.links]:
        parts = urlsplit(target)
        if foreign(target) or parts.scheme:
            continue
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path)))
        path = path if parts.path else name
        if (folder / path).is_dir():
            path = posixpath.join(path, "index.html")
        if not (folder / path).is_file():
            yield f"{name}: link to {target}: no such file"
        elif path in pages and parts.fragment and not path.startswith(OTHERS):
            known = pages[path].ids | {"", "__top"}
            if unquote(parts.fragment) not in known:
                yield f"{name}: link to {target}: no such heading"
