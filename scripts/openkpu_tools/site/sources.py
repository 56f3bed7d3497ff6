# SPDX-License-Identifier: Apache-2.0
"""Pages with the text of sources: the device's Verilog, and whatever a document links to."""

import html
import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import PurePosixPath

from openkpu.checkout import ROOT
from openkpu_tools.site import pictures

SUFFIX = ".md"  # behind the name of the source
INDEX = "sources.md"
LANGUAGES = {
    "v": "verilog", "vh": "verilog", "py": "python", "toml": "toml", "json": "json", "c": "c",
    "h": "c", "sh": "bash", "sdc": "tcl", "core": "yaml", "yml": "yaml", "vlt": "verilog",
}  # fmt: skip
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n"
MOST = 200_000  # characters; a longer file is data


def pages(paths: Iterable[str]) -> dict[str, str]:
    """Markdown of a page for each path of a file or folder, and of their index."""
    found = {path: _page(path) for path in paths}
    listed = [path for path in found if (ROOT / path).is_file()]
    return {**{f"{path}{SUFFIX}": text for path, text in found.items()}, INDEX: _index(listed)}


def _page(path: str) -> str:
    there = ROOT / path
    if there.is_dir():
        names = sorted(each.name for each in there.iterdir() if each.name[0] not in "._")
        return f"{UNSEARCHED}# {path}\n\n" + "\n".join(f"- `{name}`" for name in names) + "\n"
    text = there.read_text(encoding="utf-8")[:MOST]
    language = LANGUAGES.get(there.suffix.lstrip("."), "text")
    head = f"{UNSEARCHED}# {there.name}\n\n`{path}`"
    if there.stem in pictures.modules() and (where := pictures.links(there.stem, path)):
        head += f', described in <a href="{where[0]}">{pictures.ARCHITECTURE.name}</a>'
    fence = "`" * 8
    return f'{head}\n\n{fence} {{ .{language} linenums="1" }}\n{text}\n{fence}\n'


def _purpose(path: str) -> str:
    """What the comment or docstring at the head of a file says, its first sentence."""
    text = (ROOT / path).read_text(encoding="utf-8").partition("\n")[2]  # behind the SPDX line
    if path.endswith(".py"):
        found = re.match(r'\s*"""(.*?)(?:\.\s|\.?"""|\n\n)', text, re.DOTALL)
    else:
        comment = re.match(r"(?://[^\n]*\n)*", text)
        words = re.sub(r"\n?// ?", " ", comment[0]) if comment else ""
        found = re.match(rf"\s*{PurePosixPath(path).stem}: (.*?)(?:\.\s|\.?$)", words, re.DOTALL)
    said = " ".join(found[1].split()) if found else ""
    return html.escape(said, quote=False).replace("|", "\\|")


def _index(paths: list[str]) -> str:
    """The list of all, folder by folder."""
    lines = ["# Sources", "", "The device's Verilog, and the files that documents link to.", ""]

    def place(path: str) -> tuple[bool, str, str]:
        return not path.startswith("rtl/"), PurePosixPath(path).parent.as_posix(), path

    by_folder = sorted(paths, key=place)
    for folder, group in groupby(by_folder, lambda path: PurePosixPath(path).parent.as_posix()):
        lines += [f"## {'root' if folder == '.' else folder}", ""]
        lines += ["| file | purpose |", "|---|---|"]
        for path in group:
            name = PurePosixPath(path).name
            lines.append(f"| [{name}]({path}{SUFFIX}) | {_purpose(path)} |")
        lines.append("")
    return "\n".join(lines)
