# SPDX-License-Identifier: Apache-2.0
"""Rows of the AI RAM for weights that wait, drawn for a job (docs/registers.md, AI_SPARE_ROWS)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MOST = 32767  # rows, and the highest first row: 15 bits
BITS = 16  # of the number of rows
NONE = (0, 0)


@dataclass(frozen=True)
class SpareRows:
    """First row and rows that AI_SPARE_ROWS has during a job; ``beyond``: rows that do not exist,
    which the host tries before."""

    part: tuple[int, int] = NONE
    beyond: tuple[int, int] | None = None


def draw_spare(
    rng: np.random.Generator, unused: Sequence[tuple[int, int]], ram_rows: int
) -> SpareRows:
    """Any rows of the ``unused`` parts (first row, rows) for half of the jobs, few or many; none
    for the others, and in some of these the host tries rows behind the end of the AI RAM.
    """
    share = rng.random()
    if share < 0.5 and unused:
        first, rows = unused[int(rng.integers(len(unused)))]
        skip = int(rng.integers(rows)) if rng.random() < 0.5 else 0
        most = min(rows - skip, MOST)
        return SpareRows((first + skip, min(most, int(np.exp(rng.uniform(0, np.log(most + 1)))))))
    if share < 0.75:
        return SpareRows()
    first = int(rng.integers(ram_rows if rng.random() < 0.8 else MOST + 1))
    least = max(1, ram_rows - first + 1)
    more = int(rng.integers(1 << BITS)) if rng.random() < 0.5 else 0
    return SpareRows(NONE, (first, min(least + more, (1 << BITS) - 1)))
