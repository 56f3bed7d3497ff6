# SPDX-License-Identifier: Apache-2.0
"""The one exception that model files, images and options raise: a single line for the user."""

from __future__ import annotations

from openkpu.terminal import one_line, printable


class KmodelError(ValueError):
    """A model file, image or option that cannot be used.

    The text is one line: file, offset, what was found and what was expected.
    """

    def __init__(self, text: str, offset: int | None = None) -> None:
        super().__init__(printable(one_line(text)))
        self.offset = offset


class Unsupported(KmodelError):
    """An operation that is known by name and not followed."""

    @classmethod
    def of(cls, file: str, offset: int, operation: str) -> Unsupported:
        """The error for an operation at byte ``offset`` of ``file``."""
        return cls(f"{file}: offset 0x{offset:x}: operation {operation} is not supported", offset)


def bad(file: str, offset: int | None, text: str) -> KmodelError:
    """The error for ``text`` at byte ``offset`` of ``file``."""
    place = "" if offset is None else f" offset 0x{offset:x}:"
    return KmodelError(f"{file}:{place} {text}", offset)
