# SPDX-License-Identifier: Apache-2.0
"""A byte stream of the DMAC: bus words with a number of valid bytes, and pauses."""

import random

from openkpu_tb.handle import Handle


def bus_words(data: bytes, lanes: int, split: int) -> list[tuple[int, int, int]]:
    """(word, first byte, bytes) of ``data`` in requests of ``split`` bytes at any alignment."""
    out = []
    for start in range(0, len(data), split):
        part = data[start : start + split]
        off = random.randrange(lanes)
        while part:
            piece, part = part[: lanes - off], part[lanes - off :]
            word = random.randbytes(off) + piece + random.randbytes(lanes - off - len(piece))
            out.append((int.from_bytes(word, "little"), off, len(piece)))
            off = 0
    return out


class ByteStream:
    """The sending side of a stream ``<prefix>_valid/ready/data/off/cnt``."""

    def __init__(self, dut: Handle, prefix: str) -> None:
        self.valid, self.ready, self.data, self.off, self.cnt = (
            getattr(dut, f"{prefix}_{name}") for name in ("valid", "ready", "data", "off", "cnt")
        )
        self.lanes = len(self.data) // 8
        self.words: list[tuple[int, int, int]] = []
        self.valid.value = 0
        self.on = False

    def add(self, data: bytes, split: int) -> None:
        self.words += bus_words(data, self.lanes, split)

    def drive(self, p: float) -> None:
        """Before an edge: offer the next word, or pause (never take an offer back)."""
        self.on = bool(self.words) and (self.on or random.random() < p)
        self.valid.value = int(self.on)
        if self.on:
            self.data.value, self.off.value, self.cnt.value = self.words[0]

    def sample(self) -> None:
        """After the edge."""
        if self.on and int(self.ready.value):
            self.words.pop(0)
            self.on = False
