# SPDX-License-Identifier: Apache-2.0
"""Size of the pages: the README is one screen, and a line of prose has at most 120 characters.

Tables and code blocks are no prose. Prints one line for each fault; exit status 1 when there is
one.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from openkpu_tools import command
from openkpu_tools.documents import check_links

README_LINES, README_BYTES = 150, 9 * 1024
PROSE = 120
WRITTEN = {Path("CHANGELOG.md")}  # grows with every release, older entries stay as they are


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


def main(argv: list[str] | None = None, root: Path = check_links.ROOT) -> int:
    """Run the command; returns the exit status."""
    command.Parser(prog="check-pages", description=__doc__).parse_args(argv)
    found = list(readme(root))
    for file in check_links.texts(root):
        if file.suffix == ".md" and file not in WRITTEN:
            found += prose(file, (root / file).read_text(encoding="utf-8"))
    for line in found:
        print(line)
    return command.MISMATCH if found else 0


if __name__ == "__main__":
    sys.exit(command.run_command(main))
