# SPDX-License-Identifier: Apache-2.0
"""Parameter tables and their memory formats (docs/kpu.md 2.1): batch norm, activation, weights."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

SEGMENTS = 16
ACT_WORDS = 18
BN_BYTES = 8  # per output channel
ACT_BYTES = ACT_WORDS * 8


def _signed(values: npt.NDArray[np.uint64], low: int, width: int) -> npt.NDArray[np.int64]:
    """Sign-extended bit field [low, low+width) of u64 words."""
    top = np.uint64(64 - width - low)
    return (values << top).astype(np.int64) >> (64 - width)


def _fits(name: str, values: npt.NDArray[np.int64], width: int, signed: bool) -> None:
    least = -(1 << (width - 1)) if signed else 0
    most = (1 << (width - signed)) - 1
    if values.min(initial=0) < least or values.max(initial=0) > most:
        raise ValueError(f"{name} outside {least}..{most}")


def _ints(values: npt.ArrayLike, count: int | None = None) -> npt.NDArray[np.int64]:
    array = np.asarray(values, dtype=np.int64).reshape(-1)
    return np.broadcast_to(array, (count,)) if count and array.size == 1 else array


@dataclasses.dataclass(frozen=True)
class BatchNorm:
    """Per output channel: v = ((alu * mul) >> shift) + add.  Arrays (O,) of int64."""

    mul: npt.NDArray[np.int64]  # signed 24
    shift: npt.NDArray[np.int64]  # 0..15
    add: npt.NDArray[np.int64]  # signed 32

    @classmethod
    def make(cls, mul: npt.ArrayLike, shift: npt.ArrayLike, add: npt.ArrayLike) -> BatchNorm:
        """From array-likes; scalars are repeated to the longest."""
        count = max(np.size(mul), np.size(shift), np.size(add))
        return cls(_ints(mul, count), _ints(shift, count), _ints(add, count))

    @classmethod
    def unpack(cls, words: npt.NDArray[np.uint64]) -> BatchNorm:
        """From the O memory words: [23:0] mul, [55:24] add, [59:56] shift."""
        words = np.asarray(words, dtype=np.uint64)
        shift = (words >> np.uint64(56)).astype(np.int64) & 15
        return cls(_signed(words, 0, 24), shift, _signed(words, 24, 32))

    def pack(self) -> npt.NDArray[np.uint64]:
        """The O memory words (u64); ValueError when a value does not fit."""
        _fits("bn mul", self.mul, 24, True)
        _fits("bn add", self.add, 32, True)
        _fits("bn shift", self.shift, 4, False)
        words = (self.mul & 0xFFFFFF) | (self.add & 0xFFFFFFFF) << 24 | self.shift << 56
        return words.astype(np.uint64)


@dataclasses.dataclass(frozen=True)
class ActTable:
    """The 16 segments of the activation; arrays (16,) of int64.

    ``add`` holds the raw bytes 0..255; a layer with ``signed_out`` reads them as signed.
    """

    start: npt.NDArray[np.int64]  # signed 36
    mul: npt.NDArray[np.int64]  # signed 16
    shift: npt.NDArray[np.int64]  # 0..255
    add: npt.NDArray[np.int64]  # byte

    @classmethod
    def make(
        cls, start: npt.ArrayLike, mul: npt.ArrayLike, shift: npt.ArrayLike, add: npt.ArrayLike
    ) -> ActTable:
        """From array-likes of 16 (scalars are repeated); add may be -128..255."""
        return cls(
            _ints(start, SEGMENTS),
            _ints(mul, SEGMENTS),
            _ints(shift, SEGMENTS),
            _ints(add, SEGMENTS) & 0xFF,
        )

    @classmethod
    def unpack(cls, words: npt.NDArray[np.uint64]) -> ActTable:
        """From the 18 memory words: entry [7:0] shift, [23:8] mul, [59:24] start; then 16 adds."""
        words = np.ascontiguousarray(words, dtype=np.uint64)
        if words.shape != (ACT_WORDS,):
            raise ValueError(f"an activation table has {ACT_WORDS} words, got {words.shape}")
        entry = words[:SEGMENTS]
        add = words[SEGMENTS:].astype("<u8").view(np.uint8).astype(np.int64)
        shift = entry.astype(np.int64) & 0xFF
        return cls(_signed(entry, 24, 36), _signed(entry, 8, 16), shift, add)

    def pack(self) -> npt.NDArray[np.uint64]:
        """The 18 memory words (u64); ValueError when a value does not fit."""
        _fits("act start", self.start, 36, True)
        _fits("act mul", self.mul, 16, True)
        _fits("act shift", self.shift, 8, False)
        _fits("act add", self.add, 8, False)
        entry = (self.start & ((1 << 36) - 1)) << 24 | (self.mul & 0xFFFF) << 8 | self.shift
        add = self.add.astype(np.uint8).view("<u8")
        return np.concatenate([entry.astype(np.uint64), add.astype(np.uint64)])


def weights_from_bytes(raw: npt.NDArray[np.uint8], eight_bit: bool) -> npt.NDArray:
    """Weights in memory order from their bytes: uint8, or little-endian uint16."""
    raw = np.ascontiguousarray(raw, dtype=np.uint8).reshape(-1)
    return raw if eight_bit else raw.view("<u2")


def weights_to_bytes(weights: npt.NDArray, eight_bit: bool) -> npt.NDArray[np.uint8]:
    """Bytes in memory order of unsigned weights of any shape."""
    dtype = "<u1" if eight_bit else "<u2"
    return np.ascontiguousarray(weights, dtype=dtype).reshape(-1).view(np.uint8)
