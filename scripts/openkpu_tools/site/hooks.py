# SPDX-License-Identifier: Apache-2.0
"""What MkDocs calls while it builds the site: pages, navigation, links to sources, citations.

Documents keep the places that they have in the repository, so that their links are those of the
files; a link to a source leads to a page with its text. A warning ends the build.
"""

# types are checked without the group `site`
# pyright: reportMissingImports=false
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from openkpu.checkout import REPORTS, ROOT
from openkpu_tools.documents import check_links
from openkpu_tools.site import api, bars, charts, navigation, pictures, reports, sources

log = get_plugin_logger("site")
DEVICE = "[![The device"  # picture of the README, which the site has with links
IMAGES = ("*.svg", "*.png")
HOW = "`make page` builds the device for the browser; `make site` then has it as its front."


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the navigation into the settings."""
    config.nav = navigation.navigation(ROOT)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents, their pictures, pages of sources and of Python modules."""
    for path in documents():
        files.append(file := File.generated(config, path, abs_src_path=str(ROOT / path)))
        if path.endswith("README.md") and (path != "README.md" or config.extra.get("front")):
            file.dest_uri = path.removesuffix(".md") + ".html"  # MkDocs would name it index.html
    for pattern in IMAGES:
        for found in sorted((ROOT / "docs" / "images").rglob(pattern)):
            path = found.relative_to(ROOT).as_posix()
            files.append(File.generated(config, path, abs_src_path=str(found)))
    made = {**api.pages(), **sources.pages(sorted(set(pictures.modules().values()) | linked()))}
    made[navigation.RELEASES] = "\n\n".join(["# Releases", *reports.trend(), *_reports()])
    for path, text in {"charts.css": bars.STYLE, **made}.items():
        files.append(File.generated(config, path, content=text))
    return files


def _reports() -> list[str]:
    """A link to the reports of the checkout, when it has any: build.py copies them."""
    there = (REPORTS / "index.html").is_file()
    return ['<a class="md-button" href="reports/index.html">Reports</a>'] * there


def documents() -> list[str]:
    """Every Markdown file of the repository."""
    found = (path for path in check_links.texts(ROOT) if path.suffix == ".md")
    return [path.as_posix() for path in found]


def linked() -> set[str]:
    """What documents link to besides documents and pictures, by path from the root."""
    found = set()
    for path in documents():
        folder = posixpath.dirname(path)
        for target in targets((ROOT / path).read_text(encoding="utf-8")):
            where = posixpath.normpath(posixpath.join(folder, target))
            if is_source(where):
                found.add(where)
    return found


def targets(text: str) -> list[str]:
    """Relative targets of links, without anchors."""
    found = (match[1].partition("#")[0] for match in check_links.LINK.finditer(text))
    return [target for target in found if target and not re.match(r"[a-z]+:", target)]


def is_source(path: str) -> bool:
    """A page shows its text: it is there, and neither a document nor a picture."""
    there = ROOT / path
    return there.exists() and there.suffix not in (".md", ".png", ".svg")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Look at citations; lead links to sources to their pages; add pictures and charts."""
    path = page.file.src_uri
    pictures.page_now = path
    if not (ROOT / path).is_file():  # made for the site
        return markdown
    for broken in check_links.check_citations(ROOT, Path(path)):
        log.warning(str(broken))
    folder = posixpath.dirname(path)

    def to_page(found: re.Match[str]) -> str:
        name, hash_, anchor = found[1].partition("#")
        where = posixpath.normpath(posixpath.join(folder, name))
        if re.match(r"[a-z]+:", found[1]) or not name or not is_source(where):
            return found[0]
        target = f"{name.rstrip('/')}{sources.SUFFIX}{hash_}{anchor}"
        at = found.start(1) - found.start()
        return found[0][:at] + target + found[0][at + len(found[1]) :]

    markdown = check_links.LINK.sub(to_page, markdown)
    if path == "README.md":
        front = config.extra.get("front")
        note = f'<a class="md-button" href="{front}">The device computes in your browser</a>'
        note = note if front else HOW
        markdown, count = re.subn(
            rf"^{re.escape(DEVICE)}.*$",
            lambda _: f"{note}\n\n{pictures.device_svg(path)}\n",
            markdown,
            flags=re.MULTILINE,
        )
        if count != 1:
            log.warning(f"{path}: {count} lines begin with {DEVICE}, expected one")
    if path == "docs/registers.md":
        button = '<a class="md-button" href="../registers/index.html">Browse the registers</a>'
        head, _, rest = markdown.partition("\n## ")
        markdown = f"{head}\n{button}\n\n## {rest}"
    return charts.with_charts(path, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make links of the citations in docstrings."""
    if not page.file.src_uri.startswith(api.FOLDER):
        return html
    found, broken = api.with_citations(html)
    for line in broken:
        log.warning(f"{page.file.src_uri}: {line}")
    return found
