# SPDX-License-Identifier: Apache-2.0
"""Parts of a page that a command writes, between ``<!-- name -->`` and ``<!-- /name -->``."""

from pathlib import Path

from openkpu_tools import command


def marks(name: str) -> tuple[str, str]:
    """The two lines that enclose a part."""
    return f"<!-- {name} -->\n", f"<!-- /{name} -->"


def part(path: Path, name: str) -> str:
    """What a page has between the marks; UsageError where they are not there once."""
    text = path.read_text(encoding="utf-8")
    begin, end = marks(name)
    if text.count(begin) != 1 or text.count(end) != 1:
        raise command.UsageError(f"{path.name}: expected the marks {begin.strip()} and {end} once")
    return text.partition(begin)[2].partition(end)[0].rstrip("\n")


def fill(path: Path, name: str, new: str) -> None:
    """Replace it; UsageError as ``part``."""
    part(path, name)
    before, begin, rest = path.read_text(encoding="utf-8").partition(marks(name)[0])
    end = marks(name)[1]
    after = rest.partition(end)[2]
    new = f"{new.rstrip()}\n" if new.strip() else ""
    path.write_text(f"{before}{begin}{new}{end}{after}", encoding="utf-8")
