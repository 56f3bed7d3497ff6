# SPDX-License-Identifier: Apache-2.0
"""A chain of layers that is computed in bands, and what it needs of maps."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from openkpu.arithmetic.integers import ceil_div, round_up
from openkpu.compiler.bands.graph import Map
from openkpu.compiler.bands.lines import Window

CHANNELS = 8  # of a part a multiple of this
Range = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Chain:
    """Layers ``first`` to ``behind``, in ``bands``, channels of their segments in ``parts``."""

    first: int
    behind: int
    bands: int = 1
    parts: int = 1


@dataclasses.dataclass
class BandPlan:
    """All chains, and the buffers that lie in storage between them."""

    chains: list[Chain]
    stored: frozenset[int]
    cost: float


class Lines(NamedTuple):
    """Of a band of a chain."""

    wanted: dict[int, Range]  # lines of each map that it needs
    windows: dict[int, Window]  # what each layer reads and computes
    there: dict[int, Range]  # lines of each map that it needs or computes
    needs: dict[int, Range]  # what of each layer's lines it needs


@dataclasses.dataclass(frozen=True)
class Use:
    """A map that a chain uses: it is made in it, it leaves it, lies in storage; first and last
    layer that reads or writes it."""

    buffer: int
    found: Map
    here: bool
    leaves: bool
    stored: bool
    first: int
    last: int


def part_channels(outputs: int, parts: int) -> int:
    """Channels of all parts but the last one."""
    return round_up(ceil_div(outputs, parts), CHANNELS)


def hull(a: Range | None, b: Range) -> Range:
    return b if a is None else (min(a[0], b[0]), max(a[1], b[1]))
