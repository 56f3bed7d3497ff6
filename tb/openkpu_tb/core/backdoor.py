# SPDX-License-Identifier: Apache-2.0
"""Fast access to the memories of tb_top, past every bus: hex files that the bench loads and dumps.

Both simulators read and write megabytes so in milliseconds; value handles would take seconds.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.triggers import Timer

from openkpu.arithmetic.integers import ceil_div
from openkpu_tb.core.registers import COUNTERS
from openkpu_tb.handle import Handle

LOAD_STORAGE, DUMP_STORAGE, LOAD_RAM, DUMP_RAM, DUMP_PERF, CLEAR_PERF, DUMP_BEATS = range(1, 8)
CHANGES_STORAGE, CHANGES_RAM = 9, 10
LOOKS = (DUMP_STORAGE, DUMP_RAM, CHANGES_STORAGE, CHANGES_RAM)  # into a memory
CHANGES = {CHANGES_STORAGE: "storage_changes.hex", CHANGES_RAM: "ai_ram_changes.hex"}
WIDTH = len(COUNTERS)
Bytes = npt.NDArray[np.uint8]
Known = tuple[Bytes, npt.NDArray[np.bool_]]  # bytes of a memory, and which are unknown
_UNKNOWN, _NONE = 1 << 8, 1 << 9  # beside the 256 values of a byte


def _pairs() -> npt.NDArray[np.uint16]:
    """Meaning of each pair of digits in a file: a value, _UNKNOWN or _NONE."""
    one = np.full(256, _NONE, np.uint16)
    for value, digit in enumerate("0123456789abcdef"):
        one[[ord(digit), ord(digit.upper())]] = value
    one[[ord(digit) for digit in "xzXZ"]] = _UNKNOWN
    first, second = one[None, :], one[:, None]  # the second one is the upper byte of a "<u2"
    both = np.maximum(first, second)
    return np.where(both < 16, first << 4 | second, both).reshape(-1)


_PAIRS = _pairs()


def encode(data: Bytes, width: int, first: int) -> str:
    """Hex text of ``data``: words of ``width`` bytes, lowest byte last, from word ``first`` on."""
    words = np.ascontiguousarray(data).reshape(-1, width)[:, ::-1]
    return f"@{first:x}\n{words.tobytes().hex(chr(10), width)}\n"


def decode_dump(text: bytes, width: int) -> Known:
    """Bytes of a dump, and which of them hold an unknown (x or z) bit.

    A line holds a word; lines of another length, comments and addresses, are left out. ValueError
    for a digit that is none.
    """
    line = 2 * width + 1
    raw = np.frombuffer(text[text.find(b"\n") + 1 :] if text[:1] in b"@/" else text, np.uint8)
    if raw.size % line or (raw[line - 1 :: line] != ord("\n")).any():
        kept = [part for part in text.split() if len(part) == line - 1]
        raw = np.frombuffer(b"".join(part + b"\n" for part in kept), np.uint8)
    values = _values(raw.reshape(-1, line)[:, :-1])
    return values.astype(np.uint8).reshape(-1), (values == _UNKNOWN).reshape(-1)


def _values(digits: Bytes) -> npt.NDArray[np.uint16]:
    """Values of lines of digits, two a byte, the lowest byte first; ValueError as in decode."""
    values = _PAIRS[np.ascontiguousarray(digits).view("<u2")][:, ::-1]
    if (values == _NONE).any():
        raise ValueError("a dump holds what is no hexadecimal digit")
    return values


@dataclass
class Held:
    """The contents of a memory at the last look."""

    width: int  # bytes of a word
    data: Bytes
    unknown: npt.NDArray[np.bool_]

    def change(self, text: bytes) -> None:
        """Take a dump of words that changed, each behind its number of eight digits."""
        lines = np.frombuffer(text, np.uint8).reshape(-1, 8 + 1 + 2 * self.width + 1)
        places = _values(lines[:, :8]).astype(np.uint8).view("<u4")[:, 0]
        values = _values(lines[:, 9:-1])
        self.data.reshape(-1, self.width)[places] = values
        self.unknown.reshape(-1, self.width)[places] = values == _UNKNOWN


# a simulation has one tb_top, and that one record of what was found, whoever asked
_held: dict[int, Held] = {}


def give(name: str, text: str) -> None:
    """Write a file for the bench. A new one: truncating an old one costs a disk access on ext4."""
    path = Path(name)
    path.unlink(missing_ok=True)
    path.write_text(text)


def take(name: str) -> bytes:
    """The bytes that the bench wrote; the file is removed, so that the next one is new as well."""
    path = Path(name)
    data = path.read_bytes()
    path.unlink()
    return data


class OutOfBounds(AssertionError):
    """An access of the back door reaches beyond the end of its memory."""


class Backdoor:
    """Back door of a running tb_top; files lie in the simulation's working folder.

    OutOfBounds when an access does not fit, before anything is written.
    """

    def __init__(self, tb: Handle) -> None:
        self.tb = tb

    async def command(self, command: int, low: int = 0, high: int = 0, hold: int = 1) -> None:
        """Give a command to tb_top's back door."""
        tb = self.tb
        tb.bd_cmd.value, tb.bd_lo.value, tb.bd_hi.value = command, low, high
        await Timer(1, "ns")
        tb.bd_go.value = 1
        await Timer(hold, "ns")
        tb.bd_go.value = 0
        await Timer(1, "ns")

    @property
    def storage_bytes(self) -> int:
        """Size of the storage."""
        return 4 * int(self.tb.store_words.value)

    @property
    def ram_rows(self) -> int:
        """Rows of the AI RAM."""
        return int(self.tb.ram_rows.value)

    @property
    def path_bytes(self) -> int:
        """Bytes of a word of the AI RAM, as it is built."""
        return int(self.tb.path_bytes.value)

    def _fits(self, what: str, first: int, count: int, size: int) -> None:
        if first < 0 or count < 1 or first + count > size:
            raise OutOfBounds(f"{count} {what} at {first} do not fit: there are {size}")

    async def load_storage(self, addr: int, data: Bytes) -> None:
        """Write bytes from byte address ``addr`` (a multiple of 4) on; padded to whole words."""
        if addr % 4:
            raise ValueError(f"storage address {addr:#x} is not a multiple of 4")
        padded = np.pad(data, (0, -len(data) % 4))
        self._fits("bytes of storage", addr, padded.size, self.storage_bytes)
        give("storage_in.hex", encode(padded, 4, addr // 4))
        await self.command(LOAD_STORAGE)

    async def read_storage(self, addr: int, size: int) -> Known:
        """``size`` bytes from byte address ``addr`` on, and which are unknown."""
        self._fits("bytes of storage", addr, size, self.storage_bytes)
        first, last = addr // 4, (addr + size - 1) // 4
        await self.command(DUMP_STORAGE, first, last)
        data, unknown = decode_dump(take("storage_out.hex"), 4)
        skip = addr - 4 * first
        return data[skip : skip + size], unknown[skip : skip + size]

    async def load_ram(self, row: int, data: Bytes) -> None:
        """Write whole rows of the AI RAM."""
        self._fits("rows of the AI RAM", row, data.size // 64, self.ram_rows)
        width = self.path_bytes
        each = max(1, width // 64)
        first, last = row // each, ceil_div(row + data.size // 64, each)
        text = encode(data, min(width, 64), row * 64 // min(width, 64))
        if each > 1:  # a word at either end may have a row that stays, known or not
            await self.command(DUMP_RAM, first, last - 1)
            old = [n for n in take("ai_ram_out.hex").decode().split() if len(n) == 2 * width]
            lines = [old[0][128:], *text.split()[1:], old[-1][:128]]
            lines = lines[1 - row % each :]
            pairs = [high + low for low, high in zip(lines[::2], lines[1::2], strict=False)]
            text = f"@{first:x}\n" + "\n".join(pairs) + "\n"
        give("ai_ram_in.hex", text)
        await self.command(LOAD_RAM)

    async def read_ram(self, row: int, rows: int) -> Known:
        """Whole rows of the AI RAM, and which bytes are unknown.

        A write of the last three cycles may not be in the memory yet (docs/architecture.md 5).
        """
        self._fits("rows of the AI RAM", row, rows, self.ram_rows)
        width = self.path_bytes
        first, last = row * 64 // width, (64 * (row + rows) - 1) // width
        data, unknown = await self._ram_words(first, last)
        skip = row * 64 - first * width
        return data[skip : skip + 64 * rows], unknown[skip : skip + 64 * rows]

    async def _ram_words(self, first: int, last: int) -> Known:
        """Words of the AI RAM as it is built."""
        await self.command(DUMP_RAM, first, last)
        return decode_dump(take("ai_ram_out.hex"), self.path_bytes)

    async def whole_storage(self) -> Known:
        """``read_storage`` of all of it."""
        return await self._whole(
            CHANGES_STORAGE, 4, lambda: Backdoor.read_storage(self, 0, self.storage_bytes)
        )

    async def whole_ram(self) -> Known:
        """``read_ram`` of all rows."""
        width, size = self.path_bytes, 64 * self.ram_rows
        data, unknown = await self._whole(
            CHANGES_RAM, width, lambda: self._ram_words(0, (size - 1) // width)
        )
        return data[:size], unknown[:size]  # the last word may be wider than the row in it

    async def _whole(
        self,
        command: int,
        width: int,
        read: Callable[[], Awaitable[Known]],
    ) -> Known:
        """A memory; only words that have changed are written and read, but on Icarus, which
        compares them no faster than it writes them."""
        if "icarus" in cocotb.SIM_NAME.lower():
            return await read()
        if command not in _held:
            # first, so that a word that changes before the dump has read it comes once more
            await self._changes(command)
            _held[command] = Held(width, *await read())
        held = _held[command]
        held.change(await self._changes(command))
        return held.data.copy(), held.unknown.copy()

    async def _changes(self, command: int) -> bytes:
        await self.command(command)
        return take(CHANGES[command])

    async def perf_records(self) -> npt.NDArray[np.uint64]:
        """Counters (layers, WIDTH), cumulative, at the end of every layer since ``forget_perf``."""
        count = int(self.tb.perf_count.value)
        if not count:
            return np.zeros((0, WIDTH), dtype=np.uint64)
        await self.command(DUMP_PERF)
        data, unknown = decode_dump(take("perf_out.hex"), 8)
        if unknown.any():
            which = sorted(set(np.nonzero(unknown)[0] // 8 % WIDTH))
            raise AssertionError(f"performance counters {which} are unknown (x)")
        return data.view("<u8").reshape(-1, WIDTH)[:count]

    async def forget_perf(self) -> None:
        """Begin a new record."""
        await self.command(CLEAR_PERF, hold=12)  # one rising clock edge
