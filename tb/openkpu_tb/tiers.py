# SPDX-License-Identifier: Apache-2.0
"""Tiers of tests: what `make test`, `make check` and `make nightly` run (docs/verification.md).

A test without a mark is of the first tier, the one for minutes. ``@pytest.mark.check`` and
``@pytest.mark.nightly`` put a test into the second or third one; ``@pytest.mark.tier(check=[...],
nightly=[...])`` only those of its parameters whose identifier fits one of the patterns. ``sizes``
gives a bench its simulators and sizes, each with its tier.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Protocol

import pytest

TIERS = ("test", "check", "nightly")
COMMANDS = {"check": "make check", "nightly": "make nightly"}
# values of the option --tier: alone, or with all tiers before
TAKEN = {"test": ("test",), "check": ("check",), "push": ("test", "check"), "all": TIERS}


def sizes(names: str, test: str = "", check: str = "", nightly: str = "") -> pytest.MarkDecorator:
    """Parameters ``names`` of a bench, in the tier in which each of their values is tried.

    A value is its own identifier: ``"icarus-32-8"`` is ("icarus", 32, 8).
    """
    rows = []
    for tier, identifiers in zip(TIERS, (test, check, nightly), strict=True):
        marks = [getattr(pytest.mark, tier)] if tier != "test" else []
        for identifier in identifiers.split():
            values = [int(v) if v.isdecimal() else v for v in identifier.split("-")]
            rows.append(pytest.param(*values, id=identifier, marks=marks))
    return pytest.mark.parametrize(names.split(), rows)


def _fits(identifier: str, pattern: str) -> bool:
    return identifier == pattern or fnmatchcase(identifier, pattern)


def settle(item: pytest.Item) -> str:
    """The tier of a test; its mark is added, so that ``-m nightly`` sees the patterns as well."""
    identifier = getattr(getattr(item, "callspec", None), "id", "")
    for mark in item.iter_markers("tier"):
        for tier, patterns in mark.kwargs.items():
            if any(_fits(identifier, pattern) for pattern in patterns):
                item.add_marker(getattr(pytest.mark, tier))
    return next((t for t in reversed(TIERS) if item.get_closest_marker(t)), "test")


class Marked(Protocol):
    """The attributes of a test that ``stale`` uses."""

    @property
    def nodeid(self) -> str: ...

    def iter_markers(self, name: str) -> Iterable[pytest.Mark]: ...


def stale(items: Iterable[Marked]) -> list[str]:
    """Patterns of marks that fit none of their test's parameters, and tiers that there are not."""
    marks: dict[int, tuple[pytest.Mark, str, list[str]]] = {}
    for item in items:
        identifier = getattr(getattr(item, "callspec", None), "id", "")
        for mark in item.iter_markers("tier"):
            name = item.nodeid.partition("[")[0]
            marks.setdefault(id(mark), (mark, name, []))[2].append(identifier)
    found = []
    for mark, name, identifiers in marks.values():
        for tier, patterns in mark.kwargs.items():
            if tier not in COMMANDS:
                found.append(f"{name}: tier {tier!r}, expected check or nightly")
            for pattern in patterns:
                if not any(_fits(identifier, pattern) for identifier in identifiers):
                    found.append(f"{name}: {pattern!r} fits no parameter")
    return found
