# SPDX-License-Identifier: Apache-2.0
"""Outputs of 32 bits (docs/kpu.md 1.10): four planes of bytes in the AI RAM, words in storage.

A layer with ``out32`` gives a map of 4 * O channels: byte k of output channel o is plane 4 * o + k.
On its way out of the device the four planes of a channel are put together, so that the storage (or
the result FIFO) holds little-endian words in o, y, x order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BYTES = 4  # of a word


def planes_of(words: npt.NDArray) -> npt.NDArray[np.uint8]:
    """Words (O, h, w) of 32 bits as the planes (4 * O, h, w)."""
    o, h, w = words.shape
    raw = np.ascontiguousarray(words, dtype="<u4").view(np.uint8).reshape(o, h, w, BYTES)
    return np.ascontiguousarray(raw.transpose(0, 3, 1, 2)).reshape(o * BYTES, h, w)


def words_of(planes: npt.NDArray[np.uint8]) -> npt.NDArray[np.int32]:
    """The signed words (O, h, w) of planes (4 * O, h, w)."""
    return to_stored(planes, True).view("<i4").reshape(len(planes) // BYTES, *planes.shape[1:])


def to_stored(y: npt.NDArray[np.uint8], words: bool) -> npt.NDArray[np.uint8]:
    """Bytes (n,) in the order in which an output map leaves the device."""
    y = np.ascontiguousarray(y)
    if not words:
        return y.reshape(-1)
    c, h, w = y.shape
    split = y.reshape(c // BYTES, BYTES, h, w)
    return np.ascontiguousarray(split.transpose(0, 2, 3, 1)).reshape(-1)


def from_stored(
    stored: npt.NDArray[np.uint8], shape: tuple[int, int, int], words: bool
) -> npt.NDArray[np.uint8]:
    """The output map of ``shape``, as in the AI RAM, from the bytes that left the device."""
    if not words:
        return stored.reshape(shape)
    c, h, w = shape
    return planes_of(np.ascontiguousarray(stored).view("<u4").reshape(c // BYTES, h, w))
