# SPDX-License-Identifier: Apache-2.0
"""One node's body of a v4 file while it is read: memory ranges, shapes, fixed-point factors."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

from openkpu.kmodel.program import View
from openkpu.kmodel.readers.binary import Blob, Cursor

SPACES = {0: "const", 1: "main", 2: "kpu"}
DTYPES = {0: "<f4", 1: "u1"}
SHIFT_MAX = 63  # of a 64-bit product
FLOAT, BYTES = "<f4", "u1"
Name = TypeVar("Name", bound=str)


@dataclasses.dataclass
class Node:
    """Reads the fields of a body in order; ``offset`` is the body's place in the file."""

    c: Cursor
    offset: int
    eight_bit: bool = True

    def range(self, what: str, dtype: str | None = None) -> View:
        """A memory range as a vector; KmodelError when it is no range.

        ``dtype``: the type that the operation assumes.  The runtime uses the range's own type only
        in operations that move elements of any type; their readers leave ``dtype`` out.
        """
        at = self.c.position
        space, code, start, size = self.c.read("4I", what)
        if space not in SPACES or code not in DTYPES:
            raise self.c.blob.error(
                at, f"{what} in memory {space} of type {code}, expected 0..2 and 0..1"
            )
        dtype = dtype or DTYPES[code]
        item = 4 if dtype == FLOAT else 1
        if size % item:
            raise self.c.blob.error(at, f"{what} of {size} bytes of float")
        return View(SPACES[space], start, (size // item,), dtype)

    def shaped(self, view: View, shape: tuple[int, ...], what: str) -> View:
        """The range as a tensor of ``shape``, whose size must be right."""
        view_shape = view.flat(*shape)
        if view_shape.count != view.count or any(n < 1 for n in shape):
            raise self.c.error(f"{what} of {view.count} elements for shape {list(shape)}")
        return view_shape

    def shape(self, what: str) -> tuple[int, int, int, int]:
        """Four signed extents."""
        return self.c.read("4i", what)

    def pad(self, what: str) -> tuple[int, int]:
        """Padding before and after."""
        return self.c.read("2i", what)

    def clamp(self) -> tuple[float, float]:
        """Fused activation: lowest and highest value, which may be the ends of float."""
        low, high = self.c.read("2f", "fused activation")
        if not low <= high:
            raise self.c.error(f"fused activation {low:g} .. {high:g}")
        return low, high

    def shift(self, what: str) -> int:
        """A right shift of a 64-bit product."""
        at, value = self.c.position, self.c.i32(what)
        if not 0 <= value <= SHIFT_MAX:
            raise self.c.blob.error(at, f"{what} {value}, expected 0..{SHIFT_MAX}")
        return value

    def fixed(self, what: str) -> tuple[int, int, int]:
        """(offset, factor, shift) in this order."""
        offset, mul = self.c.read("2i", what)
        return offset, mul, self.shift(f"{what} shift")

    def choice(self, names: tuple[Name, ...], what: str) -> Name:
        """The name of an enumerator."""
        at, value = self.c.position, self.c.u32(what)
        if value >= len(names):
            raise self.c.blob.error(at, f"{what} {value} is not supported")
        return names[value]


def kpu_row(blob: Blob, offset: int, view: View) -> int:
    """AI RAM row of a range that must be there."""
    if view.space != "kpu" or view.start % 64:
        raise blob.error(offset, f"{view} is not a row of the AI RAM")
    return view.start // 64
