# SPDX-License-Identifier: Apache-2.0
"""What a built site must be: its links lead somewhere, and nothing loads from another host."""

import html
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {  # what a browser follows by itself: element and attribute
    "script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src",
    "video": "src", "audio": "src", "object": "data", "embed": "src", "image": "href",
    "use": "href", "input": "src", "track": "src",
}  # fmt: skip
NOT_LOADED = {"canonical", "next", "prev", "edit", "alternate", "author", "license"}  # rel of link
URL = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")
SCRIPT = re.compile(r"(<script\b[^>]*>).*?</script>", re.DOTALL | re.IGNORECASE)
STYLE = re.compile(
    r"""<style\b[^>]*>(.*?)</style>|\sstyle\s*=\s*("[^"]*"|'[^']*')""", re.DOTALL | re.IGNORECASE
)
ID = re.compile(r"""<[^<>]*?\s(?:id|name)\s*=\s*["']?([^"'\s>]+)""")
TAG = re.compile(rf"<({'|'.join(LOADED)}|a)\s([^>]*)>", re.IGNORECASE)
ATTRIBUTE = re.compile(r"""([\w:-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""")
MERMAID = re.compile(r"""class\s*=\s*["']?mermaid\b""")  # the theme would fetch its renderer
OTHERS = ("registers/", "reports/")  # links of a script; of commands, to files of the checkout


@dataclass
class Page:
    """What a page names: its ids, its links, and what is loaded with it."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)


def read(text: str) -> Page:
    """A page's names; what its scripts make is not among them."""
    text = SCRIPT.sub(r"\1", text)
    page = Page(ids=set(ID.findall(text)))
    for whole, of_element in STYLE.findall(text):
        page.loaded += _urls(whole or html.unescape(of_element[1:-1]))
    page.loaded += ["https://unpkg.com/mermaid"] * bool(MERMAID.search(text))
    for tag, attributes in TAG.findall(text):
        values = {
            name.lower().removeprefix("xlink:"): html.unescape(value.strip("\"'"))
            for name, value in ATTRIBUTE.findall(attributes)
        }
        if tag.lower() == "a":
            page.links += [values["href"]] if "href" in values else []
            if name := values.get("data-page"):  # of the front, whose script makes the address
                page.links.append(f"docs/{name}.html#{values.get('data-anchor', '')}")
        elif not set(values.get("rel", "").split()) & NOT_LOADED:
            name = LOADED[tag.lower()]
            page.loaded += [values[name]] if name in values else []
            parts = values.get("srcset", "").split(",")
            page.loaded += [part.split()[0] for part in parts if part.split()]
    return page


def _urls(css: str) -> list[str]:
    return [one or other for one, other in URL.findall(css)]


def foreign(target: str) -> bool:
    """A browser would ask another host for it."""
    parts = urlsplit(target)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "ftp", "ws", "wss")


def faults(folder: Path) -> list[str]:
    """A line for each thing of the site in ``folder`` that is not as it must be."""
    pages = {
        path.relative_to(folder).as_posix(): read(path.read_text(encoding="utf-8"))
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
    for target in dict.fromkeys([*page.loaded, *page.links]):
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
