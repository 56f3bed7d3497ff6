# SPDX-License-Identifier: Apache-2.0
"""Text for a terminal that may not have all of its letters."""

from __future__ import annotations

import io
import sys


def any_text() -> None:
    """From now on stdout and stderr print whatever text: letters that their encoding lacks become
    escapes (a file's name in Chinese where the locale is C)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
