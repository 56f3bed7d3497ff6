# SPDX-License-Identifier: Apache-2.0
"""Links and citations: whatever a text of the repository names must be there.

* Markdown links and pictures: the file exists, and so does the heading behind a ``#``.
* Documents (``.md``) named anywhere, in code, comments, help texts, by their path from the root of
  the repository or from the folder of the citing file: the file exists. A string that is a bare
  file name, a part of a path, does not count, nor does what commands write below reports/.
* Sections (a document's name, then a number, or the word section and a number): it has a heading
  with that number. Lists and ranges count, each number of them.
* Source files named in Markdown, in comments and in docstrings, by their path from the root: they
  exist; a pattern with ``*`` matches something.

Prints one line for each thing that does not resolve; exit status 1 when there is one.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from openkpu.checkout import ROOT

TEXTS = {".md", ".py", ".v", ".vh", ".rdl", ".toml", ".sh", ".yml", ".h", ".vlt", ".svg"}
NAMES = {"Makefile", "run"}  # texts without a suffix
FOLDERS = "docs|rtl|tb|models|scripts|include|lint"

FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
LINK_TARGET = re.compile(r"\]\([^)\n]*\)")
SOURCE = re.compile(r"<(?:img|a)\b[^>]*?(?:src|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
ANCHOR = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")
DOCUMENT = re.compile(r"(?<![\w./*{}-])((?:\.\./)*(?:[\w.-]+/)*[\w-]+\.md)\b(?!\()")
FILE = re.compile(
    rf"(?<![\w./{{}}<-])((?:{FOLDERS})/[\w./*-]*[\w*]\.(?:py|v|vh|toml|rdl|h|vlt|npz|png|svg))\b"
)
NUMBER = r"\d+(?:\.\d+)*"
BREAK = r"(?:\s*\n\s*(?://|#|\*)?\s*|\s+)"  # a space, or a new line of a comment
SECTION = re.compile(
    rf",?{BREAK}(section{BREAK}|sections{BREAK})?"
    rf"({NUMBER}(?:(?:\s*[-,/]\s*|{BREAK}and{BREAK}|{BREAK}to{BREAK}){NUMBER})*)(?![\w%])"
)


@dataclass(frozen=True)
class Broken:
    """Something that does not resolve."""

    file: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


def slug(title: str) -> str:
    """The anchor that GitHub gives a heading."""
    title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
    title = re.sub(r"[`*]|<[^>]+>", "", title).strip().lower()
    return re.sub(r"[^\w\- ]", "", title).replace(" ", "-")


@cache
def titles(path: Path) -> tuple[str, ...]:
    """Headings of a Markdown file, without its code blocks."""
    return tuple(HEADING.findall(_blanked(path.read_text(encoding="utf-8"), FENCE)))


@cache
def anchors(path: Path) -> frozenset[str]:
    """Everything that ``#...`` may name in a Markdown file; repeated headings are numbered."""
    found: dict[str, int] = {}
    names = set(ANCHOR.findall(path.read_text(encoding="utf-8")))
    for title in titles(path):
        name = slug(title)
        count = found.get(name, 0)
        found[name] = count + 1
        names.add(f"{name}-{count}" if count else name)
    return frozenset(names)


@cache
def sections(path: Path) -> frozenset[str]:
    """Numbers of the numbered headings of a Markdown file."""
    matches = (re.match(rf"({NUMBER})\.?\s", title) for title in titles(path))
    return frozenset(match[1] for match in matches if match)


