# SPDX-License-Identifier: Apache-2.0
"""Size and words of the pages: the README is one screen, and a line of prose or RTL has at most 120
characters; pages, comments and docstrings have none of the words that WORDS lists.

Tables and code blocks are no prose. Prints one line for each fault; exit status 1 when there is
one.
"""

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from openkpu_tools import command
from openkpu_tools.arguments import Parser
from openkpu_tools.documents import check_links

README_LINES, README_BYTES = 150, 9 * 1024
PROSE = 120
WRITTEN = {Path("CHANGELOG.md")}  # grows with every release, older entries stay as they are
# pattern -> what a native engineer writes; identifiers in backticks are exempt
WORDS = {
    r"hears?|heard": "detects or receives",
    r"knows": "has, tracks or detects",
    r"tells?|told": "reports, distinguishes or configures",
    r"comes? to an end": "ends or completes",
    r"that which": "the name of the thing",
    r"of which": "whose, or a sentence of its own",
    r"those that": "the name of the things",
    r"stands?(?! for\b)": "is, lies or stays",
    r"takes? [\d,.]+( thousand)? (LUTs?|DSPs?|flip-flops|block RAMs?)": "uses or has",
}
# what a sentence of a page begins with; a heading may, and the list of commands
HEADLESS = re.compile(r"(?:^[\s>*-]*|[.:;] |\*\* )(What [a-z][^?]*)$")
TITLES = Path("docs/command-line.md")  # its lines are the docstrings of commands
PLAIN = ("models", "tb", "scripts", "docs", "README.md", "CONTRIBUTING.md")
REGISTERS = Path("docs/registers.md")  # its texts are those of openkpu.rdl


def readme(root: Path) -> Iterator[str]:
    """Faults of the size of the README."""
    data = (root / "README.md").read_bytes()
    for size, most, unit in (
        (len(data.splitlines()), README_LINES, "lines"),
        (len(data), README_BYTES, "bytes"),
    ):
        if size > most:
            yield f"README.md: {size} {unit}, expected at most {most}: tables go to docs/"


def prose(file: Path, text: str) -> Iterator[str]:
    """Lines of prose that are too long."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        start = line.lstrip()
        if start.startswith(("```", "~~~")):
            fence = "" if fence else start[:3]
        elif not fence and not start.startswith("|") and len(line) > PROSE:
            yield f"{file}:{number}: {len(line)} characters, expected at most {PROSE}"


def rtl_lines(root: Path) -> Iterator[str]:
    """Lines of the RTL that are too long: the formatter breaks no comment."""
    for file in sorted(root.glob("rtl/**/*.v")):
        name = file.relative_to(root)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > PROSE:
                yield f"{name}:{number}: {len(line)} characters, expected at most {PROSE}"


def written(text: str, suffix: str) -> Iterator[tuple[int, str]]:
    """Number and text of the lines of a page, of the comments and docstrings of a module."""
    if suffix == ".md":
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        prose = token.type == tokenize.STRING and token.string.startswith('"""')
        if prose or token.type == tokenize.COMMENT:
            yield from enumerate(token.string.splitlines(), token.start[0])


def words(file: Path, text: str) -> Iterator[str]:
    """Words that WORDS lists."""
    for number, line in written(text, file.suffix):
        for pattern, better in WORDS.items():
            if found := re.search(
                rf"\b({pattern})\b", re.sub("`+[^`]*`+", "", line), re.IGNORECASE
            ):
                yield f"{file}:{number}: {found[0]!r}, expected {better}"


def headless(file: Path, text: str) -> Iterator[str]:
    """Sentences of a page whose subject is a clause: "What is mapped can be computed"."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := HEADLESS.search(re.sub("`+[^`]*`+", "", line)):
            yield f"{file}:{number}: {found[1][:30]!r}, expected a noun as the subject"


def main(argv: list[str] | None = None, root: Path = check_links.ROOT) -> int:
    """Run the command; returns the exit status."""
    Parser(prog="check-pages", description=__doc__).parse_args(argv)
    found = list(readme(root))
    found += rtl_lines(root)
    for file in check_links.texts(root):
        text = (root / file).read_text(encoding="utf-8")
        if file.suffix == ".md" and file not in WRITTEN:
            found += prose(file, text)
            found += headless(file, text) if file != TITLES else []
        plain = any(file.is_relative_to(folder) for folder in PLAIN) and file != REGISTERS
        if plain and file.suffix in (".md", ".py"):
            found += words(file, text)
    for line in found:
        print(line)
    return command.MISMATCH if found else 0


if __name__ == "__main__":
    sys.exit(command.run_command(main))
