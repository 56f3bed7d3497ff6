# SPDX-License-Identifier: Apache-2.0
"""Shape of a feature map in the AI RAM (docs/kpu.md 2.2): groups, row length, rows, bytes."""

from __future__ import annotations

import dataclasses

from openkpu.arithmetic.integers import ceil_div

ROW_BYTES = 64
AI_RAM_ROWS = 32768  # 2 MiB, what KPU addresses (15 bits) reach


@dataclasses.dataclass(frozen=True)
class Layout:
    """A map of ``channels`` x ``height`` x ``width`` bytes from row ``base`` on."""

    channels: int
    height: int
    width: int
    base: int = 0

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
        """Rows that a line takes."""
        return 1 if self.groups > 1 else ceil_div(self.width, ROW_BYTES)

    @property
    def channel_rows(self) -> int:
        """Rows from one channel group to the next (channel_switch_addr)."""
        return self.row_len * self.height

    @property
    def rows(self) -> int:
        """Rows that the map occupies."""
        return self.channel_rows * ceil_div(self.channels, self.groups)

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
