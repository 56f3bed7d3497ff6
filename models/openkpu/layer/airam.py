# SPDX-License-Identifier: Apache-2.0
"""Feature maps in the AI RAM: dense (C, H, W) bytes <-> 64-byte rows (docs/kpu.md 2.2)."""

from __future__ import annotations

import functools
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from openkpu.arithmetic.integers import ceil_div
from openkpu.layer.layout import AI_RAM_ROWS, ROW_BYTES, Layout

Item = TypeVar("Item", bound=np.generic)


def new_ram(rows: int = AI_RAM_ROWS, fill: int = 0) -> npt.NDArray[np.uint8]:
    """An AI RAM as a flat byte array (2 MiB by default)."""
    return np.full(rows * ROW_BYTES, fill, dtype=np.uint8)


def _view(ram: npt.NDArray[Item], layout: Layout) -> npt.NDArray[Item]:
    """The rows of a map as (channel group, channel in group, line, byte of the line)."""
    if layout.base < 0 or (layout.base + layout.rows) * ROW_BYTES > ram.size:
        raise ValueError(
            f"map in rows {layout.base}..{layout.base + layout.rows - 1}, "
            f"the AI RAM has {ram.size // ROW_BYTES}"
        )
    rows = ram[layout.base * ROW_BYTES : (layout.base + layout.rows) * ROW_BYTES]
    line = layout.row_len * ROW_BYTES
    return np.lib.stride_tricks.as_strided(
        rows,
        (
            ceil_div(layout.channels, layout.groups),
            layout.groups,
            layout.height,
            line // layout.groups,
        ),
        tuple(
            n * rows.strides[0] for n in (layout.channel_rows * ROW_BYTES, layout.pitch, line, 1)
        ),
    )


def pack_map(ram: npt.NDArray[np.uint8], base: int, x: npt.NDArray) -> Layout:
    """Write map ``x`` (C, H, W) of bytes at row ``base``; other bytes of its rows stay as they are.

    Returns the layout, which has the rows and bytes used.  ValueError when it does not fit.
    """
    x = np.asarray(x)
    return write_rows(ram, Layout(*x.shape, base=base), x)


def write_rows(ram: npt.NDArray[np.uint8], layout: Layout, x: npt.NDArray) -> Layout:
    """Write map ``x`` (C, H, W) of bytes where ``layout`` says; ValueError as ``pack``."""
    x = np.ascontiguousarray(x).view(np.uint8)
    channel = np.arange(layout.channels)
    view = _view(ram, layout)
    view[channel // layout.groups, channel % layout.groups, :, : layout.width] = x
    return layout


def unpack_map(ram: npt.NDArray[Item], base: int, shape: tuple[int, int, int]) -> npt.NDArray[Item]:
    """Read a map of ``shape`` (C, H, W) at row ``base``; ValueError when it lies outside.

    ``ram``: one item for each byte, which may be something else of the byte, as its address.
    """
    return read_rows(ram, Layout(*shape, base=base))


def bytes_of(layout: Layout) -> npt.NDArray[np.int32]:
    """Which bytes of the AI RAM are those of the map (C, H, W)."""
    return read_rows(_places(), layout)


@functools.cache
def _places() -> npt.NDArray[np.int32]:
    return np.arange(AI_RAM_ROWS * ROW_BYTES, dtype=np.int32)


def read_rows(ram: npt.NDArray[Item], layout: Layout) -> npt.NDArray[Item]:
    """Read the map (C, H, W) that lies where ``layout`` says; ValueError as ``unpack``."""
    channel = np.arange(layout.channels)
    view = _view(ram, layout)
    return view[channel // layout.groups, channel % layout.groups, :, : layout.width]