def _blanked(text: str, pattern: re.Pattern[str]) -> str:
    """The text with every match replaced by blanks, lines kept."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _links(root: Path, file: Path, text: str) -> Iterator[Broken]:
    """Links and pictures of a Markdown file."""
    prose = _blanked(_blanked(text, FENCE), CODE)
    for pattern in (LINK, SOURCE):
        for match in pattern.finditer(prose):
            target = match[1]
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = (root / file).parent / name if name else root / file
            where = file, _line(text, match.start())
            if not path.exists():
                yield Broken(*where, f"link to {target}: no such file")
            elif root not in path.resolve().parents and path.resolve() != root:
                yield Broken(*where, f"link to {target}: outside of the repository")
            elif anchor and path.suffix == ".md" and anchor not in anchors(path.resolve()):
                yield Broken(*where, f"link to {target}: no such heading")


def _documents(root: Path, file: Path, text: str) -> Iterator[Broken]:
    """Documents named in the text, and the sections cited of them."""
    if file.suffix == ".md":  # what a link leads to is looked at as a link
        text = LINK_TARGET.sub(lambda match: "]" + " " * (len(match[0]) - 1), text)
    for match in DOCUMENT.finditer(text):
        bare = text[match.start() - 1 : match.end() + 1] == f'"{match[1]}"' and "/" not in match[1]
        if bare or match[1].startswith("reports/"):
            continue
        name, line = match[1], _line(text, match.start())
        places = [(root / file).parent / name, root / name]
        path = next((p for p in places if p.exists()), None)
        if path is None:
            yield Broken(file, line, f"{name}: no such document")
            continue
        cited = SECTION.match(text, match.end())
        if not cited or not (cited[1] or sections(path.resolve())):
            continue
        for number in re.findall(NUMBER, cited[2]):
            if number not in sections(path.resolve()):
                yield Broken(file, line, f"{name}: no section {number}")


def _remarks(file: Path, text: str) -> str:
    """What is prose in a file: Markdown whole, of code comments and docstrings; lines kept."""
    if file.suffix == ".md":
        return text
    if file.suffix in (".v", ".vh", ".rdl", ".h"):
        keep = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
        spans = [match.span() for match in keep.finditer(text)]
    elif file.suffix == ".py":
        spans = _python_spans(text)
    else:
        spans = [m.span() for m in re.finditer(r"#[^\n]*", text)]
    out, at = [], 0
    for begin, end in sorted(spans):
        out += [re.sub(r"[^\n]", " ", text[at:begin]), text[max(at, begin) : end]]
        at = max(at, end)
    return "".join(out) + re.sub(r"[^\n]", " ", text[at:])


def _python_spans(text: str) -> list[tuple[int, int]]:
    """Places of the comments and docstrings of a Python file."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    spans = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            (row, column), (_, end) = token.start, token.end
            spans.append((starts[row - 1] + column, starts[row - 1] + end))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                assert first.end_lineno is not None, "it was parsed"
                spans.append((starts[first.lineno - 1], starts[first.end_lineno]))
    return spans


def _files(root: Path, file: Path, text: str) -> Iterator[Broken]:
    """Source files named in prose."""
    try:
        remarks = _remarks(file, text)
    except (SyntaxError, tokenize.TokenError) as error:
        yield Broken(file, getattr(error, "lineno", None) or 1, f"is not Python: {error.args[0]}")
        return
    for match in FILE.finditer(remarks):
        name = match[1]
        found = any(root.glob(name)) if "*" in name else (root / name).exists()
        if not found and not (root / file).parent.joinpath(name).exists():
            yield Broken(file, _line(remarks, match.start()), f"{name}: no such file")


def check_citations(root: Path, file: Path) -> list[Broken]:
    """What does not resolve in one file, named relative to ``root``."""
    text = (root / file).read_text(encoding="utf-8")
    broken = [*_documents(root, file, text), *_files(root, file, text)]
    if file.suffix == ".md":
        broken += _links(root, file, text)
    return sorted(broken, key=lambda b: b.line)


def texts(root: Path) -> list[Path]:
    """Texts of the repository, relative to the root: what git tracks or would track."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if result.returncode == 0:
        files = [Path(line) for line in result.stdout.splitlines()]
    else:  # an unpacked archive
        hidden = {".venv", "sim_build", ".git"}
        files = [f.relative_to(root) for f in root.rglob("*") if not hidden & set(f.parts)]
    return sorted(
        f for f in set(files) if (f.suffix in TEXTS or f.name in NAMES) and (root / f).is_file()
    )


def main(root: Path = ROOT) -> int:
    """Check every text; exit status 1 when something does not resolve."""
    files = texts(root)
    broken = [item for file in files for item in check_citations(root, file)]
    for item in broken:
        print(item)
    if not files:
        print(f"{root}: no text to check")
    return 1 if broken or not files else 0


if __name__ == "__main__":
    sys.exit(main())
