# SPDX-License-Identifier: Apache-2.0
"""Where the seeds of random tests come from: the variable OPENKPU_SEED, or the commit."""

import os
import subprocess
from pathlib import Path

from openkpu.checkout import ROOT

LIMIT = 1 << 32  # seeds are below it: what every generator here takes
MOST_DIGITS, MOST_SHOWN = 18, 40
FALLBACK = (1, 2, 3)  # without a commit
COVERAGE = (
    "OPENKPU_COVERAGE"  # set in runs that are counted, see tb/openkpu_tb/coverage/instrument.py
)


class SeedError(ValueError):
    """A variable that should hold a number does not: one line with its name and what it holds."""


def seed_number(name: str, text: str, least: int, limit: int = LIMIT) -> int:
    """The decimal number ``text`` of variable ``name``; SeedError unless least <= it < limit."""
    if not (is_whole(text) and least <= int(text) < limit):
        raise SeedError(
            f"{name}={shown(text)}: expected a whole number from {least} to {limit - 1}"
        )
    return int(text)


def is_whole(text: str) -> bool:
    """Decimal digits, and not so many that nothing here takes the number."""
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS


def shown(text: str) -> str:
    """A value in a message: quoted, the beginning of a long one."""
    return repr(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}...")


def environment() -> int | None:
    """The variable OPENKPU_SEED; None when it is not set, SeedError when it is no seed."""
    text = os.environ.get("OPENKPU_SEED")
    return None if text is None else seed_number("OPENKPU_SEED", text, 0)


def of_commit(root: Path = ROOT) -> tuple[tuple[int, ...], str]:
    """(three seeds, where they are from): the commit that is checked out in ``root``, if any."""
    try:
        top, commit = subprocess.run(
            ["git", "rev-parse", "--show-toplevel", "HEAD"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\n")[:2]
    except (OSError, subprocess.CalledProcessError):
        return FALLBACK, "no git commit here"
    if Path(top).resolve() != root.resolve():
        return FALLBACK, "no git commit here"
    return tuple(int(commit[at : at + 6], 16) for at in (0, 6, 12)), f"commit {commit[:12]}"


def chosen_seeds() -> tuple[tuple[int, ...], str]:
    """(seeds of this run, where they are from): OPENKPU_SEED alone if set, else the commit's.

    Runs for coverage always have the same one: figures of two commits are compared.
    """
    seed = environment()
    if seed is not None:
        return (seed,), "OPENKPU_SEED"
    return (FALLBACK[:1], "runs for coverage") if os.environ.get(COVERAGE) else of_commit()
