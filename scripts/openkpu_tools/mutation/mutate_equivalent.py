# SPDX-License-Identifier: Apache-2.0
"""Mutants that no test can tell from the original, listed with the reason.

An entry names a mutant by what stands in the file, not by a line number. One that names none, or
more than one, is an error: the list follows the RTL.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path

from openkpu_tools.command import UsageError
from openkpu_tools.mutation.mutate_places import Mutation

FIELDS = {"file", "line", "before", "after", "reason", "which"}


def load_equivalents(path: Path, name: str, mutations: Sequence[Mutation]) -> dict[Mutation, str]:
    """{mutation: why it is equivalent}; ``mutations``: all there are, drawn or not.

    An entry has ``file``, ``line`` (its text), ``before``, ``after``, ``reason``, and ``which`` of
    several that look the same, counted from 1 in the order of the file. UsageError, one line, for
    an entry that is stale or names several.
    """
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}: {error}") from None
    found: dict[Mutation, str] = {}
    for number, entry in enumerate(entries, 1):
        where = f"{name}: entry {number} ({entry.get('file', 'no file')})"
        missing = FIELDS - {"which"} - set(entry)
        if missing or set(entry) - FIELDS or not str(entry["reason"]).strip():
            raise UsageError(f"{where}: expected file, line, before, after, reason, maybe which")
        same = [
            m
            for m in mutations
            if (m.file, m.text, m.before, m.after)
            == (entry["file"], entry["line"], entry["before"], entry["after"])
        ]
        if not same:
            raise UsageError(
                f"{where}: stale, no place gives {entry['before']} -> {entry['after']}"
            )
        which = entry.get("which")
        if (which is None and len(same) > 1) or not 1 <= (which or 1) <= len(same):
            raise UsageError(f"{where}: {len(same)} places look like this; expected which = 1 ...")
        mutation = same[(which or 1) - 1]
        if mutation in found:
            raise UsageError(f"{where}: listed twice")
        found[mutation] = " ".join(entry["reason"].split())
    return found
