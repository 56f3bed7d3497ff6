# SPDX-License-Identifier: Apache-2.0
"""Mutants that no test can distinguish from the original, listed with the reason.

An entry names a mutant by the text of the file, not by a line number. One that names none, or
more than one, is an error: the list follows the RTL.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from openkpu_tools.command import UsageError
from openkpu_tools.mutation.mutate_places import Mutation

FIELDS = {"line", "find", "put", "reason", "which"}


def load_equivalents(path: Path, name: str, mutations: Sequence[Mutation]) -> dict[Mutation, str]:
    """{mutation: why it is equivalent}; ``mutations``: all there are, drawn or not.

    An entry of a file has ``line`` (its text), ``find``, ``put``, ``reason``, and ``which`` of
    several that look the same, counted from 1 in the order of the file. UsageError, one line, for
    an entry that is stale or names several.
    """
    try:
        files = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}: {error}") from None
    found: dict[Mutation, str] = {}
    for file, entries in files.items():
        for number, entry in enumerate(entries, 1):
            where = f"{name}: entry {number} of {file}"
            missing = FIELDS - {"which"} - set(entry)
            if missing or set(entry) - FIELDS or not str(entry["reason"]).strip():
                raise UsageError(f"{where}: expected line, find, put, reason, maybe which")
            wanted = file, entry["line"], entry["find"], entry["put"]
            same = [m for m in mutations if (m.file, m.text, m.before, m.after) == wanted]
            if not same:
                raise UsageError(f"{where}: stale, no place gives {wanted[2]} -> {wanted[3]}")
            which = entry.get("which")
            if (which is None and len(same) > 1) or not 1 <= (which or 1) <= len(same):
                raise UsageError(
                    f"{where}: {len(same)} places look like this; expected which = 1 ..."
                )
            mutation = same[(which or 1) - 1]
            if mutation in found:
                raise UsageError(f"{where}: listed twice")
            found[mutation] = " ".join(entry["reason"].split())
    return found
