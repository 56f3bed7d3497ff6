# SPDX-License-Identifier: Apache-2.0
"""The error of everything that reads, checks or compiles a quantised network."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from openkpu.layer.layout import ROW_BYTES
from openkpu.terminal import printable
from openkpu.words import near, option


class CompileError(ValueError):
    """A model that cannot be compiled, in one line.

    ``node`` and ``operator`` name what is refused, where it is one node: the line then begins with
    both.  ``where`` is the file, or the part of it.
    """

    def __init__(self, text: str, *, node: str = "", operator: str = "", where: str = "") -> None:
        named = f"node {node!r} ({operator})" if node and operator else node or operator
        line = " ".join(": ".join(filter(None, (where, named, text))).split())
        super().__init__(printable(line))
        self.node, self.operator, self.where, self.reason = node, operator, where, text

    def within(self, where: str) -> CompileError:
        """The same error, in the file ``where``."""
        return CompileError(self.reason, node=self.node, operator=self.operator, where=where)


def ends_before(text: str, names: Iterable[str]) -> str:
    """Why an operator is refused, and how the network ends in front of it."""
    found = ",".join(dict.fromkeys(filter(None, names)))
    return f"{text}; {option('ends', found)} ends the network in front of it" if found else text


def check_ends(ends: Sequence[str], made: Collection[str], name: str) -> None:
    """CompileError for tensors with which a network cannot end: nothing computes one, or it is
    named twice."""
    for end in ends:
        if ends.count(end) > 1:
            what = f"{option('ends', ','.join(ends))}: {end} is there twice, expected once"
            raise CompileError(what, where=name)
        if end not in made:
            hint = near(end, made, f"expected names of {len(made)} computed tensors")
            raise CompileError(f"{option('ends', end)}: no node writes it; {hint}", where=name)


class FloatModelError(CompileError):
    """A float model without samples of its inputs."""


class RoomError(CompileError):
    """Layers whose maps do not fit the AI RAM, in bands neither (docs/compiler.md 7).

    ``have``: rows of the AI RAM of the configuration ``config``; ``need``: rows that the maps take
    at least, as estimated; ``why``: what was tried; ``place``: node, operator, where.
    """

    def __init__(self, config: str, have: int, need: int, why: str, **place: str) -> None:
        self.config, self.have, self.need, self.why, self.place = config, have, need, why, place
        wanted = f"expected a configuration with more ai_ram_rows than {have:,}"
        super().__init__(self._text(need, wanted), **place)

    def _text(self, need: int, wanted: str) -> str:
        there = f"the AI RAM of configuration {self.config} has {self.have * ROW_BYTES:,}"
        what = f"its maps take {need * ROW_BYTES:,} bytes, {there}, {self.why}"
        return f"{what}: {wanted}, or a smaller input"

    def least(self, rows: int, few: int) -> CompileError:
        """The same error with rows that are enough, and the most that are known as too few."""
        known = f" ({few:,} are too few)" if rows - few > 1 else ""
        wanted = f"expected a configuration with ai_ram_rows of {rows:,} or more{known}"
        return CompileError(self._text(rows, f"{wanted}, not {self.have:,}"), **self.place)

    def never(self, most: int) -> CompileError:
        """The same error where the ``most`` rows that a device can have are not enough."""
        what = f"its maps do not fit the AI RAM of configuration {self.config}, {self.why}, and"
        what += f" those of no device, which has up to {most:,} rows: expected a smaller input"
        return CompileError(what, **self.place)
