# SPDX-License-Identifier: Apache-2.0
"""Text for a terminal that may not have all of its letters."""

from __future__ import annotations

import io
import os
import shutil
import sys


def any_text() -> None:
    """From now on stdout and stderr print whatever text: letters that their encoding lacks become
    escapes (a file's name in Chinese where the locale is C)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def one_line(text: object) -> str:
    """A text of several lines as one; a single line keeps its spaces, as a name may have some."""
    lines = str(text).splitlines()
    return lines[0] if len(lines) == 1 else " ".join(" ".join(lines).split())


def printable(text: object) -> str:
    """Names out of a file may hold anything, and a terminal would obey it: escapes instead."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


def columns() -> int:
    """Columns of a terminal whose lines can be overwritten; 0 where the output goes elsewhere."""
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") in ("", "dumb"):
        return 0
    return shutil.get_terminal_size().columns
