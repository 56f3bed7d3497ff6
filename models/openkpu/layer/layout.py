# SPDX-License-Identifier: Apache-2.0
"""Shape of a feature map in the AI RAM (docs/kpu.md 2.2): groups, row length, rows, bytes."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div

ROW_BYTES = 64
AI_RAM_ROWS = 32768  # 2 MiB, what KPU addresses (15 bits) reach


@dataclasses.dataclass(frozen=True)
class Layout:
    """A map of ``channels`` x ``height`` x ``width`` bytes from row ``base`` on.

    ``stride``: rows from one channel group to the next where they do not follow each other, as in
    the lines of a larger map; 0: they do.
    """

    channels: int
    height: int
    width: int
    base: int = 0
    stride: int = 0

    @property
    def groups(self) -> int:
        """Channels that share a 64-byte row: 4, 2 or 1."""
        return 4 if self.width <= 16 else 2 if self.width <= 32 else 1

    @property
    def pitch(self) -> int:
        """Bytes from one channel to the next within a row."""
        return ROW_BYTES // self.groups

    @property
    def row_len(self) -> int:
        """Rows of a line."""
        return 1 if self.groups > 1 else ceil_div(self.width, ROW_BYTES)

    @property
    def channel_rows(self) -> int:
        """Rows from one channel group to the next (channel_switch_addr)."""
        return self.stride or self.own_rows

    @property
    def own_rows(self) -> int:
        """Rows of a channel group."""
        return self.row_len * self.height

    @property
    def rows(self) -> int:
        """Rows from the first one of the map to the last one."""
        return self.channel_rows * (ceil_div(self.channels, self.groups) - 1) + self.own_rows

    def meets(self, other: Layout) -> bool:
        """Has the other map a row in common with this one, those between channel groups apart?"""
        mine, end = self.base + self.rows, other.base + other.rows
        if self.base >= end or other.base >= mine:
            return False
        if self.channel_rows == self.own_rows and other.channel_rows == other.own_rows:
            return True
        return bool(np.intersect1d(self.row_numbers(), other.row_numbers()).size)

    def row_numbers(self) -> npt.NDArray[np.int64]:
        """The numbers (n,) of all rows of the map."""
        groups = np.arange(ceil_div(self.channels, self.groups))[:, None] * self.channel_rows
        return (self.base + groups + np.arange(self.own_rows)).reshape(-1)

    def batches(self, count: int) -> list[Layout]:
        """This map and those behind it, ``count`` in all."""
        return [dataclasses.replace(self, base=self.base + n * self.rows) for n in range(count)]

    @property
    def bytes(self) -> int:
        """Bytes that the map occupies, unused ones included."""
        return self.rows * ROW_BYTES


def map_bytes(shape: tuple[int, int, int]) -> int:
    """Bytes of a dense feature map."""
    return shape[0] * shape[1] * shape[2]
