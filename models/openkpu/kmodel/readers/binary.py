# SPDX-License-Identifier: Apache-2.0
"""Reading little-endian structures from a file image; every access is checked."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from openkpu.kmodel.errors import KmodelError, bad

COUNT_MAX = 1 << 20  # entries of any table: far beyond what a real model has
BODY_ALIGN = 8  # bytes that the compilers of v3 and v4 align bodies to


class Blob:
    """The bytes of a model file and its name for messages."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data = bytes(data)
        self.name = name

    def __len__(self) -> int:
        return len(self.data)

    def error(self, offset: int | None, text: str) -> KmodelError:
        """The error that says ``text`` about this place of the file."""
        return bad(self.name, offset, text)

    def need(self, offset: int, size: int, what: str) -> None:
        """KmodelError unless bytes offset..offset+size-1 are in the file."""
        if offset < 0 or size < 0 or offset + size > len(self.data):
            raise self.error(
                offset, f"{what} takes {size} bytes there, the file has {len(self.data)}"
            )

    def bytes(self, offset: int, size: int, what: str) -> npt.NDArray[np.uint8]:
        """``size`` bytes (uint8, read-only)."""
        self.need(offset, size, what)
        return np.frombuffer(self.data, np.uint8, size, offset)

    def array(self, dtype: str, offset: int, count: int, what: str) -> npt.NDArray:
        """``count`` items of little-endian ``dtype``."""
        if not 0 <= count <= len(self.data):
            raise self.error(offset, f"{what}: {count} items do not fit the file")
        self.need(offset, count * np.dtype(dtype).itemsize, what)
        return np.frombuffer(self.data, dtype, count, offset)

    def cursor(self, offset: int, size: int | None, what: str) -> Cursor:
        """A cursor over ``size`` bytes from ``offset`` on (None: to the end of the file)."""
        end = len(self.data) if size is None else offset + size
        self.need(offset, end - offset, what)
        return Cursor(self, offset, end, what)


class Cursor:
    """Reads one value after the other between two offsets."""

    def __init__(self, blob: Blob, position: int, end: int, what: str) -> None:
        self.blob, self.position, self.end, self.what = blob, position, end, what

    @property
    def left(self) -> int:
        return self.end - self.position

    def error(self, text: str) -> KmodelError:
        return self.blob.error(self.position, f"{self.what}: {text}")

    def take(self, size: int, what: str) -> int:
        """Offset of the next ``size`` bytes, which are passed over."""
        if size < 0 or size > self.left:
            raise self.error(f"{what} takes {size} bytes, {self.left} are left")
        offset = self.position
        self.position += size
        return offset

    def body(self, size: int, what: str, name: str, *, last: bool) -> Cursor:
        """A cursor over the next ``size`` bytes, which are passed over.

        The compilers move on to the alignment without writing, so the bytes after the ``last`` body
        need not be in the file; what the body says must be, which its reader finds out.
        """
        missing = size - self.left
        if last and 0 < missing < BODY_ALIGN:
            size = self.left
        start = self.take(size, what)
        return Cursor(self.blob, start, start + size, name)

    def read(self, form: str, what: str) -> tuple:
        """Values by a struct format (little endian)."""
        form = "<" + form
        return struct.unpack_from(form, self.blob.data, self.take(struct.calcsize(form), what))

    def u8(self, what: str) -> int:
        return self.read("B", what)[0]

    def u32(self, what: str) -> int:
        return self.read("I", what)[0]

    def i32(self, what: str) -> int:
        return self.read("i", what)[0]

    def f32(self, what: str) -> float:
        return self.read("f", what)[0]

    def count(self, what: str, item: int = 1) -> int:
        """A u32 that counts things of at least ``item`` bytes each in the file."""
        at = self.position
        value = self.u32(what)
        if value > COUNT_MAX or value * item > len(self.blob):
            raise self.blob.error(at, f"{what} = {value}, more than the file can hold")
        return value

    def array(self, dtype: str, count: int, what: str) -> npt.NDArray:
        """``count`` items of little-endian ``dtype``."""
        if not 0 <= count <= len(self.blob):
            raise self.error(f"{what}: {count} items do not fit the file")
        offset = self.take(count * np.dtype(dtype).itemsize, what)
        return np.frombuffer(self.blob.data, dtype, count, offset)
