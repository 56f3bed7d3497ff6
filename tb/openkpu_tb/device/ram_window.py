# SPDX-License-Identifier: Apache-2.0
"""Feature maps through the host's window of the AI RAM, as the vendor's driver moves them.

A map whose lines fill their rows is one block of words; any other is moved line by line, each line
as words, then a half-word and a byte as its width asks for (docs/kpu.md 2.2 and 3), so that the
bytes between the lines are left alone.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from openkpu.layer.layout import ROW_BYTES, Layout
from openkpu_tb.ahb.host_agent import Transfer
from openkpu_tb.core.registers import AI_RAM

Bytes = npt.NDArray[np.uint8]
Span = tuple[int, int]  # first byte of the AI RAM, bytes


def spans(layout: Layout) -> Iterator[Span]:
    """The pieces of a map in the order of its dense bytes (c, y, x)."""
    if layout.width % ROW_BYTES == 0:
        yield layout.base * ROW_BYTES, layout.channels * layout.height * layout.width
        return
    for c in range(layout.channels):
        first = layout.base + c // layout.groups * layout.channel_rows
        column = c % layout.groups * layout.pitch
        for y in range(layout.height):
            yield (first + y * layout.row_len) * ROW_BYTES + column, layout.width


def accesses(span: Span) -> Iterator[tuple[int, int]]:
    """(byte address, HSIZE) of the aligned accesses that cover a span, as wide as they can be."""
    at, left = span
    while left:
        size = 2 if left >= 4 and at % 4 == 0 else 1 if left >= 2 and at % 2 == 0 else 0
        yield at, size
        at, left = at + (1 << size), left - (1 << size)


def writes(pieces: Sequence[Span] | Iterator[Span], data: Bytes) -> list[Transfer]:
    """Transfers that write ``data`` into the pieces, one after the other."""
    raw, taken, found = data.tobytes(), 0, []
    for span in pieces:
        for at, size in accesses(span):
            value = int.from_bytes(raw[taken : taken + (1 << size)], "little")
            found.append(Transfer(AI_RAM + at, True, value, size))
            taken += 1 << size
    if taken != len(raw):
        raise ValueError(f"{len(raw)} bytes for a place of {taken}")
    return found


def reads(pieces: Sequence[Span] | Iterator[Span]) -> list[Transfer]:
    """Transfers that read the pieces."""
    return [Transfer(AI_RAM + at, False, 0, size) for span in pieces for at, size in accesses(span)]


def collect_bytes(transfers: Sequence[Transfer]) -> Bytes:
    """The bytes that answered ``reads``."""
    raw = b"".join(t.data.to_bytes(1 << t.size, "little") for t in transfers)
    return np.frombuffer(raw, dtype=np.uint8).copy()
