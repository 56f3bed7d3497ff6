# SPDX-License-Identifier: Apache-2.0
"""The expected contents of tb_top's memories, byte by byte, which detects stray writes.

AI RAM and storage are filled with random bytes. From then on every load through the back door, and
every result that a test expects, updates a copy of each; any other write of the device is a
difference. So is a write past the end of a map's lines: the device writes single bytes.
"""

import numpy as np
import numpy.typing as npt

from openkpu.layer import airam
from openkpu.layer.layout import ROW_BYTES
from openkpu_tb.core.backdoor import Backdoor, Bytes
from openkpu_tb.handle import Handle

SHOWN = 4  # differences that a message names


class Shadow(Backdoor):
    """A back door that keeps the expected content of both memories."""

    def __init__(self, tb: Handle) -> None:
        super().__init__(tb)
        self.ram = airam.new_ram(self.ram_rows)
        self.storage = np.zeros(self.storage_bytes, dtype=np.uint8)
        self.waiting = slice(0, 0)  # bytes of the AI RAM in which weights may have waited

    async def fill(self, rng: np.random.Generator) -> None:
        """Random bytes in all of AI RAM and storage."""
        await self.load_ram(0, rng.integers(0, 256, self.ram.size, dtype=np.uint8))
        await self.load_storage(0, rng.integers(0, 256, self.storage.size, dtype=np.uint8))

    async def load_storage(self, addr: int, data: Bytes) -> None:
        await super().load_storage(addr, data)
        self.storage[addr : addr + data.size] = data
        self.storage[addr + data.size : addr + data.size + -data.size % 4] = 0  # whole words

    async def load_ram(self, row: int, data: Bytes) -> None:
        await super().load_ram(row, data)
        self.ram[row * ROW_BYTES : row * ROW_BYTES + data.size] = data

    def expect_result(self, addr: int, y: npt.NDArray) -> None:
        """A dense map at ``addr`` of the storage; the device writes no byte more."""
        data = np.ascontiguousarray(y).view(np.uint8).reshape(-1)
        self.storage[addr : addr + data.size] = data

    def expect_weights(self, part: tuple[int, int]) -> None:
        """Weights may wait in these rows, first and number, whose content then is any."""
        first, rows = part
        self.waiting = slice(ROW_BYTES * first, ROW_BYTES * (first + rows))

    async def differences(self) -> list[str]:
        """What differs from the copies, a line for each memory; they then hold what is there."""
        ram, ram_unknown = await self.whole_ram()
        storage, unknown = await self.whole_storage()
        self.ram[self.waiting] = ram[self.waiting]
        found = [
            *_compare("AI RAM", ROW_BYTES, self.ram, ram, ram_unknown),
            *_compare("storage", 0, self.storage, storage, unknown),
        ]
        self.ram, self.storage = ram, storage
        return found


def _compare(
    name: str, row: int, expected: Bytes, found: Bytes, unknown: npt.NDArray[np.bool_]
) -> list[str]:
    """A line with number and first places of the bytes that differ; nothing when none does."""
    wrong = np.flatnonzero((expected != found) | unknown)
    if not wrong.size:
        return []
    shown = ", ".join(
        (f"row {at // row} byte {at % row}" if row else f"{at:#x}")
        + (f" is {found[at]:#04x}" if not unknown[at] else " is unknown")
        + f", expected {expected[at]:#04x}"
        for at in map(int, wrong[:SHOWN])
    )
    return [f"{name}: {wrong.size} bytes differ: {shown}" + (" ..." * (wrong.size > SHOWN))]
